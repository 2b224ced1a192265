-- | A server of a benchmark's own.
module Bench.Private
  ( addressed,
    onPrivateServer,
  )
where

import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.TestKit.Server (Server, serverDefaults, serverHost, serverPort, withServer)

-- | The configuration of clients of this server.
addressed :: Server -> Config
addressed server = standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server))

-- | Starts a server for the length of an action, which takes the configuration of its clients.
onPrivateServer :: (Config -> IO a) -> IO a
onPrivateServer action = withServer serverDefaults (action . addressed)
