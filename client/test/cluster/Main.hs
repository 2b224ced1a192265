module Main (main) where

import LiveSpec qualified
import RedirectSpec qualified
import Test.Hspec (hspec)

main :: IO ()
main = hspec (RedirectSpec.spec >> LiveSpec.spec)
