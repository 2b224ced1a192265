-- | "Redis.Commands.Sort".
module Redis.Cases.Sort (sortCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Sort

sortCases :: [Case]
sortCases =
  [ after [numbers] "sort" (sort "k") ["SORT", "k"] (Gives ["1", "2", "10"]),
    onEmpty "sort" (sort "k") ["SORT", "k"] (Gives []),
    after [["RPUSH", "k", "a"]] "sort" (sort "k") ["SORT", "k"] (Fails "ERR"),
    after
      [numbers]
      "sortWith"
      (sortWith sortDefaults {sortOrder = Descending, sortAs = AsText, sortSkip = 1, sortCount = Just 1} "k")
      ["SORT", "k", "LIMIT", "1", "1", "DESC", "ALPHA"]
      (Gives ["10"]),
    after [numbers] "sortWith" (sortWith sortDefaults {sortSkip = 1} "k") ["SORT", "k", "LIMIT", "1", "-1"] (Gives ["2", "10"]),
    after
      [numbers, weights]
      "sortWith"
      (sortWith sortDefaults {sortBy = ByKey "w:*"} "k")
      ["SORT", "k", "BY", "w:*"]
      (Gives ["10", "2", "1"]),
    after [numbers] "sortWith" (sortWith sortDefaults {sortBy = Unsorted} "k") ["SORT", "k", "BY", "nosort"] (Gives ["10", "1", "2"]),
    after [numbers] "sortRo" (sortRo "k") ["SORT_RO", "k"] (Gives ["1", "2", "10"]),
    after
      [numbers]
      "sortRoWith"
      (sortRoWith sortDefaults {sortCount = Just 2} "k")
      ["SORT_RO", "k", "LIMIT", "0", "2"]
      (Gives ["1", "2"]),
    after
      [numbers, ["SET", "name:2", "two"]]
      "sortGet"
      (sortGet (GetElement :| [GetKey "name:*"]) "k")
      ["SORT", "k", "GET", "#", "GET", "name:*"]
      (Gives [[Just "1", Nothing], [Just "2", Just "two"], [Just "10", Nothing]]),
    after
      [numbers, ["HSET", "h:2", "name", "two"]]
      "sortGetWith"
      (sortGetWith sortDefaults {sortOrder = Descending} (GetKey "h:*->name" :| []) "k")
      ["SORT", "k", "GET", "h:*->name", "DESC"]
      (Gives [[Nothing], [Just "two"], [Nothing]]),
    after [numbers] "sortRoGet" (sortRoGet (GetElement :| []) "k") ["SORT_RO", "k", "GET", "#"] (Gives [[Just "1"], [Just "2"], [Just "10"]]),
    after
      [numbers]
      "sortRoGetWith"
      (sortRoGetWith sortDefaults {sortSkip = 2} (GetElement :| []) "k")
      ["SORT_RO", "k", "LIMIT", "2", "-1", "GET", "#"]
      (Gives [[Just "10"]]),
    after [["RPUSH", "{k}a", "2", "1"]] "sortStore" (sortStore "{k}a" "{k}b") ["SORT", "{k}a", "STORE", "{k}b"] (Gives 2),
    after
      [["RPUSH", "{k}a", "b", "a"]]
      "sortStoreWith"
      (sortStoreWith sortDefaults {sortAs = AsText} [GetElement, GetKey "name:*"] "{k}a" "{k}b")
      ["SORT", "{k}a", "GET", "#", "GET", "name:*", "ALPHA", "STORE", "{k}b"]
      (Gives 4)
  ]
  where
    numbers, weights :: [ByteString]
    numbers = ["RPUSH", "k", "10", "1", "2"]
    weights = ["MSET", "w:1", "3", "w:2", "2", "w:10", "1"]
