-- | Servers and clients for the recipes' tests.
module Redis.Patterns.Surroundings
  ( withRedis,
    withRedisAndClient,
    behindProxy,
    inCluster,
    clustered,
    moving,
    addressed,
    through,
    evaluations,
  )
where

import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict qualified as Map
import Redis
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Cluster
import Redis.TestKit.Command (CommandCalls (..))
import Redis.TestKit.Proxy (Proxy, proxyPort, withProxy)
import Redis.TestKit.Server (Server, commandStatistics, serverAddress, serverDefaults, serverHost, serverPort, withServer)
import Redis.TestKit.Wait (failure)

withRedis :: (Server -> IO a) -> IO a
withRedis = withServer serverDefaults

withRedisAndClient :: (Server -> Client -> IO a) -> IO a
withRedisAndClient action = withRedis $ \server -> withClient (addressed server) (action server)

-- | A server, a proxy, and a client that uses one connection through the proxy.
behindProxy :: (Server -> Proxy -> Client -> IO a) -> IO a
behindProxy action = withRedis $ \server ->
  withProxy (serverAddress server) $ \proxy ->
    withClient (through proxy) (action server proxy)

-- | A client of a cluster with one node.
inCluster :: (Client -> IO a) -> IO a
inCluster action =
  -- The timeout is so long that a busy machine does not make a node count as failed.
  withCluster clusterDefaults {clusterPrimaryCount = 1, clusterNodeTimeout = 15000} $ \cluster ->
    clustered cluster >>= (`withClient` action)

-- | The configuration of a client of the cluster, with short times.
clustered :: Cluster -> IO Config
clustered cluster =
  clusterAddresses cluster >>= \case
    address : others -> pure (quick (clusterConfig (endpointOf address :| map endpointOf others)))
    [] -> failure "the cluster has no address"
  where
    endpointOf = \case
      TcpAddress host port -> TcpEndpoint (Char8.pack host) (fromIntegral port)
      UnixAddress path -> UnixEndpoint path

-- | Moves a key's slot to another primary and back, twice.
moving :: Cluster -> ByteString -> IO ()
moving cluster key = do
  slot <- slotOf cluster key
  home <- slotPrimary cluster slot
  primaries <- map fst <$> clusterPrimaries cluster
  forM_ (take 4 (cycle (filter (/= home) primaries <> [home]))) (migrateSlot cluster quietMigration slot)

-- | Short times, so that a fault is over soon.
quick :: Config -> Config
quick =
  setCommandTimeout (Just (seconds 3))
    . setConnectTimeout (seconds 2)
    . setBackoff backoffDefaults {backoffFirst = seconds 0.005, backoffCap = seconds 0.05}

addressed :: Server -> Config
addressed server = quick (standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server)))

through :: Proxy -> Config
through proxy = setMuxCount (Just 1) (quick (standaloneConfig "127.0.0.1" (fromIntegral (proxyPort proxy))))

-- | How many scripts have run by their digests or texts, without those that failed.
evaluations :: Server -> IO Int
evaluations server = do
  statistics <- commandStatistics server
  pure (sum [callsRun calls - callsFailed calls | Just calls <- map (`Map.lookup` statistics) ["eval", "evalsha"]])
