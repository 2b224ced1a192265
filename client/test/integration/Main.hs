module Main (main) where

import Redis.HandshakeLiveSpec qualified
import Redis.KeysLiveSpec qualified
import Test.Hspec (describe, hspec)

main :: IO ()
main = hspec $ do
  describe "the handshake" Redis.HandshakeLiveSpec.spec
  Redis.KeysLiveSpec.spec
