module Main (main) where

import Redis.CommandsLiveSpec qualified
import Redis.HandshakeLiveSpec qualified
import Redis.KeysLiveSpec qualified
import Redis.LentLiveSpec qualified
import Redis.MigrateLiveSpec qualified
import Redis.RepliesLiveSpec qualified
import Redis.ScriptErrorLiveSpec qualified
import Redis.ScriptLiveSpec qualified
import Redis.SessionLiveSpec qualified
import Redis.TransactionLiveSpec qualified
import Redis.UnknownLiveSpec qualified
import Redis.WireLiveSpec qualified
import Test.Hspec (describe, hspec)

main :: IO ()
main = hspec $ do
  Redis.CommandsLiveSpec.spec
  describe "the handshake" Redis.HandshakeLiveSpec.spec
  Redis.KeysLiveSpec.spec
  describe "lent connections" Redis.LentLiveSpec.spec
  Redis.MigrateLiveSpec.spec
  Redis.RepliesLiveSpec.spec
  Redis.ScriptErrorLiveSpec.spec
  Redis.ScriptLiveSpec.spec
  Redis.SessionLiveSpec.spec
  Redis.TransactionLiveSpec.spec
  Redis.UnknownLiveSpec.spec
  Redis.WireLiveSpec.spec
