-- | "Redis.Commands.Array", whose replies are those of the documentation.
module Redis.Cases.Array (arrayCases) where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Word (Word64)
import Redis.CommandCase
import Redis.Commands.Array
import Redis.Value (Value (..))

arrayCases :: [Case]
arrayCases = elements <> ranges <> cursor <> searching <> sums <> whole

elements :: [Case]
elements =
  [ documented [Integer 1] $ onEmpty "arset" (arset "k" 0 ("hello" :| [])) ["ARSET", "k", "0", "hello"] (Gives 1),
    documented [Integer 3] $ onEmpty "arset" (arset "k" highest ("a" :| ["b", "c"])) ["ARSET", "k", "18446744073709551614", "a", "b", "c"] (Gives 3),
    documented [Integer 3] $
      onEmpty "armset" (armset "k" ((0, "alpha") :| [(5, "beta"), (100, "gamma")])) ["ARMSET", "k", "0", "alpha", "5", "beta", "100", "gamma"] (Gives 3),
    documented [BulkString "hello"] $ after [["ARSET", "k", "0", "hello"]] "arget" (arget "k" 0) ["ARGET", "k", "0"] (Gives (Just "hello")),
    documented [Null] $ onEmpty "arget" (arget "k" 1) ["ARGET", "k", "1"] (Gives Nothing),
    documented [Array [BulkString "a", BulkString "b", Null]] $
      after [abd] "armget" (armget "k" (0 :| [1, 5])) ["ARMGET", "k", "0", "1", "5"] (Gives [Just "a", Just "b", Nothing]),
    documented [Integer 2] $ after [abd] "ardel" (ardel "k" (0 :| [2, 3])) ["ARDEL", "k", "0", "2", "3"] (Gives 2),
    documented [Integer 2] $
      after [abd] "ardelrange" (ardelrange "k" ((1, 3) :| [(9, 7)])) ["ARDELRANGE", "k", "1", "3", "9", "7"] (Gives 2)
  ]

ranges :: [Case]
ranges =
  [ documented [Array [BulkString "d", Null, BulkString "b", BulkString "a"]] $
      after [abd] "argetrange" (argetrange "k" 3 0) ["ARGETRANGE", "k", "3", "0"] (Gives [Just "d", Nothing, Just "b", Just "a"]),
    documented (bothForms [(0, "a"), (1, "b"), (3, "d")]) $
      after [abd] "arscan" (arscan "k" 0 10) ["ARSCAN", "k", "0", "10"] (Gives [(0, "a"), (1, "b"), (3, "d")]),
    documented [Array []] $ onEmpty "arscan" (arscan "k" 0 10) ["ARSCAN", "k", "0", "10"] (Gives []),
    documented (bothForms [(0, "a"), (1, "b")]) $
      after
        [abd]
        "arscanWith"
        (arscanWith arscanDefaults {arscanLimit = Just 2} "k" 0 10)
        ["ARSCAN", "k", "0", "10", "LIMIT", "2"]
        (Gives [(0, "a"), (1, "b")])
  ]

cursor :: [Case]
cursor =
  [ documented [Integer 1] $ onEmpty "arinsert" (arinsert "k" ("alpha" :| ["beta"])) ["ARINSERT", "k", "alpha", "beta"] (Gives 1),
    documented [Integer 0] $
      after [["ARRING", "k", "3", "v0", "v1", "v2"]] "arring" (arring "k" 3 ("v3" :| [])) ["ARRING", "k", "3", "v3"] (Gives 0),
    onEmpty "arring" (arring "k" 0 ("v" :| [])) ["ARRING", "k", "0", "v"] Unfit,
    documented [Array [BulkString "second", BulkString "third"]] $
      after [inserted] "arlastitems" (arlastitems "k" 2) ["ARLASTITEMS", "k", "2"] (Gives [Just "second", Just "third"]),
    documented [Array [BulkString "third", BulkString "second"]] $
      after
        [inserted]
        "arlastitemsWith"
        (arlastitemsWith arlastitemsDefaults {arlastitemsRev = True} "k" 2)
        ["ARLASTITEMS", "k", "2", "REV"]
        (Gives [Just "third", Just "second"]),
    documented [Integer 3] $ after [inserted] "arnext" (arnext "k") ["ARNEXT", "k"] (Gives (Just 3)),
    documented [Integer 0] $ onEmpty "arnext" (arnext "k") ["ARNEXT", "k"] (Gives (Just 0)),
    documented [Null] $
      after [["ARSET", "k", "0", "v"], ["ARSEEK", "k", "18446744073709551615"]] "arnext" (arnext "k") ["ARNEXT", "k"] (Gives Nothing),
    -- An index that is greater than numbers with a sign.
    documented [BigNumber 18446744073709551614, BulkString "18446744073709551614"] $
      after [["ARSET", "k", "0", "v"], ["ARSEEK", "k", "18446744073709551614"]] "arnext" (arnext "k") ["ARNEXT", "k"] (Gives (Just highest)),
    documented [Integer 1] $ after [inserted] "arseek" (arseek "k" 10) ["ARSEEK", "k", "10"] (Gives True),
    documented [Integer 0] $ onEmpty "arseek" (arseek "k" 10) ["ARSEEK", "k", "10"] (Gives False)
  ]
  where
    inserted = ["ARINSERT", "k", "first", "second", "third"]

searching :: [Case]
searching =
  [ documented [Array [Integer 1, Integer 4]] $
      after
        [lines']
        "argrep"
        (argrep "k" (ArgrepIndex 0) (ArgrepIndex 4) (ArgrepGlob "warn:*" :| [ArgrepExact "error: net"]))
        ["ARGREP", "k", "0", "4", "GLOB", "warn:*", "EXACT", "error: net"]
        (Gives [1, 4]),
    documented [Array [Integer 2]] $
      after
        [lines']
        "argrepWith"
        ( argrepWith
            argrepDefaults {argrepAnd = True, argrepLimit = Just 1, argrepNocase = True}
            "k"
            ArgrepFirst
            ArgrepLast
            (ArgrepMatch "error" :| [ArgrepRe "(cpu|net)$"])
        )
        ["ARGREP", "k", "-", "+", "MATCH", "error", "RE", "(cpu|net)$", "AND", "LIMIT", "1", "NOCASE"]
        (Gives [2]),
    onEmpty
      "argrepWith"
      (argrepWith argrepDefaults {argrepLimit = Just 0} "k" ArgrepFirst ArgrepLast (ArgrepMatch "error" :| []))
      ["ARGREP", "k", "-", "+", "MATCH", "error", "LIMIT", "0"]
      Unfit,
    documented (bothForms [(4, "error: net")]) $
      after
        [lines']
        "argrepWithvalues"
        (argrepWithvalues "k" ArgrepFirst ArgrepLast (ArgrepMatch "error" :| []))
        ["ARGREP", "k", "-", "+", "MATCH", "error", "WITHVALUES"]
        (Gives [(4, "error: net")]),
    documented (bothForms [(2, "ERROR: cpu"), (4, "error: net")]) $
      after
        [lines']
        "argrepWithvaluesWith"
        (argrepWithvaluesWith argrepDefaults {argrepNocase = True} "k" ArgrepFirst ArgrepLast (ArgrepMatch "error" :| []))
        ["ARGREP", "k", "-", "+", "MATCH", "error", "NOCASE", "WITHVALUES"]
        (Gives [(2, "ERROR: cpu"), (4, "error: net")])
  ]
  where
    lines' = ["ARMSET", "k", "0", "boot: ok", "1", "warn: disk", "2", "ERROR: cpu", "3", "info: ready", "4", "error: net"]

sums :: [Case]
sums =
  [ documented [BulkString "60"] $ after [numbers] "aropSum" (aropSum "k" 0 2) ["AROP", "k", "0", "2", "SUM"] (Gives (Just 60)),
    documented [Null] $ onEmpty "aropSum" (aropSum "k" 0 2) ["AROP", "k", "0", "2", "SUM"] (Gives Nothing),
    documented [BulkString "10"] $ after [numbers] "aropMin" (aropMin "k" 0 2) ["AROP", "k", "0", "2", "MIN"] (Gives (Just 10)),
    documented [BulkString "30"] $ after [numbers] "aropMax" (aropMax "k" 0 2) ["AROP", "k", "0", "2", "MAX"] (Gives (Just 30)),
    documented [Integer 0] $ after [bits] "aropAnd" (aropAnd "k" 0 2) ["AROP", "k", "0", "2", "AND"] (Gives (Just 0)),
    documented [Integer 255] $ after [bits] "aropOr" (aropOr "k" 0 2) ["AROP", "k", "0", "2", "OR"] (Gives (Just 255)),
    documented [Integer 0] $ after [bits] "aropXor" (aropXor "k" 0 2) ["AROP", "k", "0", "2", "XOR"] (Gives (Just 0)),
    documented [Null] $ onEmpty "aropXor" (aropXor "k" 0 2) ["AROP", "k", "0", "2", "XOR"] (Gives Nothing),
    documented [Integer 1] $ after [numbers] "aropMatch" (aropMatch "k" 0 2 "10") ["AROP", "k", "0", "2", "MATCH", "10"] (Gives 1),
    documented [Integer 3] $ after [numbers] "aropUsed" (aropUsed "k" 0 2) ["AROP", "k", "0", "2", "USED"] (Gives 3)
  ]
  where
    numbers = ["ARMSET", "k", "0", "10", "1", "20", "2", "30"]
    bits = ["ARMSET", "k", "0", "255", "1", "15", "2", "240"]

whole :: [Case]
whole =
  [ documented [Integer 4] $ after [abd] "arlen" (arlen "k") ["ARLEN", "k"] (Gives 4),
    documented [Integer 3] $ after [abd] "arcount" (arcount "k") ["ARCOUNT", "k"] (Gives 3),
    documented (asMap fields) $
      after
        [["ARMSET", "k", "0", "a", "1", "b", "100", "c"], ["ARINSERT", "k", "d"]]
        "arinfo"
        (arinfo "k")
        ["ARINFO", "k"]
        (Gives (ArrayInfo 3 101 1 1 1 0 4096 Nothing [])),
    onEmpty "arinfo" (arinfo "k") ["ARINFO", "k"] (Fails "ERR"),
    documented (asMap (fields <> slices)) $
      after
        [["ARMSET", "k", "0", "a", "1", "b", "100", "c"], ["ARINSERT", "k", "d"]]
        "arinfoFull"
        (arinfoFull "k")
        ["ARINFO", "k", "FULL"]
        (Such "counts the slices" ((== Just (ArraySlices 1 0 128 0.25 0)) . arrayInfoFull))
  ]
  where
    asMap those = [Array (concat [[name, it] | (name, it) <- those]), Map those]
    fields =
      [ (BulkString name, Integer number)
        | (name, number) <-
            [ ("count", 3),
              ("len", 101),
              ("next-insert-index", 1),
              ("slices", 1),
              ("directory-size", 1),
              ("super-dir-entries", 0),
              ("slice-size", 4096)
            ]
      ]
    slices =
      [ (BulkString "dense-slices", Integer 1),
        (BulkString "sparse-slices", Integer 0),
        (BulkString "avg-dense-size", BulkString "128"),
        (BulkString "avg-dense-fill", Double 0.25),
        (BulkString "avg-sparse-size", Integer 0)
      ]

-- | Indices with elements, as RESP2 and as RESP3 have them.
bothForms :: [(Int64, ByteString)] -> [Value]
bothForms those =
  [ Array (concat [[Integer at, BulkString element] | (at, element) <- those]),
    Array [Array [Integer at, BulkString element] | (at, element) <- those]
  ]

abd :: [ByteString]
abd = ["ARMSET", "k", "0", "a", "1", "b", "3", "d"]

-- | The highest index that there is.
highest :: Word64
highest = maxBound - 1
