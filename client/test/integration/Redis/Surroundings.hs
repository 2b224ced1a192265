-- | The client's configuration for a server that the testkit started.
module Redis.Surroundings
  ( addressed,
    password,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.TestKit.Server (Server, serverHost, serverPort)

-- | The plain configuration for the server.
addressed :: Server -> Config
addressed server = standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server))

-- | Adds the password of the default user.
password :: ByteString -> Config -> Config
password text = setCredentials (Just Credentials {credentialsUser = Nothing, credentialsPassword = toSecret text})
