-- | How one node is doing, from how its last commands ended.
--
-- One time-out may be one slow command. Several in a row, with nothing
-- answered in between, are a node that hangs while its connection stays up,
-- which no lost connection will ever tell of; so they ask for a refresh as a
-- lost connection does. A node is held to be down after several failures in a
-- row: reads then go to others first. Nothing is refused because of it: the
-- next answer makes it healthy.
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

-- | How one node is doing.
data Health = Health
  { -- | In a row, of any kind.
    healthFailures :: Int,
    -- | In a row.
    healthTimeouts :: Int
  }
  deriving stock (Eq, Show)

-- | Nothing is known against it.
healthy :: Health
healthy = Health {healthFailures = 0, healthTimeouts = 0}

-- | Whether an answer would change nothing: the path of every command asks
-- this, and only then records.
isHealthy :: Health -> Bool
isHealthy Health {healthFailures} = healthFailures == 0

-- | Whether to prefer another node where there is a choice.
isDown :: Health -> Bool
isDown Health {healthFailures} = healthFailures >= downAfterFailures

-- | How a command, or an attempt to connect, ended.
data Observation
  = -- | Any reply, an error too: the node lives.
    AnsweredCommand
  | -- | No reply in time.
    MissedReply
  | -- | It could not be connected to, or the connection was lost.
    LostConnection
  deriving stock (Eq, Show, Enum, Bounded)

-- | What is to be done about it.
data Sign
  = Unremarkable
  | -- | Worth asking the cluster whether somebody took its place.
    Suspicious
  deriving stock (Eq, Show)

-- | The health after it, and whether to ask the cluster. A node that goes on
-- failing is suspicious each time a connection is lost, and at every
-- 'suspectAfterTimeouts' time-outs in a row. \(O(1)\).
observe :: Observation -> Health -> (Health, Sign)
observe observation health@Health {healthFailures, healthTimeouts} = case observation of
  AnsweredCommand -> (healthy, Unremarkable)
  MissedReply ->
    ( Health {healthFailures = healthFailures + 1, healthTimeouts = healthTimeouts + 1},
      if (healthTimeouts + 1) `rem` suspectAfterTimeouts == 0 then Suspicious else Unremarkable
    )
  LostConnection -> (health {healthFailures = healthFailures + 1}, Suspicious)

-- | 3.
suspectAfterTimeouts :: Int
suspectAfterTimeouts = 3

-- | 3.
downAfterFailures :: Int
downAfterFailures = 3
