-- | How long a reader polls its socket before it lets the runtime wake it.
--
-- Waking a processor that has gone to sleep costs more than a local round
-- trip. So a reader with commands outstanding keeps asking the socket, letting
-- other threads run in between, for about twice as long as replies usually
-- take: a moving average of the waits, 7\/8 old and 1\/8 new. It does not poll
-- when the last read brought many replies (then there is work enough to keep
-- both sides awake), nor when the average is above the cap: a far server is
-- worth sleeping for. In a cluster it polls for few callers only ('fewEnough').
-- @docs/guide/tuning.md@ has the measurements.
module Redis.Internal.Network.PollPolicy
  ( PollPolicy,
    newPollPolicy,
    observeWait,
    pollBudget,
    wouldPoll,
    fewEnough,
  )
where

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
      PollUpTo micros -> fromIntegral (max 0 micros) * 1000
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
pollBudget :: Int -> PollPolicy -> Nanos
pollBudget replies policy
  | replies > manyReplies || not (wouldPoll policy) = 0
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

manyReplies :: Int
manyReplies = 64
