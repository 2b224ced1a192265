-- | How the client is told of a server that the testkit started.
module Redis.Surroundings
  ( addressed,
    password,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.TestKit.Server (Server, serverHost, serverPort)

-- | As simply as can be.
addressed :: Server -> Config
addressed server = standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server))

-- | With the password of who has no name.
password :: ByteString -> Config -> Config
password text = setCredentials (Just Credentials {credentialsUser = Nothing, credentialsPassword = toSecret text})
