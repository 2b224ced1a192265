-- | The program with a server: the options that name the server, and the server's view of the
-- program.
module OnServer
  ( at,
    watched,
    hasty,
  )
where

import Data.ByteString qualified as ByteString
import Redis.Config (setCommandTimeout, setConnectTimeout, standaloneConfig)
import Redis.Duration (milliseconds)
import Redis.TestKit.Command (replyText)
import Redis.TestKit.Server (Server, command, serverHost, serverPort)
import Tool.Connect (Target (..))

-- | The options that name the server.
at :: Server -> [String]
at server = ["-h", serverHost server, "-p", show (serverPort server)]

-- | Whether a client runs MONITOR on the server.
watched :: Server -> IO Bool
watched server = do
  reply <- command server ["CLIENT", "LIST", "TYPE", "normal"]
  pure (maybe False ("cmd=monitor" `ByteString.isInfixOf`) (replyText reply))

-- | The same server, whose commands and connections are given up after half a second.
hasty :: Target -> Target
hasty target = target {targetUrl = Just (setCommandTimeout (Just half) (setConnectTimeout half config))}
  where
    config = standaloneConfig (targetHost target) (targetPort target)
    half = milliseconds 500
