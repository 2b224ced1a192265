-- | "Redis.Commands.HashField".
module Redis.Cases.HashField (hashFieldCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock (UTCTime)
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.CommandCase
import Redis.Commands.HashField
import Redis.Duration

hashFieldCases :: [Case]
hashFieldCases = expiryCases <> valueAndExpiryCases

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
      (hexpireWith hexpireDefaults {hexpireCondition = Just OnlyIfNoExpiry} "k" (days 1) ("a" :| ["b"]))
      ["HEXPIRE", "k", "86400", "NX", "FIELDS", "2", "a", "b"]
      (Gives [HexpireUnchanged, HexpireSet]),
    after
      aExpires
      "hexpireWith"
      (hexpireWith hexpireDefaults {hexpireCondition = Just OnlyIfExpiry} "k" (days 1) ("a" :| ["b"]))
      ["HEXPIRE", "k", "86400", "XX", "FIELDS", "2", "a", "b"]
      (Gives [HexpireSet, HexpireUnchanged]),
    after
      aExpires
      "hexpireWith"
      (hexpireWith hexpireDefaults {hexpireCondition = Just OnlyIfLater} "k" (days 1) ("a" :| ["b"]))
      ["HEXPIRE", "k", "86400", "GT", "FIELDS", "2", "a", "b"]
      (Gives [HexpireUnchanged, HexpireUnchanged]),
    after
      aExpires
      "hexpireWith"
      (hexpireWith hexpireDefaults {hexpireCondition = Just OnlyIfSooner} "k" (days 1) ("a" :| ["b"]))
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
      (hpexpireWith hexpireDefaults {hexpireCondition = Just OnlyIfNoExpiry} "k" (seconds 99.5) ("a" :| []))
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
      (hexpireatWith hexpireDefaults {hexpireCondition = Just OnlyIfSooner} "k" (posixSecondsToUTCTime 2e9) ("a" :| []))
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
      (hpexpireatWith hexpireDefaults {hexpireCondition = Just OnlyIfLater} "k" (posixSecondsToUTCTime 2e9) ("a" :| []))
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
      (hgetexWith hgetexDefaults {hgetexExpiry = NoExpiry} "k" ("a" :| []))
      ["HGETEX", "k", "PERSIST", "FIELDS", "1", "a"]
      (Gives [Just "1"]),
    after
      [ab]
      "hgetexWith"
      (hgetexWith hgetexDefaults {hgetexExpiry = ExpireIn (minutes 1)} "k" ("a" :| []))
      ["HGETEX", "k", "EX", "60", "FIELDS", "1", "a"]
      (Gives [Just "1"]),
    after
      [ab]
      "hgetexWith"
      (hgetexWith hgetexDefaults {hgetexExpiry = ExpireAt late} "k" ("a" :| []))
      ["HGETEX", "k", "PXAT", "4000000000000", "FIELDS", "1", "a"]
      (Gives [Just "1"]),
    after [ab] "hgetdel" (hgetdel "k" ("b" :| ["z"])) ["HGETDEL", "k", "FIELDS", "2", "b", "z"] (Gives [Just "2", Nothing]),
    onEmpty "hgetdel" (hgetdel "k" ("b" :| [])) ["HGETDEL", "k", "FIELDS", "1", "b"] (Gives [Nothing])
  ]

-- | A hash with two fields.
ab :: [ByteString]
ab = ["HSET", "k", "a", "1", "b", "2"]

-- | A hash whose first field expires, in the year 2096.
aExpires :: [[ByteString]]
aExpires = [ab, ["HEXPIREAT", "k", "4000000000", "FIELDS", "1", "a"]]

-- | A time in the year 2096.
late :: UTCTime
late = posixSecondsToUTCTime 4e9
