-- | What the library tells its user about itself. It never prints; it calls
-- these.
--
-- The hooks for connections and pushes run on a thread of the client's own, one
-- event after the other ("Redis.Internal.Client.Herald"). The hook for commands runs
-- on the thread that waits for the result. 'Nothing' costs one comparison.
module Redis.Internal.Hooks
  ( Hooks (..),
    noHooks,
    observeConnection,
    observeCommand,
    ConnectionEvent (..),
    CommandTiming (..),
  )
where

import Control.Exception (SomeAsyncException, SomeException, fromException, throwIO, try)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis.Duration (Duration)
import Redis.Error (ConnectionCause, Endpoint, Error)
import Redis.Value (Value)

-- | What may be observed. Begin with 'noHooks' and set its fields.
--
-- 'hookConnection' and 'hookPush' are called on one thread of the client, in the order
-- of the events. A slow hook delays the events behind it, and nothing else. A hook may
-- use the client. What it throws is dropped. 131072 events may wait; those that come
-- then are dropped and counted ('EventsDropped').
--
-- @since 0.1.0.0
data Hooks = Hooks
  { -- | Connections coming and going, and changes of a cluster's map.
    hookConnection :: Maybe (ConnectionEvent -> IO ()),
    -- | Each command that was run or submitted, alone or in a pipeline, once: when
    -- whoever waits for its result has it. Not those on a dedicated connection
    -- that was lent ('Redis.Client.runOn'), nor those whose result nobody gets,
    -- because it is not awaited or the wait is interrupted.
    hookCommand :: Maybe (CommandTiming -> IO ()),
    -- | Every push message, of shared and of dedicated connections.
    hookPush :: Maybe (Endpoint -> Value -> IO ())
  }

-- | Only that there are hooks: functions cannot be shown.
instance Show Hooks where
  show _ = "<hooks>"

-- | Nothing is observed.
--
-- @since 0.1.0.0
noHooks :: Hooks
noHooks = Hooks {hookConnection = Nothing, hookCommand = Nothing, hookPush = Nothing}

-- | Tells of a connection event. A client's hooks neither block nor throw here: they
-- are "Redis.Internal.Client.Herald"'s.
observeConnection :: Hooks -> ConnectionEvent -> IO ()
observeConnection hooks event = mapM_ ($ event) (hookConnection hooks)

-- | Tells how a command went. An exception of the hook is dropped.
observeCommand :: Hooks -> CommandTiming -> IO ()
observeCommand hooks timing = mapM_ (\hook -> guarded (hook timing)) (hookCommand hooks)

-- | Runs a hook; what it throws is its own affair, unless it was thrown at the
-- thread that runs it.
guarded :: IO () -> IO ()
guarded action =
  try action >>= \case
    Right () -> pure ()
    Left (failure :: SomeException) -> case fromException failure of
      Just (asynchronous :: SomeAsyncException) -> throwIO asynchronous
      Nothing -> pure ()

-- | Something happened to a connection, or to the picture of a cluster.
--
-- @since 0.1.0.0
data ConnectionEvent
  = -- | Open and ready after so long.
    Connected Endpoint Duration
  | -- | An attempt failed; the next one is made no sooner than after this time.
    ConnectAttemptFailed Endpoint ConnectionCause Duration
  | -- | A connection of which 'Connected' was told has ended, and why.
    Disconnected Endpoint ConnectionCause
  | -- | The connection goes on with the credentials it has, because others could
    -- not be had or were refused.
    CredentialsNotRenewed Endpoint ConnectionCause
  | -- | A node joined (or was first seen).
    NodeAdded Endpoint
  | -- | A node is not in the slot map any more. It gets no new commands, and its
    -- connections are closed when those in flight are answered, or after 5 s.
    NodeRemoved Endpoint
  | -- | A new slot map is in use; it covers so many slots.
    TopologyChanged Int
  | -- | No node gave a usable slot map; each with its reason.
    TopologyRefreshFailed [(Endpoint, Error)]
  | -- | So many events, pushes among them, were not told, because the hooks were
    -- too slow for them.
    EventsDropped Int
  deriving stock (Eq, Show)

-- | How one command went.
--
-- @since 0.1.0.0
data CommandTiming = CommandTiming
  { -- | The command's name, in capitals, without its arguments.
    timingCommand :: ByteString,
    -- | Nanoseconds from submitting it until who waits for its result has it,
    -- retries included.
    timingNanos :: Int64,
    -- | Whether there was a result, or the error that the caller gets.
    timingResult :: Either Error ()
  }
  deriving stock (Eq, Show)
