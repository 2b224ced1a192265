-- | Private servers: started for a run, and stopped after it.
module Tool.Bench.Private
  ( withPrivate,
  )
where

import Control.Monad ((>=>))
import Data.ByteString.Char8 qualified as Char8
import Redis.Config (Endpoint (..), TlsConfig (..), clusterConfig, setTls, standaloneConfig, tlsDefaults)
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Certificates (Certificates (..), withCertificates)
import Redis.TestKit.Cluster
import Redis.TestKit.Server (ServerOptions (..), serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Tool.Bench.Document (TargetKind (..))
import Tool.Connect (Target, targetAt)
import Tool.Failure (unavailable)

-- | Runs an action with a server, or with a cluster of five primaries, that lives as long as the
-- action. Takes whether it speaks TLS, and the cores that it may run on; an empty list means all.
withPrivate :: TargetKind -> Bool -> [Int] -> (Target -> IO a) -> IO a
withPrivate kind tls cores action
  | tls = withCertificates (start . Just)
  | otherwise = start Nothing
  where
    start certificates = case kind of
      TargetStandalone -> withServer (server certificates) $ \running ->
        case (certificates, Server.serverTlsPort running) of
          (Just _, Just port) -> connect certificates (TcpAddress (Server.serverHost running) port)
          _ -> connect certificates (Server.serverAddress running)
      TargetCluster ->
        -- A node that does not get the processor for a while must not count as failed: all nodes
        -- may share one busy core.
        withCluster clusterDefaults {clusterNodeTimeout = 15000, clusterServer = server certificates} $
          clusterNodes >=> \case
            node : _ -> connect certificates (nodeAddress node)
            [] -> unavailable "the private cluster has no nodes"
    server certificates =
      serverDefaults {optionsCores = cores, optionsTls = tlsOf <$> certificates}
    tlsOf (Certificates {certificatesServer, certificatesAuthority}) =
      Server.TlsOptions certificatesServer certificatesAuthority Server.ClientCertificatesIgnored
    connect certificates = \case
      TcpAddress host port ->
        action . targetAt . setTls (trust <$> certificates) $
          at (Char8.pack host) (fromIntegral port)
      UnixAddress _ -> unavailable "the private server has no TCP port"
    at host port = case kind of
      TargetStandalone -> standaloneConfig host port
      TargetCluster -> clusterConfig (pure (TcpEndpoint host port))
    trust certificates = tlsDefaults {tlsCaFile = Just (certificatesAuthority certificates)}
