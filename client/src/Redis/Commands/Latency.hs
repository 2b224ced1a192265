-- | What made a server slow, and how long its commands take. A server records slow events once a
-- threshold is set:
--
-- > run client (Redis.configSet (("latency-monitor-threshold", "100") :| []))
-- > worst <- run client (onEvery AllNodes Redis.latencyLatest)
--
-- In a cluster each node records its own events. 'latencyReset' and 'latencyResetOf' go to all
-- nodes, 'latencyHelp' to any node; the others need a node to be named. The server's documentation:
-- <https://valkey.io/topics/latency-monitor/>.
module Redis.Commands.Latency
  ( latencyLatest,
    LatencyEvent (..),
    latencyHistory,
    latencyReset,
    latencyResetOf,
    latencyHistogram,
    latencyHistogramOf,
    LatencyHistogram (..),
    latencyDoctor,
    latencyGraph,
    latencyHelp,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | A kind of event that took too long.
data LatencyEvent = LatencyEvent
  { -- | The name of this kind, such as @command@, @fork@ or @expire-cycle@.
    latencyEventName :: ByteString,
    -- | When the latest such event happened, to the second.
    latencyEventTime :: UTCTime,
    -- | How long the latest event took, to the millisecond.
    latencyEventLatest :: Duration,
    -- | How long the longest event since the last reset took.
    latencyEventMaximum :: Duration,
    -- | What newer servers add. Valkey adds the sum and the number of events since 8.1.0.
    latencyEventOthers :: [Value]
  }
  deriving stock (Eq, Show)

-- | @LATENCY LATEST@: the latest event of each kind. \(O(1)\),
-- [since 2.8.13](https://valkey.io/commands/latency-latest/).
latencyLatest :: Command [LatencyEvent]
latencyLatest = command "LATENCY LATEST" [] . Decode.list $ \reply -> do
  elements <- Decode.list Decode.value reply
  LatencyEvent
    <$> Decode.element 0 Decode.bytes elements
    <*> Decode.element 1 Decode.unixSeconds elements
    <*> Decode.element 2 millisecondsReply elements
    <*> Decode.element 3 millisecondsReply elements
    <*> pure (drop 4 elements)

-- | @LATENCY HISTORY event@: when events of this kind happened, and how long the longest of each
-- second took; at most 160 entries, the oldest first. \(O(1)\),
-- [since 2.8.13](https://valkey.io/commands/latency-history/).
latencyHistory :: ByteString -> Command [(UTCTime, Duration)]
latencyHistory event = command "LATENCY HISTORY" [arg event] (Decode.list (Decode.pair Decode.unixSeconds millisecondsReply))

-- | @LATENCY RESET@: forgets all events; how many kinds there were. In a cluster: the sum of all
-- nodes. \(O(1)\), [since 2.8.13](https://valkey.io/commands/latency-reset/).
latencyReset :: Command Int64
latencyReset = command "LATENCY RESET" [] Decode.integer

-- | @LATENCY RESET event …@: like 'latencyReset', for these kinds only.
latencyResetOf :: NonEmpty ByteString -> Command Int64
latencyResetOf events = command "LATENCY RESET" (args events) Decode.integer

-- | How long the runs of one command took.
data LatencyHistogram = LatencyHistogram
  { -- | How often the command ran.
    latencyHistogramCalls :: Int64,
    -- | For each duration, how many runs took at most that long, the shorter ones included.
    latencyHistogramBuckets :: [(Duration, Int64)]
  }
  deriving stock (Eq, Show)

-- | @LATENCY HISTOGRAM@: the histogram of every command that has run. \(O(n)\),
-- [since 7.0.0](https://valkey.io/commands/latency-histogram/).
latencyHistogram :: Command [(ByteString, LatencyHistogram)]
latencyHistogram = command "LATENCY HISTOGRAM" [] histograms

-- | @LATENCY HISTOGRAM command …@: like 'latencyHistogram', for these commands only. A subcommand
-- is named as @config|get@; a command with subcommands stands for all of them. Commands that have
-- not run are left out.
latencyHistogramOf :: NonEmpty ByteString -> Command [(ByteString, LatencyHistogram)]
latencyHistogramOf names = command "LATENCY HISTOGRAM" (args names) histograms

histograms :: Decoder [(ByteString, LatencyHistogram)]
histograms =
  Decode.pairs Decode.bytes . recordOf $
    LatencyHistogram
      <$> field "calls" Decode.integer
      <*> field "histogram_usec" (Decode.pairs microsecondsReply Decode.integer)

-- | @LATENCY DOCTOR@: the server's analysis of its events, as text for people to read. \(O(1)\),
-- [since 2.8.13](https://valkey.io/commands/latency-doctor/).
latencyDoctor :: Command ByteString
latencyDoctor = command "LATENCY DOCTOR" [] Decode.bytes

-- | @LATENCY GRAPH event@: the history of one kind of event, drawn with letters. An error if there
-- was no such event. \(O(1)\), [since 2.8.13](https://valkey.io/commands/latency-graph/).
latencyGraph :: ByteString -> Command ByteString
latencyGraph event = command "LATENCY GRAPH" [arg event] Decode.bytes

-- | @LATENCY HELP@: the server's help. \(O(1)\), [since 2.8.13](https://valkey.io/commands/latency-help/).
latencyHelp :: Command [ByteString]
latencyHelp = command "LATENCY HELP" [] (Decode.list Decode.bytes)
