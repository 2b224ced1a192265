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
-- There is no interface for subscriptions yet: with RESP3 SUBSCRIBE is
-- answered by a push, which goes to a hook, and whoever waits for a reply to
-- it waits in vain.
--
-- Nothing in this module connects before a command needs it, except that a
-- cluster's seeds are asked for its slot map at once.
module Redis.Client
  ( -- * A client
    Client,
    withClient,
    newClient,
    closeClient,
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

    -- * Looking
    clientGauges,
    NodeGauges (..),
    MuxGauges (..),
    DedicatedGauges (..),
  )
where

import Control.Exception (bracket, throwIO)
import Control.Monad (void)
import Data.IORef
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Map.Strict qualified as Map
import Redis.Command
import Redis.Config (ConfigError, validateConfig)
import Redis.Error
import Redis.Internal.Client.Core
import Redis.Internal.Client.Execute
import Redis.Internal.Client.Herald
import Redis.Internal.Client.Lease
import Redis.Internal.Client.Recoverer
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock (preciseNanos)
import Redis.Internal.Network.Connect (newConnector)
import Redis.Internal.Network.Credentials (newCredentialStore, renewAll)
import Redis.Internal.Network.Dedicated (DedicatedGauges (..))
import Redis.Internal.Network.Multiplexer (MuxGauges (..))
import Redis.Internal.Network.OpenConnection (ConnectionSetup (..))
import Redis.Internal.Network.Worker (spawn)
import Redis.Internal.Routing.Nodes (NodeGauges (..), knownNodes, nodeGauges)
import Redis.Internal.Routing.Router

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
  connector <- newConnector config >>= either (throwIO . ConnectionError . ConnectionFailure NotSent (firstEndpoint (configTopology config))) pure
  herald <- newHerald (configHooks config)
  let hooks = heraldedHooks herald
      heralded = config {configHooks = hooks}
      onPush endpoint push = mapM_ (\hook -> hook endpoint push) (hookPush hooks)
  credentials <- newCredentialStore heralded
  let setup = ConnectionSetup {setupConfig = heralded, setupConnector = connector, setupCredentials = credentials, setupOnPush = onPush}
  router <- newRouter setup >>= either throwIO pure
  closed <- newIORef False
  learnt <- newIORef Map.empty
  recoverer <- newRecoverer config router closed
  spare <- newIORef ()
  let core =
        Core
          { coreConfig = config,
            coreRouter = router,
            coreRecoverer = recoverer,
            coreCredentials = credentials,
            coreClosed = closed,
            coreLearnt = learnt,
            coreHerald = herald,
            coreHandle = spare
          }
  -- What closes it must not hold the handle whose end it waits for.
  handle <- newIORef ()
  _ <- mkWeakIORef handle (void (spawn "redis close" (closeCore core)))
  pure (Client core {coreHandle = handle})

-- | Takes no more commands, waits up to the command timeout (at most 5 s) for
-- those in flight, and closes every connection. Commands that come later fail
-- with 'ClientClosed'. Hooks that still have something to be told have one second
-- for it. Idempotent.
--
-- @since 0.1.0.0
closeClient :: Client -> IO ()
closeClient (Client core) = closeCore core

closeCore :: Core -> IO ()
closeCore core = do
  writeIORef (coreClosed core) True
  stopRecoverer (coreRecoverer core)
  closeRouter (maybe 5 (min 5) (configCommandTimeout (coreConfig core))) (coreRouter core)
  awaitTold 1 (coreHerald core)

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
  Just _ -> do
    began <- preciseNanos
    result <- execute core command
    ended <- preciseNanos
    report core (commandName command) (ended - began) result
    keepOpen core
    pure result

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
submit (Client core) command = Pending <$> timed core (commandName command) (start core command)

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

-- | The open connections of every node, and what is queued on them: of the one
-- server, or of a cluster's nodes as its map has them, and those that a
-- redirect has named since. A node that has left the cluster is not among them.
-- Takes each shared connection's lock for a moment.
--
-- @since 0.1.0.0
clientGauges :: Client -> IO [NodeGauges]
clientGauges (Client core) = knownNodes (routerNodes (coreRouter core)) >>= traverse nodeGauges

firstEndpoint :: Topology -> Endpoint
firstEndpoint = \case
  Standalone endpoint -> endpoint
  Cluster (endpoint :| _) -> endpoint
