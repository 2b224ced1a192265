-- | "Redis.Commands.List".
module Redis.Cases.List (listCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.List
import Redis.Duration
import Redis.Value (Value (..))

listCases :: [Case]
listCases =
  [ after [abc] "lpush" (lpush "k" ("x" :| ["y"])) ["LPUSH", "k", "x", "y"] (Gives 5),
    onEmpty "rpush" (rpush "k" ("a" :| [])) ["RPUSH", "k", "a"] (Gives 1),
    after [abc] "lpop" (lpop "k") ["LPOP", "k"] (Gives (Just "a")),
    onEmpty "lpop" (lpop "k") ["LPOP", "k"] (Gives Nothing),
    after [abc] "rpop" (rpop "k") ["RPOP", "k"] (Gives (Just "c")),
    after [abc] "lrange" (lrange "k" 1 (-1)) ["LRANGE", "k", "1", "-1"] (Gives ["b", "c"]),
    after [abc] "llen" (llen "k") ["LLEN", "k"] (Gives 3),
    after [["SET", "k", "v"]] "llen" (llen "k") ["LLEN", "k"] (Fails "WRONGTYPE"),
    after
      [["RPUSH", "{k}b", "x"]]
      "blpop"
      (blpop ("{k}a" :| ["{k}b"]) Nothing)
      ["BLPOP", "{k}a", "{k}b", "0"]
      (Gives (Just ("{k}b", "x"))),
    onEmpty "blpop" (blpop ("k" :| []) (Just (seconds 0.0000001))) ["BLPOP", "k", "0.002000"] (Gives Nothing),
    onEmpty "blpop" (blpop ("k" :| []) (Just (seconds 0.005))) ["BLPOP", "k", "0.005000"] (Gives Nothing),
    after [abc] "brpop" (brpop ("k" :| []) (Just (seconds 2))) ["BRPOP", "k", "2"] (Gives (Just ("k", "c"))),
    after
      [["RPUSH", "{k}a", "x", "y"]]
      "blmove"
      (blmove ("{k}a", LeftEnd) ("{k}b", RightEnd) (Just (seconds 30)))
      ["BLMOVE", "{k}a", "{k}b", "LEFT", "RIGHT", "30"]
      (Gives (Just "x"))
  ]
    <> putting
    <> taking
    <> looking
    <> moving

putting :: [Case]
putting =
  [ after [abc] "lpushx" (lpushx "k" ("x" :| ["y"])) ["LPUSHX", "k", "x", "y"] (Gives 5),
    onEmpty "lpushx" (lpushx "k" ("x" :| [])) ["LPUSHX", "k", "x"] (Gives 0),
    after [abc] "rpushx" (rpushx "k" ("x" :| ["y"])) ["RPUSHX", "k", "x", "y"] (Gives 5),
    onEmpty "rpushx" (rpushx "k" ("x" :| [])) ["RPUSHX", "k", "x"] (Gives 0),
    after [abc] "linsert" (linsert "k" (BeforeElement "b") "x") ["LINSERT", "k", "BEFORE", "b", "x"] (Gives (Inserted 4)),
    after [abc] "linsert" (linsert "k" (AfterElement "c") "x") ["LINSERT", "k", "AFTER", "c", "x"] (Gives (Inserted 4)),
    after [abc] "linsert" (linsert "k" (AfterElement "d") "x") ["LINSERT", "k", "AFTER", "d", "x"] (Gives NoSuchElement),
    onEmpty "linsert" (linsert "k" (AfterElement "d") "x") ["LINSERT", "k", "AFTER", "d", "x"] (Gives NoSuchList),
    after [abc] "lset" (lset "k" (-1) "x") ["LSET", "k", "-1", "x"] (Gives ()),
    after [abc] "lset" (lset "k" 3 "x") ["LSET", "k", "3", "x"] (Fails "ERR")
  ]

taking :: [Case]
taking =
  [ after [abc] "lpopCount" (lpopCount "k" 2) ["LPOP", "k", "2"] (Gives ["a", "b"]),
    onEmpty "lpopCount" (lpopCount "k" 2) ["LPOP", "k", "2"] (Gives []),
    after [abc] "lpopCount" (lpopCount "k" 0) ["LPOP", "k", "0"] (Gives []),
    after [abc] "rpopCount" (rpopCount "k" 5) ["RPOP", "k", "5"] (Gives ["c", "b", "a"]),
    onEmpty "rpopCount" (rpopCount "k" 2) ["RPOP", "k", "2"] (Gives []),
    after
      [["RPUSH", "{k}b", "x", "y"]]
      "lmpop"
      (lmpop ("{k}a" :| ["{k}b"]) RightEnd)
      ["LMPOP", "2", "{k}a", "{k}b", "RIGHT"]
      (Gives (Just ("{k}b", ["y"]))),
    onEmpty "lmpop" (lmpop ("k" :| []) LeftEnd) ["LMPOP", "1", "k", "LEFT"] (Gives Nothing),
    after
      [abc]
      "lmpopWith"
      (lmpopWith lmpopDefaults {lmpopCount = Just 2} ("k" :| []) LeftEnd)
      ["LMPOP", "1", "k", "LEFT", "COUNT", "2"]
      (Gives (Just ("k", ["a", "b"]))),
    after
      [["RPUSH", "{k}b", "x", "y"]]
      "blmpop"
      (blmpop ("{k}a" :| ["{k}b"]) LeftEnd Nothing)
      ["BLMPOP", "0", "2", "{k}a", "{k}b", "LEFT"]
      (Gives (Just ("{k}b", ["x"]))),
    onEmpty
      "blmpop"
      (blmpop ("k" :| []) RightEnd (Just (milliseconds 5)))
      ["BLMPOP", "0.005000", "1", "k", "RIGHT"]
      (Gives Nothing),
    after
      [abc]
      "blmpopWith"
      (blmpopWith lmpopDefaults {lmpopCount = Just 9} ("k" :| []) RightEnd (Just (seconds 3)))
      ["BLMPOP", "3", "1", "k", "RIGHT", "COUNT", "9"]
      (Gives (Just ("k", ["c", "b", "a"]))),
    after [abca] "lrem" (lrem "k" RemoveAll "a") ["LREM", "k", "0", "a"] (Gives 3),
    after [abca] "lrem" (lrem "k" (RemoveFirst 2) "a") ["LREM", "k", "2", "a"] (Gives 2),
    after [abca] "lrem" (lrem "k" (RemoveLast 1) "a") ["LREM", "k", "-1", "a"] (Gives 1),
    onEmpty "lrem" (lrem "k" RemoveAll "a") ["LREM", "k", "0", "a"] (Gives 0),
    after [abc] "ltrim" (ltrim "k" 1 (-1)) ["LTRIM", "k", "1", "-1"] (Gives ())
  ]

looking :: [Case]
looking =
  [ after [abc] "lindex" (lindex "k" (-1)) ["LINDEX", "k", "-1"] (Gives (Just "c")),
    after [abc] "lindex" (lindex "k" 3) ["LINDEX", "k", "3"] (Gives Nothing),
    after [abca] "lpos" (lpos "k" "b") ["LPOS", "k", "b"] (Gives (Just 1)),
    after [abca] "lpos" (lpos "k" "x") ["LPOS", "k", "x"] (Gives Nothing),
    after
      [abca]
      "lposWith"
      (lposWith lposDefaults {lposRank = Just (-1)} "k" "a")
      ["LPOS", "k", "a", "RANK", "-1"]
      (Gives (Just 4)),
    after
      [abca]
      "lposWith"
      (lposWith lposDefaults {lposMaxlen = Just 2} "k" "c")
      ["LPOS", "k", "c", "MAXLEN", "2"]
      (Gives Nothing),
    after [abca] "lposWith" (lposWith lposDefaults {lposRank = Just 0} "k" "a") ["LPOS", "k", "a", "RANK", "0"] (Fails "ERR"),
    after [abca] "lposCount" (lposCount 0 "k" "a") ["LPOS", "k", "a", "COUNT", "0"] (Gives [0, 3, 4]),
    onEmpty "lposCount" (lposCount 2 "k" "a") ["LPOS", "k", "a", "COUNT", "2"] (Gives []),
    after
      [abca]
      "lposCountWith"
      (lposCountWith lposDefaults {lposRank = Just (-1), lposMaxlen = Just 2} 5 "k" "a")
      ["LPOS", "k", "a", "COUNT", "5", "RANK", "-1", "MAXLEN", "2"]
      (Gives [4, 3])
  ]

moving :: [Case]
moving =
  [ after
      [["RPUSH", "{k}a", "x", "y"]]
      "lmove"
      (lmove ("{k}a", RightEnd) ("{k}b", LeftEnd))
      ["LMOVE", "{k}a", "{k}b", "RIGHT", "LEFT"]
      (Gives (Just "y")),
    after [abc] "lmove" (lmove ("k", LeftEnd) ("k", RightEnd)) ["LMOVE", "k", "k", "LEFT", "RIGHT"] (Gives (Just "a")),
    onEmpty
      "lmove"
      (lmove ("{k}a", LeftEnd) ("{k}b", RightEnd))
      ["LMOVE", "{k}a", "{k}b", "LEFT", "RIGHT"]
      (Gives Nothing),
    after
      [["RPUSH", "{k}a", "x", "y"]]
      "rpoplpush"
      (rpoplpush "{k}a" "{k}b")
      ["RPOPLPUSH", "{k}a", "{k}b"]
      (Gives (Just "y")),
    onEmpty "rpoplpush" (rpoplpush "{k}a" "{k}b") ["RPOPLPUSH", "{k}a", "{k}b"] (Gives Nothing),
    after
      [["RPUSH", "{k}a", "x", "y"]]
      "brpoplpush"
      (brpoplpush "{k}a" "{k}b" (Just (seconds 3)))
      ["BRPOPLPUSH", "{k}a", "{k}b", "3"]
      (Gives (Just "y")),
    onEmpty
      "brpoplpush"
      (brpoplpush "{k}a" "{k}b" (Just (milliseconds 5)))
      ["BRPOPLPUSH", "{k}a", "{k}b", "0.005000"]
      (Gives Nothing),
    onEmpty
      "blmove"
      (blmove ("{k}a", RightEnd) ("{k}b", LeftEnd) (Just (milliseconds 5)))
      ["BLMOVE", "{k}a", "{k}b", "RIGHT", "LEFT", "0.005000"]
      (Gives Nothing),
    documented [Array [BulkString "2", BulkString "1"]] $
      after
        [["RPUSH", "{k}a", "1", "2", "3", "4"]]
        "lmovem"
        (lmovem ("{k}a", LeftEnd) ("{k}b", LeftEnd) (LmovemAtMost 2) LmovemOneByOne)
        ["LMOVEM", "{k}a", "{k}b", "LEFT", "LEFT", "COUNT", "2", "OBO"]
        (Gives ["2", "1"]),
    documented [Null] $
      after
        [["RPUSH", "{k}a", "1", "2"]]
        "lmovem"
        (lmovem ("{k}a", RightEnd) ("{k}b", LeftEnd) (LmovemExactly 5) LmovemBulk)
        ["LMOVEM", "{k}a", "{k}b", "RIGHT", "LEFT", "EXACTLY", "5", "BULK"]
        (Gives []),
    documented [Array []] $
      onEmpty
        "lmovem"
        (lmovem ("{k}a", LeftEnd) ("{k}b", RightEnd) (LmovemAtMost 2) LmovemBulk)
        ["LMOVEM", "{k}a", "{k}b", "LEFT", "RIGHT", "COUNT", "2", "BULK"]
        (Gives []),
    onEmpty
      "lmovem"
      (lmovem ("{k}a", LeftEnd) ("{k}b", RightEnd) (LmovemAtMost 0) LmovemBulk)
      ["LMOVEM", "{k}a", "{k}b", "LEFT", "RIGHT", "COUNT", "0", "BULK"]
      Unfit,
    documented [Array [BulkString "a", BulkString "b"]] $
      after
        [["RPUSH", "{k}a", "a", "b", "c"]]
        "blmovem"
        (blmovem ("{k}a", LeftEnd) ("{k}b", RightEnd) (LmovemExactly 2) LmovemBulk (Just (seconds 3)))
        ["BLMOVEM", "{k}a", "{k}b", "LEFT", "RIGHT", "3", "EXACTLY", "2", "BULK"]
        (Gives ["a", "b"]),
    documented [Null] $
      onEmpty
        "blmovem"
        (blmovem ("{k}a", LeftEnd) ("{k}b", RightEnd) (LmovemAtMost 2) LmovemOneByOne (Just (milliseconds 5)))
        ["BLMOVEM", "{k}a", "{k}b", "LEFT", "RIGHT", "0.005000", "COUNT", "2", "OBO"]
        (Gives [])
  ]

-- | A list with three elements.
abc :: [ByteString]
abc = ["RPUSH", "k", "a", "b", "c"]

-- | A list that contains one element three times.
abca :: [ByteString]
abca = ["RPUSH", "k", "a", "b", "c", "a", "a"]
