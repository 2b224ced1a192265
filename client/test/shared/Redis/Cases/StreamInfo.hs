module Redis.Cases.StreamInfo (streamInfoCases) where

import Data.ByteString (ByteString)
import Data.Time.Clock (UTCTime)
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Cases.Stream (threeEntries)
import Redis.CommandCase
import Redis.Commands.Stream
import Redis.Commands.StreamInfo
import Redis.Duration

streamInfoCases :: [Case]
streamInfoCases =
  [ after
      (threeEntries <> [["XDEL", "k", "1-1"], ["XGROUP", "CREATE", "k", "g", "0"]])
      "xinfoStream"
      (xinfoStream "k")
      ["XINFO", "STREAM", "k"]
      ( Such "tells of two entries out of three" $ \info ->
          info {streamInfoRadixTreeKeys = 0, streamInfoRadixTreeNodes = 0, streamInfoIdempotence = Nothing}
            == StreamInfo
              { streamInfoLength = 2,
                streamInfoRadixTreeKeys = 0,
                streamInfoRadixTreeNodes = 0,
                streamInfoLastGeneratedId = StreamId 3 0,
                streamInfoMaxDeletedEntryId = Just (StreamId 1 1),
                streamInfoEntriesAdded = Just 3,
                streamInfoRecordedFirstEntryId = Just (StreamId 2 0),
                streamInfoGroups = 1,
                streamInfoFirstEntry = Just two,
                streamInfoLastEntry = Just three,
                streamInfoIdempotence = Nothing,
                streamInfoOthers = []
              }
      ),
    -- Older servers refuse the first of these, so there is no stream.
    needs [(IsRedis, (8, 6))] $
      after
        twice
        "xinfoStream"
        (xinfoStream "k")
        ["XINFO", "STREAM", "k"]
        ( Such "tells of one entry that was added twice" $ \info ->
            (streamInfoLength info, streamInfoOthers info) == (1, []) && streamInfoIdempotence info == remembered
        ),
    needs [(IsRedis, (8, 6))] $
      after
        twice
        "xinfoStreamFull"
        (xinfoStreamFull "k")
        ["XINFO", "STREAM", "k", "FULL"]
        (Such "tells of it, too" ((== remembered) . streamDetailsIdempotence)),
    after
      [["XGROUP", "CREATE", "k", "g", "0", "MKSTREAM"]]
      "xinfoStream"
      (xinfoStream "k")
      ["XINFO", "STREAM", "k"]
      ( Such "tells of no entry at all" $ \info ->
          (streamInfoMaxDeletedEntryId info, streamInfoRecordedFirstEntryId info) == (Nothing, Nothing)
            && (streamInfoFirstEntry info, streamInfoLastEntry info) == (Nothing, Nothing)
            && streamInfoLastGeneratedId info == StreamId 0 0
      ),
    onEmpty "xinfoStream" (xinfoStream "k") ["XINFO", "STREAM", "k"] (Fails "ERR"),
    after
      annHasTwo
      "xinfoStreamFull"
      (xinfoStreamFull "k")
      ["XINFO", "STREAM", "k", "FULL"]
      ( Such "tells of three entries and of two groups" $ \details ->
          (streamDetailsLength details, streamDetailsEntriesAdded details) == (3, Just 3)
            && map streamEntryId (streamDetailsEntries details) == [StreamId 1 1, StreamId 2 0, StreamId 3 0]
            && null (streamDetailsOthers details)
            && map group (streamDetailsGroups details)
              == [ ("g", StreamId 2 0, Just 2, Just 1, [(StreamId 1 1, "ann", 1), (StreamId 2 0, "ann", 1)]),
                   ("h", StreamId 0 0, Nothing, Just 3, [])
                 ]
            && map consumer (concatMap groupDetailsConsumers (streamDetailsGroups details))
              == [ ("ann", True, True, [(StreamId 1 1, "ann", 1), (StreamId 2 0, "ann", 1)]),
                   ("bob", True, True, [])
                 ]
      ),
    after
      annHasTwo
      "xinfoStreamFullWith"
      (xinfoStreamFullWith xinfoStreamFullDefaults {xinfoStreamFullCount = Just 1} "k")
      ["XINFO", "STREAM", "k", "FULL", "COUNT", "1"]
      ( Such "tells of one entry, and of one that is pending" $ \details ->
          streamDetailsEntries details == [StreamEntry (StreamId 1 1) [("a", "1"), ("a", "2")]]
            && map (length . groupDetailsPending) (streamDetailsGroups details) == [1, 0]
            && map groupDetailsPelCount (streamDetailsGroups details) == [2, 0]
      ),
    after
      annHasTwo
      "xinfoGroups"
      (xinfoGroups "k")
      ["XINFO", "GROUPS", "k"]
      ( Gives
          [ GroupInfo
              { groupInfoName = "g",
                groupInfoConsumers = 2,
                groupInfoPending = 2,
                groupInfoLastDeliveredId = StreamId 2 0,
                groupInfoEntriesRead = Just 2,
                groupInfoLag = Just 1,
                groupInfoOthers = []
              },
            GroupInfo
              { groupInfoName = "h",
                groupInfoConsumers = 0,
                groupInfoPending = 0,
                groupInfoLastDeliveredId = StreamId 0 0,
                groupInfoEntriesRead = Nothing,
                groupInfoLag = Just 3,
                groupInfoOthers = []
              }
          ]
      ),
    after threeEntries "xinfoGroups" (xinfoGroups "k") ["XINFO", "GROUPS", "k"] (Gives []),
    after
      annHasTwo
      "xinfoConsumers"
      (xinfoConsumers "k" "g")
      ["XINFO", "CONSUMERS", "k", "g"]
      ( Such "are ann and bob, who was idle" $ \consumers ->
          [(consumerInfoName one, consumerInfoPending one, null (consumerInfoOthers one)) | one <- consumers]
            == [("ann", 2, True), ("bob", 0, True)]
            && all ((< minutes 1) . consumerInfoIdle) consumers
            && map consumerInfoInactive (drop 1 consumers)
            == [Nothing]
      ),
    after threeEntries "xinfoConsumers" (xinfoConsumers "k" "g") ["XINFO", "CONSUMERS", "k", "g"] (Fails "NOGROUP"),
    onEmpty "xinfoHelp" xinfoHelp ["XINFO", "HELP"] (Such "are some lines" ((> 5) . length))
  ]
  where
    twice = replicate 2 ["XADD", "k", "IDMP", "p", "i", "*", "f", "1"]
    remembered = Just (StreamIdempotence (seconds 100) 100 1 1 1 1)
    group details =
      ( groupDetailsName details,
        groupDetailsLastDeliveredId details,
        groupDetailsEntriesRead details,
        groupDetailsLag details,
        map delivery (groupDetailsPending details)
      )
    consumer details =
      ( consumerDetailsName details,
        isRecent (consumerDetailsSeenTime details),
        -- Older servers do not give this time, and bob never read an entry.
        maybe True isRecent (consumerDetailsActiveTime details),
        map delivery (consumerDetailsPending details)
      )
    delivery one = (pendingDeliveryId one, pendingDeliveryConsumer one, pendingDeliveryCount one)

isRecent :: UTCTime -> Bool
isRecent = (> posixSecondsToUTCTime 1600000000)

two, three :: StreamEntry
two = StreamEntry (StreamId 2 0) [("b", "")]
three = StreamEntry (StreamId 3 0) [("c", "3")]

-- | A stream with two groups. In one of them, ann has two pending entries and bob none.
annHasTwo :: [[ByteString]]
annHasTwo =
  threeEntries
    <> [ ["XGROUP", "CREATE", "k", "g", "0"],
         ["XGROUP", "CREATE", "k", "h", "0", "ENTRIESREAD", "-1"],
         ["XGROUP", "CREATECONSUMER", "k", "g", "bob"],
         ["XREADGROUP", "GROUP", "g", "ann", "COUNT", "2", "STREAMS", "k", ">"]
       ]
