module Main (main) where

import Redis.KeysLiveSpec qualified
import Test.Hspec (hspec)

main :: IO ()
main = hspec Redis.KeysLiveSpec.spec
