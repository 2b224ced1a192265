-- | "Redis.Commands.Transfer".
module Redis.Cases.Transfer (transferCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.CommandCase
import Redis.Commands.String (Expiry (..))
import Redis.Commands.Transfer
import Redis.Duration
import Redis.Internal.Config (Credentials (..), toSecret)
import Redis.Value (Value (..))

transferCases :: [Case]
transferCases = dumped <> migrated

dumped :: [Case]
dumped =
  [ after [kv] "dump" (dump "k") ["DUMP", "k"] (Such "has the value" (maybe False ("\0\1v" `Char8.isPrefixOf`))),
    onEmpty "dump" (dump "k") ["DUMP", "k"] (Gives Nothing),
    onEmpty "restore" (restore "k" payload) ["RESTORE", "k", "0", payload] (Gives ()),
    after [kv] "restore" (restore "k" payload) ["RESTORE", "k", "0", payload] (Fails "BUSYKEY"),
    onEmpty "restore" (restore "k" "payload") ["RESTORE", "k", "0", "payload"] (Fails "ERR"),
    after
      [kv]
      "restoreWith"
      (restoreWith restoreDefaults {restoreExpiry = ExpireIn (seconds 0.0015), restoreReplace = True} "k" payload)
      ["RESTORE", "k", "2", payload, "REPLACE"]
      (Gives ()),
    onEmpty
      "restoreWith"
      (restoreWith restoreDefaults {restoreExpiry = ExpireAt (posixSecondsToUTCTime 9)} "k" payload)
      ["RESTORE", "k", "9000", payload, "ABSTTL"]
      (Gives ()),
    onEmpty
      "restoreWith"
      (restoreWith restoreDefaults {restoreExpiry = KeepExpiry} "k" payload)
      ["RESTORE", "k", "0", payload]
      (Gives ()),
    onEmpty
      "restoreWith"
      (restoreWith restoreDefaults {restoreUse = Just (IdleFor (seconds 99.5))} "k" payload)
      ["RESTORE", "k", "0", payload, "IDLETIME", "100"]
      (Gives ()),
    onEmpty
      "restoreWith"
      (restoreWith restoreDefaults {restoreUse = Just (UsedOften 200)} "k" payload)
      ["RESTORE", "k", "0", payload, "FREQ", "200"]
      (Gives ()),
    onEmpty
      "restoreWith"
      (restoreWith restoreDefaults {restoreUse = Just (UsedOften 256)} "k" payload)
      ["RESTORE", "k", "0", payload, "FREQ", "256"]
      (Fails "ERR")
  ]

-- | Without a server to move keys to; "Redis.MigrateLiveSpec" has one.
migrated :: [Case]
migrated =
  [ onEmpty
      "migrate"
      (migrate "127.0.0.1" 1 ("k" :| []))
      ["MIGRATE", "127.0.0.1", "1", "k", "0", "1000"]
      (Gives False),
    after
      [kv]
      "migrate"
      (migrate "127.0.0.1" 1 ("k" :| []))
      ["MIGRATE", "127.0.0.1", "1", "k", "0", "1000"]
      (Fails "IOERR"),
    onEmpty
      "migrate"
      (migrate "127.0.0.1" 1 ("{k}a" :| ["{k}b"]))
      ["MIGRATE", "127.0.0.1", "1", "", "0", "1000", "KEYS", "{k}a", "{k}b"]
      (Gives False),
    onEmpty
      "migrateWith"
      ( migrateWith
          migrateDefaults {migrateDatabase = 3, migrateTimeout = seconds 0.2, migrateCopy = True, migrateReplace = True}
          "127.0.0.1"
          1
          ("k" :| [])
      )
      ["MIGRATE", "127.0.0.1", "1", "k", "3", "200", "COPY", "REPLACE"]
      (Gives False),
    onEmpty
      "migrateWith"
      (migrateWith migrateDefaults {migrateCredentials = Just (Credentials Nothing (toSecret "p"))} "127.0.0.1" 1 ("k" :| []))
      ["MIGRATE", "127.0.0.1", "1", "k", "0", "1000", "AUTH", "p"]
      (Gives False),
    onEmpty
      "migrateWith"
      (migrateWith migrateDefaults {migrateCredentials = Just (Credentials (Just "u") (toSecret "p"))} "127.0.0.1" 1 ("{k}a" :| ["{k}b"]))
      ["MIGRATE", "127.0.0.1", "1", "", "0", "1000", "AUTH2", "u", "p", "KEYS", "{k}a", "{k}b"]
      (Gives False),
    after [kv] "move" (move "k" 5) ["MOVE", "k", "5"] (Gives True),
    onEmpty "move" (move "k" 5) ["MOVE", "k", "5"] (Gives False),
    needs [(IsValkey, (9, 2))] . documented [Integer 1] $
      after [kv] "moveWith" (moveWith moveDefaults {moveReplace = True} "k" 5) ["MOVE", "k", "5", "REPLACE"] (Gives True)
  ]

kv :: [ByteString]
kv = ["SET", "k", "v"]

-- | The payload that DUMP of Redis 7.0 gives for the string @v@. Newer servers accept it, too.
payload :: ByteString
payload = "\0\1v\10\0\145\8\206\178\25\&8\138\206"
