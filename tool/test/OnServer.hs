-- | The program with a server: the options that name the server, and the server's view of the
-- program.
module OnServer
  ( at,
    watched,
    probed,
    hasty,
    asGuest,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Redis.Config (Credentials (..), setCommandTimeout, setConnectTimeout, setCredentials, toSecret)
import Redis.Duration (milliseconds)
import Redis.TestKit.Command (replyText)
import Redis.TestKit.Server (Server, command, serverHost, serverPort)
import Tool.Connect (Target (..))

-- | The options that name the server.
at :: Server -> [String]
at server = ["-h", serverHost server, "-p", show (serverPort server)]

-- | Whether a client runs MONITOR on the server.
watched :: Server -> IO Bool
watched = lastCommand "monitor"

-- | Whether a client that runs MONITOR on the server has also asked whether it shows everything.
probed :: Server -> IO Bool
probed server = (&&) <$> watched server <*> lastCommand "echo" server

-- | Whether this is the last command of a client.
lastCommand :: ByteString -> Server -> IO Bool
lastCommand name server = do
  reply <- command server ["CLIENT", "LIST", "TYPE", "normal"]
  pure (maybe False (("cmd=" <> name <> " ") `ByteString.isInfixOf`) (replyText reply))

-- | The same server, whose commands and connections are given up after half a second.
hasty :: Target -> Target
hasty target = target {targetBase = setCommandTimeout (Just half) (setConnectTimeout half (targetBase target))}
  where
    half = milliseconds 500

-- | The same server, as the user @guest@ with the password @pw@.
asGuest :: Target -> Target
asGuest target = target {targetBase = setCredentials (Just guest) (targetBase target)}
  where
    guest = Credentials (Just "guest") (toSecret "pw")
