-- | "Redis.Commands.SortedSetRange".
module Redis.Cases.SortedSetRange (sortedSetRangeCases) where

import Data.ByteString (ByteString)
import Redis.CommandCase
import Redis.Commands.SortedSetRange
import Redis.Value (Value (..))

sortedSetRangeCases :: [Case]
sortedSetRangeCases = rangeCases <> countCases <> oldCases

rangeCases :: [Case]
rangeCases =
  [ needs valkey92 . documented [Array [BulkString "b", BulkString "c"]] $
      after [abc] "zrangeXx" (zrangeXx "k" 1 (-1)) ["ZRANGE", "k", "1", "-1", "XX"] (Gives (Just ["b", "c"])),
    needs valkey92 . documented [Null] $ onEmpty "zrangeXx" (zrangeXx "k" 0 (-1)) ["ZRANGE", "k", "0", "-1", "XX"] (Gives Nothing),
    needs valkey92 . documented [Array []] $
      after
        [abc]
        "zrangeXxWith"
        (zrangeXxWith zrangeDefaults {zrangeRev = True} "k" (ByRank 10 20))
        ["ZRANGE", "k", "10", "20", "REV", "XX"]
        (Gives (Just [])),
    needs valkey92 . documented [Array [BulkString "a", BulkString "1"], Array [Array [BulkString "a", Double 1]]] $
      after [abc] "zrangeXxWithscores" (zrangeXxWithscores "k" 0 0) ["ZRANGE", "k", "0", "0", "WITHSCORES", "XX"] (Gives (Just [("a", 1)])),
    needs valkey92 . documented [Null] $
      onEmpty
        "zrangeXxWithscoresWith"
        (zrangeXxWithscoresWith zrangeDefaults "k" (ByScore ScoreLowest ScoreHighest WholeRange))
        ["ZRANGE", "k", "-inf", "+inf", "BYSCORE", "WITHSCORES", "XX"]
        (Gives Nothing),
    after [abc] "zrange" (zrange "k" 1 (-1)) ["ZRANGE", "k", "1", "-1"] (Gives ["b", "c"]),
    onEmpty "zrange" (zrange "k" 0 (-1)) ["ZRANGE", "k", "0", "-1"] (Gives []),
    after [["SET", "k", "v"]] "zrange" (zrange "k" 0 0) ["ZRANGE", "k", "0", "0"] (Fails "WRONGTYPE"),
    after
      [abc]
      "zrangeWithscores"
      (zrangeWithscores "k" 0 1)
      ["ZRANGE", "k", "0", "1", "WITHSCORES"]
      (Gives [("a", 1), ("b", 2)]),
    onEmpty "zrangeWithscores" (zrangeWithscores "k" 0 1) ["ZRANGE", "k", "0", "1", "WITHSCORES"] (Gives []),
    after
      [abc]
      "zrangeWith"
      (zrangeWith zrangeDefaults {zrangeRev = True} "k" (ByRank 0 1))
      ["ZRANGE", "k", "0", "1", "REV"]
      (Gives ["c", "b"]),
    after
      [abc]
      "zrangeWith"
      (zrangeWith zrangeDefaults "k" (ByScore (ScoreExclusive 1) (ScoreInclusive 3) WholeRange))
      ["ZRANGE", "k", "(1.0", "3.0", "BYSCORE"]
      (Gives ["b", "c"]),
    after
      [abc]
      "zrangeWith"
      (zrangeWith zrangeDefaults {zrangeRev = True} "k" (ByScore ScoreHighest ScoreLowest (RangeLimit 1 1)))
      ["ZRANGE", "k", "+inf", "-inf", "BYSCORE", "REV", "LIMIT", "1", "1"]
      (Gives ["b"]),
    after
      [same]
      "zrangeWith"
      (zrangeWith zrangeDefaults "k" (ByLex (LexRange (LexInclusive "b") (LexExclusive "d") WholeRange)))
      ["ZRANGE", "k", "[b", "(d", "BYLEX"]
      (Gives ["b", "c"]),
    after
      [same]
      "zrangeWith"
      (zrangeWith zrangeDefaults {zrangeRev = True} "k" (ByLex (LexRange LexHighest LexLowest (RangeLimit 0 (-1)))))
      ["ZRANGE", "k", "+", "-", "BYLEX", "REV", "LIMIT", "0", "-1"]
      (Gives ["d", "c", "b", "a"]),
    after
      [abc]
      "zrangeWithscoresWith"
      (zrangeWithscoresWith zrangeDefaults {zrangeRev = True} "k" (ByRank 0 0))
      ["ZRANGE", "k", "0", "0", "REV", "WITHSCORES"]
      (Gives [("c", 3)]),
    after
      [abc]
      "zrangeWithscoresWith"
      (zrangeWithscoresWith zrangeDefaults "k" (ByScore (ScoreInclusive (-1 / 0)) (ScoreExclusive 3) (RangeLimit 1 5)))
      ["ZRANGE", "k", "-inf", "(3.0", "BYSCORE", "LIMIT", "1", "5", "WITHSCORES"]
      (Gives [("b", 2)]),
    after
      [["ZADD", "{k}a", "1", "x", "2", "y"]]
      "zrangestore"
      (zrangestore "{k}b" "{k}a" 0 (-1))
      ["ZRANGESTORE", "{k}b", "{k}a", "0", "-1"]
      (Gives 2),
    after
      [["ZADD", "{k}a", "1", "x", "2", "y"]]
      "zrangestoreWith"
      ( zrangestoreWith
          zrangeDefaults {zrangeRev = True}
          "{k}b"
          "{k}a"
          (ByScore ScoreHighest (ScoreExclusive 1) (RangeLimit 0 5))
      )
      ["ZRANGESTORE", "{k}b", "{k}a", "+inf", "(1.0", "BYSCORE", "REV", "LIMIT", "0", "5"]
      (Gives 1),
    after
      [["ZADD", "{k}a", "0", "x", "0", "y"]]
      "zrangestoreWith"
      (zrangestoreWith zrangeDefaults "{k}b" "{k}a" (ByLex (LexRange (LexExclusive "x") LexHighest WholeRange)))
      ["ZRANGESTORE", "{k}b", "{k}a", "(x", "+", "BYLEX"]
      (Gives 1)
  ]

countCases :: [Case]
countCases =
  [ after
      [abc]
      "zcount"
      (zcount "k" (ScoreExclusive 1) ScoreHighest)
      ["ZCOUNT", "k", "(1.0", "+inf"]
      (Gives 2),
    after [abc] "zcount" (zcount "k" (ScoreInclusive 0.5) (ScoreInclusive 1)) ["ZCOUNT", "k", "0.5", "1.0"] (Gives 1),
    after
      [abc]
      "zcount"
      (zcount "k" (ScoreExclusive (-1 / 0)) (ScoreExclusive (1 / 0)))
      ["ZCOUNT", "k", "(-inf", "(inf"]
      (Gives 3),
    after [abc] "zcount" (zcount "k" (ScoreInclusive (0 / 0)) ScoreHighest) ["ZCOUNT", "k", "nan", "+inf"] Unfit,
    after [abc] "zcount" (zcount "k" (ScoreExclusive (0 / 0)) ScoreHighest) ["ZCOUNT", "k", "nan", "+inf"] Unfit,
    after [same] "zlexcount" (zlexcount "k" LexLowest (LexInclusive "b")) ["ZLEXCOUNT", "k", "-", "[b"] (Gives 2),
    after [abc] "zremrangebyrank" (zremrangebyrank "k" (-2) (-1)) ["ZREMRANGEBYRANK", "k", "-2", "-1"] (Gives 2),
    after
      [abc]
      "zremrangebyscore"
      (zremrangebyscore "k" ScoreLowest (ScoreExclusive 3))
      ["ZREMRANGEBYSCORE", "k", "-inf", "(3.0"]
      (Gives 2),
    after
      [same]
      "zremrangebylex"
      (zremrangebylex "k" (LexInclusive "c") LexHighest)
      ["ZREMRANGEBYLEX", "k", "[c", "+"]
      (Gives 2)
  ]

oldCases :: [Case]
oldCases =
  [ after
      [abc]
      "zrangebyscore"
      (zrangebyscore "k" (ScoreInclusive 2) ScoreHighest)
      ["ZRANGEBYSCORE", "k", "2.0", "+inf"]
      (Gives ["b", "c"]),
    after
      [abc]
      "zrangebyscoreWith"
      (zrangebyscoreWith zrangebyscoreDefaults {zrangebyscoreLimit = RangeLimit 1 1} "k" ScoreLowest ScoreHighest)
      ["ZRANGEBYSCORE", "k", "-inf", "+inf", "LIMIT", "1", "1"]
      (Gives ["b"]),
    after
      [abc]
      "zrangebyscoreWithscores"
      (zrangebyscoreWithscores "k" (ScoreExclusive 1) (ScoreInclusive 2))
      ["ZRANGEBYSCORE", "k", "(1.0", "2.0", "WITHSCORES"]
      (Gives [("b", 2)]),
    after
      [abc]
      "zrangebyscoreWithscoresWith"
      (zrangebyscoreWithscoresWith zrangebyscoreDefaults {zrangebyscoreLimit = RangeLimit 2 (-1)} "k" ScoreLowest ScoreHighest)
      ["ZRANGEBYSCORE", "k", "-inf", "+inf", "WITHSCORES", "LIMIT", "2", "-1"]
      (Gives [("c", 3)]),
    after
      [same]
      "zrangebylex"
      (zrangebylex "k" (LexExclusive "a") (LexInclusive "c"))
      ["ZRANGEBYLEX", "k", "(a", "[c"]
      (Gives ["b", "c"]),
    after
      [same]
      "zrangebylexWith"
      (zrangebylexWith zrangebylexDefaults {zrangebylexLimit = RangeLimit 1 2} "k" LexLowest LexHighest)
      ["ZRANGEBYLEX", "k", "-", "+", "LIMIT", "1", "2"]
      (Gives ["b", "c"]),
    after [abc] "zrevrange" (zrevrange "k" 0 1) ["ZREVRANGE", "k", "0", "1"] (Gives ["c", "b"]),
    after
      [abc]
      "zrevrangeWithscores"
      (zrevrangeWithscores "k" 0 0)
      ["ZREVRANGE", "k", "0", "0", "WITHSCORES"]
      (Gives [("c", 3)]),
    after
      [abc]
      "zrevrangebyscore"
      (zrevrangebyscore "k" ScoreHighest (ScoreExclusive 1))
      ["ZREVRANGEBYSCORE", "k", "+inf", "(1.0"]
      (Gives ["c", "b"]),
    after
      [abc]
      "zrevrangebyscoreWith"
      (zrevrangebyscoreWith zrangebyscoreDefaults {zrangebyscoreLimit = RangeLimit 0 1} "k" ScoreHighest ScoreLowest)
      ["ZREVRANGEBYSCORE", "k", "+inf", "-inf", "LIMIT", "0", "1"]
      (Gives ["c"]),
    after
      [abc]
      "zrevrangebyscoreWithscores"
      (zrevrangebyscoreWithscores "k" (ScoreInclusive 2) ScoreLowest)
      ["ZREVRANGEBYSCORE", "k", "2.0", "-inf", "WITHSCORES"]
      (Gives [("b", 2), ("a", 1)]),
    after
      [abc]
      "zrevrangebyscoreWithscoresWith"
      (zrevrangebyscoreWithscoresWith zrangebyscoreDefaults {zrangebyscoreLimit = RangeLimit 1 1} "k" ScoreHighest ScoreLowest)
      ["ZREVRANGEBYSCORE", "k", "+inf", "-inf", "WITHSCORES", "LIMIT", "1", "1"]
      (Gives [("b", 2)]),
    after
      [same]
      "zrevrangebylex"
      (zrevrangebylex "k" (LexInclusive "b") LexLowest)
      ["ZREVRANGEBYLEX", "k", "[b", "-"]
      (Gives ["b", "a"]),
    after
      [same]
      "zrevrangebylexWith"
      (zrevrangebylexWith zrangebylexDefaults {zrangebylexLimit = RangeLimit 0 1} "k" LexHighest LexLowest)
      ["ZREVRANGEBYLEX", "k", "+", "-", "LIMIT", "0", "1"]
      (Gives ["d"])
  ]

-- | A sorted set with three members.
abc :: [ByteString]
abc = ["ZADD", "k", "1", "a", "2", "b", "3", "c"]

-- | A sorted set whose members have the same score.
same :: [ByteString]
same = ["ZADD", "k", "0", "a", "0", "b", "0", "c", "0", "d"]

valkey92 :: [(Family, Version)]
valkey92 = [(IsValkey, (9, 2))]
