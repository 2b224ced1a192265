-- | "Redis.Commands.SortedSet".
module Redis.Cases.SortedSet (sortedSetCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (nub)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (isJust)
import Redis.CommandCase
import Redis.Commands.SortedSet
import Redis.Duration

sortedSetCases :: [Case]
sortedSetCases = writingCases <> readingCases <> takingCases <> waitingCases <> drawingCases <> walkingCases

writingCases :: [Case]
writingCases =
  [ after [abc] "zadd" (zadd "k" (("c", 9) :| [("d", -0.5)])) ["ZADD", "k", "9.0", "c", "-0.5", "d"] (Gives 1),
    onEmpty "zadd" (zadd "k" (("a", 1 / 0) :| [("b", -1 / 0)])) ["ZADD", "k", "inf", "a", "-inf", "b"] (Gives 2),
    onEmpty "zadd" (zadd "k" (("a", 1e-7) :| [])) ["ZADD", "k", "1.0e-7", "a"] (Gives 1),
    onEmpty "zadd" (zadd "k" (("a", 0 / 0) :| [])) ["ZADD", "k", "nan", "a"] Unfit,
    after [["SET", "k", "v"]] "zadd" (zadd "k" (("a", 1) :| [])) ["ZADD", "k", "1.0", "a"] (Fails "WRONGTYPE"),
    changed Nothing [] 3,
    changed (Just ZaddNew) ["NX"] 1,
    changed (Just ZaddExisting) ["XX"] 2,
    changed (Just ZaddGreater) ["GT"] 2,
    changed (Just ZaddLess) ["LT"] 2,
    changed (Just ZaddExistingGreater) ["XX", "GT"] 1,
    changed (Just ZaddExistingLess) ["XX", "LT"] 1,
    after
      [abc]
      "zaddWith"
      (zaddWith zaddDefaults {zaddCondition = Just ZaddExisting} "k" (("a", 5) :| [("d", 1)]))
      ["ZADD", "k", "XX", "5.0", "a", "1.0", "d"]
      (Gives 0),
    after [abc] "zaddIncr" (zaddIncr "k" 0.5 "b") ["ZADD", "k", "INCR", "0.5", "b"] (Gives 2.5),
    after
      [abc]
      "zaddIncrWith"
      (zaddIncrWith zaddDefaults {zaddCondition = Just ZaddLess} "k" 5 "b")
      ["ZADD", "k", "LT", "INCR", "5.0", "b"]
      (Gives Nothing),
    after
      [abc]
      "zaddIncrWith"
      (zaddIncrWith zaddDefaults {zaddCondition = Just ZaddExistingGreater, zaddChanged = True} "k" 5 "b")
      ["ZADD", "k", "XX", "GT", "CH", "INCR", "5.0", "b"]
      (Gives (Just 7)),
    after [abc] "zincrby" (zincrby "k" (-3) "b") ["ZINCRBY", "k", "-3.0", "b"] (Gives (-1)),
    onEmpty "zincrby" (zincrby "k" (1 / 0) "b") ["ZINCRBY", "k", "inf", "b"] (Gives (1 / 0)),
    after [abc] "zrem" (zrem "k" ("b" :| ["z"])) ["ZREM", "k", "b", "z"] (Gives 1)
  ]
  where
    -- One score goes up, one goes down, and one member is new.
    changed condition words' count =
      after
        [abc]
        "zaddWith"
        (zaddWith zaddDefaults {zaddCondition = condition, zaddChanged = True} "k" (("a", 5) :| [("c", 0), ("d", 1)]))
        (["ZADD", "k"] <> words' <> ["CH", "5.0", "a", "0.0", "c", "1.0", "d"])
        (Gives count)

readingCases :: [Case]
readingCases =
  [ after [["ZADD", "k", "1.1", "a"]] "zscore" (zscore "k" "a") ["ZSCORE", "k", "a"] (Gives (Just 1.1)),
    after [["ZADD", "k", "-inf", "a"]] "zscore" (zscore "k" "a") ["ZSCORE", "k", "a"] (Gives (Just (-1 / 0))),
    after [abc] "zscore" (zscore "k" "z") ["ZSCORE", "k", "z"] (Gives Nothing),
    after [abc] "zmscore" (zmscore "k" ("c" :| ["z", "a"])) ["ZMSCORE", "k", "c", "z", "a"] (Gives [Just 3, Nothing, Just 1]),
    onEmpty "zmscore" (zmscore "k" ("c" :| [])) ["ZMSCORE", "k", "c"] (Gives [Nothing]),
    after [abc] "zcard" (zcard "k") ["ZCARD", "k"] (Gives 3),
    after [abc] "zrank" (zrank "k" "b") ["ZRANK", "k", "b"] (Gives (Just 1)),
    after [abc] "zrank" (zrank "k" "z") ["ZRANK", "k", "z"] (Gives Nothing),
    withScore "zrankWithscore" (zrankWithscore "k" "c") ["ZRANK", "k", "c", "WITHSCORE"] (Gives (Just (2, 3))),
    withScore "zrankWithscore" (zrankWithscore "k" "z") ["ZRANK", "k", "z", "WITHSCORE"] (Gives Nothing),
    after [abc] "zrevrank" (zrevrank "k" "c") ["ZREVRANK", "k", "c"] (Gives (Just 0)),
    withScore "zrevrankWithscore" (zrevrankWithscore "k" "a") ["ZREVRANK", "k", "a", "WITHSCORE"] (Gives (Just (2, 1))),
    withScore "zrevrankWithscore" (zrevrankWithscore "j" "a") ["ZREVRANK", "j", "a", "WITHSCORE"] (Gives Nothing)
  ]
  where
    withScore name command words' outcome =
      needs [(IsRedis, (7, 2)), (IsValkey, (7, 2))] (after [abc] name command words' outcome)

takingCases :: [Case]
takingCases =
  [ after [abc] "zpopmin" (zpopmin "k") ["ZPOPMIN", "k"] (Gives (Just ("a", 1))),
    onEmpty "zpopmin" (zpopmin "k") ["ZPOPMIN", "k"] (Gives Nothing),
    after [abc] "zpopminCount" (zpopminCount "k" 2) ["ZPOPMIN", "k", "2"] (Gives [("a", 1), ("b", 2)]),
    after [abc] "zpopminCount" (zpopminCount "k" 1) ["ZPOPMIN", "k", "1"] (Gives [("a", 1)]),
    after [abc] "zpopminCount" (zpopminCount "k" (-1)) ["ZPOPMIN", "k", "-1"] Unfit,
    after [abc] "zpopmax" (zpopmax "k") ["ZPOPMAX", "k"] (Gives (Just ("c", 3))),
    onEmpty "zpopmax" (zpopmax "k") ["ZPOPMAX", "k"] (Gives Nothing),
    after [abc] "zpopmaxCount" (zpopmaxCount "k" 9) ["ZPOPMAX", "k", "9"] (Gives [("c", 3), ("b", 2), ("a", 1)]),
    onEmpty "zpopmaxCount" (zpopmaxCount "k" 9) ["ZPOPMAX", "k", "9"] (Gives []),
    after
      tagged
      "zmpop"
      (zmpop names MinEnd)
      ["ZMPOP", "2", "{k}a", "{k}b", "MIN"]
      (Gives (Just ("{k}b", [("x", 1)]))),
    onEmpty "zmpop" (zmpop names MaxEnd) ["ZMPOP", "2", "{k}a", "{k}b", "MAX"] (Gives Nothing),
    after
      tagged
      "zmpopWith"
      (zmpopWith zmpopDefaults {zmpopCount = Just 5} names MaxEnd)
      ["ZMPOP", "2", "{k}a", "{k}b", "MAX", "COUNT", "5"]
      (Gives (Just ("{k}b", [("y", 2), ("x", 1)]))),
    after
      tagged
      "zmpopWith"
      (zmpopWith zmpopDefaults {zmpopCount = Just 0} names MaxEnd)
      ["ZMPOP", "2", "{k}a", "{k}b", "MAX", "COUNT", "0"]
      Unfit
  ]

waitingCases :: [Case]
waitingCases =
  [ after
      tagged
      "bzpopmin"
      (bzpopmin names Nothing)
      ["BZPOPMIN", "{k}a", "{k}b", "0"]
      (Gives (Just ("{k}b", "x", 1))),
    onEmpty "bzpopmin" (bzpopmin ("k" :| []) (Just (seconds 0.005))) ["BZPOPMIN", "k", "0.005000"] (Gives Nothing),
    after
      tagged
      "bzpopmax"
      (bzpopmax names (Just (seconds 2)))
      ["BZPOPMAX", "{k}a", "{k}b", "2"]
      (Gives (Just ("{k}b", "y", 2))),
    after
      tagged
      "bzmpop"
      (bzmpop names MaxEnd (Just (seconds 2)))
      ["BZMPOP", "2", "2", "{k}a", "{k}b", "MAX"]
      (Gives (Just ("{k}b", [("y", 2)]))),
    onEmpty "bzmpop" (bzmpop ("k" :| []) MinEnd (Just (seconds 0.005))) ["BZMPOP", "0.005000", "1", "k", "MIN"] (Gives Nothing),
    after
      tagged
      "bzmpopWith"
      (bzmpopWith zmpopDefaults {zmpopCount = Just 5} names MinEnd Nothing)
      ["BZMPOP", "0", "2", "{k}a", "{k}b", "MIN", "COUNT", "5"]
      (Gives (Just ("{k}b", [("x", 1), ("y", 2)])))
  ]

drawingCases :: [Case]
drawingCases =
  [ after [["ZADD", "k", "1", "a"]] "zrandmember" (zrandmember "k") ["ZRANDMEMBER", "k"] (Gives (Just "a")),
    onEmpty "zrandmember" (zrandmember "k") ["ZRANDMEMBER", "k"] (Gives Nothing),
    after
      [abc]
      "zrandmemberCount"
      (zrandmemberCount "k" (Distinct 5))
      ["ZRANDMEMBER", "k", "5"]
      (Such "are the three" (\found -> length found == 3 && length (nub found) == 3)),
    after
      [abc]
      "zrandmemberCount"
      (zrandmemberCount "k" (Repeated 5))
      ["ZRANDMEMBER", "k", "-5"]
      (Such "are five of them" (\found -> length found == 5 && all (`elem` ["a", "b", "c"]) found)),
    onEmpty "zrandmemberCount" (zrandmemberCount "k" (Distinct 5)) ["ZRANDMEMBER", "k", "5"] (Gives []),
    after
      [["ZADD", "k", "1", "a"]]
      "zrandmemberWithscores"
      (zrandmemberWithscores "k" (Repeated 2))
      ["ZRANDMEMBER", "k", "-2", "WITHSCORES"]
      (Gives [("a", 1), ("a", 1)])
  ]

walkingCases :: [Case]
walkingCases =
  [ after
      [["ZADD", "k", "1.5", "a", "inf", "b"]]
      "zscan"
      (zscan "k" scanStart)
      ["ZSCAN", "k", "0"]
      (Gives (ScanPage Nothing [("a", 1.5), ("b", 1 / 0)])),
    onEmpty "zscan" (zscan "k" scanStart) ["ZSCAN", "k", "0"] (Gives (ScanPage Nothing [])),
    after
      [abc]
      "zscanWith"
      (zscanWith zscanDefaults {zscanMatch = Just "b*"} "k" scanStart)
      ["ZSCAN", "k", "0", "MATCH", "b*"]
      (Gives (ScanPage Nothing [("b", 2)])),
    after
      ["ZADD" : "k" : concat [["7", Char8.pack (show n)] | n <- [1 .. 1000 :: Int]]]
      "zscanWith"
      (zscanWith zscanDefaults {zscanCount = Just 5} "k" scanStart)
      ["ZSCAN", "k", "0", "COUNT", "5"]
      (Such "goes on, and has scores" (\page -> isJust (scanNext page) && all ((== 7) . snd) (scanFound page))),
    needs [(IsValkey, (8, 0))] $
      after
        [abc]
        "zscanNoscores"
        (zscanNoscores zscanDefaults {zscanMatch = Just "[ab]", zscanCount = Just 9} "k" scanStart)
        ["ZSCAN", "k", "0", "MATCH", "[ab]", "COUNT", "9", "NOSCORES"]
        (Gives (ScanPage Nothing ["a", "b"]))
  ]

-- | A sorted set with three members.
abc :: [ByteString]
abc = ["ZADD", "k", "1", "a", "2", "b", "3", "c"]

-- | Two names. The set with the second name has members.
names :: NonEmpty ByteString
names = "{k}a" :| ["{k}b"]

tagged :: [[ByteString]]
tagged = [["ZADD", "{k}b", "1", "x", "2", "y"]]
