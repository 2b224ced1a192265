module Redis.Cases.StreamGroup (streamGroupCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Cases.Stream (threeEntries)
import Redis.CommandCase
import Redis.Commands.Stream
import Redis.Commands.StreamGroup
import Redis.Duration
import Redis.Value (Value (..))

streamGroupCases :: [Case]
streamGroupCases = reading <> outstanding <> claiming <> autoclaiming <> groups

reading :: [Case]
reading =
  [ after
      withGroup
      "xreadgroup"
      (xreadgroup ann ("k" :| []))
      ["XREADGROUP", "GROUP", "g", "ann", "STREAMS", "k", ">"]
      (Gives [("k", [one, two, three])]),
    after
      ( [["XADD", name, "1-1", "a", "1", "a", "2"] | name <- ["{k}a", "{k}b"]]
          <> [["XGROUP", "CREATE", name, "g", "0"] | name <- ["{k}a", "{k}b"]]
      )
      "xreadgroup"
      (xreadgroup ann ("{k}b" :| ["{k}a"]))
      ["XREADGROUP", "GROUP", "g", "ann", "STREAMS", "{k}b", "{k}a", ">", ">"]
      (Gives [("{k}b", [one]), ("{k}a", [one])]),
    after
      annHasThem
      "xreadgroup"
      (xreadgroup ann ("k" :| []))
      ["XREADGROUP", "GROUP", "g", "ann", "STREAMS", "k", ">"]
      (Gives []),
    onEmpty
      "xreadgroup"
      (xreadgroup ann ("k" :| []))
      ["XREADGROUP", "GROUP", "g", "ann", "STREAMS", "k", ">"]
      (Fails "NOGROUP"),
    after
      withGroup
      "xreadgroupWith"
      ( xreadgroupWith
          xreadgroupDefaults {xreadgroupCount = Just 1, xreadgroupBlock = WaitFor (seconds 2), xreadgroupNoack = True}
          ann
          ("k" :| [])
      )
      ["XREADGROUP", "GROUP", "g", "ann", "COUNT", "1", "BLOCK", "2000", "NOACK", "STREAMS", "k", ">"]
      (Gives [("k", [one])]),
    after
      annHasThem
      "xreadgroupWith"
      (xreadgroupWith xreadgroupDefaults {xreadgroupBlock = WaitFor (milliseconds 3)} ann ("k" :| []))
      ["XREADGROUP", "GROUP", "g", "ann", "BLOCK", "3", "STREAMS", "k", ">"]
      (Gives []),
    after
      (annHasThem <> [["XDEL", "k", "2-0"]])
      "xreadgroupFrom"
      (xreadgroupFrom ann (("k", PendingAfter (StreamId 1 1)) :| []))
      ["XREADGROUP", "GROUP", "g", "ann", "STREAMS", "k", "1-1"]
      (Gives [("k", [DeletedEntry (StreamId 2 0), Delivered three])]),
    after
      annHasThem
      "xreadgroupFrom"
      (xreadgroupFrom bob (("k", PendingAfter (StreamId 0 0)) :| []))
      ["XREADGROUP", "GROUP", "g", "bob", "STREAMS", "k", "0-0"]
      (Gives [("k", [])]),
    after
      withGroup
      "xreadgroupFromWith"
      (xreadgroupFromWith xreadgroupDefaults {xreadgroupCount = Just 1} ann (("k", Undelivered) :| []))
      ["XREADGROUP", "GROUP", "g", "ann", "COUNT", "1", "STREAMS", "k", ">"]
      (Gives [("k", [Delivered one])]),
    after
      annHasThem
      "xack"
      (xack "k" "g" (StreamId 1 1 :| [StreamId 9 9, StreamId 3 0]))
      ["XACK", "k", "g", "1-1", "9-9", "3-0"]
      (Gives 2),
    onEmpty "xack" (xack "k" "g" (StreamId 1 1 :| [])) ["XACK", "k", "g", "1-1"] (Gives 0),
    needs [(IsRedis, (8, 4))] $
      after
        (withGroup <> [["XREADGROUP", "GROUP", "g", "ann", "COUNT", "1", "STREAMS", "k", ">"]])
        "xreadgroupClaim"
        (xreadgroupClaim (seconds 0) bob ("k" :| []))
        ["XREADGROUP", "GROUP", "g", "bob", "CLAIM", "0", "STREAMS", "k", ">"]
        ( Such "are one that ann had for less than a minute, and two that nobody had" $ \found ->
            let claimed = concatMap snd found
             in map claimedEntry claimed == [one, two, three]
                  && map claimedEntryDeliveries claimed == [1, 0, 0]
                  && all ((< minutes 1) . claimedEntryIdle) claimed
        ),
    needs [(IsRedis, (8, 4))] $
      after
        annHasThem
        "xreadgroupClaimWith"
        ( xreadgroupClaimWith
            xreadgroupDefaults {xreadgroupCount = Just 2, xreadgroupBlock = WaitFor (milliseconds 5), xreadgroupNoack = True}
            (minutes 1)
            bob
            ("k" :| [])
        )
        ["XREADGROUP", "GROUP", "g", "bob", "COUNT", "2", "BLOCK", "5", "CLAIM", "60000", "NOACK", "STREAMS", "k", ">"]
        (Gives []),
    after
      (annHasThem <> [["XGROUP", "CREATE", "k", "h", "0"]])
      "xackdel"
      (xackdel "k" "g" KeepReferences (StreamId 1 1 :| [StreamId 9 9]))
      ["XACKDEL", "k", "g", "KEEPREF", "IDS", "2", "1-1", "9-9"]
      (Gives [EntryDeleted, EntryAbsent]),
    after
      (annHasThem <> [["XGROUP", "CREATE", "k", "h", "0"]])
      "xackdel"
      (xackdel "k" "g" OnlyAcknowledged (StreamId 1 1 :| []))
      ["XACKDEL", "k", "g", "ACKED", "IDS", "1", "1-1"]
      (Gives [EntryKept]),
    after
      (annHasThem <> [["XGROUP", "CREATE", "k", "h", "0"]])
      "xackdel"
      (xackdel "k" "g" DeleteReferences (StreamId 1 1 :| []))
      ["XACKDEL", "k", "g", "DELREF", "IDS", "1", "1-1"]
      (Gives [EntryDeleted]),
    needs [(IsRedis, (8, 10))] . documented [Array [Array [BulkString "k", Array [entry]]], Map [(BulkString "k", Array [entry])]] $
      after
        withGroup
        "xreadgroupWith"
        (xreadgroupWith xreadgroupDefaults {xreadgroupMaxcount = Just 1, xreadgroupMaxsize = Just 100} ann ("k" :| []))
        ["XREADGROUP", "GROUP", "g", "ann", "MAXCOUNT", "1", "MAXSIZE", "100", "STREAMS", "k", ">"]
        (Gives [("k", [one])]),
    documented [Integer 2] $
      after
        annHasThem
        "xnack"
        (xnack "k" "g" XnackFail (StreamId 1 1 :| [StreamId 9 9, StreamId 2 0]))
        ["XNACK", "k", "g", "FAIL", "IDS", "3", "1-1", "9-9", "2-0"]
        (Gives 2),
    documented [Integer 1] $
      after annHasThem "xnack" (xnack "k" "g" XnackSilent (StreamId 1 1 :| [])) ["XNACK", "k", "g", "SILENT", "IDS", "1", "1-1"] (Gives 1),
    documented [Integer 1] $
      after
        withGroup
        "xnackWith"
        (xnackWith xnackDefaults {xnackRetrycount = Just 3, xnackForce = True} "k" "g" XnackFatal (StreamId 1 1 :| []))
        ["XNACK", "k", "g", "FATAL", "IDS", "1", "1-1", "RETRYCOUNT", "3", "FORCE"]
        (Gives 1)
  ]
  where
    entry = Array [BulkString "1-1", Array [BulkString "a", BulkString "1", BulkString "a", BulkString "2"]]

outstanding :: [Case]
outstanding =
  [ after
      annHasThem
      "xpending"
      (xpending "k" "g")
      ["XPENDING", "k", "g"]
      (Gives (PendingSummary 3 (Just (StreamId 1 1, StreamId 3 0)) [("ann", 3)])),
    after withGroup "xpending" (xpending "k" "g") ["XPENDING", "k", "g"] (Gives (PendingSummary 0 Nothing [])),
    after threeEntries "xpending" (xpending "k" "g") ["XPENDING", "k", "g"] (Fails "NOGROUP"),
    after
      annHasThem
      "xpendingRange"
      (xpendingRange "k" "g" 2)
      ["XPENDING", "k", "g", "-", "+", "2"]
      (Such "are the first two, each with ann for the first time" ((== [(StreamId 1 1, "ann", 1), (StreamId 2 0, "ann", 1)]) . map withoutTime)),
    after withGroup "xpendingRange" (xpendingRange "k" "g" 2) ["XPENDING", "k", "g", "-", "+", "2"] (Gives []),
    after
      annHasThem
      "xpendingRangeWith"
      ( xpendingRangeWith
          xpendingRangeDefaults
            { xpendingRangeIdle = Just (seconds 0),
              xpendingRangeStart = ExcludingId (StreamId 1 1),
              xpendingRangeEnd = IncludingId (StreamId 2 0),
              xpendingRangeConsumer = Just "ann"
            }
          "k"
          "g"
          10
      )
      ["XPENDING", "k", "g", "IDLE", "0", "(1-1", "2-0", "10", "ann"]
      (Such "is the one between, had for less than a minute" (\found -> map withoutTime found == [(StreamId 2 0, "ann", 1)] && all ((< minutes 1) . pendingEntryIdle) found)),
    after
      annHasThem
      "xpendingRangeWith"
      (xpendingRangeWith xpendingRangeDefaults {xpendingRangeIdle = Just (minutes 1)} "k" "g" 10)
      ["XPENDING", "k", "g", "IDLE", "60000", "-", "+", "10"]
      (Gives [])
  ]
  where
    withoutTime PendingEntry {pendingEntryId, pendingEntryConsumer, pendingEntryDeliveries} =
      (pendingEntryId, pendingEntryConsumer, pendingEntryDeliveries)

claiming :: [Case]
claiming =
  [ after
      (annHasThem <> [["XDEL", "k", "1-1"]])
      "xclaim"
      (xclaim "k" bob (seconds 0) (StreamId 1 1 :| [StreamId 2 0]))
      ["XCLAIM", "k", "g", "bob", "0", "1-1", "2-0"]
      (Gives [two]),
    after
      annHasThem
      "xclaim"
      (xclaim "k" bob (minutes 1) (StreamId 1 1 :| []))
      ["XCLAIM", "k", "g", "bob", "60000", "1-1"]
      (Gives []),
    onEmpty "xclaim" (xclaim "k" bob (minutes 1) (StreamId 1 1 :| [])) ["XCLAIM", "k", "g", "bob", "60000", "1-1"] (Fails "NOGROUP"),
    after
      withGroup
      "xclaimWith"
      ( xclaimWith
          xclaimDefaults
            { xclaimIdle = Just (ClaimIdleFor (seconds 1.5)),
              xclaimRetrycount = Just 4,
              xclaimForce = True,
              xclaimLastid = Just (StreamId 2 0)
            }
          "k"
          bob
          (seconds 0)
          (StreamId 2 0 :| [])
      )
      ["XCLAIM", "k", "g", "bob", "0", "2-0", "IDLE", "1500", "RETRYCOUNT", "4", "FORCE", "LASTID", "2-0"]
      (Gives [two]),
    after
      annHasThem
      "xclaimJustid"
      (xclaimJustid "k" bob (seconds 0) (StreamId 1 1 :| [StreamId 9 0]))
      ["XCLAIM", "k", "g", "bob", "0", "1-1", "9-0", "JUSTID"]
      (Gives [StreamId 1 1]),
    after
      annHasThem
      "xclaimJustidWith"
      ( xclaimJustidWith
          xclaimDefaults {xclaimIdle = Just (ClaimIdleSince (posixSecondsToUTCTime 1700000000.25))}
          "k"
          bob
          (seconds 0)
          (StreamId 1 1 :| [])
      )
      ["XCLAIM", "k", "g", "bob", "0", "1-1", "TIME", "1700000000250", "JUSTID"]
      (Gives [StreamId 1 1])
  ]

autoclaiming :: [Case]
autoclaiming =
  [ after
      annHasThem
      "xautoclaim"
      (xautoclaim "k" bob (seconds 0) (StreamId 2 0))
      ["XAUTOCLAIM", "k", "g", "bob", "0", "2-0"]
      (Gives (Autoclaimed Nothing [two, three] [])),
    after
      (annHasThem <> [["XDEL", "k", "1-1"]])
      "xautoclaim"
      (xautoclaim "k" bob (seconds 0) (StreamId 0 0))
      ["XAUTOCLAIM", "k", "g", "bob", "0", "0-0"]
      (Gives (Autoclaimed Nothing [two, three] [StreamId 1 1])),
    after
      annHasThem
      "xautoclaimWith"
      (xautoclaimWith xautoclaimDefaults {xautoclaimCount = Just 1} "k" bob (seconds 0) (StreamId 0 0))
      ["XAUTOCLAIM", "k", "g", "bob", "0", "0-0", "COUNT", "1"]
      (Gives (Autoclaimed (Just (StreamId 2 0)) [one] [])),
    after
      annHasThem
      "xautoclaimJustid"
      (xautoclaimJustid "k" bob (seconds 0) (StreamId 3 0))
      ["XAUTOCLAIM", "k", "g", "bob", "0", "3-0", "JUSTID"]
      (Gives (Autoclaimed Nothing [StreamId 3 0] [])),
    after
      annHasThem
      "xautoclaimJustidWith"
      (xautoclaimJustidWith xautoclaimDefaults {xautoclaimCount = Just 2} "k" bob (seconds 0) (StreamId 0 0))
      ["XAUTOCLAIM", "k", "g", "bob", "0", "0-0", "COUNT", "2", "JUSTID"]
      (Gives (Autoclaimed (Just (StreamId 3 0)) [StreamId 1 1, StreamId 2 0] []))
  ]

groups :: [Case]
groups =
  [ after
      threeEntries
      "xgroupCreate"
      (xgroupCreate "k" "g" GroupAfterLast)
      ["XGROUP", "CREATE", "k", "g", "$"]
      (Gives ()),
    onEmpty "xgroupCreate" (xgroupCreate "k" "g" GroupAfterLast) ["XGROUP", "CREATE", "k", "g", "$"] (Fails "ERR"),
    after
      withGroup
      "xgroupCreate"
      (xgroupCreate "k" "g" (GroupAfter (StreamId 1 0)))
      ["XGROUP", "CREATE", "k", "g", "1-0"]
      (Fails "BUSYGROUP"),
    onEmpty
      "xgroupCreateWith"
      ( xgroupCreateWith
          xgroupCreateDefaults {xgroupCreateMkstream = True, xgroupCreateEntriesread = Just 0}
          "k"
          "g"
          (GroupAfter (StreamId 0 0))
      )
      ["XGROUP", "CREATE", "k", "g", "0-0", "MKSTREAM", "ENTRIESREAD", "0"]
      (Gives ()),
    after
      withGroup
      "xgroupSetid"
      (xgroupSetid "k" "g" (GroupAfter (StreamId 2 0)))
      ["XGROUP", "SETID", "k", "g", "2-0"]
      (Gives ()),
    after threeEntries "xgroupSetid" (xgroupSetid "k" "g" GroupAfterLast) ["XGROUP", "SETID", "k", "g", "$"] (Fails "NOGROUP"),
    after
      withGroup
      "xgroupSetidWith"
      (xgroupSetidWith xgroupSetidDefaults {xgroupSetidEntriesread = Just 3} "k" "g" GroupAfterLast)
      ["XGROUP", "SETID", "k", "g", "$", "ENTRIESREAD", "3"]
      (Gives ()),
    after withGroup "xgroupDestroy" (xgroupDestroy "k" "g") ["XGROUP", "DESTROY", "k", "g"] (Gives True),
    after threeEntries "xgroupDestroy" (xgroupDestroy "k" "g") ["XGROUP", "DESTROY", "k", "g"] (Gives False),
    after
      withGroup
      "xgroupCreateconsumer"
      (xgroupCreateconsumer "k" ann)
      ["XGROUP", "CREATECONSUMER", "k", "g", "ann"]
      (Gives True),
    after
      annHasThem
      "xgroupCreateconsumer"
      (xgroupCreateconsumer "k" ann)
      ["XGROUP", "CREATECONSUMER", "k", "g", "ann"]
      (Gives False),
    after
      annHasThem
      "xgroupDelconsumer"
      (xgroupDelconsumer "k" ann)
      ["XGROUP", "DELCONSUMER", "k", "g", "ann"]
      (Gives 3),
    onEmpty "xgroupHelp" xgroupHelp ["XGROUP", "HELP"] (Such "are some lines" ((> 5) . length))
  ]

ann, bob :: Consumer
ann = Consumer "g" "ann"
bob = Consumer "g" "bob"

one, two, three :: StreamEntry
one = StreamEntry (StreamId 1 1) [("a", "1"), ("a", "2")]
two = StreamEntry (StreamId 2 0) [("b", "")]
three = StreamEntry (StreamId 3 0) [("c", "3")]

-- | A stream with a group that has read nothing yet.
withGroup :: [[ByteString]]
withGroup = threeEntries <> [["XGROUP", "CREATE", "k", "g", "0"]]

-- | All entries are pending for the consumer ann.
annHasThem :: [[ByteString]]
annHasThem = withGroup <> [["XREADGROUP", "GROUP", "g", "ann", "STREAMS", "k", ">"]]
