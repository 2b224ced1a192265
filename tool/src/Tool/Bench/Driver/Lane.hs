-- | A lane of the load: what one sending thread needs to draw commands, send them, and count their
-- results.
module Tool.Bench.Driver.Lane
  ( Lane (..),
    settle,
  )
where

import Redis (Client)
import Redis.Error (Error)
import Tool.Bench.Nodes (Nodes)
import Tool.Bench.Tally (Sent, Tally, answered, answeredWithin, failed)
import Tool.Bench.Time (Nanos)
import Tool.Bench.Window (Window)
import Tool.Bench.Workload (Outcome, Stream, Workload)

-- | All lanes share everything but their streams and their tallies. The lanes of one capability
-- share a tally.
data Lane = Lane
  { laneClient :: Client,
    laneWorkload :: Workload,
    laneNodes :: Nodes,
    laneWindow :: Window,
    laneStream :: Stream,
    laneTally :: Tally
  }

-- | Counts the result of a command at a moment, and returns whether it was answered. Takes the time
-- at which the command was due, in an open loop.
settle :: Tally -> Maybe Nanos -> Sent -> Nanos -> Either Error Outcome -> IO Bool
settle tally due sent !done = \case
  Left problem -> False <$ failed tally sent done problem
  Right outcome ->
    True <$ case due of
      Nothing -> answered tally sent done outcome
      Just moment -> answeredWithin tally moment sent done outcome
{-# INLINE settle #-}
