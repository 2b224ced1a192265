-- | "Redis.Commands.Hash".
module Redis.Cases.Hash (hashCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (nub)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (isJust)
import Redis.CommandCase
import Redis.Commands.Hash

hashCases :: [Case]
hashCases = plainCases <> drawingCases <> walkingCases

plainCases :: [Case]
plainCases =
  [ after [ab] "hset" (hset "k" (("b", "9") :| [("c", "3")])) ["HSET", "k", "b", "9", "c", "3"] (Gives 1),
    after [["SET", "k", "v"]] "hset" (hset "k" (("a", "1") :| [])) ["HSET", "k", "a", "1"] (Fails "WRONGTYPE"),
    onEmpty "hsetnx" (hsetnx "k" "a" "1") ["HSETNX", "k", "a", "1"] (Gives True),
    after [ab] "hsetnx" (hsetnx "k" "a" "9") ["HSETNX", "k", "a", "9"] (Gives False),
    after [ab] "hincrby" (hincrby "k" "a" (-3)) ["HINCRBY", "k", "a", "-3"] (Gives (-2)),
    onEmpty "hincrby" (hincrby "k" "a" maxBound) ["HINCRBY", "k", "a", "9223372036854775807"] (Gives maxBound),
    after [["HSET", "k", "a", "x"]] "hincrby" (hincrby "k" "a" 1) ["HINCRBY", "k", "a", "1"] (Fails "ERR"),
    after [ab] "hincrbyfloat" (hincrbyfloat "k" "b" 0.25) ["HINCRBYFLOAT", "k", "b", "0.25"] (Gives 2.25),
    after [ab] "hincrbyfloat" (hincrbyfloat "k" "b" (0 / 0)) ["HINCRBYFLOAT", "k", "b", "nan"] Unfit,
    after [ab] "hdel" (hdel "k" ("a" :| ["z"])) ["HDEL", "k", "a", "z"] (Gives 1),
    onEmpty "hmset" (hmset "k" (("a", "1") :| [("b", "2")])) ["HMSET", "k", "a", "1", "b", "2"] (Gives ()),
    after [ab] "hget" (hget "k" "a") ["HGET", "k", "a"] (Gives (Just "1")),
    after [ab] "hget" (hget "k" "z") ["HGET", "k", "z"] (Gives Nothing),
    after [ab] "hmget" (hmget "k" ("b" :| ["z", "a"])) ["HMGET", "k", "b", "z", "a"] (Gives [Just "2", Nothing, Just "1"]),
    onEmpty "hmget" (hmget "k" ("a" :| [])) ["HMGET", "k", "a"] (Gives [Nothing]),
    after [ab] "hgetall" (hgetall "k") ["HGETALL", "k"] (Gives [("a", "1"), ("b", "2")]),
    onEmpty "hgetall" (hgetall "k") ["HGETALL", "k"] (Gives []),
    after [ab] "hkeys" (hkeys "k") ["HKEYS", "k"] (Gives ["a", "b"]),
    after [ab] "hvals" (hvals "k") ["HVALS", "k"] (Gives ["1", "2"]),
    after [ab] "hlen" (hlen "k") ["HLEN", "k"] (Gives 2),
    after [ab] "hexists" (hexists "k" "a") ["HEXISTS", "k", "a"] (Gives True),
    after [ab] "hexists" (hexists "k" "z") ["HEXISTS", "k", "z"] (Gives False),
    after [["HSET", "k", "a", "four"]] "hstrlen" (hstrlen "k" "a") ["HSTRLEN", "k", "a"] (Gives 4)
  ]

drawingCases :: [Case]
drawingCases =
  [ after [["HSET", "k", "a", "1"]] "hrandfield" (hrandfield "k") ["HRANDFIELD", "k"] (Gives (Just "a")),
    onEmpty "hrandfield" (hrandfield "k") ["HRANDFIELD", "k"] (Gives Nothing),
    after
      [ab]
      "hrandfieldCount"
      (hrandfieldCount "k" (Distinct 5))
      ["HRANDFIELD", "k", "5"]
      (Such "are the two fields" (\found -> length found == 2 && length (nub found) == 2)),
    after
      [ab]
      "hrandfieldCount"
      (hrandfieldCount "k" (Repeated 5))
      ["HRANDFIELD", "k", "-5"]
      (Such "are five of them" (\found -> length found == 5 && all (`elem` ["a", "b"]) found)),
    after [ab] "hrandfieldCount" (hrandfieldCount "k" (Repeated minBound)) ["HRANDFIELD", "k", "0"] (Gives []),
    onEmpty "hrandfieldCount" (hrandfieldCount "k" (Distinct 1)) ["HRANDFIELD", "k", "1"] (Gives []),
    after
      [["HSET", "k", "a", "1"]]
      "hrandfieldWithvalues"
      (hrandfieldWithvalues "k" (Repeated 2))
      ["HRANDFIELD", "k", "-2", "WITHVALUES"]
      (Gives [("a", "1"), ("a", "1")]),
    onEmpty
      "hrandfieldWithvalues"
      (hrandfieldWithvalues "k" (Distinct 2))
      ["HRANDFIELD", "k", "2", "WITHVALUES"]
      (Gives [])
  ]

walkingCases :: [Case]
walkingCases =
  [ after [ab] "hscan" (hscan "k" scanStart) ["HSCAN", "k", "0"] (Gives (ScanPage Nothing [("a", "1"), ("b", "2")])),
    onEmpty "hscan" (hscan "k" scanStart) ["HSCAN", "k", "0"] (Gives (ScanPage Nothing [])),
    after
      [ab]
      "hscanWith"
      (hscanWith hscanDefaults {hscanMatch = Just "b*"} "k" scanStart)
      ["HSCAN", "k", "0", "MATCH", "b*"]
      (Gives (ScanPage Nothing [("b", "2")])),
    after
      ["HSET" : "k" : concat [[Char8.pack (show n), "v"] | n <- [1 .. 1000 :: Int]]]
      "hscanWith"
      (hscanWith hscanDefaults {hscanCount = Just 5} "k" scanStart)
      ["HSCAN", "k", "0", "COUNT", "5"]
      (Such "goes on, and has values" (\page -> isJust (scanNext page) && all ((== "v") . snd) (scanFound page))),
    needs [(IsRedis, (7, 4)), (IsValkey, (8, 0))] $
      after
        [ab]
        "hscanNovalues"
        (hscanNovalues hscanDefaults {hscanMatch = Just "*", hscanCount = Just 100} "k" scanStart)
        ["HSCAN", "k", "0", "MATCH", "*", "COUNT", "100", "NOVALUES"]
        (Gives (ScanPage Nothing ["a", "b"]))
  ]

-- | A hash with two fields.
ab :: [ByteString]
ab = ["HSET", "k", "a", "1", "b", "2"]
