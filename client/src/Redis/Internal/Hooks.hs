-- | Hooks: functions of the user that the library calls when something happens. The library never prints. A
-- hook that is 'Nothing' costs one comparison.
module Redis.Internal.Hooks
  ( Hooks (..),
    noHooks,
    observeConnection,
    ConnectionEvent (..),

    -- * Commands
    CommandHook,
    CommandBegun (..),
    CommandEnded (..),
    CommandOutcome (..),
    beginObserving,
    synchronous,
  )
where

import Control.Exception (SomeAsyncException (..), SomeException, fromException, tryJust)
import Control.Monad (void)
import Data.ByteString (ByteString)
import Data.IORef (newIORef, readIORef, writeIORef)
import Redis.Duration (Duration)
import Redis.Error (ConnectionCause, Endpoint, Error)
import Redis.Value (Value)

-- | The functions that a client calls when something happens. Begin with 'noHooks' and set its
-- fields.
--
-- The client calls 'hookConnection' and 'hookPush' on one thread of its own, in the order of the
-- events. A slow hook delays the events behind it, and nothing else. A hook may use the client.
-- Exceptions of a hook are dropped. At most 131072 events may wait; further events are dropped and
-- counted ('EventsDropped').
data Hooks = Hooks
  { -- | Called when connections come and go, and when a cluster's map changes.
    hookConnection :: Maybe (ConnectionEvent -> IO ()),
    -- | Called for each command, pipeline and transaction, on shared and dedicated connections: when
    -- it begins and, once, when a caller that waits for its result has it. See 'CommandBegun'.
    hookCommand :: Maybe CommandHook,
    -- | Called for every push message, on shared and on dedicated connections.
    hookPush :: Maybe (Endpoint -> Value -> IO ())
  }

-- | Shows only that there are hooks: functions cannot be shown.
instance Show Hooks where
  show _ = "<hooks>"

-- | No hooks: the client calls nothing.
noHooks :: Hooks
noHooks = Hooks {hookConnection = Nothing, hookCommand = Nothing, hookPush = Nothing}

-- | Reports a connection event. Neither blocks nor throws: a client's hooks only hand the event on.
observeConnection :: Hooks -> ConnectionEvent -> IO ()
observeConnection hooks event = mapM_ ($ event) (hookConnection hooks)

-- | Reports that a command begins, and returns the action that reports its end. If the hook throws,
-- the exception is dropped, and the end is not reported.
beginObserving :: CommandHook -> CommandBegun -> IO (CommandEnded -> IO ())
beginObserving hook begun = do
  ending <- newIORef (\_ -> pure ())
  guarded (hook begun >>= writeIORef ending)
  end <- readIORef ending
  pure (guarded . end)

-- | Runs a hook, and drops its exceptions.
guarded :: IO () -> IO ()
guarded = void . tryJust synchronous

-- | For 'tryJust' around the user's code: any exception but the asynchronous ones, which are meant for
-- the thread that runs it.
synchronous :: SomeException -> Maybe SomeException
synchronous failure = case fromException failure of
  Just (SomeAsyncException _) -> Nothing
  Nothing -> Just failure

-- | Something that happened to a connection, or to the map of a cluster.
data ConnectionEvent
  = -- | A connection is open and ready, after this time.
    Connected Endpoint Duration
  | -- | An attempt to connect failed; the next attempt comes no sooner than after this time.
    ConnectAttemptFailed Endpoint ConnectionCause Duration
  | -- | A connection that was reported as 'Connected' has ended, for this reason.
    Disconnected Endpoint ConnectionCause
  | -- | A connection keeps its old credentials, because no new ones were issued, or the server
    -- refused them.
    CredentialsNotRenewed Endpoint ConnectionCause
  | -- | A node joined (or was first seen).
    NodeAdded Endpoint
  | -- | A node is not in the slot map any more. It gets no new commands. Its connections are closed when
    -- the commands in flight are answered, or after 5 s (0.5 s if another primary has replaced it).
    NodeRemoved Endpoint
  | -- | A new slot map is in use; it covers this many slots.
    TopologyChanged Int
  | -- | No node gave a usable slot map. The nodes that were asked, each with the reason.
    TopologyRefreshFailed [(Endpoint, Error)]
  | -- | Reads are to stay in this availability zone, but no node of the map is known to be in it: they go
    -- like 'Redis.Config.PreferReplica'. Reported once, and again after some node was found there.
    NobodyInZone ByteString
  | -- | This many events, pushes among them, were not reported, because the hooks were too slow.
    EventsDropped Int
  deriving stock (Eq, Show)

-- | A function that the client calls when a command begins, on the thread that runs or submits the command.
-- It returns a function that the client calls when the command ends, on the thread that waits for its
-- result. Both should be quick; their exceptions are dropped. They run with asynchronous exceptions masked, so that
-- what was begun is also ended; where they wait, they can be interrupted all the same. '<>' joins two hooks: both are called, at the
-- end in the same order, unless the first throws.
type CommandHook = CommandBegun -> IO (CommandEnded -> IO ())

-- | A command that begins, or several that count as one.
--
-- With 'Redis.Client.run' a command begins and ends. A submitted command ends when its result is
-- first awaited, and never if nobody awaits it. A pipeline ("Redis.Pipeline") counts as one command,
-- and so does a transaction ("Redis.Transaction"), a command that is split, and a command that
-- several nodes answer. Commands that the library sends by itself do not count.
data CommandBegun = CommandBegun
  { -- | The command's name, in capitals. @PIPELINE@ or @MULTI@ for several, with the name
    -- of the commands behind it if it is the same for all.
    begunOperation :: ~ByteString,
    -- | How many commands a pipeline or a transaction has, if it has two or more.
    begunBatch :: Maybe Int,
    -- | The command as one types it at a prompt, with keys and values, without passwords, and with
    -- long words cut; of several commands the first 16. Computed when it is first used.
    begunText :: ~ByteString,
    -- | The command with a question mark in the place of each key and value.
    begunShape :: ~ByteString,
    -- | The digest of the script that the command runs, or the name of the function.
    begunProcedure :: ~(Maybe ByteString),
    -- | The database in which the command runs, as far as is known.
    begunDatabase :: Int,
    -- | The node that the command goes to, if that is known at the beginning: for a single server the
    -- server in use, otherwise only on a dedicated connection.
    begunNode :: Maybe Endpoint
  }
  deriving stock (Eq, Show)

-- | How a command ended.
data CommandEnded = CommandEnded
  { endedOutcome :: CommandOutcome,
    -- | The node that answered, or that was tried last. 'Nothing' if there was none or several.
    endedNode :: Maybe Endpoint,
    -- | How often the command was sent, or no connection could be opened for it; 0 if no node was
    -- known, or if the command was split or went to several nodes. For a pipeline: 1, and 1 more
    -- each time that one of its commands was sent again.
    endedAttempts :: Int,
    -- | How many of those attempts a node answered with MOVED or ASK.
    endedRedirects :: Int,
    -- | The time from beginning to end.
    endedTook :: Duration,
    -- | The part of 'endedTook' before the command stood in the queue of a connection: opening a
    -- connection, waiting for a dedicated one, or for room. 'Nothing' if it never stood in a queue, or
    -- if it was split or went to several nodes. For a pipeline: of its first command.
    endedEntering :: Maybe Duration,
    -- | The part of 'endedTook' after the first attempt had failed.
    endedRecovering :: Duration
  }
  deriving stock (Eq, Show)

-- | The result of a command, as a trace tells it.
data CommandOutcome
  = CommandSucceeded
  | -- | The command failed; its caller gets this error, for a pipeline the first.
    CommandFailed Error
  | -- | The caller that waited was interrupted. The command may still run.
    CommandInterrupted
  deriving stock (Eq, Show)
