-- | What the library tells its user about itself. It never prints; it calls
-- these.
--
-- The hooks for connections and pushes run on a thread of the client's own, one
-- event after the other ("Redis.Internal.Client.Herald"). The hook for commands runs
-- on the threads that begin them and wait for them. 'Nothing' costs one comparison.
module Redis.Internal.Hooks
  ( Hooks (..),
    noHooks,
    observeConnection,
    beforeConnectionHook,
    ConnectionEvent (..),

    -- * Commands
    CommandHook,
    CommandBegun (..),
    CommandEnded (..),
    CommandOutcome (..),
    beginObserving,
  )
where

import Control.Exception (SomeAsyncException, SomeException, fromException, throwIO, try)
import Data.ByteString (ByteString)
import Data.IORef (newIORef, readIORef, writeIORef)
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
    -- | Each command, pipeline and transaction, of shared and of lent connections: when
    -- it begins and, once, when whoever waits for its result has it. See
    -- 'CommandBegun'.
    hookCommand :: Maybe CommandHook,
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

-- | Tells that a command begins, and returns what tells of its end. What the hook
-- throws is dropped, and then nothing is told of the end.
beginObserving :: CommandHook -> CommandBegun -> IO (CommandEnded -> IO ())
beginObserving hook begun = do
  ending <- newIORef (\_ -> pure ())
  guarded (hook begun >>= writeIORef ending)
  end <- readIORef ending
  pure (guarded . end)

-- | The same hooks, with something that is done before connection events are told.
beforeConnectionHook :: (ConnectionEvent -> IO ()) -> Hooks -> Hooks
beforeConnectionHook act hooks = hooks {hookConnection = Just (\event -> act event *> mapM_ ($ event) (hookConnection hooks))}

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
  | -- | Reads were to stay in this availability zone, and no node of the map is known
    -- to be in it: they go as 'Redis.Config.PreferReplica'. Told once, and again after
    -- some node was found there.
    NobodyInZone ByteString
  | -- | So many events, pushes among them, were not told, because the hooks were
    -- too slow for them.
    EventsDropped Int
  deriving stock (Eq, Show)

-- | What is called when a command begins, on the thread that runs or submits it; it
-- returns what is called when it ends, on the thread that waits for its result. Both are
-- waited for, so they should be quick. What they throw is dropped.
--
-- Two are one by '<>': both are called, the ends in the same order.
--
-- @since 0.1.0.0
type CommandHook = CommandBegun -> IO (CommandEnded -> IO ())

-- | What begins: one command, or several that are one to their caller.
--
-- 'Redis.Client.run' begins and ends one. What was submitted ends when its result is first
-- awaited, and never if nobody awaits it. A pipeline ("Redis.Pipeline") is one, and so is
-- a transaction ("Redis.Transaction"). A command that is split, or that several nodes answer, is
-- one. Commands that the library sends by itself are none.
--
-- @since 0.1.0.0
data CommandBegun = CommandBegun
  { -- | The command's name, in capitals. @PIPELINE@ or @MULTI@ for several, with the name
    -- of the commands behind it if it is the same for all.
    begunOperation :: ~ByteString,
    -- | How many commands a pipeline or a transaction has, if it has two or more.
    begunBatch :: Maybe Int,
    -- | As one types it at a prompt, without passwords, long words cut; of several the
    -- first 16. Keys and values are in it. Made when it is looked at.
    begunText :: ~ByteString,
    -- | The same with a question mark in the place of each key and value.
    begunShape :: ~ByteString,
    -- | Of a command that runs a script, its digest; a function, its name.
    begunProcedure :: ~(Maybe ByteString),
    -- | The database in which it runs, as far as is known.
    begunDatabase :: Int,
    -- | Where it goes, if that is known before: in a cluster only on a lent connection.
    begunNode :: Maybe Endpoint
  }
  deriving stock (Eq, Show)

-- | How it went.
--
-- @since 0.1.0.0
data CommandEnded = CommandEnded
  { endedOutcome :: CommandOutcome,
    -- | The node that answered, or that was tried last. 'Nothing' if there was none, or if
    -- it went to several.
    endedNode :: Maybe Endpoint,
    -- | How often it was sent, or a connection for it was sought in vain; 0 if no node was known. Of a
    -- pipeline: once, and once more for each time that one of its commands was sent again.
    endedAttempts :: Int,
    -- | How many of those attempts a node answered with MOVED or ASK.
    endedRedirects :: Int,
    -- | From its beginning to its end.
    endedTook :: Duration,
    -- | How much of that passed before it stood in the queue of a connection: opening one,
    -- waiting for a lent one, or for room. 'Nothing' if it never did, or if it went to
    -- several.
    endedEntering :: Maybe Duration,
    -- | How much of it passed after the first attempt had failed.
    endedRecovering :: Duration
  }
  deriving stock (Eq, Show)

-- | What came of it.
--
-- @since 0.1.0.0
data CommandOutcome
  = CommandSucceeded
  | -- | The error that its caller gets; of a pipeline, the first.
    CommandFailed Error
  | -- | Whoever waited was interrupted. It may still run.
    CommandInterrupted
  deriving stock (Eq, Show)
