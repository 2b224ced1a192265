module Main (main) where

import Redis.CacheLiveSpec qualified
import Redis.CommandsLiveSpec qualified
import Redis.HandshakeLiveSpec qualified
import Redis.KeysLiveSpec qualified
import Redis.LentLiveSpec qualified
import Redis.ListeningLiveSpec qualified
import Redis.MemoryLiveSpec qualified
import Redis.MigrateLiveSpec qualified
import Redis.NamedErrorsLiveSpec qualified
import Redis.RepliesLiveSpec qualified
import Redis.ScanLiveSpec qualified
import Redis.ScriptErrorLiveSpec qualified
import Redis.ScriptLiveSpec qualified
import Redis.SessionLiveSpec qualified
import Redis.SubscriptionLiveSpec qualified
import Redis.TransactionLiveSpec qualified
import Redis.UnknownLiveSpec qualified
import Redis.WireLiveSpec qualified
import Test.Hspec (describe, hspec)

main :: IO ()
main = hspec $ do
  -- First: what other tests leave behind goes while these measure.
  describe "memory:" Redis.MemoryLiveSpec.spec
  Redis.CacheLiveSpec.spec
  Redis.CommandsLiveSpec.spec
  describe "the handshake" Redis.HandshakeLiveSpec.spec
  Redis.KeysLiveSpec.spec
  describe "lent connections" Redis.LentLiveSpec.spec
  Redis.ListeningLiveSpec.spec
  Redis.MigrateLiveSpec.spec
  Redis.NamedErrorsLiveSpec.spec
  Redis.RepliesLiveSpec.spec
  Redis.ScanLiveSpec.spec
  Redis.ScriptErrorLiveSpec.spec
  Redis.ScriptLiveSpec.spec
  Redis.SessionLiveSpec.spec
  Redis.SubscriptionLiveSpec.spec
  Redis.TransactionLiveSpec.spec
  Redis.UnknownLiveSpec.spec
  Redis.WireLiveSpec.spec
