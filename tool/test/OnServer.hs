-- | The program with a server: the options that name the server, and the server's view of the
-- program.
module OnServer
  ( at,
    watched,
  )
where

import Data.ByteString qualified as ByteString
import Redis.TestKit.Command (replyText)
import Redis.TestKit.Server (Server, command, serverHost, serverPort)

-- | The options that name the server.
at :: Server -> [String]
at server = ["-h", serverHost server, "-p", show (serverPort server)]

-- | Whether a client runs MONITOR on the server.
watched :: Server -> IO Bool
watched server = do
  reply <- command server ["CLIENT", "LIST", "TYPE", "normal"]
  pure (maybe False ("cmd=monitor" `ByteString.isInfixOf`) (replyText reply))
