-- | A lane of the load: what one thread that sends draws from, sends to and counts
-- into; and how what came of a command is counted.
module Tool.Bench.Driver.Lane
  ( Lane (..),
    settle,
  )
where

import Redis (Client)
import Redis.Error (Error)
import Tool.Bench.Cpu (Nanos)
import Tool.Bench.Nodes (Nodes)
import Tool.Bench.Tally (Sent, Tally, answered, answeredWithin, failed)
import Tool.Bench.Window (Window)
import Tool.Bench.Workload (Outcome, Stream, Workload)

-- | All lanes share all of it but their streams, and those of one capability their
-- tally.
data Lane = Lane
  { laneClient :: Client,
    laneWorkload :: Workload,
    laneNodes :: Nodes,
    laneWindow :: Window,
    laneStream :: Stream,
    laneTally :: Tally
  }

-- | Counts what came of a command at a moment, and says whether it was answered. In an
-- open loop it was due at a time of its own.
settle :: Tally -> Maybe Nanos -> Sent -> Nanos -> Either Error Outcome -> IO Bool
settle tally due sent !done = \case
  Left problem -> False <$ failed tally sent done problem
  Right outcome ->
    True <$ case due of
      Nothing -> answered tally sent done outcome
      Just moment -> answeredWithin tally moment sent done outcome
{-# INLINE settle #-}
