-- | "Redis.Commands.SortedSetAlgebra".
module Redis.Cases.SortedSetAlgebra (sortedSetAlgebraCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.SortedSetAlgebra
import Redis.Value (Value (..))

sortedSetAlgebraCases :: [Case]
sortedSetAlgebraCases =
  [ after two "zunion" (zunion names) ["ZUNION", "2", "{k}a", "{k}b"] (Gives ["x", "z", "y"]),
    onEmpty "zunion" (zunion ("k" :| [])) ["ZUNION", "1", "k"] (Gives []),
    after
      two
      "zunionWithscores"
      (zunionWithscores names)
      ["ZUNION", "2", "{k}a", "{k}b", "WITHSCORES"]
      (Gives [("x", 1), ("z", 4), ("y", 5)]),
    after
      [["ZADD", "{k}a", "3", "x"], ["SADD", "{k}b", "x"]]
      "zunionWithscores"
      (zunionWithscores names)
      ["ZUNION", "2", "{k}a", "{k}b", "WITHSCORES"]
      (Gives [("x", 4)]),
    after
      two
      "zunionWith"
      (zunionWith zunionDefaults {zunionAggregate = AggregateMin} (("{k}a", 10) :| [("{k}b", 1)]))
      ["ZUNION", "2", "{k}a", "{k}b", "WEIGHTS", "10.0", "1.0", "AGGREGATE", "MIN"]
      (Gives ["y", "z", "x"]),
    after
      two
      "zunionWithscoresWith"
      (zunionWithscoresWith zunionDefaults {zunionAggregate = AggregateMax} (("{k}a", 1) :| [("{k}b", 1)]))
      ["ZUNION", "2", "{k}a", "{k}b", "AGGREGATE", "MAX", "WITHSCORES"]
      (Gives [("x", 1), ("y", 3), ("z", 4)]),
    needs [(IsRedis, (8, 8))] . documented (inBoth [("x", 2), ("z", 3), ("y", 5)]) $
      after
        two
        "zunionWithscoresWith"
        (zunionWithscoresWith zunionDefaults {zunionAggregate = AggregateCount} (("{k}a", 2) :| [("{k}b", 3)]))
        ["ZUNION", "2", "{k}a", "{k}b", "WEIGHTS", "2.0", "3.0", "AGGREGATE", "COUNT", "WITHSCORES"]
        (Gives [("x", 2), ("z", 3), ("y", 5)]),
    after
      two
      "zunionWithscoresWith"
      (zunionWithscoresWith zunionDefaults (("{k}a", 1) :| [("{k}b", -0.5)]))
      ["ZUNION", "2", "{k}a", "{k}b", "WEIGHTS", "1.0", "-0.5", "WITHSCORES"]
      (Gives [("z", -2), ("y", 0.5), ("x", 1)]),
    after two "zunionstore" (zunionstore "{k}c" names) ["ZUNIONSTORE", "{k}c", "2", "{k}a", "{k}b"] (Gives 3),
    after
      two
      "zunionstoreWith"
      (zunionstoreWith zunionDefaults {zunionAggregate = AggregateMax} "{k}c" (("{k}a", 2) :| [("{k}b", 3)]))
      ["ZUNIONSTORE", "{k}c", "2", "{k}a", "{k}b", "WEIGHTS", "2.0", "3.0", "AGGREGATE", "MAX"]
      (Gives 3),
    after two "zinter" (zinter names) ["ZINTER", "2", "{k}a", "{k}b"] (Gives ["y"]),
    after
      two
      "zinterWithscores"
      (zinterWithscores names)
      ["ZINTER", "2", "{k}a", "{k}b", "WITHSCORES"]
      (Gives [("y", 5)]),
    after
      two
      "zinterWith"
      (zinterWith zinterDefaults {zinterAggregate = AggregateMin} (("{k}a", 2) :| [("{k}b", 1)]))
      ["ZINTER", "2", "{k}a", "{k}b", "WEIGHTS", "2.0", "1.0", "AGGREGATE", "MIN"]
      (Gives ["y"]),
    after
      two
      "zinterWithscoresWith"
      (zinterWithscoresWith zinterDefaults {zinterAggregate = AggregateMin} (("{k}a", 2) :| [("{k}b", 1)]))
      ["ZINTER", "2", "{k}a", "{k}b", "WEIGHTS", "2.0", "1.0", "AGGREGATE", "MIN", "WITHSCORES"]
      (Gives [("y", 3)]),
    after two "zinterstore" (zinterstore "{k}c" names) ["ZINTERSTORE", "{k}c", "2", "{k}a", "{k}b"] (Gives 1),
    after
      two
      "zinterstoreWith"
      (zinterstoreWith zinterDefaults {zinterAggregate = AggregateMin} "{k}c" (("{k}a", 1) :| [("{k}b", 1)]))
      ["ZINTERSTORE", "{k}c", "2", "{k}a", "{k}b", "AGGREGATE", "MIN"]
      (Gives 1),
    after two "zintercard" (zintercard names) ["ZINTERCARD", "2", "{k}a", "{k}b"] (Gives 1),
    after
      two
      "zintercardWith"
      (zintercardWith zintercardDefaults {zintercardLimit = Just 1} ("{k}a" :| ["{k}a"]))
      ["ZINTERCARD", "2", "{k}a", "{k}a", "LIMIT", "1"]
      (Gives 1),
    after
      two
      "zintercardWith"
      (zintercardWith zintercardDefaults {zintercardLimit = Just (-1)} names)
      ["ZINTERCARD", "2", "{k}a", "{k}b", "LIMIT", "-1"]
      Unfit,
    needs [(IsRedis, (8, 8))] . documented [Array [BulkString "y"]] $
      after
        two
        "zinterWith"
        (zinterWith zinterDefaults {zinterAggregate = AggregateCount} (("{k}a", 1) :| [("{k}b", 1)]))
        ["ZINTER", "2", "{k}a", "{k}b", "AGGREGATE", "COUNT"]
        (Gives ["y"]),
    after two "zdiff" (zdiff names) ["ZDIFF", "2", "{k}a", "{k}b"] (Gives ["x"]),
    after
      two
      "zdiffWithscores"
      (zdiffWithscores names)
      ["ZDIFF", "2", "{k}a", "{k}b", "WITHSCORES"]
      (Gives [("x", 1)]),
    after two "zdiffstore" (zdiffstore "{k}c" names) ["ZDIFFSTORE", "{k}c", "2", "{k}a", "{k}b"] (Gives 1)
  ]

-- | Members with their scores, as RESP2 and as RESP3 have them.
inBoth :: [(ByteString, Int64)] -> [Value]
inBoth those =
  [ Array (concat [[BulkString member, BulkString (Char8.pack (show score))] | (member, score) <- those]),
    Array [Array [BulkString member, Double (fromIntegral score)] | (member, score) <- those]
  ]

-- | Two sorted sets with one member in common.
two :: [[ByteString]]
two = [["ZADD", "{k}a", "1", "x", "2", "y"], ["ZADD", "{k}b", "3", "y", "4", "z"]]

names :: NonEmpty ByteString
names = "{k}a" :| ["{k}b"]
