-- | "Redis.Commands.Set".
module Redis.Cases.Set (setCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (nub, sort)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (isJust)
import Redis.CommandCase
import Redis.Commands.Set
import Redis.Value (Value (..))

setCases :: [Case]
setCases =
  [ after [ab] "sadd" (sadd "k" ("b" :| ["c", "d"])) ["SADD", "k", "b", "c", "d"] (Gives 2),
    after [["SET", "k", "v"]] "sadd" (sadd "k" ("a" :| [])) ["SADD", "k", "a"] (Fails "WRONGTYPE"),
    after [ab] "srem" (srem "k" ("b" :| ["z"])) ["SREM", "k", "b", "z"] (Gives 1),
    after [ab] "sismember" (sismember "k" "a") ["SISMEMBER", "k", "a"] (Gives True),
    after [ab] "sismember" (sismember "k" "z") ["SISMEMBER", "k", "z"] (Gives False),
    needs valkey92 . documented [Integer 1] $ after [ab] "sismemberXx" (sismemberXx "k" "a") ["SISMEMBER", "k", "a", "XX"] (Gives (Just True)),
    needs valkey92 . documented [Integer 0] $ after [ab] "sismemberXx" (sismemberXx "k" "z") ["SISMEMBER", "k", "z", "XX"] (Gives (Just False)),
    needs valkey92 . documented [Integer (-1)] $ onEmpty "sismemberXx" (sismemberXx "k" "a") ["SISMEMBER", "k", "a", "XX"] (Gives Nothing),
    after [ab] "smismember" (smismember "k" ("z" :| ["a", "b"])) ["SMISMEMBER", "k", "z", "a", "b"] (Gives [False, True, True]),
    onEmpty "smismember" (smismember "k" ("a" :| [])) ["SMISMEMBER", "k", "a"] (Gives [False]),
    after [ab] "smembers" (smembers "k") ["SMEMBERS", "k"] (theseTwo ["a", "b"]),
    onEmpty "smembers" (smembers "k") ["SMEMBERS", "k"] (Gives []),
    after [ab] "scard" (scard "k") ["SCARD", "k"] (Gives 2),
    after [["SADD", "{k}a", "x"]] "smove" (smove "{k}a" "{k}b" "x") ["SMOVE", "{k}a", "{k}b", "x"] (Gives True),
    onEmpty "smove" (smove "{k}a" "{k}b" "x") ["SMOVE", "{k}a", "{k}b", "x"] (Gives False),
    after [["SADD", "k", "a"]] "spop" (spop "k") ["SPOP", "k"] (Gives (Just "a")),
    onEmpty "spop" (spop "k") ["SPOP", "k"] (Gives Nothing),
    after [ab] "spopCount" (spopCount "k" 5) ["SPOP", "k", "5"] (theseTwo ["a", "b"]),
    onEmpty "spopCount" (spopCount "k" 5) ["SPOP", "k", "5"] (Gives []),
    after [ab] "spopCount" (spopCount "k" (-1)) ["SPOP", "k", "-1"] Unfit,
    after [["SADD", "k", "a"]] "srandmember" (srandmember "k") ["SRANDMEMBER", "k"] (Gives (Just "a")),
    onEmpty "srandmember" (srandmember "k") ["SRANDMEMBER", "k"] (Gives Nothing),
    after [ab] "srandmemberCount" (srandmemberCount "k" (Distinct 5)) ["SRANDMEMBER", "k", "5"] (theseTwo ["a", "b"]),
    after
      [ab]
      "srandmemberCount"
      (srandmemberCount "k" (Repeated 5))
      ["SRANDMEMBER", "k", "-5"]
      (Such "are five of them" (\found -> length found == 5 && all (`elem` ["a", "b"]) found)),
    after [ab] "srandmemberCount" (srandmemberCount "k" (Distinct (-5))) ["SRANDMEMBER", "k", "0"] (Gives []),
    onEmpty "srandmemberCount" (srandmemberCount "k" (Distinct 5)) ["SRANDMEMBER", "k", "5"] (Gives []),
    after two "sunion" (sunion names) ["SUNION", "{k}a", "{k}b"] (Such "are the three" ((== ["x", "y", "z"]) . sort)),
    onEmpty "sunion" (sunion ("k" :| [])) ["SUNION", "k"] (Gives []),
    after two "sinter" (sinter names) ["SINTER", "{k}a", "{k}b"] (Gives ["y"]),
    after two "sdiff" (sdiff names) ["SDIFF", "{k}a", "{k}b"] (Gives ["x"]),
    after two "sunionstore" (sunionstore "{k}c" names) ["SUNIONSTORE", "{k}c", "{k}a", "{k}b"] (Gives 3),
    after two "sinterstore" (sinterstore "{k}c" names) ["SINTERSTORE", "{k}c", "{k}a", "{k}b"] (Gives 1),
    after two "sdiffstore" (sdiffstore "{k}c" names) ["SDIFFSTORE", "{k}c", "{k}a", "{k}b"] (Gives 1),
    after two "sintercard" (sintercard names) ["SINTERCARD", "2", "{k}a", "{k}b"] (Gives 1),
    documented [Integer 3] $ after two "sunioncard" (sunioncard names) ["SUNIONCARD", "2", "{k}a", "{k}b"] (Gives 3),
    documented [Integer 2] $
      after
        two
        "sunioncardWith"
        (sunioncardWith sunioncardDefaults {sunioncardApprox = True, sunioncardLimit = Just 2} names)
        ["SUNIONCARD", "2", "{k}a", "{k}b", "APPROX", "LIMIT", "2"]
        (Gives 2),
    documented [Integer 1] $ after two "sdiffcard" (sdiffcard names) ["SDIFFCARD", "2", "{k}a", "{k}b"] (Gives 1),
    documented [Integer 1] $
      after
        two
        "sdiffcardWith"
        (sdiffcardWith sdiffcardDefaults {sdiffcardLimit = Just 1} names)
        ["SDIFFCARD", "2", "{k}a", "{k}b", "LIMIT", "1"]
        (Gives 1),
    after
      two
      "sintercardWith"
      (sintercardWith sintercardDefaults {sintercardLimit = Just 2} ("{k}a" :| ["{k}a"]))
      ["SINTERCARD", "2", "{k}a", "{k}a", "LIMIT", "2"]
      (Gives 2),
    after
      two
      "sintercardWith"
      (sintercardWith sintercardDefaults {sintercardLimit = Just (-1)} names)
      ["SINTERCARD", "2", "{k}a", "{k}b", "LIMIT", "-1"]
      Unfit,
    after [["SADD", "k", "a"]] "sscan" (sscan "k" scanStart) ["SSCAN", "k", "0"] (Gives (ScanPage Nothing ["a"])),
    onEmpty "sscan" (sscan "k" scanStart) ["SSCAN", "k", "0"] (Gives (ScanPage Nothing [])),
    after
      [ab]
      "sscanWith"
      (sscanWith sscanDefaults {sscanMatch = Just "b*"} "k" scanStart)
      ["SSCAN", "k", "0", "MATCH", "b*"]
      (Gives (ScanPage Nothing ["b"])),
    after
      ["SADD" : "k" : [Char8.pack ('m' : show n) | n <- [1 .. 1000 :: Int]]]
      "sscanWith"
      (sscanWith sscanDefaults {sscanCount = Just 5} "k" scanStart)
      ["SSCAN", "k", "0", "COUNT", "5"]
      (Such "goes on" (\page -> isJust (scanNext page) && length (scanFound page) < 1000))
  ]

-- | These two members, in any order.
theseTwo :: [ByteString] -> Outcome [ByteString]
theseTwo members = Such "are these two" (\found -> length found == 2 && sort (nub found) == members)

-- | A set with two members.
valkey92 :: [(Family, Version)]
valkey92 = [(IsValkey, (9, 2))]

ab :: [ByteString]
ab = ["SADD", "k", "a", "b"]

-- | Two sets with one member in common.
two :: [[ByteString]]
two = [["SADD", "{k}a", "x", "y"], ["SADD", "{k}b", "y", "z"]]

names :: NonEmpty ByteString
names = "{k}a" :| ["{k}b"]
