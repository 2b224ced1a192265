-- | What made a server slow, and how slow its commands are. A server notes events
-- once it has been told how long is too long:
--
-- > run client (Redis.configSet (("latency-monitor-threshold", "100") :| []))
-- > worst <- run client (onEvery AllNodes Redis.latencyLatest)
--
-- In a cluster each node has events of its own; 'latencyReset' is sent to all, the
-- others want a node to be named. The server's page:
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

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Data.Time.Clock (UTCTime)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, milliseconds, seconds)
import Redis.Value (Value)

-- | A kind of event that took long.
--
-- @since 0.1.0.0
data LatencyEvent = LatencyEvent
  { -- | Such as @command@, @fork@ or @expire-cycle@.
    latencyEventName :: ByteString,
    -- | When it was last, to the second.
    latencyEventTime :: UTCTime,
    -- | How long it took then, to the millisecond.
    latencyEventLatest :: Duration,
    -- | The longest since the last reset.
    latencyEventMaximum :: Duration,
    -- | What newer servers add: Valkey the sum and the number, since 8.1.0.
    latencyEventOthers :: [Value]
  }
  deriving stock (Eq, Show)

-- | @LATENCY LATEST@: the last event of each kind. One node's own. \(O(1)\) on the server,
-- [since 2.8.13](https://valkey.io/commands/latency-latest/).
--
-- @since 0.1.0.0
latencyLatest :: Command [LatencyEvent]
latencyLatest = command "LATENCY LATEST" [] (Decode.list event)
  where
    event reply = do
      elements <- Decode.list Decode.value reply
      latencyEventName <- Decode.element 0 Decode.bytes elements
      latencyEventTime <- Decode.element 1 Decode.unixSeconds elements
      latencyEventLatest <- Decode.element 2 inMillis elements
      latencyEventMaximum <- Decode.element 3 inMillis elements
      pure
        LatencyEvent
          { latencyEventName,
            latencyEventTime,
            latencyEventLatest,
            latencyEventMaximum,
            latencyEventOthers = drop 4 elements
          }

inMillis :: Decoder Duration
inMillis = fmap milliseconds . Decode.integer

-- | @LATENCY HISTORY event@: when this kind of event was, at most 160 times, and how long the worst
-- of each second took; the oldest first. One node's own. \(O(1)\) on the server,
-- [since 2.8.13](https://valkey.io/commands/latency-history/).
--
-- @since 0.1.0.0
latencyHistory :: ByteString -> Command [(UTCTime, Duration)]
latencyHistory event = command "LATENCY HISTORY" [arg event] (Decode.list (Decode.pair Decode.unixSeconds inMillis))

-- | @LATENCY RESET@: forgets all events; how many kinds there were, in a cluster on all nodes.
-- \(O(1)\) on the server, [since 2.8.13](https://valkey.io/commands/latency-reset/).
--
-- @since 0.1.0.0
latencyReset :: Command Int64
latencyReset = command "LATENCY RESET" [] Decode.integer

-- | @LATENCY RESET event …@: as 'latencyReset', of these kinds.
--
-- @since 0.1.0.0
latencyResetOf :: NonEmpty ByteString -> Command Int64
latencyResetOf events = command "LATENCY RESET" (args events) Decode.integer

-- | How long one command takes.
--
-- @since 0.1.0.0
data LatencyHistogram = LatencyHistogram
  { -- | How often it was run.
    latencyHistogramCalls :: Int64,
    -- | How many runs took at most so long, each number with those before it.
    latencyHistogramBuckets :: [(Duration, Int64)]
  }
  deriving stock (Eq, Show)

-- | @LATENCY HISTOGRAM@: of every command that was run. One node's own. \(O(n)\) on the server,
-- [since 7.0.0](https://valkey.io/commands/latency-histogram/).
--
-- @since 0.1.0.0
latencyHistogram :: Command [(ByteString, LatencyHistogram)]
latencyHistogram = command "LATENCY HISTOGRAM" [] histograms

-- | @LATENCY HISTOGRAM command …@: as 'latencyHistogram', of these. A subcommand is
-- named as @config|get@, a command with subcommands stands for all of them; those
-- that were not run are left out.
--
-- @since 0.1.0.0
latencyHistogramOf :: NonEmpty ByteString -> Command [(ByteString, LatencyHistogram)]
latencyHistogramOf names = command "LATENCY HISTOGRAM" (args names) histograms

histograms :: Decoder [(ByteString, LatencyHistogram)]
histograms = Decode.pairs Decode.bytes $ \reply -> do
  fields <- Decode.record reply
  latencyHistogramCalls <- Decode.field "calls" Decode.integer fields
  latencyHistogramBuckets <- Decode.field "histogram_usec" (Decode.pairs inMicros Decode.integer) fields
  pure LatencyHistogram {latencyHistogramCalls, latencyHistogramBuckets}
  where
    inMicros = fmap (seconds . (/ 1e6) . fromIntegral) . Decode.integer

-- | @LATENCY DOCTOR@: what the server makes of its events, in words for people. One node's own.
-- \(O(1)\) on the server, [since 2.8.13](https://valkey.io/commands/latency-doctor/).
--
-- @since 0.1.0.0
latencyDoctor :: Command ByteString
latencyDoctor = command "LATENCY DOCTOR" [] Decode.bytes

-- | @LATENCY GRAPH event@: the history of one kind of event, drawn with letters. One node's own.
-- \(O(1)\) on the server, [since 2.8.13](https://valkey.io/commands/latency-graph/). An error if
-- there was none.
--
-- @since 0.1.0.0
latencyGraph :: ByteString -> Command ByteString
latencyGraph event = command "LATENCY GRAPH" [arg event] Decode.bytes

-- | @LATENCY HELP@: what LATENCY can do, in lines for people. \(O(1)\) on the server,
-- [since 2.8.13](https://valkey.io/commands/latency-help/).
--
-- @since 0.1.0.0
latencyHelp :: Command [ByteString]
latencyHelp = command "LATENCY HELP" [] (Decode.list Decode.bytes)
