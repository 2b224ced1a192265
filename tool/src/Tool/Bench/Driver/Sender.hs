-- | A sender of the load: what one sending thread needs to draw commands, send them, and count their
-- results.
module Tool.Bench.Driver.Sender
  ( Sender (..),
    settle,
  )
where

import Redis (Client)
import Redis.Error (Error)
import Tool.Bench.Counters (Counters, Sent, answered, answeredWithin, failed)
import Tool.Bench.Nodes (Nodes)
import Tool.Bench.Time (Nanos)
import Tool.Bench.Window (Window)
import Tool.Bench.Workload (Outcome, Stream, Workload)

-- | All senders share everything but their streams and their counters. Those of one capability
-- share counters.
data Sender = Sender
  { senderClient :: Client,
    senderWorkload :: Workload,
    senderNodes :: Nodes,
    senderWindow :: Window,
    senderStream :: Stream,
    senderCounters :: Counters
  }

-- | Counts the result of a command at a moment, and returns whether it was answered. Takes the time
-- at which the command was due, in an open loop.
settle :: Counters -> Maybe Nanos -> Sent -> Nanos -> Either Error Outcome -> IO Bool
settle counters due sent !done = \case
  Left problem -> False <$ failed counters sent done problem
  Right outcome ->
    True <$ case due of
      Nothing -> answered counters sent done outcome
      Just moment -> answeredWithin counters moment sent done outcome
{-# INLINE settle #-}
