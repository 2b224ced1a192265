-- | The health of one node, judged by how its last commands ended.
--
-- One timeout may be one slow command. Several in a row, with no answer in between, mean a
-- node that hangs while its connection stays up. No lost connection will ever show that, so
-- they ask for a refresh as a lost connection does. A node counts as down after several
-- failures in a row: reads then prefer other nodes. No command is refused because of it: the
-- next answer makes the node healthy.
module Redis.Internal.Routing.Health
  ( Health,
    healthy,
    isHealthy,
    isDown,

    -- * What happens
    Observation (..),
    Sign (..),
    observe,

    -- * When
    suspectAfterTimeouts,
    downAfterFailures,
  )
where

-- | The health of one node.
data Health = Health
  { -- | Failures in a row, of any kind.
    healthFailures :: Int,
    -- | Timeouts in a row.
    healthTimeouts :: Int
  }
  deriving stock (Eq, Show)

-- | The health of a node without failures.
healthy :: Health
healthy = Health {healthFailures = 0, healthTimeouts = 0}

-- | Whether an answer would change nothing. This is checked where replies arrive, once for
-- those to commands that were sent together, and an answer is recorded only if not.
isHealthy :: Health -> Bool
isHealthy Health {healthFailures} = healthFailures == 0

-- | Whether to prefer another node where there is a choice.
isDown :: Health -> Bool
isDown Health {healthFailures} = healthFailures >= downAfterFailures

-- | How a command, or an attempt to connect, ended.
data Observation
  = -- | Any reply in time, also an error, whether or not a caller waits for it: the node lives.
    AnsweredCommand
  | -- | No reply in time.
    MissedReply
  | -- | It could not be connected to, or the connection was lost.
    LostConnection
  deriving stock (Eq, Show, Enum, Bounded)

-- | Whether an observation is a reason to ask the cluster.
data Sign
  = Unremarkable
  | -- | Worth asking the cluster whether another node took its place.
    Suspicious
  deriving stock (Eq, Show)

-- | The health after an observation, and whether to ask the cluster. A node that keeps
-- failing is suspicious each time a connection is lost, and at every
-- 'suspectAfterTimeouts' timeouts in a row. \(O(1)\).
observe :: Observation -> Health -> (Health, Sign)
observe observation health@Health {healthFailures, healthTimeouts} = case observation of
  AnsweredCommand -> (healthy, Unremarkable)
  MissedReply ->
    ( Health {healthFailures = healthFailures + 1, healthTimeouts = healthTimeouts + 1},
      if (healthTimeouts + 1) `rem` suspectAfterTimeouts == 0 then Suspicious else Unremarkable
    )
  LostConnection -> (health {healthFailures = healthFailures + 1}, Suspicious)

-- | After how many timeouts in a row a node is suspicious: 3.
suspectAfterTimeouts :: Int
suspectAfterTimeouts = 3

-- | After how many failures in a row a node counts as down: 3.
downAfterFailures :: Int
downAfterFailures = 3
