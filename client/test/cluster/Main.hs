module Main (main) where

import RedirectSpec qualified
import Test.Hspec (hspec)

main :: IO ()
main = hspec RedirectSpec.spec
