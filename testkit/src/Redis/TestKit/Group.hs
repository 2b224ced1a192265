-- | A private primary with replicas, with or without sentinels, and operations that change them.
--
-- The sentinels are configured to check everything often, if they support that (Redis 7 and later),
-- so that a fail-over takes one or two seconds instead of ten.
module Redis.TestKit.Group
  ( -- * Life
    GroupOptions (..),
    groupDefaults,
    Group,
    withGroup,

    -- * Servers
    groupServers,
    groupSentinels,
    groupOptions,
    clientAddress,
    primaryOf,
    replicasOf,

    -- * Failing over
    promote,
    orderFailover,
    awaitPrimary,
    awaitReplicas,

    -- * Sentinels
    addSentinel,
    namedPrimary,
    configEpoch,
  )
where

import Control.Concurrent.Async (forConcurrently_)
import Control.Concurrent.MVar (MVar, modifyMVar_, newMVar, readMVar)
import Control.Exception (IOException, bracket, mask_, onException, throwIO, try)
import Control.Monad (filterM, forM_, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, mapMaybe)
import GHC.Stack (HasCallStack)
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Command (Reply (..), infoFields, replyText, request)
import Redis.TestKit.Server
import Redis.TestKit.Wait

-- | How to start a group. Change fields of 'groupDefaults'.
data GroupOptions = GroupOptions
  { groupReplicaCount :: Int,
    groupSentinelCount :: Int,
    -- | The name under which the sentinels watch the primary.
    groupName :: ByteString,
    -- | The milliseconds of silence after which sentinels consider a server down.
    groupDownAfter :: Int,
    -- | Options of the servers: passwords, TLS (then replication uses it as well).
    groupServer :: ServerOptions,
    -- | Options of the sentinels.
    groupSentinel :: ServerOptions,
    -- | How long any change may take.
    groupTimeout :: Seconds
  }
  deriving stock (Eq, Show)

-- | A primary with two replicas, and no sentinels; the name is @mymaster@.
groupDefaults :: GroupOptions
groupDefaults =
  GroupOptions
    { groupReplicaCount = 2,
      groupSentinelCount = 0,
      groupName = "mymaster",
      groupDownAfter = 500,
      groupServer = serverDefaults,
      groupSentinel = serverDefaults,
      groupTimeout = 30
    }

-- | A primary, its replicas, and their sentinels.
data Group = Group
  { -- | The options with which it was started.
    groupOptions :: GroupOptions,
    -- | The primary and its replicas; the first one was the primary at the start.
    groupServers :: [Server],
    groupWatchers :: MVar [Server]
  }

-- | The sentinels that were started, whether they run or not.
groupSentinels :: Group -> IO [Server]
groupSentinels = readMVar . groupWatchers

-- | A group whose replicas are up to date and whose sentinels know each other, for the duration of
-- an action.
withGroup :: HasCallStack => GroupOptions -> (Group -> IO a) -> IO a
withGroup options = bracket (startGroup options) disposeGroup

startGroup :: HasCallStack => GroupOptions -> IO Group
startGroup options = mask_ $ do
  first <- startServer (replicating options (groupServer options))
  replicas <- starting [first] (groupReplicaCount options) (startReplica options first) []
  groupWatchers <- newMVar []
  let group = Group {groupOptions = options, groupServers = first : replicas, groupWatchers}
  (ready group >> pure group) `onException` disposeGroup group
  where
    starting _ 0 _ started = pure (reverse started)
    starting others count start started = do
      server <- start `onException` mapM_ disposeServer (others <> started)
      starting others (count - 1 :: Int) start (server : started)

    ready group = do
      awaitReplicas group
      addSentinels group (groupSentinelCount options)

disposeGroup :: Group -> IO ()
disposeGroup group = do
  sentinels <- readMVar (groupWatchers group)
  forConcurrently_ (sentinels <> groupServers group) disposeServer

-- | Replicates over TLS if there is TLS, so that the ports that servers announce are the TLS ports.
replicating :: GroupOptions -> ServerOptions -> ServerOptions
replicating options server = case optionsTls (groupServer options) of
  Nothing -> server
  Just _ -> server {optionsConfig = "tls-replication yes" : optionsConfig server}

following :: GroupOptions -> Server -> ServerOptions
following options primary =
  (replicating options (groupServer options)) {optionsReplicaOf = Just (serverHost primary, clientPort primary)}

-- Blocks until it has the primary's data: the next one that came before would wait for up to a
-- second.
startReplica :: HasCallStack => GroupOptions -> Server -> IO Server
startReplica options primary = do
  replica <- startServer (following options primary)
  flip onException (disposeServer replica) $
    eventually (groupTimeout options) "the replica has its primary's data" $
      (== Just "up") . Map.lookup "master_link_status" <$> replication replica
  pure replica

clientPort :: Server -> Int
clientPort server = fromMaybe (serverPort server) (serverTlsPort server)

-- | The address for clients: the TLS port if the server has TLS.
clientAddress :: Server -> Address
clientAddress server = TcpAddress (serverHost server) (clientPort server)

-- | Starts one more sentinel, and waits until all running sentinels know each other and every
-- server.
addSentinel :: HasCallStack => Group -> IO ()
addSentinel group = addSentinels group 1

addSentinels :: HasCallStack => Group -> Int -> IO ()
addSentinels group count = do
  primary <- primaryOf group
  let watched = Char8.unpack (groupName options)
      sentinel = groupSentinel options
      wanted =
        (replicating options sentinel)
          { optionsSentinel = True,
            optionsConfig =
              ["tls-replication yes" | Just _ <- [optionsTls sentinel]]
                <> [ unwords ["sentinel monitor", watched, serverHost primary, show (clientPort primary), show quorum],
                     unwords ["sentinel down-after-milliseconds", watched, show (groupDownAfter options)],
                     unwords ["sentinel failover-timeout", watched, "4000"],
                     unwords ["sentinel parallel-syncs", watched, "5"]
                   ]
                <> [unwords ["sentinel auth-pass", watched, quoted (Char8.unpack password)] | Just password <- [optionsPassword (groupServer options)]]
                <> optionsConfig sentinel
          }
  forConcurrently_ [1 .. count] $ \_ -> mask_ $ do
    server <- startServer wanted
    modifyMVar_ (groupWatchers group) (pure . (<> [server]))
  sentinels <- groupSentinels group >>= filterM serverIsRunning
  forM_ sentinels $ \one ->
    withServerConnection one $ \connection ->
      void (request connection ["SENTINEL", "DEBUG", "info-period", "200", "publish-period", "300", "ask-period", "200"])
  eventually (groupTimeout options) "the sentinels know each other and every server" $
    and <$> mapM (knows (length sentinels - 1)) sentinels
  where
    options = groupOptions group
    -- Two would keep a sentinel that is alone from failing over.
    quorum = max 1 (min 2 (groupSentinelCount options))
    knows others sentinel = do
      fields <- primaryFields group sentinel
      pure $
        Map.lookup "num-other-sentinels" fields == Just (Char8.pack (show others))
          && Map.lookup "num-slaves" fields == Just (Char8.pack (show (groupReplicaCount options)))

primaryFields :: Group -> Server -> IO (Map.Map ByteString ByteString)
primaryFields group sentinel =
  command sentinel ["SENTINEL", "MASTER", groupName (groupOptions group)] >>= \case
    List fields -> pure (pairs (mapMaybe replyText fields))
    other -> failure ("SENTINEL MASTER: " <> show other)
  where
    pairs = \case
      name : value : rest -> Map.insert name value (pairs rest)
      _ -> Map.empty

-- | The port of the primary that a sentinel names.
namedPrimary :: Group -> Server -> IO (Maybe Int)
namedPrimary group sentinel = do
  fields <- primaryFields group sentinel
  pure (fst <$> (Map.lookup "port" fields >>= Char8.readInt))

-- | The primary's configuration epoch, as a sentinel knows it.
configEpoch :: Group -> Server -> IO (Maybe Int)
configEpoch group sentinel = do
  fields <- primaryFields group sentinel
  pure (fst <$> (Map.lookup "config-epoch" fields >>= Char8.readInt))

-- | The only running server that reports to be the primary. Blocks until there is exactly one.
primaryOf :: HasCallStack => Group -> IO Server
primaryOf group =
  eventuallyJust (groupTimeout (groupOptions group)) "one server is the primary" $
    withRole group "master" >>= \primaries -> pure $ case primaries of
      [primary] -> Just primary
      _ -> Nothing

-- | The running servers that report to be replicas.
replicasOf :: Group -> IO [Server]
replicasOf group = withRole group "slave"

withRole :: Group -> ByteString -> IO [Server]
withRole group role = filterM has (groupServers group)
  where
    has server =
      try (replication server) >>= \case
        Right fields -> pure (Map.lookup "role" fields == Just role)
        Left (_ :: IOException) -> pure False

replication :: Server -> IO (Map.Map ByteString ByteString)
replication server = maybe Map.empty infoFields . replyText <$> command server ["INFO", "replication"]

-- | Blocks until every other running server is an up-to-date replica of the primary.
awaitReplicas :: HasCallStack => Group -> IO ()
awaitReplicas group =
  eventually (groupTimeout (groupOptions group)) "the replicas are up to date" $ do
    primary <- primaryOf group
    replicas <- filter ((/= serverPort primary) . serverPort) <$> filterM serverIsRunning (groupServers group)
    linked <- mapM (fmap (\fields -> Map.lookup "master_link_status" fields == Just "up" && Map.lookup "master_port" fields == Just (Char8.pack (show (clientPort primary)))) . replication) replicas
    heard <- replication primary
    let online = length [() | (name, text) <- Map.toList heard, "slave" `Char8.isPrefixOf` name, "state=online" `Char8.isInfixOf` text]
    pure (and linked && online == length replicas)

-- | Makes a server the primary as an operator does: it stops replicating, and the other running
-- servers replicate it. Blocks until they do.
promote :: HasCallStack => Group -> Server -> IO ()
promote group server = do
  void (command server ["REPLICAOF", "NO", "ONE"])
  others <- filter ((/= serverPort server) . serverPort) <$> filterM serverIsRunning (groupServers group)
  forM_ others $ \other -> command other ["REPLICAOF", Char8.pack (serverHost server), Char8.pack (show (clientPort server))]
  awaitReplicas group

-- | Makes a sentinel fail over although the primary is well. Blocks until all sentinels name
-- another primary.
orderFailover :: HasCallStack => Group -> IO ()
orderFailover group =
  groupSentinels group >>= filterM serverIsRunning >>= \case
    [] -> failure "there is no sentinel"
    sentinel : _ -> do
      before <- namedPrimary group sentinel
      -- A sentinel that has not heard of a replica for a while knows none that is fit.
      eventually (groupTimeout (groupOptions group)) "the sentinel fails over" $
        try (command sentinel ["SENTINEL", "FAILOVER", groupName (groupOptions group)]) >>= \case
          Right _ -> pure True
          Left problem@(TestKitFailure why) -> if "NOGOODSLAVE" `isInfixOf` why then pure False else throwIO problem
      awaitPrimary group before

-- | Blocks until all running sentinels name a primary at another port than this. Fails if none runs.
awaitPrimary :: HasCallStack => Group -> Maybe Int -> IO ()
awaitPrimary group before =
  eventually (groupTimeout (groupOptions group)) "the sentinels name another primary" $ do
    sentinels <- groupSentinels group >>= filterM serverIsRunning
    named <- mapM (namedPrimary group) sentinels
    pure (not (null named) && before `notElem` named && Nothing `notElem` named && all ((== take 1 named) . pure) named)
