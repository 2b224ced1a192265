-- | How long a reader polls its socket before it lets the runtime wake it.
--
-- Waking a processor that has gone to sleep costs more than a local round
-- trip. So a reader with commands outstanding keeps asking the socket, letting
-- other threads run in between, for about twice as long as replies usually
-- take: a moving average of the waits, 7\/8 old and 1\/8 new. It does not poll
-- when the last read brought many replies (then there is work enough to keep
-- both sides awake), nor when the average is above the cap: a far server is
-- worth sleeping for. In a cluster it polls for few callers only ('fewEnough').
-- @docs/lab/2026-11-23-tuning.md@ has the measurements.
--
-- With a deep queue of short replies (SET) the opposite costs most: the server
-- sends a few at a time, and each few wake the reader. Then it waits in the
-- kernel until a good number has gathered ('worthGathering').
module Redis.Internal.Network.PollPolicy
  ( PollPolicy,
    newPollPolicy,
    observeWait,
    pollBudget,
    wouldPoll,
    fewEnough,
    Haul (..),
    Gather (..),
    worthGathering,
  )
where

import Redis.Duration (inMicroseconds)
import Redis.Internal.Config (Polling (..))
import Redis.Internal.Network.Clock (Nanos)

-- | The cap (zero: never poll) and the average wait.
data PollPolicy = PollPolicy
  { policyCap :: {-# UNPACK #-} Nanos,
    policyAverage :: {-# UNPACK #-} Nanos
  }
  deriving stock (Eq, Show)

-- | The policy at the start: an average of half the cap, so that it polls.
newPollPolicy :: Polling -> PollPolicy
newPollPolicy polling = PollPolicy {policyCap = cap, policyAverage = cap `quot` 2}
  where
    cap = case polling of
      PollUpTo limit -> max 0 (inMicroseconds limit) * 1000
      NeverPoll -> 0

-- | Takes a wait into the average. A single long one (a stall, an idle server)
-- counts as the longest that matters, or it would switch polling off for many
-- replies.
observeWait :: Nanos -> PollPolicy -> PollPolicy
observeWait wait policy =
  policy {policyAverage = (7 * policyAverage policy + min wait (longestWait policy)) `quot` 8}

-- | Four caps; those of the default for who never polls.
longestWait :: PollPolicy -> Nanos
longestWait policy
  | policyCap policy > 0 = 4 * policyCap policy
  | otherwise = 800000

-- | How long to poll, given how many replies the last read brought; zero is
-- not at all.
pollBudget :: Haul -> PollPolicy -> Nanos
pollBudget haul policy
  | haulReplies haul > manyReplies || not (wouldPoll policy) = 0
  | otherwise = min (policyCap policy) (2 * policyAverage policy + 20000)

-- | Whether the server is near enough for polling.
wouldPoll :: PollPolicy -> Bool
wouldPoll policy = policyCap policy > 0 && policyAverage policy <= policyCap policy

-- | Whether so few commands have been in flight of late that their connection may
-- poll beside others of its capability, which ask in turn, each its own socket: the
-- runtime's IO manager asks for all of them in one call.
--
-- What costs is that some connections poll while others sleep (docs/adr/0010-polling-in-a-cluster.md).
fewEnough :: Int -> Bool
fewEnough most = most <= 2

-- | What the last read brought.
data Haul = Haul
  { haulReplies :: {-# UNPACK #-} Int,
    haulBytes :: {-# UNPACK #-} Int
  }

-- | What to wait for in the kernel: so many bytes, for so many microseconds at most.
data Gather = Gather
  { gatherBytes :: {-# UNPACK #-} Int,
    gatherMicros :: {-# UNPACK #-} Int
  }
  deriving stock (Eq, Show)

-- | What is worth waiting for together, given what the last read brought and how
-- many commands are in flight. A quarter of those leaves the server enough to do
-- meanwhile. Nothing else runs on the reader's capability while it waits, so it does
-- not wait for longer than 30 µs, or 100 for the most.
--
-- Replies of a few hundred bytes come in large segments by themselves: for them it
-- would cost more than it saves.
worthGathering :: Haul -> Int -> PollPolicy -> Maybe Gather
worthGathering (Haul replies bytes) busy policy
  | busy < 128 || replies == 0 || bytes > shortReply * replies || not (wouldPoll policy) = Nothing
  | otherwise = Just Gather {gatherBytes = bytes * wanted `quot` replies, gatherMicros = max 30 (wanted * 2 `quot` 5)}
  where
    wanted = min 256 (busy `quot` 4)

shortReply :: Int
shortReply = 64

manyReplies :: Int
manyReplies = 64
