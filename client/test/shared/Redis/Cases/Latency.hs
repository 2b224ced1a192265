-- | "Redis.Commands.Latency".
module Redis.Cases.Latency (latencyCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Latency
import Redis.Duration

latencyCases :: [Case]
latencyCases =
  [ after
      slow
      "latencyLatest"
      latencyLatest
      ["LATENCY", "LATEST"]
      (Such "has one event, of a command" (\events -> [(latencyEventName one, long (latencyEventLatest one), long (latencyEventMaximum one)) | one <- events] == [("command", True, True)])),
    after [reset] "latencyLatest" latencyLatest ["LATENCY", "LATEST"] (Gives []),
    after slow "latencyHistory" (latencyHistory "command") ["LATENCY", "HISTORY", "command"] (Such "has one time" ((== [True]) . map (long . snd))),
    after slow "latencyReset" latencyReset ["LATENCY", "RESET"] (Gives 1),
    after slow "latencyResetOf" (latencyResetOf ("command" :| ["fork"])) ["LATENCY", "RESET", "command", "fork"] (Gives 1),
    after
      [["CONFIG", "RESETSTAT"], ["SET", "k", "v"], ["SET", "k", "v"]]
      "latencyHistogram"
      latencyHistogram
      ["LATENCY", "HISTOGRAM"]
      (Such "has SET twice" (\found -> fmap latencyHistogramCalls (lookup "set" found) == Just 2)),
    after
      [["CONFIG", "RESETSTAT"], ["SET", "k", "v"], ["SET", "k", "v"]]
      "latencyHistogramOf"
      (latencyHistogramOf ("set" :| ["get"]))
      ["LATENCY", "HISTOGRAM", "set", "get"]
      ( Such
          "has SET alone, and two at most so slow"
          ( \case
              [("set", found)] -> latencyHistogramCalls found == 2 && map snd (take 1 (reverse (latencyHistogramBuckets found))) == [2]
              _ -> False
          )
      ),
    after slow "latencyDoctor" latencyDoctor ["LATENCY", "DOCTOR"] (Such "is a text" (not . Char8.null)),
    after slow "latencyGraph" (latencyGraph "command") ["LATENCY", "GRAPH", "command"] (Such "is of the event" ("command" `Char8.isPrefixOf`)),
    after [reset] "latencyGraph" (latencyGraph "command") ["LATENCY", "GRAPH", "command"] (Fails "ERR"),
    onEmpty "latencyHelp" latencyHelp ["LATENCY", "HELP"] (Such "has lines" (not . null))
  ]
  where
    long time = time >= milliseconds 5

-- | A command that takes longer than five milliseconds, so that the monitor records it, and nothing
-- else.
slow :: [[ByteString]]
slow = [["CONFIG", "SET", "latency-monitor-threshold", "5"], reset, ["DEBUG", "SLEEP", "0.006"], ["CONFIG", "SET", "latency-monitor-threshold", "0"]]

reset :: [ByteString]
reset = ["LATENCY", "RESET"]
