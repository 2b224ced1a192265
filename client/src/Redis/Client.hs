-- | A client for a server or a cluster, shared by all threads of a program.
--
-- Make a client with 'withClient' or 'newClient', from a configuration of "Redis.Config". Commands
-- of different threads travel over the same few connections and pipeline by themselves. There are
-- three ways to run a command:
--
-- * 'run' (or 'tryRun') waits for the result;
-- * 'submit' does not; 'awaitReply' (or 'tryAwaitReply') does, later;
-- * "Redis.Pipeline" runs many and waits for all.
--
-- A command that the server may keep waiting (BLPOP) gets a connection of its own automatically. A
-- command that changes the state of its connection (SELECT, MULTI, WATCH) is refused here;
-- 'withDedicated' lends a connection for such commands. For transactions see "Redis.Transaction",
-- for messages that others publish "Redis.Subscription".
--
-- The client opens no connection before a command needs one, with one exception: it asks the seeds
-- of a cluster or a group at once which servers there are.
module Redis.Client
  ( -- * A client
    Client,
    withClient,
    withCheckedClient,
    newClient,
    newCheckedClient,
    closeClient,
    closeClientWithin,
    CloseReport (..),
    reauthenticate,

    -- * Running commands
    run,
    tryRun,

    -- * Without waiting
    submit,
    Pending,
    awaitReply,
    tryAwaitReply,
    pendingFrom,

    -- * Dedicated connections
    withDedicated,
    tryWithDedicated,
    LeaseTarget (..),
    Dedicated,
    runOn,
    tryRunOn,
    submitOn,

    -- * Nodes
    clientNodes,
    ClientNode (..),
    NodeRole (..),
  )
where

import Control.Concurrent.STM (atomically, newTVarIO, writeTVar)
import Control.Exception (bracket, bracketOnError, finally, mask_, throwIO)
import Control.Monad (void)
import Data.Foldable (for_)
import Data.IORef
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Map.Strict qualified as Map
import Redis.Command
import Redis.Commands.Connection (ping)
import Redis.Config (ConfigError, validateConfig)
import Redis.Duration (Duration, inSeconds)
import Redis.Error
import Redis.Internal.Client.Cache (heardPush, heardSlots, lostConnection, newCacheStore)
import Redis.Internal.Client.Core
import Redis.Internal.Client.EventDispatcher
import Redis.Internal.Client.Execute
import Redis.Internal.Client.Lease
import Redis.Internal.Client.RetryEngine
import Redis.Internal.Client.Subscriptions (closeSubscriptions, newSubscriptions)
import Redis.Internal.Client.Trace (beginTrace, oneCommand)
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Counters (roundTripCount)
import Redis.Internal.Network.Credentials (renewAll)
import Redis.Internal.Network.Dial (newConnector)
import Redis.Internal.Network.InFlight (callersKey)
import Redis.Internal.Network.Open (ConnectionSetup (..), commandLimit, newConnectionSetup)
import Redis.Internal.Network.Runtime (spawn)
import Redis.Internal.Routing.Cluster
import Redis.Internal.Routing.Nodes (NodeSnapshot (..), nodeSnapshot, presentNodes)
import Redis.Internal.Routing.Router (ClientNode (..), NodeRole (..), clusterMembers)

-- | Makes a client, runs the action, and closes the client. Throws like 'newClient'.
withClient :: Config -> (Client -> IO a) -> IO a
withClient config = bracket (newClient config) closeClient

-- | Like 'withClient', with a client that has been checked as 'newCheckedClient' does.
withCheckedClient :: Config -> (Client -> IO a) -> IO a
withCheckedClient config = bracket (newCheckedClient config) closeClient

-- | Makes a client, and waits until a server has answered a PING: for at most the command timeout,
-- with the retries of every command. Throws like 'newClient', and the 'Error' of the PING, for
-- example because nobody listens or the server refuses the password. Costs the connection that the
-- first command would open, and one round trip.
newCheckedClient :: Config -> IO Client
newCheckedClient config = bracketOnError (newClient config) closeClient $ \client -> client <$ run client ping

-- | Makes a client. Throws 'ConfigError' for an invalid configuration, and 'Error' if the TLS files
-- that it names cannot be used. Does not wait for any server: the first command shows whether there
-- is one ('newCheckedClient' waits).
--
-- When nothing refers to a client any more, neither a caller that waits nor a 'Pending', the garbage
-- collector closes it, which may happen late or never: see 'withClient' and 'closeClient'.
newClient :: Config -> IO Client
newClient unchecked = do
  config <- either (throwIO :: ConfigError -> IO a) pure (validateConfig unchecked)
  let firstSeed :| _ = topologySeeds (configTopology config)
  connector <- newConnector config >>= either (throwIO . ConnectionError . ConnectionFailure "" NotSent firstSeed) pure
  dispatcher <- newEventDispatcher (configHooks config)
  cache <- traverse newCacheStore (configCaching config)
  let hooks = dispatchedHooks dispatcher
      dispatched = config {configHooks = hooks}
      onPush endpoint push = do
        -- At once, on the reader's thread: after the replies before the push, and ahead of the next.
        for_ cache $ \store -> heardPush store endpoint push
        mapM_ (\hook -> hook endpoint push) (hookPush hooks)
  silent <- newConnectionSetup dispatched connector
  let setup = silent {setupOnPush = onPush, setupOnUntracked = lostConnection <$> cache}
  -- An exception between the first thread and the finaliser that ends it would leave it behind.
  mask_ $ do
    -- Slots that move are dropped from the cache.
    cluster <- newClusterClient setup (\news -> for_ cache (`heardSlots` news)) >>= either throwIO pure
    closed <- newTVarIO False
    learnt <- newIORef Map.empty
    engine <- newRetryEngine config cluster closed
    -- Nothing that a subscription's connection reads is kept.
    subscriptions <- newSubscriptions setup {setupConfig = dispatched {configCaching = Nothing}} cluster
    spare <- newIORef ()
    let core =
          Core
            { coreConfig = config,
              coreTimeLimit = commandLimit config,
              coreCluster = cluster,
              coreRetryEngine = engine,
              coreSubscriptions = subscriptions,
              coreCredentials = setupCredentials setup,
              coreClosed = closed,
              coreLearnt = learnt,
              coreCache = cache,
              coreDispatcher = dispatcher,
              coreNotes = Nothing,
              coreThread = callersKey,
              coreHandle = spare
            }
    -- The finaliser must not hold the handle: then it would never run.
    handle <- newIORef ()
    _ <- mkWeakIORef handle (void (spawn "redis close" (void (closeCore (usualGrace core) core))))
    pure (Client core {coreHandle = handle})

-- | Closes a client like 'closeClientWithin'. Waits for at most the command timeout, and for at most
-- 5 s.
closeClient :: Client -> IO ()
closeClient (Client core) = void (closeCore (usualGrace core) core) <* keepOpen core

-- | Closes a client: takes no more commands, waits for the commands in flight for at most this long,
-- and closes every connection. A command that is still in flight when the time is over fails, and
-- its error says whether the command was sent. So every caller has a result or an error when this function
-- returns, or soon after.
--
-- Commands that wait for room or for a connection, and commands that would have to be sent again, fail
-- at once, as do all later commands: with 'ClientClosed' if they were not sent. Subscriptions end. A
-- command that the server keeps waiting (BLPOP) and a dedicated connection in use are waited for like any
-- command in flight. The hooks have one more second for the events that still wait for them. Closing a
-- client a second time does nothing.
closeClientWithin :: Duration -> Client -> IO CloseReport
closeClientWithin grace (Client core) = closeCore (max 0 (inSeconds grace)) core <* keepOpen core

-- | What became of the commands in flight when a client was closed.
data CloseReport = CloseReport
  { -- | Replies that came after closing had begun, or had just been handed to their callers.
    closeAnswered :: Int,
    -- | Commands that were cut off after they had been sent: nobody knows whether they
    -- ran. They failed with 'MaybeExecuted'.
    closeInDoubt :: Int,
    -- | Commands that were cut off before they had been sent.
    closeUnsent :: Int
  }
  deriving stock (Eq, Show)

usualGrace :: Core -> Double
usualGrace core = maybe 5 (min 5) (configCommandTimeout (coreConfig core))

closeCore :: Double -> Core -> IO CloseReport
closeCore grace core = do
  atomically (writeTVar (coreClosed core) True)
  nodes <- presentNodes (clusterNodes (coreCluster core))
  before <- traverse nodeSnapshot nodes
  stopRetryEngine (coreRetryEngine core)
  -- If the caller is interrupted while it waits for the one, the other is closed all the same.
  closeSubscriptions (coreSubscriptions core) `finally` closeClusterClient grace (coreCluster core)
  after <- traverse nodeSnapshot nodes
  awaitDispatched 1 (coreDispatcher core)
  let since field = sum (map field after) - sum (map field before)
      answered node = sum (map roundTripCount [roundTrips node, roundTripsReplica node, roundTripsControl node, roundTripsDedicated node])
  pure CloseReport {closeAnswered = since answered, closeInDoubt = since countCutSent, closeUnsent = since countCutUnsent}

-- | Runs the action of 'Redis.Config.setCredentialsFrom' now, for a password that was replaced. The
-- open shared connections authenticate again, in line with the commands on them, and connections
-- that are opened later use the new credentials; a dedicated one keeps its own. Returns the nodes at which a
-- shared connection keeps its old credentials, and why; none if the credentials come from no action.
--
-- Blocks until each shared connection has answered or ended: at most about the connect timeout plus
-- the command timeout.
reauthenticate :: Client -> IO [(Endpoint, ConnectionCause)]
reauthenticate (Client core) = renewAll (coreCredentials core)

-- | Runs a command and waits for its result. Throws 'Error'.
--
-- An asynchronous exception during the wait does not harm the client; the command may still run.
run :: Client -> Command a -> IO a
run client command = tryRun client command >>= either throwIO pure

-- | Runs a command and waits for its result. Blocks for at most the command timeout, whatever it waits
-- for, or the command's own 'Redis.Command.timeLimit'; longer for a command that the server may keep
-- waiting. Costs one round trip, and one more for each redirect or retry.
tryRun :: Client -> Command a -> IO (Either Error a)
tryRun (Client core) command = case hookCommand (configHooks (coreConfig core)) of
  Nothing -> execute core command
  Just hook -> executeTraced (beginTrace core hook (oneCommand (commandArguments command))) command

-- | Submits a command without waiting for its reply. Blocks only while its connection is opened, its
-- queue is full, or as many commands of the thread wait for a node to be known as the queue holds (at most the command timeout).
-- Never throws an 'Error': 'awaitReply' does.
--
-- The commands that one thread submits to one node run in that order, as long as the node takes each
-- of them at the first attempt: a command that is redirected or retried, or for which no node is known, runs later. Redirects and
-- retries happen whether or not anybody waits for the command, so a 'Pending' may be dropped.
--
-- A command that the server may keep waiting is sent at once on a connection of its own, which it
-- holds until it is answered. If this library does not know the command, 'submit' first asks the
-- server about it, and waits for that answer.
submit :: Client -> Command a -> IO (Pending a)
submit (Client core) command = traced core (oneCommand (commandArguments command)) (`start` command)

-- | Like 'tryAwaitReply', but throws the 'Error'.
awaitReply :: Pending a -> IO a
awaitReply pending = tryAwaitReply pending >>= either throwIO pure

-- | Waits for the result of a submitted command. Blocks for at most about the command timeout,
-- counted from when the command was submitted. May be called again and from several threads: all
-- get the same result.
tryAwaitReply :: Pending a -> IO (Either Error a)
tryAwaitReply = awaitStarted

-- | A 'Pending' whose result is known already: to try code without a server, or to give a result
-- that comes from elsewhere to code that takes a 'Pending'.
pendingFrom :: Either Error a -> Pending a
pendingFrom = settled

-- | Lends a connection to the action. No other caller uses it meanwhile. Afterwards the connection
-- goes back to the pool if its state is as before, for example after EXEC, DISCARD or UNWATCH, or a
-- SELECT that was undone. Otherwise, and if the action threw, it is closed. Blocks while all dedicated
-- connections of the node are lent out and while one is opened, for at most the command timeout; callers
-- are served in the order in which they came. Throws 'Error' if there is no connection.
--
-- > withDedicated client (AtKey "balance") $ \\connection -> do
-- >   runOn connection (raw ["WATCH", "balance"])
-- >   …
withDedicated :: Client -> LeaseTarget -> (forall s. Dedicated s -> IO a) -> IO a
withDedicated client place action = tryWithDedicated client place action >>= either throwIO pure

-- | Like 'withDedicated', but returns the action's result, or the 'Error' if there is no connection.
-- What the action throws is thrown.
tryWithDedicated :: Client -> LeaseTarget -> (forall s. Dedicated s -> IO a) -> IO (Either Error a)
tryWithDedicated (Client core) place action = lease core place action <* keepOpen core

-- | Runs a command on a dedicated connection. Throws 'Error'. Nothing is retried and no redirect is
-- followed: the state that earlier commands left on the connection would be lost.
--
-- Between MULTI and EXEC the server answers every command with @QUEUED@. Only a command of
-- 'Redis.Commands.raw' accepts that as its reply; the reply to EXEC has the replies of all.
runOn :: Dedicated s -> Command a -> IO a
runOn dedicated command = tryRunOn dedicated command >>= either throwIO pure

-- | Submits a command to a dedicated connection without waiting for its reply. Blocks only while the
-- connection's queue is full. Commands run in the order in which they are submitted. Like 'runOn', it
-- retries nothing.
submitOn :: Dedicated s -> Command a -> IO (Pending a)
submitOn = startOn

-- | The nodes of the cluster's slot map, in the order of their endpoints; a single server counts as
-- one primary. Never blocks, and returns an empty list while no map is known: run a command first, or
-- make the client by 'withCheckedClient'.
--
-- The hook for connection events reports changes ('NodeAdded', 'NodeRemoved', 'TopologyChanged').
--
-- > nodes <- clientNodes client
-- > traverse (\\node -> tryRun client (onNode (clientNodeEndpoint node) (Redis.slowlogGet 10))) nodes
clientNodes :: Client -> IO [ClientNode]
clientNodes (Client core) = clusterMembers (coreCluster core)
