module Tool.Bench.EventsSpec (spec) where

import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Test.Hspec
import Tool.Bench.Assemble (eventsOf, stalls)
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Histogram qualified as Histogram

at :: Double -> Text -> [(Text, Double)] -> ServerSample
at time node values = ServerSample {sampleAt = time, sampleNode = node, sampleValues = Map.fromList values}

found :: [Event] -> [(Double, Double, Text)]
found events = [(eventAt event, eventUntil event, eventKind event) | event <- events]

slice :: Double -> Int -> Slice
slice time count =
  Slice
    { sliceAt = time,
      sliceSpan = 1,
      sliceCommands = Map.singleton "get" SliceStats {sliceService = Histogram.fromValues (replicate count 1000), sliceResponse = Nothing, sliceErrors = 0}
    }

spec :: Spec
spec = describe "events" $ do
  it "last from the first sample that saw them to the last" $
    found (eventsOf [at time "a" [("aof_rewrite_in_progress", state)] | (time, state) <- zip [0 ..] [0, 1, 1, 1, 0, 0, 1]])
      `shouldBe` [(1, 3, "aof-rewrite"), (6, 6, "aof-rewrite")]

  it "that are counted lie between the samples" $ do
    let events = eventsOf [at time "a" [("aof_delayed_fsync", count)] | (time, count) <- zip [0 ..] [5, 5, 8, 8]]
    found events `shouldBe` [(1, 2, "fsync-delay")]
    map eventText events `shouldBe` ["a: fsyncs that came late: 3"]

  it "of different nodes are kept apart, and come by time" $
    found
      ( eventsOf
          [ at 0 "a" [("role_master", 1)],
            at 0 "b" [("role_master", 0), ("rdb_bgsave_in_progress", 1)],
            at 1 "a" [("role_master", 1)],
            at 1 "b" [("role_master", 1)]
          ]
      )
      `shouldBe` [(0, 0, "bgsave"), (0, 1, "failover")]

  it "tell a restart by the uptime" $
    found (eventsOf [at 0 "a" [("uptime_in_seconds", 90)], at 1 "a" [("uptime_in_seconds", 0)]])
      `shouldBe` [(0, 1, "restart")]

  it "of the client's curve are the slices in which hardly anything was answered" $
    found (stalls [slice 0 100, slice 1 100, slice 2 5, slice 3 100, slice 4 0]) `shouldBe` [(2, 3, "stall"), (4, 5, "stall")]

  it "of the client's curve are none for the rest of a slice, which is too short to tell" $
    found (stalls [slice 0 100, slice 1 100, (slice 2 0) {sliceSpan = 0.001}]) `shouldBe` []
