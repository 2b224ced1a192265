module Redis.Cases.HyperLogLog (hyperLogLogCases) where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.HyperLogLog

hyperLogLogCases :: [Case]
hyperLogLogCases =
  [ after [abc] "pfadd" (pfadd "k" ["c", "d"]) ["PFADD", "k", "c", "d"] (Gives True),
    after [abc] "pfadd" (pfadd "k" ["c"]) ["PFADD", "k", "c"] (Gives False),
    onEmpty "pfadd" (pfadd "k" []) ["PFADD", "k"] (Gives True),
    after [["SET", "k", "v"]] "pfadd" (pfadd "k" ["c"]) ["PFADD", "k", "c"] (Fails "WRONGTYPE"),
    after [abc] "pfcount" (pfcount ("k" :| [])) ["PFCOUNT", "k"] (Gives 3),
    after
      [["PFADD", "{k}a", "x", "y"], ["PFADD", "{k}b", "y", "z"]]
      "pfcount"
      (pfcount ("{k}a" :| ["{k}b", "{k}c"]))
      ["PFCOUNT", "{k}a", "{k}b", "{k}c"]
      (Gives 3),
    after
      [["PFADD", "{k}a", "x"]]
      "pfmerge"
      (pfmerge "{k}d" ["{k}a", "{k}b"])
      ["PFMERGE", "{k}d", "{k}a", "{k}b"]
      (Gives ()),
    onEmpty "pfmerge" (pfmerge "k" []) ["PFMERGE", "k"] (Gives ()),
    after [abc] "pfdebugEncoding" (pfdebugEncoding "k") ["PFDEBUG", "ENCODING", "k"] (Gives SparseEncoding),
    after
      [abc, ["PFDEBUG", "TODENSE", "k"]]
      "pfdebugEncoding"
      (pfdebugEncoding "k")
      ["PFDEBUG", "ENCODING", "k"]
      (Gives DenseEncoding),
    onEmpty "pfdebugEncoding" (pfdebugEncoding "k") ["PFDEBUG", "ENCODING", "k"] (Fails "ERR"),
    after
      [abc]
      "pfdebugDecode"
      (pfdebugDecode "k")
      ["PFDEBUG", "DECODE", "k"]
      (Such "names its runs" ("Z:" `ByteString.isPrefixOf`)),
    after
      [abc]
      "pfdebugGetreg"
      (pfdebugGetreg "k")
      ["PFDEBUG", "GETREG", "k"]
      (Such "has 16384 registers, three of them in use" (\registers -> (length registers, length (filter (> 0) registers)) == (16384, 3))),
    after [abc] "pfdebugTodense" (pfdebugTodense "k") ["PFDEBUG", "TODENSE", "k"] (Gives True),
    after
      [abc, ["PFDEBUG", "TODENSE", "k"]]
      "pfdebugTodense"
      (pfdebugTodense "k")
      ["PFDEBUG", "TODENSE", "k"]
      (Gives False),
    onEmpty "pfselftest" pfselftest ["PFSELFTEST"] (Gives ())
  ]

-- | A HyperLogLog with three elements.
abc :: [ByteString]
abc = ["PFADD", "k", "a", "b", "c"]
