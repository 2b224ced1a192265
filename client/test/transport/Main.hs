module Main (main) where

import PlainSpec qualified
import Test.Hspec (hspec)

main :: IO ()
main = hspec PlainSpec.spec
