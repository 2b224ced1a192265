-- | "Redis.Commands.String".
module Redis.Cases.String (stringCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.CommandCase
import Redis.Commands.String
import Redis.Duration

stringCases :: [Case]
stringCases = setting <> getting <> counting <> several

setting :: [Case]
setting =
  [ onEmpty "set" (set "k" "v") ["SET", "k", "v"] (Gives ()),
    onEmpty "setWith" (setWith setDefaults "k" "v") ["SET", "k", "v"] (Gives True),
    after
      [kv]
      "setWith"
      (setWith setDefaults {setCondition = Just OnlyIfAbsent, setExpiry = ExpireIn (minutes 1)} "k" "v")
      ["SET", "k", "v", "NX", "EX", "60"]
      (Gives False),
    after
      [kv]
      "setWith"
      (setWith setDefaults {setCondition = Just OnlyIfPresent, setExpiry = KeepExpiry} "k" "v")
      ["SET", "k", "v", "XX", "KEEPTTL"]
      (Gives True),
    onEmpty "setWith" (setWith setDefaults {setExpiry = ExpireIn (seconds 1.5)} "k" "v") ["SET", "k", "v", "PX", "1500"] (Gives True),
    onEmpty "setWith" (setWith setDefaults {setExpiry = ExpireIn (seconds 0.0001)} "k" "v") ["SET", "k", "v", "PX", "1"] (Gives True),
    onEmpty "setWith" (setWith setDefaults {setExpiry = ExpireIn mempty} "k" "v") ["SET", "k", "v", "EX", "0"] (Fails "ERR"),
    onEmpty "setWith" (setWith setDefaults {setExpiry = ExpireIn (seconds (-1.5))} "k" "v") ["SET", "k", "v", "PX", "-1500"] (Fails "ERR"),
    onEmpty
      "setWith"
      (setWith setDefaults {setExpiry = ExpireAt (posixSecondsToUTCTime 9)} "k" "v")
      ["SET", "k", "v", "PXAT", "9000"]
      (Gives True),
    after [kv] "setGet" (setGet "k" "w") ["SET", "k", "w", "GET"] (Gives (Just "v")),
    onEmpty "setGet" (setGet "k" "w") ["SET", "k", "w", "GET"] (Gives Nothing),
    after
      [kv]
      "setGetWith"
      (setGetWith setDefaults {setCondition = Just OnlyIfAbsent, setExpiry = KeepExpiry} "k" "w")
      ["SET", "k", "w", "NX", "KEEPTTL", "GET"]
      (Gives (Just "v")),
    onEmpty "setnx" (setnx "k" "v") ["SETNX", "k", "v"] (Gives True),
    after [kv] "setnx" (setnx "k" "v") ["SETNX", "k", "v"] (Gives False),
    onEmpty "setex" (setex "k" (minutes 30) "v") ["SETEX", "k", "1800", "v"] (Gives ()),
    onEmpty "setex" (setex "k" (seconds 0.001) "v") ["SETEX", "k", "1", "v"] (Gives ()),
    onEmpty "psetex" (psetex "k" (seconds 1.5) "v") ["PSETEX", "k", "1500", "v"] (Gives ()),
    after [kv] "getset" (getset "k" "w") ["GETSET", "k", "w"] (Gives (Just "v")),
    after [kv] "append" (append "k" "w") ["APPEND", "k", "w"] (Gives 2),
    after [kv] "setrange" (setrange "k" 10 "v") ["SETRANGE", "k", "10", "v"] (Gives 11)
  ]

getting :: [Case]
getting =
  [ after [kv] "get" (get "k") ["GET", "k"] (Gives (Just "v")),
    onEmpty "get" (get "k") ["GET", "k"] (Gives Nothing),
    after [["RPUSH", "k", "a"]] "get" (get "k") ["GET", "k"] (Fails "WRONGTYPE"),
    after [kv] "getdel" (getdel "k") ["GETDEL", "k"] (Gives (Just "v")),
    after [kv] "getex" (getex "k") ["GETEX", "k"] (Gives (Just "v")),
    after [kv] "getexWith" (getexWith NoExpiry "k") ["GETEX", "k", "PERSIST"] (Gives (Just "v")),
    onEmpty "getexWith" (getexWith KeepExpiry "k") ["GETEX", "k"] (Gives Nothing),
    after [kv] "getexWith" (getexWith (ExpireIn (seconds 3)) "k") ["GETEX", "k", "EX", "3"] (Gives (Just "v")),
    after [kv] "getexWith" (getexWith (ExpireAt (posixSecondsToUTCTime 3)) "k") ["GETEX", "k", "PXAT", "3000"] (Gives (Just "v")),
    after [kv] "strlen" (strlen "k") ["STRLEN", "k"] (Gives 1),
    after [["SET", "k", "hello"]] "getrange" (getrange "k" 1 (-2)) ["GETRANGE", "k", "1", "-2"] (Gives "ell")
  ]

counting :: [Case]
counting =
  [ onEmpty "incr" (incr "k") ["INCR", "k"] (Gives 1),
    after [kv] "incr" (incr "k") ["INCR", "k"] (Fails "ERR"),
    onEmpty "incrby" (incrby "k" minBound) ["INCRBY", "k", "-9223372036854775808"] (Gives minBound),
    after [["SET", "k", "3"]] "incrbyfloat" (incrbyfloat "k" 0.5) ["INCRBYFLOAT", "k", "0.5"] (Gives 3.5),
    onEmpty "decr" (decr "k") ["DECR", "k"] (Gives (-1)),
    onEmpty "decrby" (decrby "k" 9) ["DECRBY", "k", "9"] (Gives (-9))
  ]

several :: [Case]
several =
  [ after [kv] "mget" (mget ("k" :| [])) ["MGET", "k"] (Gives [Just "v"]),
    after [kv] "mget" (mget ("{k}a" :| ["k"])) ["MGET", "{k}a", "k"] (Gives [Nothing, Just "v"]),
    onEmpty "mset" (mset (("k", "1") :| [])) ["MSET", "k", "1"] (Gives ()),
    onEmpty "mset" (mset (("{k}a", "1") :| [("{k}b", "2")])) ["MSET", "{k}a", "1", "{k}b", "2"] (Gives ()),
    onEmpty "msetnx" (msetnx (("{k}a", "1") :| [("{k}b", "2")])) ["MSETNX", "{k}a", "1", "{k}b", "2"] (Gives True),
    after [kv] "msetnx" (msetnx (("{k}a", "1") :| [("k", "2")])) ["MSETNX", "{k}a", "1", "k", "2"] (Gives False)
  ]

kv :: [ByteString]
kv = ["SET", "k", "v"]
