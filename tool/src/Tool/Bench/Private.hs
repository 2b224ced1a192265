-- | Private servers: started for a run, and stopped after it.
module Tool.Bench.Private
  ( PrivateOptions (..),
    withPrivate,
  )
where

import Control.Monad ((>=>))
import Data.ByteString.Char8 qualified as Char8
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Certificates (Certificates (..), withCertificates)
import Redis.TestKit.Cluster
import Redis.TestKit.Server (ServerOptions (..), serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Tool.Bench.Document (TargetKind (..))
import Tool.Connect (Target (..), plainTarget)
import Tool.Failure (unavailable)
import Tool.Options.Connection (TlsOptions (..))

-- | What servers to start.
data PrivateOptions = PrivateOptions
  { privateKind :: TargetKind,
    privateTls :: Bool,
    -- | The cores that the servers may run on; an empty list means all.
    privateCores :: [Int]
  }

-- | Runs an action with a server, or with a cluster of five primaries, that lives as long as the
-- action.
withPrivate :: PrivateOptions -> (Target -> IO a) -> IO a
withPrivate options action
  | privateTls options = withCertificates (start . Just)
  | otherwise = start Nothing
  where
    start certificates = case privateKind options of
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
      serverDefaults {optionsCores = privateCores options, optionsTls = tlsOf <$> certificates}
    tlsOf (Certificates {certificatesServer, certificatesAuthority}) =
      Server.TlsOptions certificatesServer certificatesAuthority Server.ClientCertificatesIgnored
    connect certificates = \case
      TcpAddress host port ->
        action
          (plainTarget (Char8.pack host) (fromIntegral port))
            { targetKind = privateKind options,
              targetTls = trust <$> certificates
            }
      UnixAddress _ -> unavailable "the private server has no TCP port"
    trust certificates =
      TlsOptions
        { tlsWanted = True,
          tlsAuthority = Just (certificatesAuthority certificates),
          tlsCertificate = Nothing,
          tlsKey = Nothing,
          tlsInsecure = False,
          tlsServerName = Nothing
        }
