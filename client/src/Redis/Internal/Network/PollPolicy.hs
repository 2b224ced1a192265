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
-- With a deep queue of short replies (SET) frequent waking costs most: the server sends a few at a
-- time, and each few wake the reader. Then the reader waits in the kernel until a good number has
-- gathered ('worthGathering').
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

-- | The longest time to poll, called the cap (zero: never poll), and the average wait.
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

-- | Adds a wait to the average. A single long wait (a stall, an idle server) counts as the longest
-- that matters, or it would switch polling off for many replies.
observeWait :: Nanos -> PollPolicy -> PollPolicy
observeWait wait policy =
  policy {policyAverage = (7 * policyAverage policy + min wait (longestWait policy)) `quot` 8}

-- | The longest wait that matters: four times the cap, or four times the default cap if the client
-- never polls.
longestWait :: PollPolicy -> Nanos
longestWait policy
  | policyCap policy > 0 = 4 * policyCap policy
  | otherwise = 800000

-- | How long to poll, given what the last read brought; zero is not at all.
pollBudget :: Haul -> PollPolicy -> Nanos
pollBudget haul policy
  | haulReplies haul > manyReplies || not (wouldPoll policy) = 0
  | otherwise = min (policyCap policy) (2 * policyAverage policy + 20000)

-- | Whether the server is near enough for polling.
wouldPoll :: PollPolicy -> Bool
wouldPoll policy = policyCap policy > 0 && policyAverage policy <= policyCap policy

-- | Whether so few commands have been in flight of late that the connection may poll although its
-- capability has other connections. Connections that poll ask about their own sockets in turn; the
-- runtime's IO manager asks about all of them in one call.
--
-- The cost comes from some connections polling while others sleep
-- (docs/adr/0010-polling-in-a-cluster.md).
fewEnough :: Int -> Bool
fewEnough most = most <= 2

-- | The replies and bytes that the last read brought.
data Haul = Haul
  { haulReplies :: {-# UNPACK #-} Int,
    haulBytes :: {-# UNPACK #-} Int
  }

-- | A wait in the kernel: for so many bytes, and for so many microseconds at most.
data Gather = Gather
  { gatherBytes :: {-# UNPACK #-} Int,
    gatherMicros :: {-# UNPACK #-} Int
  }
  deriving stock (Eq, Show)

-- | The wait in the kernel that is worth its cost, given what the last read brought and how many
-- commands are in flight. It waits for the replies to a quarter of those, which leaves the server
-- enough to do meanwhile. Nothing else runs on the reader's capability while it waits, so the wait
-- lasts no longer than 30 µs, or about 100 µs for the most replies.
--
-- Replies of a few hundred bytes come in large segments by themselves: for them waiting would cost
-- more than it saves.
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
