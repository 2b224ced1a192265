-- | "Redis.Commands.String".
module Redis.Cases.String (stringCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.CommandCase
import Redis.Commands.String
import Redis.Duration
import Redis.Value (Value (..))

stringCases :: [Case]
stringCases = setting <> getting <> counting <> several <> comparing

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
    needs ifeq $
      after
        [kv]
        "setWith"
        (setWith setDefaults {setCondition = Just (OnlyIfEqual "v")} "k" "w")
        ["SET", "k", "w", "IFEQ", "v"]
        (Gives True),
    needs ifeq $
      after
        [kv]
        "setWith"
        (setWith setDefaults {setCondition = Just (OnlyIfEqual "u")} "k" "w")
        ["SET", "k", "w", "IFEQ", "u"]
        (Gives False),
    needs [(IsRedis, (8, 4)), (IsValkey, (9, 2))] $
      after
        [kv]
        "setWith"
        (setWith setDefaults {setCondition = Just (OnlyIfNotEqual "v")} "k" "w")
        ["SET", "k", "w", "IFNE", "v"]
        (Gives False),
    needs [(IsRedis, (8, 4))] $
      after
        [kv]
        "setWith"
        (setWith setDefaults {setCondition = Just (OnlyIfDigest "0000000000000000")} "k" "w")
        ["SET", "k", "w", "IFDEQ", "0000000000000000"]
        (Gives False),
    needs [(IsRedis, (8, 4))] $
      after
        [kv]
        "setWith"
        (setWith setDefaults {setCondition = Just (OnlyIfNotDigest "0000000000000000")} "k" "w")
        ["SET", "k", "w", "IFDNE", "0000000000000000"]
        (Gives True),
    after [kv] "setGet" (setGet "k" "w") ["SET", "k", "w", "GET"] (Gives (Just "v")),
    onEmpty "setGet" (setGet "k" "w") ["SET", "k", "w", "GET"] (Gives Nothing),
    after
      [kv]
      "setGetWith"
      (setGetWith setDefaults {setCondition = Just OnlyIfAbsent, setExpiry = KeepExpiry} "k" "w")
      ["SET", "k", "w", "NX", "KEEPTTL", "GET"]
      (Gives (Just "v")),
    needs ifeq $
      after
        [kv]
        "setGetWith"
        (setGetWith setDefaults {setCondition = Just (OnlyIfEqual "v")} "k" "w")
        ["SET", "k", "w", "IFEQ", "v", "GET"]
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
  where
    ifeq = [(IsValkey, (8, 1)), (IsRedis, (8, 4))]

getting :: [Case]
getting =
  [ after [kv] "get" (get "k") ["GET", "k"] (Gives (Just "v")),
    onEmpty "get" (get "k") ["GET", "k"] (Gives Nothing),
    after [["RPUSH", "k", "a"]] "get" (get "k") ["GET", "k"] (Fails "WRONGTYPE"),
    after [kv] "getdel" (getdel "k") ["GETDEL", "k"] (Gives (Just "v")),
    after [kv] "getex" (getex "k") ["GETEX", "k"] (Gives (Just "v")),
    after [kv] "getexWith" (getexWith getexDefaults {getexExpiry = NoExpiry} "k") ["GETEX", "k", "PERSIST"] (Gives (Just "v")),
    onEmpty "getexWith" (getexWith getexDefaults {getexExpiry = KeepExpiry} "k") ["GETEX", "k"] (Gives Nothing),
    after [kv] "getexWith" (getexWith getexDefaults {getexExpiry = ExpireIn (seconds 3)} "k") ["GETEX", "k", "EX", "3"] (Gives (Just "v")),
    after [kv] "getexWith" (getexWith getexDefaults {getexExpiry = ExpireAt (posixSecondsToUTCTime 3)} "k") ["GETEX", "k", "PXAT", "3000"] (Gives (Just "v")),
    after [kv] "strlen" (strlen "k") ["STRLEN", "k"] (Gives 1),
    after [["SET", "k", "hello"]] "getrange" (getrange "k" 1 (-2)) ["GETRANGE", "k", "1", "-2"] (Gives "ell"),
    after [["SET", "k", "hello"]] "substr" (substr "k" 1 (-2)) ["SUBSTR", "k", "1", "-2"] (Gives "ell"),
    onEmpty "substr" (substr "k" 0 (-1)) ["SUBSTR", "k", "0", "-1"] (Gives ""),
    after [kv] "delifeq" (delifeq "k" "v") ["DELIFEQ", "k", "v"] (Gives True),
    after [kv] "delifeq" (delifeq "k" "w") ["DELIFEQ", "k", "w"] (Gives False),
    after [kv] "delex" (delex "k" (DelexIfEqual "v")) ["DELEX", "k", "IFEQ", "v"] (Gives True),
    after [kv] "delex" (delex "k" (DelexIfEqual "w")) ["DELEX", "k", "IFEQ", "w"] (Gives False),
    after [kv] "delex" (delex "k" (DelexIfNotEqual "w")) ["DELEX", "k", "IFNE", "w"] (Gives True),
    onEmpty "delex" (delex "k" (DelexIfNotEqual "w")) ["DELEX", "k", "IFNE", "w"] (Gives False),
    after [kv] "delex" (delex "k" (DelexIfDigest digestOfV)) ["DELEX", "k", "IFDEQ", digestOfV] (Gives True),
    after [kv] "delex" (delex "k" (DelexIfNotDigest digestOfV)) ["DELEX", "k", "IFDNE", digestOfV] (Gives False),
    after [kv] "digest" (digest "k") ["DIGEST", "k"] (Gives (Just digestOfV)),
    onEmpty "digest" (digest "k") ["DIGEST", "k"] (Gives Nothing),
    after [["LPUSH", "k", "v"]] "digest" (digest "k") ["DIGEST", "k"] (Fails "WRONGTYPE")
  ]
  where
    digestOfV = "f7042be43fb80714"

counting :: [Case]
counting =
  [ onEmpty "incr" (incr "k") ["INCR", "k"] (Gives 1),
    after [kv] "incr" (incr "k") ["INCR", "k"] (Fails "ERR"),
    onEmpty "incrby" (incrby "k" minBound) ["INCRBY", "k", "-9223372036854775808"] (Gives minBound),
    after [["SET", "k", "3"]] "incrbyfloat" (incrbyfloat "k" 0.5) ["INCRBYFLOAT", "k", "0.5"] (Gives 3.5),
    documented [Array [Integer 105, Integer 5]] $
      after [["SET", "k", "100"]] "increx" (increx "k" 5) ["INCREX", "k", "BYINT", "5"] (Gives (IncrexResult 105 5)),
    documented [Array [Integer 100, Integer 1]] $
      after
        [["SET", "k", "99"]]
        "increxWith"
        (increxWith increxDefaults {increxLbound = Just (-7), increxUbound = Just 100, increxSaturate = True, increxExpiry = NoExpiry} "k" 5)
        ["INCREX", "k", "BYINT", "5", "LBOUND", "-7", "UBOUND", "100", "SATURATE", "PERSIST"]
        (Gives (IncrexResult 100 1)),
    -- Nothing changes.
    documented [Array [Integer 99, Integer 0]] $
      after
        [["SET", "k", "99"]]
        "increxWith"
        (increxWith increxDefaults {increxUbound = Just 100, increxExpiry = ExpireIn (minutes 1), increxEnx = True} "k" 5)
        ["INCREX", "k", "BYINT", "5", "UBOUND", "100", "EX", "60", "ENX"]
        (Gives (IncrexResult 99 0)),
    documented [Array [BulkString "1.75", BulkString "0.25"], Array [Double 1.75, Double 0.25]] $
      after [["SET", "k", "1.5"]] "increxByfloat" (increxByfloat "k" 0.25) ["INCREX", "k", "BYFLOAT", "0.25"] (Gives (IncrexResult 1.75 0.25)),
    onEmpty "increxByfloat" (increxByfloat "k" (0 / 0)) ["INCREX", "k", "BYFLOAT", "nan"] Unfit,
    documented [Array [BulkString "2", BulkString "0.5"], Array [Double 2, Double 0.5]] $
      after
        [["SET", "k", "1.5"]]
        "increxByfloatWith"
        (increxByfloatWith increxDefaults {increxUbound = Just 2, increxSaturate = True, increxExpiry = ExpireIn (milliseconds 1500)} "k" 0.75)
        ["INCREX", "k", "BYFLOAT", "0.75", "UBOUND", "2.0", "SATURATE", "PX", "1500"]
        (Gives (IncrexResult 2 0.5)),
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
    after [kv] "msetnx" (msetnx (("{k}a", "1") :| [("k", "2")])) ["MSETNX", "{k}a", "1", "k", "2"] (Gives False),
    onEmpty "msetex" (msetex (("{k}a", "1") :| [("{k}b", "2")])) ["MSETEX", "2", "{k}a", "1", "{k}b", "2"] (Gives ()),
    after
      [kv]
      "msetexWith"
      (msetexWith msetexDefaults {msetexCondition = Just OnlyIfAllAbsent, msetexExpiry = ExpireIn (seconds 5)} (("k", "1") :| [("{k}b", "2")]))
      ["MSETEX", "2", "k", "1", "{k}b", "2", "NX", "EX", "5"]
      (Gives False),
    after
      [kv]
      "msetexWith"
      (msetexWith msetexDefaults {msetexCondition = Just OnlyIfAllPresent, msetexExpiry = KeepExpiry} (("k", "1") :| []))
      ["MSETEX", "1", "k", "1", "XX", "KEEPTTL"]
      (Gives True)
  ]

comparing :: [Case]
comparing =
  [ after [texts] "lcs" (lcs "{k}a" "{k}b") ["LCS", "{k}a", "{k}b"] (Gives "mytext"),
    onEmpty "lcs" (lcs "{k}a" "{k}b") ["LCS", "{k}a", "{k}b"] (Gives ""),
    after [texts] "lcsLen" (lcsLen "{k}a" "{k}b") ["LCS", "{k}a", "{k}b", "LEN"] (Gives 6),
    after
      [texts]
      "lcsIdx"
      (lcsIdx "{k}a" "{k}b")
      ["LCS", "{k}a", "{k}b", "IDX"]
      (Gives (LcsMatches [LcsMatch (ByteRange 4 7) (ByteRange 5 8), LcsMatch (ByteRange 2 3) (ByteRange 0 1)] 6)),
    after
      [texts]
      "lcsIdxWith"
      (lcsIdxWith lcsDefaults {lcsMinmatchlen = 4} "{k}a" "{k}b")
      ["LCS", "{k}a", "{k}b", "IDX", "MINMATCHLEN", "4"]
      (Gives (LcsMatches [LcsMatch (ByteRange 4 7) (ByteRange 5 8)] 6)),
    onEmpty "lcsIdx" (lcsIdx "{k}a" "{k}b") ["LCS", "{k}a", "{k}b", "IDX"] (Gives (LcsMatches [] 0))
  ]
  where
    texts = ["MSET", "{k}a", "ohmytext", "{k}b", "mynewtext"]

kv :: [ByteString]
kv = ["SET", "k", "v"]
