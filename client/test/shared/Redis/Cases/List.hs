-- | "Redis.Commands.List".
module Redis.Cases.List (listCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.List
import Redis.Duration

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

-- | A list of three.
abc :: [ByteString]
abc = ["RPUSH", "k", "a", "b", "c"]
