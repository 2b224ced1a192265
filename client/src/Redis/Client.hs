-- | A client for a server or a cluster, shared by all threads of a program.
--
-- Commands of different threads travel over the same few connections and
-- pipeline by themselves. There are three ways to run one:
--
-- * 'run' (or 'tryRun') waits for the result;
-- * 'submit' does not; 'awaitReply' (or 'tryAwaitReply') does, later;
-- * "Redis.Pipeline" runs many and waits for all.
--
-- Commands that the server may keep waiting (BLPOP) get connections of their
-- own without asking. Those that change what a connection is (SELECT, MULTI,
-- WATCH) are refused here; 'withDedicated' lends a connection for them.
-- "Redis.Subscription" listens to what others publish.
--
-- Nothing in this module connects before a command needs it, except that a
-- cluster's seeds are asked for its slot map at once.
module Redis.Client
  ( -- * A client
    Client,
    withClient,
    newClient,
    closeClient,
    closeClientWithin,
    Drained (..),
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

    -- * A connection of one's own
    withDedicated,
    Where (..),
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

import Control.Exception (bracket, throwIO)
import Control.Monad (join, void)
import Data.Foldable (for_)
import Data.IORef
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Map.Strict qualified as Map
import Redis.Command
import Redis.Config (ConfigError, validateConfig)
import Redis.Duration (Duration, inSeconds)
import Redis.Error
import Redis.Internal.Client.CacheStore (CacheStore, heardPush, lostConnection, newCacheStore, ownersChanged)
import Redis.Internal.Client.Core
import Redis.Internal.Client.Execute
import Redis.Internal.Client.Herald
import Redis.Internal.Client.Lease
import Redis.Internal.Client.Recoverer
import Redis.Internal.Client.Subscriptions (closeHub, newHub)
import Redis.Internal.Client.Trace (beginTrace, oneCommand)
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Connect (newConnector)
import Redis.Internal.Network.Credentials (newCredentialStore, renewAll)
import Redis.Internal.Network.OpenConnection (ConnectionSetup (..))
import Redis.Internal.Network.RoundTrips (roundTripCount)
import Redis.Internal.Network.Tally (newTally)
import Redis.Internal.Network.Worker (spawn)
import Redis.Internal.Routing.Nodes (NodeSnapshot (..), nodeSnapshot, presentNodes)
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.SlotMap (SlotMap, emptySlotMap)

-- | Makes a client, runs the action, and closes the client. Errors as
-- 'newClient'.
--
-- @since 0.1.0.0
withClient :: Config -> (Client -> IO a) -> IO a
withClient config = bracket (newClient config) closeClient

-- | Makes a client. Throws 'ConfigError' for a configuration that cannot be,
-- and 'Error' if the TLS files that it names cannot be used. Does not wait for
-- any server: whether there is one, the first command tells.
--
-- A client that nothing refers to any more is closed when the garbage collector
-- notices, which may be late or never. It does not notice while somebody waits for
-- a command, or holds a 'Pending'. A program that makes clients and drops them uses
-- 'withClient', or 'closeClient'.
--
-- @since 0.1.0.0
newClient :: Config -> IO Client
newClient unchecked = do
  config <- either (throwIO :: ConfigError -> IO a) pure (validateConfig unchecked)
  let firstSeed :| _ = topologySeeds (configTopology config)
  connector <- newConnector config >>= either (throwIO . ConnectionError . ConnectionFailure NotSent firstSeed) pure
  herald <- newHerald (configHooks config)
  cache <- traverse newCacheStore (configCaching config)
  owners <- newIORef (pure emptySlotMap)
  let hooks = maybe id (\store -> beforeConnectionHook (followOwners store owners)) cache (heraldedHooks herald)
      heralded = config {configHooks = hooks}
      onPush endpoint push = do
        -- Here and now: behind the replies that came before it, and ahead of the next.
        for_ cache $ \store -> heardPush store endpoint push
        mapM_ (\hook -> hook endpoint push) (hookPush hooks)
  credentials <- newCredentialStore heralded
  tally <- newTally 1
  let setup = ConnectionSetup {setupConfig = heralded, setupConnector = connector, setupCredentials = credentials, setupTally = tally, setupOnPush = onPush, setupOnUntracked = lostConnection <$> cache}
  router <- newRouter setup >>= either throwIO pure
  writeIORef owners (routerSlotMap router)
  closed <- newIORef False
  learnt <- newIORef Map.empty
  recoverer <- newRecoverer config router closed
  hub <- newHub setup router
  spare <- newIORef ()
  let core =
        Core
          { coreConfig = config,
            coreRouter = router,
            coreRecoverer = recoverer,
            coreHub = hub,
            coreCredentials = credentials,
            coreClosed = closed,
            coreLearnt = learnt,
            coreCache = cache,
            coreHerald = herald,
            coreJourney = Nothing,
            coreHandle = spare
          }
  -- What closes it must not hold the handle whose end it waits for.
  handle <- newIORef ()
  _ <- mkWeakIORef handle (void (spawn "redis close" (void (closeCore (usualGrace core) core))))
  pure (Client core {coreHandle = handle})

-- | Drops what is kept of slots that have moved, as soon as that is known.
followOwners :: CacheStore -> IORef (IO SlotMap) -> ConnectionEvent -> IO ()
followOwners store owners = \case
  TopologyChanged _ -> join (readIORef owners) >>= ownersChanged store
  _ -> pure ()

-- | Closes as 'closeClientWithin' does, within the command timeout, at most 5 s.
--
-- @since 0.1.0.0
closeClient :: Client -> IO ()
closeClient (Client core) = void (closeCore (usualGrace core) core)

-- | Takes no more commands, waits for those in flight, but no longer than this, and
-- closes every connection. What is in flight when the time is over fails, and its error says
-- whether it was sent. So every caller has a result or an error that tells the truth, when this
-- returns or soon after.
--
-- Not waited for: commands that wait for room or for a connection, and those that would have to be
-- sent again; they fail at once, as do all that come later, with 'ClientClosed' if they were not sent.
-- Subscriptions end with it.
-- Waited for as all others: a command that the server keeps waiting (BLPOP), and
-- connections that are lent.
--
-- Hooks that still have something to be told have one second more. A second time it does
-- nothing.
--
-- @since 0.1.0.0
closeClientWithin :: Duration -> Client -> IO Drained
closeClientWithin grace (Client core) = closeCore (max 0 (inSeconds grace)) core

-- | What became of the commands that were in flight when a client was closed.
--
-- @since 0.1.0.0
data Drained = Drained
  { -- | Replies that came since, and those that had just been handed over.
    drainedAnswered :: Int,
    -- | Commands that were cut off after they had been sent: nobody knows whether they
    -- ran. They failed with 'MaybeExecuted'.
    drainedInDoubt :: Int,
    -- | Commands that were cut off before.
    drainedUnsent :: Int
  }
  deriving stock (Eq, Show)

usualGrace :: Core -> Double
usualGrace core = maybe 5 (min 5) (configCommandTimeout (coreConfig core))

closeCore :: Double -> Core -> IO Drained
closeCore grace core = do
  writeIORef (coreClosed core) True
  nodes <- presentNodes (routerNodes (coreRouter core))
  before <- traverse nodeSnapshot nodes
  stopRecoverer (coreRecoverer core)
  closeHub (coreHub core)
  closeRouter grace (coreRouter core)
  after <- traverse nodeSnapshot nodes
  awaitTold 1 (coreHerald core)
  let since field = sum (map field after) - sum (map field before)
      answered node = sum (map roundTripCount [roundTrips node, roundTripsReplica node, roundTripsControl node, roundTripsDedicated node])
  pure Drained {drainedAnswered = since answered, drainedInDoubt = since countCutSent, drainedUnsent = since countCutUnsent}

-- | Has the action of 'Redis.Config.setCredentialsFrom' run now, for a password that
-- was replaced: the shared connections that live are authenticated anew, in line with
-- the commands on them, and those that are opened later use the new credentials. Tells
-- at which nodes a connection goes on with what it had, and why; none if all is well, or
-- if the credentials come from no action.
--
-- Blocks until each shared connection has answered or ended: at most about the connect
-- timeout and the command timeout. A lent connection keeps what it was opened with.
--
-- @since 0.1.0.0
reauthenticate :: Client -> IO [(Endpoint, ConnectionCause)]
reauthenticate (Client core) = renewAll (coreCredentials core)

-- | Runs a command and waits for its result. Throws 'Error'.
--
-- An asynchronous exception while it waits leaves the client as it is; the
-- command may still run.
--
-- @since 0.1.0.0
run :: Client -> Command a -> IO a
run client command = tryRun client command >>= either throwIO pure

-- | Runs a command and waits for its result. Blocks for at most the command
-- timeout, and the connect timeout if its connection must be opened first;
-- longer for commands that the server may keep waiting. Costs one round trip,
-- and one more for each redirect or retry.
--
-- @since 0.1.0.0
tryRun :: Client -> Command a -> IO (Either Error a)
tryRun (Client core) command = case hookCommand (configHooks (coreConfig core)) of
  Nothing -> execute core command <* keepOpen core
  Just hook -> do
    trace <- beginTrace core hook (oneCommand (commandWords command))
    executeTraced trace command <* keepOpen core

-- | Submits a command without waiting for its reply. Blocks only while its
-- connection is opened or its queue is full (at most the command timeout). Never
-- throws an 'Error': 'awaitReply' does.
--
-- What one thread submits to one node is run in that order, as long as the
-- node takes it at the first attempt: a command that is redirected or retried
-- runs later. That happens whether or not anybody waits for the command, so a
-- 'Pending' may be dropped.
--
-- A command that the server may keep waiting is sent at once on a connection of
-- its own, which it holds until it is answered. For a command that this library
-- does not know, the server is first asked what it is, which is waited for.
--
-- @since 0.1.0.0
submit :: Client -> Command a -> IO (Pending a)
submit (Client core) command = Pending <$> traced core (oneCommand (commandWords command)) (`start` command)

-- | Waits for a submitted command. Throws 'Error'. May be called again and
-- from several threads: all get the same result.
--
-- @since 0.1.0.0
awaitReply :: Pending a -> IO a
awaitReply pending = tryAwaitReply pending >>= either throwIO pure

-- | Waits for a submitted command. Blocks until there is a result, at most about the
-- command timeout from when it was submitted. May be called again and from several
-- threads: all get the same result.
--
-- @since 0.1.0.0
tryAwaitReply :: Pending a -> IO (Either Error a)
tryAwaitReply (Pending started) = awaitStarted started

-- | A command whose result is known already: for code that takes a 'Pending'
-- and is to be tried without a server, or that answers from elsewhere.
--
-- @since 0.1.0.0
pendingFrom :: Either Error a -> Pending a
pendingFrom = Pending . settled

-- | Lends a connection to the action. Nobody else uses it meanwhile. It goes back
-- to the pool afterwards if it is as it was: after EXEC, DISCARD or UNWATCH, after a
-- SELECT that was undone, and when nothing was left behind. Otherwise, and if the
-- action threw, it is closed. Blocks while all dedicated connections of the node
-- are lent out; who came first is served first. Throws 'Error' if there is no
-- connection.
--
-- > withDedicated client (AtKey "balance") $ \\connection -> do
-- >   runOn connection (raw ["WATCH", "balance"])
-- >   …
--
-- @since 0.1.0.0
withDedicated :: Client -> Where -> (forall s. Dedicated s -> IO a) -> IO a
withDedicated (Client core) place action = (lease core place action <* keepOpen core) >>= either throwIO pure

-- | Runs a command on a dedicated connection. Throws 'Error'. Nothing is
-- retried and no redirect followed: what came before on the connection would
-- be lost.
--
-- Between MULTI and EXEC the server answers @QUEUED@ to everything, which only
-- 'Redis.Commands.raw' takes for an answer; EXEC brings the replies.
--
-- @since 0.1.0.0
runOn :: Dedicated s -> Command a -> IO a
runOn dedicated command = tryRunOn dedicated command >>= either throwIO pure

-- | Submits a command to a dedicated connection without waiting for its reply.
-- Blocks only while its queue is full. Commands run in the order in which they are
-- submitted, with nobody else's in between. Otherwise as 'runOn'.
--
-- @since 0.1.0.0
submitOn :: Dedicated s -> Command a -> IO (Pending a)
submitOn dedicated command = Pending <$> startOn dedicated command

-- | The nodes that the cluster's map names, in the order of their endpoints; a server
-- alone is one primary. Empty while no map is known. Never blocks.
--
-- The hook for connection events tells when nodes come and go, and when their roles
-- change ('NodeAdded', 'NodeRemoved', 'TopologyChanged').
--
-- > nodes <- clientNodes client
-- > traverse (\\node -> tryRun client (onNode (clientNodeEndpoint node) (Redis.slowlogGet 10))) nodes
--
-- @since 0.1.0.0
clientNodes :: Client -> IO [ClientNode]
clientNodes (Client core) = routerMembers (coreRouter core)
