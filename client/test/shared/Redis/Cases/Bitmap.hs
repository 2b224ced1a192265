module Redis.Cases.Bitmap (bitmapCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Bitmap

bitmapCases :: [Case]
bitmapCases = bits <> several <> numbers

bits :: [Case]
bits =
  [ after [bytes] "getbit" (getbit "k" 15) ["GETBIT", "k", "15"] (Gives True),
    onEmpty "getbit" (getbit "k" 15) ["GETBIT", "k", "15"] (Gives False),
    after [bytes] "getbit" (getbit "k" (-1)) ["GETBIT", "k", "-1"] (Fails "ERR"),
    onEmpty "setbit" (setbit "k" 100 True) ["SETBIT", "k", "100", "1"] (Gives False),
    after [bytes] "setbit" (setbit "k" 15 False) ["SETBIT", "k", "15", "0"] (Gives True),
    after [bytes] "bitcount" (bitcount "k") ["BITCOUNT", "k"] (Gives 12),
    onEmpty "bitcount" (bitcount "k") ["BITCOUNT", "k"] (Gives 0),
    after
      [bytes]
      "bitcountWith"
      (bitcountWith bitcountDefaults {bitcountRange = Just (FromByteTo 0 1)} "k")
      ["BITCOUNT", "k", "0", "1"]
      (Gives 4),
    after
      [bytes]
      "bitcountWith"
      (bitcountWith bitcountDefaults {bitcountRange = Just (FromByte 2)} "k")
      ["BITCOUNT", "k", "2", "-1"]
      (Gives 8),
    after
      [bytes]
      "bitcountWith"
      (bitcountWith bitcountDefaults {bitcountRange = Just (FromBitTo (-10) (-7))} "k")
      ["BITCOUNT", "k", "-10", "-7", "BIT"]
      (Gives 4),
    after [bytes] "bitpos" (bitpos "k" True) ["BITPOS", "k", "1"] (Gives (Just 12)),
    after [bytes] "bitpos" (bitpos "k" False) ["BITPOS", "k", "0"] (Gives (Just 0)),
    onEmpty "bitpos" (bitpos "k" True) ["BITPOS", "k", "1"] (Gives Nothing),
    after
      [bytes]
      "bitposWith"
      (bitposWith bitposDefaults {bitposRange = Just (FromByte 2)} "k" False)
      ["BITPOS", "k", "0", "2"]
      (Gives (Just 24)),
    after
      [bytes]
      "bitposWith"
      (bitposWith bitposDefaults {bitposRange = Just (FromByteTo 2 2)} "k" False)
      ["BITPOS", "k", "0", "2", "2"]
      (Gives Nothing),
    after
      [bytes]
      "bitposWith"
      (bitposWith bitposDefaults {bitposRange = Just (FromBitTo 14 20)} "k" True)
      ["BITPOS", "k", "1", "14", "20", "BIT"]
      (Gives (Just 14))
  ]

several :: [Case]
several =
  [ after
      both
      "bitop"
      (bitop "{k}d" (BitAnd ("{k}a" :| ["{k}b"])))
      ["BITOP", "AND", "{k}d", "{k}a", "{k}b"]
      (Gives 2),
    after
      both
      "bitop"
      (bitop "{k}d" (BitOr ("{k}a" :| ["{k}b"])))
      ["BITOP", "OR", "{k}d", "{k}a", "{k}b"]
      (Gives 2),
    after
      both
      "bitop"
      (bitop "{k}d" (BitXor ("{k}a" :| [])))
      ["BITOP", "XOR", "{k}d", "{k}a"]
      (Gives 1),
    after both "bitop" (bitop "{k}d" (BitNot "{k}c")) ["BITOP", "NOT", "{k}d", "{k}c"] (Gives 0)
  ]
    <> [ needs [(IsRedis, (8, 2))] (after both "bitop" (bitop "{k}d" operation) ("BITOP" : word : "{k}d" : names) (Gives 2))
         | (operation, word, names) <-
             [ (BitDiff "{k}a" ("{k}b" :| ["{k}c"]), "DIFF", ["{k}a", "{k}b", "{k}c"]),
               (BitDiff1 "{k}a" ("{k}b" :| []), "DIFF1", ["{k}a", "{k}b"]),
               (BitAndor "{k}a" ("{k}b" :| []), "ANDOR", ["{k}a", "{k}b"]),
               (BitOne ("{k}a" :| ["{k}b"]), "ONE", ["{k}a", "{k}b"])
             ]
       ]
  where
    both = [["SET", "{k}a", "x"], ["SET", "{k}b", "yy"]]

numbers :: [Case]
numbers =
  [ after
      [bytes]
      "bitfield"
      ( bitfield
          "k"
          ( BitfieldGet (Unsigned 4) (AtBit 12)
              :| [ BitfieldSet OverflowWraps (Signed 8) (AtNumber 2) 5,
                   BitfieldIncrby OverflowWraps (Signed 8) (AtBit 16) (-6)
                 ]
          )
      )
      ["BITFIELD", "k", "GET", "u4", "12", "SET", "i8", "#2", "5", "INCRBY", "i8", "16", "-6"]
      (Gives [Just 15, Just (-1), Just (-1)]),
    onEmpty
      "bitfield"
      ( bitfield
          "k"
          ( BitfieldIncrby OverflowSaturates (Unsigned 2) (AtBit 0) 9
              :| [ BitfieldIncrby OverflowSaturates (Unsigned 2) (AtBit 0) 1,
                   BitfieldIncrby OverflowFails (Unsigned 2) (AtBit 0) 1,
                   BitfieldGet (Unsigned 2) (AtBit 0),
                   BitfieldSet OverflowFails (Unsigned 2) (AtBit 0) 9,
                   BitfieldIncrby OverflowWraps (Unsigned 2) (AtBit 0) 2
                 ]
          )
      )
      ( ["BITFIELD", "k", "OVERFLOW", "SAT", "INCRBY", "u2", "0", "9", "INCRBY", "u2", "0", "1"]
          <> ["OVERFLOW", "FAIL", "INCRBY", "u2", "0", "1", "GET", "u2", "0", "SET", "u2", "0", "9"]
          <> ["OVERFLOW", "WRAP", "INCRBY", "u2", "0", "2"]
      )
      (Gives [Just 3, Just 3, Nothing, Just 3, Nothing, Just 1]),
    onEmpty
      "bitfield"
      (bitfield "k" (BitfieldGet (Unsigned 64) (AtBit 0) :| []))
      ["BITFIELD", "k", "GET", "u64", "0"]
      (Fails "ERR"),
    after
      [bytes]
      "bitfieldRo"
      (bitfieldRo "k" ((Unsigned 8, AtNumber 1) :| [(Signed 4, AtBit 12)]))
      ["BITFIELD_RO", "k", "GET", "u8", "#1", "GET", "i4", "12"]
      (Gives [15, -1])
  ]

-- | Twelve zeros and twelve ones.
bytes :: [ByteString]
bytes = ["SET", "k", "\0\x0f\xff"]
