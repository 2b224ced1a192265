-- | What a workload hands to whoever runs it: one operation at a time, with its
-- reply's verdict built in.
module Tool.Bench.Workload.Drawn
  ( Drawn (..),
    Outcome (..),
  )
where

import Data.ByteString (ByteString)
import Redis.Client (Client)
import Redis.Command (Command)
import Redis.Error (Error)

-- | One operation. The first number is its kind's: an index into the workload's
-- kinds.
data Drawn
  = -- | A command that may share a connection with others. The second number is
    -- that of the key whose value it finds, if it says 'Found'.
    Drawn !Int !Int !(Command Outcome)
  | -- | Something that is more than one command, or needs a connection of its
    -- own. Blocks until it is done.
    DrawnAlone !Int !(Client -> IO (Either Error Outcome))

-- | What the reply says.
data Outcome
  = -- | It is as it must be.
    Done
  | -- | What was looked for is there.
    Hit
  | -- | What was looked for is not there.
    Miss
  | -- | A value, which is still to be compared with what the key must hold. A
    -- decoder that compares would be a closure for every command in flight, a
    -- tenth of what the collector copies for it.
    Found ByteString
  | -- | It is not what it must be: what came instead.
    Wrong ByteString
  deriving stock (Eq, Show)
