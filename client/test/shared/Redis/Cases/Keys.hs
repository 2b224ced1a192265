-- | "Redis.Commands.Keys".
module Redis.Cases.Keys (keyCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.CommandCase
import Redis.Commands.Keys
import Redis.Duration

keyCases :: [Case]
keyCases = presence <> expiry <> names <> walking

presence :: [Case]
presence =
  [ after [ab] "del" (del ("{k}a" :| [])) ["DEL", "{k}a"] (Gives 1),
    after [ab] "del" (del ("{k}a" :| ["{k}b", "{k}c"])) ["DEL", "{k}a", "{k}b", "{k}c"] (Gives 2),
    after [ab] "unlink" (unlink ("{k}a" :| ["{k}b"])) ["UNLINK", "{k}a", "{k}b"] (Gives 2),
    after [ab] "exists" (exists ("{k}a" :| ["{k}b", "{k}a"])) ["EXISTS", "{k}a", "{k}b", "{k}a"] (Gives 3),
    after [ab] "touch" (touch ("{k}a" :| ["{k}c"])) ["TOUCH", "{k}a", "{k}c"] (Gives 1),
    after [["ZADD", "k", "1", "m"]] "type_" (type_ "k") ["TYPE", "k"] (Gives (Just SortedSetKey)),
    onEmpty "type_" (type_ "k") ["TYPE", "k"] (Gives Nothing)
  ]

expiry :: [Case]
expiry =
  [ after [kv] "expire" (expire "k" (seconds 10)) ["EXPIRE", "k", "10"] (Gives True),
    onEmpty "expire" (expire "k" (seconds 1.5)) ["EXPIRE", "k", "2"] (Gives False),
    after [kv] "expire" (expire "k" (milliseconds (-1500))) ["EXPIRE", "k", "-1"] (Gives True),
    after [kv] "expire" (expire "k" (seconds 0.0000001)) ["EXPIRE", "k", "0"] (Gives True),
    after [kv] "pexpire" (pexpire "k" (seconds (-1))) ["PEXPIRE", "k", "-1000"] (Gives True),
    after [kv] "pexpire" (pexpire "k" (seconds 0.0001)) ["PEXPIRE", "k", "1"] (Gives True),
    after [kv] "expireat" (expireat "k" (posixSecondsToUTCTime 1700000000.001)) ["EXPIREAT", "k", "1700000001"] (Gives True),
    after [kv] "pexpireat" (pexpireat "k" (posixSecondsToUTCTime 1700000000.0005)) ["PEXPIREAT", "k", "1700000000001"] (Gives True),
    after
      [kv]
      "expireWith"
      (expireWith expireDefaults {expireCondition = Just OnlyIfNoExpiry} "k" (seconds 10))
      ["EXPIRE", "k", "10", "NX"]
      (Gives True),
    after
      [kv]
      "expireWith"
      (expireWith expireDefaults {expireCondition = Just OnlyIfExpiry} "k" (seconds 10))
      ["EXPIRE", "k", "10", "XX"]
      (Gives False),
    after
      [mortal]
      "pexpireWith"
      (pexpireWith expireDefaults {expireCondition = Just OnlyIfLater} "k" (seconds 10))
      ["PEXPIRE", "k", "10000", "GT"]
      (Gives False),
    after
      [mortal]
      "expireatWith"
      (expireatWith expireDefaults {expireCondition = Just OnlyIfSooner} "k" (posixSecondsToUTCTime 1700000000))
      ["EXPIREAT", "k", "1700000000", "LT"]
      (Gives True),
    after
      [mortal]
      "pexpireatWith"
      (pexpireatWith expireDefaults {expireCondition = Just OnlyIfNoExpiry} "k" (posixSecondsToUTCTime 1700000000))
      ["PEXPIREAT", "k", "1700000000000", "NX"]
      (Gives False),
    after [mortal] "persist" (persist "k") ["PERSIST", "k"] (Gives True),
    after [kv] "persist" (persist "k") ["PERSIST", "k"] (Gives False),
    after [mortal] "ttl" (ttl "k") ["TTL", "k"] (Such "is nearly the whole time" nearlyWhole),
    after [kv] "ttl" (ttl "k") ["TTL", "k"] (Gives NeverExpires),
    onEmpty "ttl" (ttl "k") ["TTL", "k"] (Gives NoSuchKey),
    after [mortal] "pttl" (pttl "k") ["PTTL", "k"] (Such "is nearly the whole time" nearlyWhole),
    after [until4] "expiretime" (expiretime "k") ["EXPIRETIME", "k"] (Gives (KeyExpires (posixSecondsToUTCTime 4000000000))),
    after [kv] "expiretime" (expiretime "k") ["EXPIRETIME", "k"] (Gives NeverExpires),
    onEmpty "expiretime" (expiretime "k") ["EXPIRETIME", "k"] (Gives NoSuchKey),
    after [until4] "pexpiretime" (pexpiretime "k") ["PEXPIRETIME", "k"] (Gives (KeyExpires (posixSecondsToUTCTime 4000000000.005)))
  ]
  where
    mortal = ["SET", "k", "v", "EX", "1000"]
    until4 = ["SET", "k", "v", "PXAT", "4000000000005"]
    nearlyWhole = \case
      KeyExpires time -> time > seconds 900 && time <= seconds 1000
      _ -> False

names :: [Case]
names =
  [ after [ab] "rename" (rename "{k}a" "{k}b") ["RENAME", "{k}a", "{k}b"] (Gives ()),
    onEmpty "rename" (rename "{k}a" "{k}b") ["RENAME", "{k}a", "{k}b"] (Fails "ERR"),
    after [ab] "renamenx" (renamenx "{k}a" "{k}b") ["RENAMENX", "{k}a", "{k}b"] (Gives False),
    after [ab] "renamenx" (renamenx "{k}a" "{k}c") ["RENAMENX", "{k}a", "{k}c"] (Gives True),
    after [ab] "copy" (copy "{k}a" "{k}b") ["COPY", "{k}a", "{k}b"] (Gives False),
    after
      [ab]
      "copyWith"
      (copyWith copyDefaults {copyReplace = True} "{k}a" "{k}b")
      ["COPY", "{k}a", "{k}b", "REPLACE"]
      (Gives True),
    after
      [ab]
      "copyWith"
      (copyWith copyDefaults {copyDatabase = Just 3, copyReplace = True} "{k}a" "{k}b")
      ["COPY", "{k}a", "{k}b", "DB", "3", "REPLACE"]
      (Gives True),
    after [kv] "randomkey" randomkey ["RANDOMKEY"] (Gives (Just "k")),
    onEmpty "randomkey" randomkey ["RANDOMKEY"] (Gives Nothing),
    after [kv, ab] "keys" (keys "k*") ["KEYS", "k*"] (Gives ["k"])
  ]

walking :: [Case]
walking =
  [ after [kv] "scan" (scan scanStart) ["SCAN", "0"] (Gives (ScanPage Nothing ["k"])),
    after
      [kv, ["ZADD", "kz", "1", "m"], ["ZADD", "z", "1", "m"]]
      "scanWith"
      (scanWith scanDefaults {scanMatch = Just "k*", scanCount = Just 100, scanType = Just SortedSetKey} scanStart)
      ["SCAN", "0", "MATCH", "k*", "COUNT", "100", "TYPE", "zset"]
      (Gives (ScanPage Nothing ["kz"]))
  ]

kv, ab :: [ByteString]
kv = ["SET", "k", "v"]
ab = ["MSET", "{k}a", "1", "{k}b", "2"]
