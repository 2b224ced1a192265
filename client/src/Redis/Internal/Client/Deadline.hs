-- | The deadline of a command, which is decided once, when the command is run.
module Redis.Internal.Client.Deadline
  ( ownDeadline,
    wholeDeadline,
    attemptDeadline,
  )
where

import Redis.Internal.Command
import Redis.Internal.Network.Handshake (ConnectionRole (ForReplica))
import Redis.Internal.Network.Runtime
import Redis.Internal.Routing.Nodes (Destination (destinationRole))

-- | The deadline of a command that began at this time, without the time that it may wait on the
-- server. The first argument is the time limit of commands that have none of their own.
ownDeadline :: Nanos -> Facts -> Nanos -> Deadline
ownDeadline usual facts = deadlineAfter (maybe usual nanosFromDuration (optionTimeLimit (factOptions facts)))
{-# INLINE ownDeadline #-}

-- | The deadline of a command, with the time that it may wait on the server. A command that waits
-- there without limit has the limit of its own alone.
wholeDeadline :: Nanos -> Facts -> Nanos -> Deadline
wholeDeadline usual facts began = case factBlocking facts of
  NonBlocking -> own
  BlocksFor wait
    | deadlineAt own == never -> own
    | otherwise -> deadlineAfter (deadlineLimit own + nanosFromSeconds wait) began
  BlocksForever -> ownDeadline never facts began
  where
    own = ownDeadline usual facts began

-- | The deadline of an attempt at this destination, which the caller has named or not, and which begins
-- now. A replica that the caller did not name has half of the time that is left: the rest is for the
-- primary, in case the replica hangs.
attemptDeadline :: Destination -> Bool -> Nanos -> Deadline -> Deadline
attemptDeadline destination named now deadline = case destinationRole destination of
  ForReplica | not named -> halfway now deadline
  _ -> deadline
