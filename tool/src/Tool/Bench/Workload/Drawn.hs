-- | The operations that a workload gives to its drivers, one at a time. Each knows how to judge its
-- reply.
module Tool.Bench.Workload.Drawn
  ( Drawn (..),
    Outcome (..),
  )
where

import Data.ByteString (ByteString)
import Redis.Client (Client)
import Redis.Command (Command)
import Redis.Error (Error)

-- | One operation. The first number is that of its kind: an index into the workload's kinds.
data Drawn
  = -- | A command that may share a connection with others. The second number is that of the key
    -- whose value it returns, if its outcome is 'Found'.
    Drawn !Int !Int !(Command Outcome)
  | -- | An operation that is more than one command, or needs a connection of its own. Blocks until
    -- it is done.
    DrawnAlone !Int !(Client -> IO (Either Error Outcome))

-- | The result of an operation.
data Outcome
  = -- | The reply is right.
    Done
  | -- | The read found something.
    Hit
  | -- | The read found nothing.
    Miss
  | -- | A value that still has to be compared with the value of the key. A decoder that compares
    -- would be a closure for every command in flight, which the collector would copy.
    Found ByteString
  | -- | The reply is wrong. The text is the reply instead.
    Wrong ByteString
  deriving stock (Eq, Show)
