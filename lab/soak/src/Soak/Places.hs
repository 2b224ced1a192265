-- | What the load runs on: a cluster of three primaries with a replica each, every node behind a
-- proxy, and a single server behind another proxy; and the clients. The cluster speaks TLS and has
-- a password. The server speaks plain text and has a user whose password changes.
--
-- Every server appends its commands to a file before it replies, without waiting for the disk. So a
-- process that is killed and started again has everything that it acknowledged, and the audit may
-- be exact. Two of the cluster's three pairs never elect a replica by themselves
-- (@cluster-replica-no-failover@): they only do planned failovers, which lose nothing. The third
-- pair elects, and may lose what its dead primary had acknowledged and not passed on: keys there
-- are 'MayLose'.
module Soak.Places
  ( Surroundings (..),
    Pair (..),
    withSurroundings,
    allNodes,
    allProxies,
    nameOf,

    -- * What is spoken to
    Place (..),
    Speaker (..),
    commandTimeout,
    keepingOf,

    -- * What the servers have
    askHolder,

    -- * The user of the server
    theUser,
    firstPassword,
  )
where

import Control.Exception (try)
import Control.Monad (forM, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (IORef, newIORef, readIORef)
import Data.List (partition)
import Data.Maybe (mapMaybe)
import Redis
import Redis.Cluster.Slot (keySlot)
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Certificates (Certificates (..), withCertificates)
import Redis.TestKit.Cluster
import Redis.TestKit.Command (Reply)
import Redis.TestKit.Proxy (Proxy, proxyAddress, withProxy)
import Redis.TestKit.Server (AclUser (..), ClientCertificates (..), Server, ServerOptions (..), TlsOptions (..), serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (TestKitFailure (..), eventuallyJust, failure)
import Soak.Book (Keeping (..))
import Soak.Traces

data Surroundings = Surroundings
  { theCluster :: Cluster,
    -- | The pairs that keep what they acknowledge.
    keptPairs :: [Pair],
    -- | The pair that may elect.
    electingPair :: Pair,
    theServer :: Server,
    theProxy :: Proxy,
    -- | The password of 'theUser', which the clients ask for at each handshake.
    thePassword :: IORef ByteString,
    thePlaces :: [Place],
    -- | The traces of the clients with two seconds for a command.
    theTraces :: Traces,
    theClients :: [Client]
  }

-- | Two nodes, of which one is the primary of the other at any time.
data Pair = Pair Node Node

allNodes :: Surroundings -> [Node]
allNodes around = concat [[one, other] | Pair one other <- electingPair around : keptPairs around]

-- | The name of a node, with its port.
nameOf :: Node -> String
nameOf node = "node " <> show (Server.serverPort (nodeServer node))

-- | The proxies in front of every node and of the server, with their names.
allProxies :: Surroundings -> [(String, Proxy)]
allProxies around =
  ("server", theProxy around) : mapMaybe (\node -> (,) (nameOf node) <$> nodeProxy node) (allNodes around)

-- | A cluster or a server, with its clients.
data Place = Place
  { placeName :: ByteString,
    -- | One client with two seconds for a command, one with 50 ms.
    placeSpeakers :: [Speaker],
    -- | A client that reads from replicas.
    placeFar :: Maybe Client,
    -- | The hash tags of the keys.
    placeTags :: [(ByteString, Keeping)]
  }

-- | A client and its command timeout in seconds.
data Speaker = Speaker
  { speakerName :: ByteString,
    speakerClient :: Client,
    -- | A client like it, and the node that took what this thread published last with it.
    speakerPublisher :: (Client, IO (Maybe Endpoint)),
    speakerTimeout :: Double
  }

-- | The command timeouts of the two kinds of clients, in seconds.
commandTimeout :: Bool -> Double
commandTimeout patient = if patient then 2 else 0.05

-- | Makes the surroundings for the length of an action.
withSurroundings :: (Surroundings -> IO a) -> IO a
withSurroundings action =
  withServer durable {optionsUsers = [AclUser theUser firstPassword "~* &* +@all"]} $ \server ->
    withProxy (Server.serverAddress server) $ \proxy -> withCertificates $ \certificates ->
      withCluster (clusterOptions certificates) $ \cluster -> do
        (electing, kept) <- pairsOf cluster
        electsByItself electing
        addresses <- clusterAddresses cluster
        traces <- newTraces
        password <- newIORef firstPassword
        let clustered = case map endpointOf addresses of
              first : others -> secured certificates (clusterConfig (first :| others))
              [] -> alone
            alone = setCredentialsFrom (issued <$> readIORef password) (addressed (proxyAddress proxy))
        speaking traces clustered $ \clusterSpeakers ->
          speaking traces alone $ \serverSpeakers ->
            withClient (setReadFrom PreferReplica (tuned 2 clustered)) $ \far ->
              action
                Surroundings
                  { theCluster = cluster,
                    keptPairs = kept,
                    electingPair = electing,
                    theServer = server,
                    theProxy = proxy,
                    thePassword = password,
                    thePlaces =
                      [ Place {placeName = "c", placeSpeakers = clusterSpeakers, placeFar = Just far, placeTags = clusterTags},
                        Place {placeName = "s", placeSpeakers = serverSpeakers, placeFar = Nothing, placeTags = take 3 keptTags}
                      ],
                    theTraces = traces,
                    theClients = far : concat [[speakerClient one, fst (speakerPublisher one)] | one <- clusterSpeakers <> serverSpeakers]
                  }
  where
    issued password = issuedCredentials Credentials {credentialsUser = Just theUser, credentialsPassword = toSecret password}
    secured certificates =
      setTls (Just tlsDefaults {tlsCaFile = Just (certificatesAuthority certificates)})
        . setCredentials (Just Credentials {credentialsUser = Nothing, credentialsPassword = toSecret clusterPassword})
    addressed address = case endpointOf address of
      TcpEndpoint host port -> standaloneConfig host port
      UnixEndpoint path -> unixConfig path
    speaking traces config use =
      -- These clients have traces and a cache, the others do not.
      speaker "p" True (setHooks noHooks {hookCommand = Just (tracing traces)} . setCaching (Just cachingDefaults)) config $ \patient ->
        speaker "h" False id config $ \hasty -> use [patient, hasty]
    speaker name patience special config use = do
      takers <- newTakers
      let own = tuned (commandTimeout patience) config
      withClient (special own) $ \client ->
        withClient (setHooks noHooks {hookCommand = Just (taking takers)} own) $ \publisher ->
          use
            Speaker
              { speakerName = name,
                speakerClient = client,
                speakerPublisher = (publisher, takerHere takers),
                speakerTimeout = commandTimeout patience
              }
    clusterTags = take 12 keptTags <> take 4 losingTags
    (losingTags, keptTags) = partition ((== MayLose) . snd) [(tag, keepingOf tag) | n <- [1 :: Int ..], let tag = "t" <> Char8.pack (show n)]

-- | Whether a key's slot belonged to the third pair at the start.
keepingOf :: ByteString -> Keeping
keepingOf key = if keySlot key >= 2 * 16384 `div` 3 then MayLose else Kept

endpointOf :: Address -> Endpoint
endpointOf = \case
  TcpAddress host port -> TcpEndpoint (Char8.pack host) (fromIntegral port)
  UnixAddress path -> UnixEndpoint path

tuned :: Double -> Config -> Config
tuned timeout =
  setCommandTimeout (Just (seconds timeout))
    -- Half of the grace of a call.
    . setConnectTimeout (seconds 0.5)
    . setSilenceLimit (Just (seconds 1))
    . setClientName (Just "soak")
    -- Closes idle connections soon, so that those left open at the end can be counted.
    . setDedicatedIdle (Just (seconds 1))

durable :: ServerOptions
durable = serverDefaults {optionsConfig = ["appendonly yes", "appendfsync no"]}

-- | The user of the server, and its first password.
theUser, firstPassword :: ByteString
theUser = "soak"
firstPassword = "first"

clusterPassword :: ByteString
clusterPassword = "open sesame"

clusterOptions :: Certificates -> ClusterOptions
clusterOptions certificates =
  clusterDefaults
    { clusterPrimaryCount = 3,
      clusterReplicasPerPrimary = 1,
      clusterNodeTimeout = nodeTimeout,
      clusterProxies = True,
      clusterServer =
        durable
          { optionsPassword = Just clusterPassword,
            optionsTls =
              Just
                TlsOptions
                  { tlsKeyPair = certificatesServer certificates,
                    tlsAuthority = certificatesAuthority certificates,
                    tlsClients = ClientCertificatesOptional
                  },
            optionsConfig =
              optionsConfig durable
                <> [ "cluster-replica-no-failover yes",
                     -- Has an effect after a restart, too.
                     "cluster-node-timeout " <> show nodeTimeout
                   ]
          },
      clusterTimeout = 60
    }
  where
    nodeTimeout = 2000 :: Int

-- | The pair of the last slots, and the other pairs.
pairsOf :: Cluster -> IO (Pair, [Pair])
pairsOf cluster = do
  primaries <- clusterPrimaries cluster
  pairs <- forM primaries $ \(primary, ranges) ->
    replicasOf cluster primary >>= \case
      [replica] -> pure (any ((== 16383) . snd) ranges, Pair primary replica)
      replicas -> failure (show primary <> " has replicas " <> show replicas)
  case partition fst pairs of
    ([(_, electing)], others@[_, _]) -> pure (electing, map snd others)
    _ -> failure "not three pairs"

-- Has an effect after a restart, too.
electsByItself :: Pair -> IO ()
electsByItself (Pair one other) = mapM_ tell [one, other]
  where
    tell node = do
      void (Server.command (nodeServer node) ["CONFIG", "SET", "cluster-replica-no-failover", "no"])
      void (Server.command (nodeServer node) ["CONFIG", "REWRITE"])

-- | Asks the server that has a key of the place, without the library. On a busy machine a node may
-- regard its cluster as down for a moment, so it is asked again, for at most half a minute.
askHolder :: Surroundings -> Place -> ByteString -> [ByteString] -> IO Reply
askHolder around place key question
  | placeName place == "s" = Server.command (theServer around) question
  | otherwise =
    eventuallyJust 30 ("an answer to " <> show question) $
      try (slotPrimary (theCluster around) (keySlot key) >>= \node -> Server.command (nodeServer node) question) >>= \case
        Right reply -> pure (Just reply)
        Left (TestKitFailure _) -> pure Nothing
