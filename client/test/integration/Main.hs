module Main (main) where

import Redis.HandshakeLiveSpec qualified
import Redis.KeysLiveSpec qualified
import Redis.RepliesLiveSpec qualified
import Redis.ScriptErrorLiveSpec qualified
import Redis.UnknownLiveSpec qualified
import Redis.WireLiveSpec qualified
import Test.Hspec (describe, hspec)

main :: IO ()
main = hspec $ do
  describe "the handshake" Redis.HandshakeLiveSpec.spec
  Redis.KeysLiveSpec.spec
  Redis.RepliesLiveSpec.spec
  Redis.ScriptErrorLiveSpec.spec
  Redis.UnknownLiveSpec.spec
  Redis.WireLiveSpec.spec
