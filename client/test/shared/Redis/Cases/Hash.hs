-- | "Redis.Commands.Hash".
module Redis.Cases.Hash (hashCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (nub)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (isJust)
import Data.Time.Clock (UTCTime)
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.CommandCase
import Redis.Commands.Hash
import Redis.Commands.String (Expiry (..))
import Redis.Duration

hashCases :: [Case]
hashCases = plainCases <> drawingCases <> walkingCases <> expiryCases <> valueAndExpiryCases

plainCases :: [Case]
plainCases =
  [ after [ab] "hset" (hset "k" (("b", "9") :| [("c", "3")])) ["HSET", "k", "b", "9", "c", "3"] (Gives 1),
    after [["SET", "k", "v"]] "hset" (hset "k" (("a", "1") :| [])) ["HSET", "k", "a", "1"] (Fails "WRONGTYPE"),
    onEmpty "hsetnx" (hsetnx "k" "a" "1") ["HSETNX", "k", "a", "1"] (Gives True),
    after [ab] "hsetnx" (hsetnx "k" "a" "9") ["HSETNX", "k", "a", "9"] (Gives False),
    after [ab] "hincrby" (hincrby "k" "a" (-3)) ["HINCRBY", "k", "a", "-3"] (Gives (-2)),
    onEmpty "hincrby" (hincrby "k" "a" maxBound) ["HINCRBY", "k", "a", "9223372036854775807"] (Gives maxBound),
    after [["HSET", "k", "a", "x"]] "hincrby" (hincrby "k" "a" 1) ["HINCRBY", "k", "a", "1"] (Fails "ERR"),
    after [ab] "hincrbyfloat" (hincrbyfloat "k" "b" 0.25) ["HINCRBYFLOAT", "k", "b", "0.25"] (Gives 2.25),
    after [ab] "hincrbyfloat" (hincrbyfloat "k" "b" (0 / 0)) ["HINCRBYFLOAT", "k", "b", "nan"] (Fails "ERR"),
    after [ab] "hdel" (hdel "k" ("a" :| ["z"])) ["HDEL", "k", "a", "z"] (Gives 1),
    onEmpty "hmset" (hmset "k" (("a", "1") :| [("b", "2")])) ["HMSET", "k", "a", "1", "b", "2"] (Gives ()),
    after [ab] "hget" (hget "k" "a") ["HGET", "k", "a"] (Gives (Just "1")),
    after [ab] "hget" (hget "k" "z") ["HGET", "k", "z"] (Gives Nothing),
    after [ab] "hmget" (hmget "k" ("b" :| ["z", "a"])) ["HMGET", "k", "b", "z", "a"] (Gives [Just "2", Nothing, Just "1"]),
    onEmpty "hmget" (hmget "k" ("a" :| [])) ["HMGET", "k", "a"] (Gives [Nothing]),
    after [ab] "hgetall" (hgetall "k") ["HGETALL", "k"] (Gives [("a", "1"), ("b", "2")]),
    onEmpty "hgetall" (hgetall "k") ["HGETALL", "k"] (Gives []),
    after [ab] "hkeys" (hkeys "k") ["HKEYS", "k"] (Gives ["a", "b"]),
    after [ab] "hvals" (hvals "k") ["HVALS", "k"] (Gives ["1", "2"]),
    after [ab] "hlen" (hlen "k") ["HLEN", "k"] (Gives 2),
    after [ab] "hexists" (hexists "k" "a") ["HEXISTS", "k", "a"] (Gives True),
    after [ab] "hexists" (hexists "k" "z") ["HEXISTS", "k", "z"] (Gives False),
    after [["HSET", "k", "a", "four"]] "hstrlen" (hstrlen "k" "a") ["HSTRLEN", "k", "a"] (Gives 4)
  ]

drawingCases :: [Case]
drawingCases =
  [ after [["HSET", "k", "a", "1"]] "hrandfield" (hrandfield "k") ["HRANDFIELD", "k"] (Gives (Just "a")),
    onEmpty "hrandfield" (hrandfield "k") ["HRANDFIELD", "k"] (Gives Nothing),
    after
      [ab]
      "hrandfieldCount"
      (hrandfieldCount "k" (Distinct 5))
      ["HRANDFIELD", "k", "5"]
      (Such "are the two fields" (\found -> length found == 2 && length (nub found) == 2)),
    after
      [ab]
      "hrandfieldCount"
      (hrandfieldCount "k" (Repeated 5))
      ["HRANDFIELD", "k", "-5"]
      (Such "are five of them" (\found -> length found == 5 && all (`elem` ["a", "b"]) found)),
    after [ab] "hrandfieldCount" (hrandfieldCount "k" (Repeated minBound)) ["HRANDFIELD", "k", "0"] (Gives []),
    onEmpty "hrandfieldCount" (hrandfieldCount "k" (Distinct 1)) ["HRANDFIELD", "k", "1"] (Gives []),
    after
      [["HSET", "k", "a", "1"]]
      "hrandfieldWithvalues"
      (hrandfieldWithvalues "k" (Repeated 2))
      ["HRANDFIELD", "k", "-2", "WITHVALUES"]
      (Gives [("a", "1"), ("a", "1")]),
    onEmpty
      "hrandfieldWithvalues"
      (hrandfieldWithvalues "k" (Distinct 2))
      ["HRANDFIELD", "k", "2", "WITHVALUES"]
      (Gives [])
  ]

walkingCases :: [Case]
walkingCases =
  [ after [ab] "hscan" (hscan "k" scanStart) ["HSCAN", "k", "0"] (Gives (ScanPage Nothing [("a", "1"), ("b", "2")])),
    onEmpty "hscan" (hscan "k" scanStart) ["HSCAN", "k", "0"] (Gives (ScanPage Nothing [])),
    after
      [ab]
      "hscanWith"
      (hscanWith hscanDefaults {hscanMatch = Just "b*"} "k" scanStart)
      ["HSCAN", "k", "0", "MATCH", "b*"]
      (Gives (ScanPage Nothing [("b", "2")])),
    after
      ["HSET" : "k" : concat [[Char8.pack (show n), "v"] | n <- [1 .. 1000 :: Int]]]
      "hscanWith"
      (hscanWith hscanDefaults {hscanCount = Just 5} "k" scanStart)
      ["HSCAN", "k", "0", "COUNT", "5"]
      (Such "goes on, and has values" (\page -> isJust (scanNext page) && all ((== "v") . snd) (scanFound page))),
    needs [(IsRedis, (7, 4)), (IsValkey, (8, 0))] $
      after
        [ab]
        "hscanNovalues"
        (hscanNovalues hscanDefaults {hscanMatch = Just "*", hscanCount = Just 100} "k" scanStart)
        ["HSCAN", "k", "0", "MATCH", "*", "COUNT", "100", "NOVALUES"]
        (Gives (ScanPage Nothing ["a", "b"]))
  ]

expiryCases :: [Case]
expiryCases =
  [ after
      [ab]
      "hexpire"
      (hexpire "k" (seconds 99.5) ("a" :| ["z"]))
      ["HEXPIRE", "k", "100", "FIELDS", "2", "a", "z"]
      (Gives [HexpireSet, HexpireNoField]),
    after [ab] "hexpire" (hexpire "k" mempty ("a" :| [])) ["HEXPIRE", "k", "0", "FIELDS", "1", "a"] (Gives [HexpireDeleted]),
    after [ab] "hexpire" (hexpire "k" (seconds (-1)) ("a" :| [])) ["HEXPIRE", "k", "-1", "FIELDS", "1", "a"] (Fails "ERR"),
    onEmpty
      "hexpire"
      (hexpire "k" (seconds 1) ("a" :| ["b"]))
      ["HEXPIRE", "k", "1", "FIELDS", "2", "a", "b"]
      (Gives [HexpireNoField, HexpireNoField]),
    after
      aExpires
      "hexpireWith"
      (hexpireWith HexpireNew "k" (days 1) ("a" :| ["b"]))
      ["HEXPIRE", "k", "86400", "NX", "FIELDS", "2", "a", "b"]
      (Gives [HexpireUnchanged, HexpireSet]),
    after
      aExpires
      "hexpireWith"
      (hexpireWith HexpireExisting "k" (days 1) ("a" :| ["b"]))
      ["HEXPIRE", "k", "86400", "XX", "FIELDS", "2", "a", "b"]
      (Gives [HexpireSet, HexpireUnchanged]),
    after
      aExpires
      "hexpireWith"
      (hexpireWith HexpireLater "k" (days 1) ("a" :| ["b"]))
      ["HEXPIRE", "k", "86400", "GT", "FIELDS", "2", "a", "b"]
      (Gives [HexpireUnchanged, HexpireUnchanged]),
    after
      aExpires
      "hexpireWith"
      (hexpireWith HexpireSooner "k" (days 1) ("a" :| ["b"]))
      ["HEXPIRE", "k", "86400", "LT", "FIELDS", "2", "a", "b"]
      (Gives [HexpireSet, HexpireSet]),
    after
      [ab]
      "hpexpire"
      (hpexpire "k" (seconds 99.5) ("a" :| []))
      ["HPEXPIRE", "k", "99500", "FIELDS", "1", "a"]
      (Gives [HexpireSet]),
    after
      aExpires
      "hpexpireWith"
      (hpexpireWith HexpireNew "k" (seconds 99.5) ("a" :| []))
      ["HPEXPIRE", "k", "99500", "NX", "FIELDS", "1", "a"]
      (Gives [HexpireUnchanged]),
    after
      [ab]
      "hexpireat"
      (hexpireat "k" (posixSecondsToUTCTime 2e9) ("a" :| ["z"]))
      ["HEXPIREAT", "k", "2000000000", "FIELDS", "2", "a", "z"]
      (Gives [HexpireSet, HexpireNoField]),
    after
      [ab]
      "hexpireat"
      (hexpireat "k" (posixSecondsToUTCTime 1) ("a" :| []))
      ["HEXPIREAT", "k", "1", "FIELDS", "1", "a"]
      (Gives [HexpireDeleted]),
    after
      aExpires
      "hexpireatWith"
      (hexpireatWith HexpireSooner "k" (posixSecondsToUTCTime 2e9) ("a" :| []))
      ["HEXPIREAT", "k", "2000000000", "LT", "FIELDS", "1", "a"]
      (Gives [HexpireSet]),
    after
      [ab]
      "hpexpireat"
      (hpexpireat "k" (posixSecondsToUTCTime 2000000000.0005) ("a" :| []))
      ["HPEXPIREAT", "k", "2000000000001", "FIELDS", "1", "a"]
      (Gives [HexpireSet]),
    after
      aExpires
      "hpexpireatWith"
      (hpexpireatWith HexpireLater "k" (posixSecondsToUTCTime 2e9) ("a" :| []))
      ["HPEXPIREAT", "k", "2000000000000", "GT", "FIELDS", "1", "a"]
      (Gives [HexpireUnchanged]),
    after
      aExpires
      "hpersist"
      (hpersist "k" ("a" :| ["b", "z"]))
      ["HPERSIST", "k", "FIELDS", "3", "a", "b", "z"]
      (Gives [HpersistRemoved, HpersistUnchanged, HpersistNoField]),
    onEmpty "hpersist" (hpersist "k" ("a" :| [])) ["HPERSIST", "k", "FIELDS", "1", "a"] (Gives [HpersistNoField]),
    after
      aExpires
      "httl"
      (httl "k" ("a" :| ["b", "z"]))
      ["HTTL", "k", "FIELDS", "3", "a", "b", "z"]
      (Such "have years, for ever, and are not there" (years 40)),
    after
      aExpires
      "hpttl"
      (hpttl "k" ("a" :| ["b", "z"]))
      ["HPTTL", "k", "FIELDS", "3", "a", "b", "z"]
      (Such "have years, for ever, and are not there" (years 40)),
    after
      aExpires
      "hexpiretime"
      (hexpiretime "k" ("a" :| ["b", "z"]))
      ["HEXPIRETIME", "k", "FIELDS", "3", "a", "b", "z"]
      (Gives [FieldExpires late, FieldStays, NoSuchField]),
    onEmpty "hexpiretime" (hexpiretime "k" ("a" :| [])) ["HEXPIRETIME", "k", "FIELDS", "1", "a"] (Gives [NoSuchField]),
    after
      aExpires
      "hpexpiretime"
      (hpexpiretime "k" ("a" :| ["b", "z"]))
      ["HPEXPIRETIME", "k", "FIELDS", "3", "a", "b", "z"]
      (Gives [FieldExpires late, FieldStays, NoSuchField])
  ]
  where
    years count = \case
      [FieldExpires left, FieldStays, NoSuchField] -> left > days (365 * count) && left < days (365 * 200)
      _ -> False

valueAndExpiryCases :: [Case]
valueAndExpiryCases =
  [ onEmpty
      "hsetex"
      (hsetex "k" (seconds 100) (("a", "1") :| [("b", "2")]))
      ["HSETEX", "k", "EX", "100", "FIELDS", "2", "a", "1", "b", "2"]
      (Gives ()),
    onEmpty
      "hsetex"
      (hsetex "k" (seconds (-1)) (("a", "1") :| []))
      ["HSETEX", "k", "EX", "-1", "FIELDS", "1", "a", "1"]
      (Fails "ERR"),
    after
      [ab]
      "hsetexWith"
      (hsetexWith hsetexDefaults {hsetexFields = Just OnlyNewFields} "k" (("b", "9") :| [("c", "3")]))
      ["HSETEX", "k", "FNX", "FIELDS", "2", "b", "9", "c", "3"]
      (Gives False),
    after
      [ab]
      "hsetexWith"
      (hsetexWith hsetexDefaults {hsetexFields = Just OnlyExistingFields, hsetexExpiry = KeepExpiry} "k" (("b", "9") :| []))
      ["HSETEX", "k", "FXX", "KEEPTTL", "FIELDS", "1", "b", "9"]
      (Gives True),
    after
      [ab]
      "hsetexWith"
      (hsetexWith hsetexDefaults {hsetexExpiry = ExpireIn (seconds 1.5)} "k" (("a", "1") :| []))
      ["HSETEX", "k", "PX", "1500", "FIELDS", "1", "a", "1"]
      (Gives True),
    after
      [ab]
      "hsetexWith"
      (hsetexWith hsetexDefaults {hsetexExpiry = ExpireAt late} "k" (("a", "1") :| []))
      ["HSETEX", "k", "PXAT", "4000000000000", "FIELDS", "1", "a", "1"]
      (Gives True),
    needs [(IsValkey, (9, 0))] $
      after
        [ab]
        "hsetexWith"
        (hsetexWith hsetexDefaults {hsetexKey = Just OnlyNewHash} "k" (("c", "3") :| []))
        ["HSETEX", "k", "NX", "FIELDS", "1", "c", "3"]
        (Gives False),
    needs [(IsValkey, (9, 0))] $
      after
        [ab]
        "hsetexWith"
        (hsetexWith hsetexDefaults {hsetexKey = Just OnlyExistingHash, hsetexFields = Just OnlyNewFields} "k" (("c", "3") :| []))
        ["HSETEX", "k", "XX", "FNX", "FIELDS", "1", "c", "3"]
        (Gives True),
    after [ab] "hgetex" (hgetex "k" ("b" :| ["z"])) ["HGETEX", "k", "FIELDS", "2", "b", "z"] (Gives [Just "2", Nothing]),
    onEmpty "hgetex" (hgetex "k" ("b" :| ["z"])) ["HGETEX", "k", "FIELDS", "2", "b", "z"] (Gives [Nothing, Nothing]),
    after
      aExpires
      "hgetexWith"
      (hgetexWith NoExpiry "k" ("a" :| []))
      ["HGETEX", "k", "PERSIST", "FIELDS", "1", "a"]
      (Gives [Just "1"]),
    after
      [ab]
      "hgetexWith"
      (hgetexWith (ExpireIn (minutes 1)) "k" ("a" :| []))
      ["HGETEX", "k", "EX", "60", "FIELDS", "1", "a"]
      (Gives [Just "1"]),
    after
      [ab]
      "hgetexWith"
      (hgetexWith (ExpireAt late) "k" ("a" :| []))
      ["HGETEX", "k", "PXAT", "4000000000000", "FIELDS", "1", "a"]
      (Gives [Just "1"]),
    after [ab] "hgetdel" (hgetdel "k" ("b" :| ["z"])) ["HGETDEL", "k", "FIELDS", "2", "b", "z"] (Gives [Just "2", Nothing]),
    onEmpty "hgetdel" (hgetdel "k" ("b" :| [])) ["HGETDEL", "k", "FIELDS", "1", "b"] (Gives [Nothing])
  ]

-- | A hash of two.
ab :: [ByteString]
ab = ["HSET", "k", "a", "1", "b", "2"]

-- | One of which the first field expires, late.
aExpires :: [[ByteString]]
aExpires = [ab, ["HEXPIREAT", "k", "4000000000", "FIELDS", "1", "a"]]

-- | In the year 2096.
late :: UTCTime
late = posixSecondsToUTCTime 4e9
