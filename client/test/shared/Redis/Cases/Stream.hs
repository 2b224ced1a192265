module Redis.Cases.Stream (streamCases, threeEntries) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.CommandCase
import Redis.Commands.Stream
import Redis.Duration
import Redis.Value (Value (..))

streamCases :: [Case]
streamCases = adding <> ranges <> reading <> removing

adding :: [Case]
adding =
  [ onEmpty
      "xadd"
      (xadd "k" (("f", "1") :| [("g", "2")]))
      ["XADD", "k", "*", "f", "1", "g", "2"]
      (Such "has the time of the server's clock" ((> posixSecondsToUTCTime 1600000000) . streamIdTime)),
    after [["SET", "k", "v"]] "xadd" (xadd "k" (("f", "1") :| [])) ["XADD", "k", "*", "f", "1"] (Fails "WRONGTYPE"),
    onEmpty
      "xaddWith"
      (xaddWith xaddDefaults {xaddNomkstream = True} "k" field)
      ["XADD", "k", "NOMKSTREAM", "*", "f", "1"]
      (Gives Nothing),
    after
      threeEntries
      "xaddWith"
      (xaddWith xaddDefaults {xaddId = NextIdAt 3} "k" field)
      ["XADD", "k", "3-*", "f", "1"]
      (Gives (Just (StreamId 3 1))),
    after
      threeEntries
      "xaddWith"
      (xaddWith xaddDefaults {xaddId = GivenId (StreamId 3 0)} "k" field)
      ["XADD", "k", "3-0", "f", "1"]
      (Fails "ERR"),
    onEmpty
      "xaddWith"
      (xaddWith xaddDefaults {xaddId = GivenId (StreamId maxBound maxBound)} "k" field)
      ["XADD", "k", "18446744073709551615-18446744073709551615", "f", "1"]
      (Gives (Just (StreamId maxBound maxBound))),
    after
      threeEntries
      "xaddWith"
      (xaddWith xaddDefaults {xaddId = GivenId (StreamId 4 5), xaddTrim = Just (Maxlen TrimExactly 2)} "k" field)
      ["XADD", "k", "MAXLEN", "2", "4-5", "f", "1"]
      (Gives (Just (StreamId 4 5))),
    after
      threeEntries
      "xaddWith"
      ( xaddWith
          xaddDefaults {xaddId = NextIdAt 9, xaddNomkstream = True, xaddTrim = Just (Minid (TrimRoughly (Just 50)) (StreamId 2 0))}
          "k"
          field
      )
      ["XADD", "k", "NOMKSTREAM", "MINID", "~", "2-0", "LIMIT", "50", "9-*", "f", "1"]
      (Gives (Just (StreamId 9 0))),
    -- Entries 1-1 and 2-0 are pending, so they stay.
    needs [(IsRedis, (8, 2))] $
      after
        halfRead
        "xaddWith"
        (xaddWith xaddDefaults {xaddId = GivenId (StreamId 9 0), xaddReferences = OnlyAcknowledged, xaddTrim = Just (Maxlen TrimExactly 0)} "k" field)
        ["XADD", "k", "ACKED", "MAXLEN", "0", "9-0", "f", "1"]
        (Gives (Just (StreamId 9 0))),
    needs [(IsRedis, (8, 2))] $
      after
        halfRead
        "xaddWith"
        (xaddWith xaddDefaults {xaddId = GivenId (StreamId 9 0), xaddReferences = DeleteReferences, xaddTrim = Just (Maxlen TrimExactly 0)} "k" field)
        ["XADD", "k", "DELREF", "MAXLEN", "0", "9-0", "f", "1"]
        (Gives (Just (StreamId 9 0))),
    needs [(IsRedis, (8, 6))] $
      after
        [["XADD", "k", "IDMP", "p", "i", "*", "f", "1"]]
        "xaddWith"
        (xaddWith xaddDefaults {xaddIdempotence = Just (Idmp "p" "i")} "k" field)
        ["XADD", "k", "IDMP", "p", "i", "*", "f", "1"]
        (Such "has an id" (/= Nothing)),
    needs [(IsRedis, (8, 6))] $
      onEmpty
        "xaddWith"
        (xaddWith xaddDefaults {xaddIdempotence = Just (Idmpauto "p")} "k" field)
        ["XADD", "k", "IDMPAUTO", "p", "*", "f", "1"]
        (Such "has an id" (/= Nothing)),
    after
      threeEntries
      "xcfgsetWith"
      (xcfgsetWith xcfgsetDefaults {xcfgsetIdmpDuration = Just (seconds 9.5), xcfgsetIdmpMaxsize = Just 20} "k")
      ["XCFGSET", "k", "IDMP-DURATION", "10", "IDMP-MAXSIZE", "20"]
      (Gives ()),
    onEmpty "xcfgsetWith" (xcfgsetWith xcfgsetDefaults {xcfgsetIdmpMaxsize = Just 20} "k") ["XCFGSET", "k", "IDMP-MAXSIZE", "20"] (Fails "ERR")
  ]
  where
    field = ("f", "1") :| []

ranges :: [Case]
ranges =
  [ after threeEntries "xrange" (xrange "k" LowestId HighestId) ["XRANGE", "k", "-", "+"] (Gives [one, two, three]),
    onEmpty "xrange" (xrange "k" LowestId HighestId) ["XRANGE", "k", "-", "+"] (Gives []),
    after
      threeEntries
      "xrange"
      (xrange "k" (ExcludingId (StreamId 1 1)) (IncludingId (StreamId 2 maxBound)))
      ["XRANGE", "k", "(1-1", "2-18446744073709551615"]
      (Gives [two]),
    after
      threeEntries
      "xrangeWith"
      (xrangeWith xrangeDefaults {xrangeCount = Just 2} "k" LowestId HighestId)
      ["XRANGE", "k", "-", "+", "COUNT", "2"]
      (Gives [one, two]),
    after
      threeEntries
      "xrangeWith"
      (xrangeWith xrangeDefaults {xrangeCount = Just 0} "k" LowestId HighestId)
      ["XRANGE", "k", "-", "+", "COUNT", "0"]
      (Gives []),
    after threeEntries "xrevrange" (xrevrange "k" HighestId LowestId) ["XREVRANGE", "k", "+", "-"] (Gives [three, two, one]),
    after
      threeEntries
      "xrevrangeWith"
      (xrevrangeWith xrangeDefaults {xrangeCount = Just 1} "k" (ExcludingId (StreamId 3 0)) LowestId)
      ["XREVRANGE", "k", "(3-0", "-", "COUNT", "1"]
      (Gives [two]),
    after threeEntries "xlen" (xlen "k") ["XLEN", "k"] (Gives 3),
    onEmpty "xlen" (xlen "k") ["XLEN", "k"] (Gives 0)
  ]

reading :: [Case]
reading =
  [ after
      (threeEntries <> [["XADD", "{k}b", "7-0", "f", "7"]])
      "xread"
      (xread (("{k}a", ReadNew) :| [("{k}b", ReadAfter (StreamId 0 0))]))
      ["XREAD", "STREAMS", "{k}a", "{k}b", "$", "0-0"]
      (Gives [("{k}b", [StreamEntry (StreamId 7 0) [("f", "7")]])]),
    after
      [["XADD", "{k}a", "6-0", "f", "6"], ["XADD", "{k}b", "7-0", "f", "7"]]
      "xread"
      (xread (("{k}b", ReadAfter (StreamId 0 0)) :| [("{k}a", ReadAfter (StreamId 0 0))]))
      ["XREAD", "STREAMS", "{k}b", "{k}a", "0-0", "0-0"]
      (Gives [("{k}b", [StreamEntry (StreamId 7 0) [("f", "7")]]), ("{k}a", [StreamEntry (StreamId 6 0) [("f", "6")]])]),
    onEmpty "xread" (xread (("k", ReadAfter (StreamId 0 0)) :| [])) ["XREAD", "STREAMS", "k", "0-0"] (Gives []),
    needs [(IsRedis, (7, 4)), (IsValkey, (8, 0))] $
      after threeEntries "xread" (xread (("k", ReadLast) :| [])) ["XREAD", "STREAMS", "k", "+"] (Gives [("k", [three])]),
    after
      threeEntries
      "xreadWith"
      (xreadWith xreadDefaults {xreadCount = Just 1, xreadBlock = WaitForever} (("k", ReadAfter (StreamId 1 1)) :| []))
      ["XREAD", "COUNT", "1", "BLOCK", "0", "STREAMS", "k", "1-1"]
      (Gives [("k", [two])]),
    after
      threeEntries
      "xreadWith"
      (xreadWith xreadDefaults {xreadBlock = WaitFor (milliseconds 5)} (("k", ReadNew) :| []))
      ["XREAD", "BLOCK", "5", "STREAMS", "k", "$"]
      (Gives []),
    onEmpty
      "xreadWith"
      (xreadWith xreadDefaults {xreadBlock = WaitFor (seconds 0)} (("k", ReadNew) :| []))
      ["XREAD", "BLOCK", "1", "STREAMS", "k", "$"]
      (Gives []),
    needs [(IsRedis, (8, 10))] . documented [Array [Array [BulkString "k", Array [entry]]], Map [(BulkString "k", Array [entry])]] $
      after
        threeEntries
        "xreadWith"
        ( xreadWith
            xreadDefaults {xreadCount = Just 1, xreadMaxcount = Just 5, xreadMaxsize = Just 100, xreadBlock = WaitFor (seconds 1)}
            (("k", ReadAfter (StreamId 2 0)) :| [])
        )
        ["XREAD", "COUNT", "1", "MAXCOUNT", "5", "MAXSIZE", "100", "BLOCK", "1000", "STREAMS", "k", "2-0"]
        (Gives [("k", [three])]),
    onEmpty
      "xreadWith"
      (xreadWith xreadDefaults {xreadMaxcount = Just 0} (("k", ReadNew) :| []))
      ["XREAD", "MAXCOUNT", "0", "STREAMS", "k", "$"]
      Unfit
  ]
  where
    entry = Array [BulkString "3-0", Array [BulkString "c", BulkString "3"]]

removing :: [Case]
removing =
  [ after
      threeEntries
      "xdel"
      (xdel "k" (StreamId 1 1 :| [StreamId 9 9, StreamId 3 0]))
      ["XDEL", "k", "1-1", "9-9", "3-0"]
      (Gives 2),
    after
      halfRead
      "xdelex"
      (xdelex "k" KeepReferences (StreamId 1 1 :| [StreamId 9 9]))
      ["XDELEX", "k", "KEEPREF", "IDS", "2", "1-1", "9-9"]
      (Gives [EntryDeleted, EntryAbsent]),
    after halfRead "xdelex" (xdelex "k" DeleteReferences (StreamId 1 1 :| [])) ["XDELEX", "k", "DELREF", "IDS", "1", "1-1"] (Gives [EntryDeleted]),
    after halfRead "xdelex" (xdelex "k" OnlyAcknowledged (StreamId 1 1 :| [])) ["XDELEX", "k", "ACKED", "IDS", "1", "1-1"] (Gives [EntryKept]),
    onEmpty "xdelex" (xdelex "k" OnlyAcknowledged (StreamId 1 1 :| [])) ["XDELEX", "k", "ACKED", "IDS", "1", "1-1"] (Gives [EntryAbsent]),
    needs [(IsRedis, (8, 2))] $
      after
        halfRead
        "xtrimWith"
        (xtrimWith xtrimDefaults {xtrimReferences = OnlyAcknowledged} "k" (Maxlen TrimExactly 0))
        ["XTRIM", "k", "MAXLEN", "0", "ACKED"]
        (Gives 0),
    needs [(IsRedis, (8, 2))] $
      after
        halfRead
        "xtrimWith"
        (xtrimWith xtrimDefaults {xtrimReferences = DeleteReferences} "k" (Maxlen TrimExactly 0))
        ["XTRIM", "k", "MAXLEN", "0", "DELREF"]
        (Gives 3),
    after
      threeEntries
      "xtrimWith"
      (xtrimWith xtrimDefaults "k" (Maxlen TrimExactly 0))
      ["XTRIM", "k", "MAXLEN", "0"]
      (Gives 3),
    after threeEntries "xtrim" (xtrim "k" (Maxlen TrimExactly 1)) ["XTRIM", "k", "MAXLEN", "1"] (Gives 2),
    after
      threeEntries
      "xtrim"
      (xtrim "k" (Maxlen (TrimRoughly Nothing) 1))
      ["XTRIM", "k", "MAXLEN", "~", "1"]
      (Gives 0),
    after
      threeEntries
      "xtrim"
      (xtrim "k" (Maxlen (TrimRoughly (Just 0)) 0))
      ["XTRIM", "k", "MAXLEN", "~", "0", "LIMIT", "0"]
      (Gives 3),
    after
      threeEntries
      "xtrim"
      (xtrim "k" (Minid TrimExactly (streamIdAt (posixSecondsToUTCTime 0.0015))))
      ["XTRIM", "k", "MINID", "2-0"]
      (Gives 1),
    after threeEntries "xsetid" (xsetid "k" (StreamId 9 9)) ["XSETID", "k", "9-9"] (Gives ()),
    after threeEntries "xsetid" (xsetid "k" (StreamId 2 9)) ["XSETID", "k", "2-9"] (Fails "ERR"),
    after
      threeEntries
      "xsetidWith"
      (xsetidWith xsetidDefaults {xsetidEntriesadded = Just 20, xsetidMaxdeletedid = Just (StreamId 8 8)} "k" (StreamId 9 9))
      ["XSETID", "k", "9-9", "ENTRIESADDED", "20", "MAXDELETEDID", "8-8"]
      (Gives ())
  ]

one, two, three :: StreamEntry
one = StreamEntry (StreamId 1 1) [("a", "1"), ("a", "2")]
two = StreamEntry (StreamId 2 0) [("b", "")]
three = StreamEntry (StreamId 3 0) [("c", "3")]

-- | A stream with three entries.
threeEntries :: [[ByteString]]
threeEntries =
  [ ["XADD", "k", "1-1", "a", "1", "a", "2"],
    ["XADD", "k", "2-0", "b", ""],
    ["XADD", "k", "3-0", "c", "3"]
  ]

-- | Its first two entries are pending in a group, which has not read the third.
halfRead :: [[ByteString]]
halfRead =
  threeEntries
    <> [ ["XGROUP", "CREATE", "k", "g", "0"],
         ["XREADGROUP", "GROUP", "g", "ann", "COUNT", "2", "STREAMS", "k", ">"]
       ]
