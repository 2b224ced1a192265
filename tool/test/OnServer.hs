-- | The program beside a server: how it is told which, and what that server sees of it.
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

-- | Whether somebody listens to what the server does.
watched :: Server -> IO Bool
watched server = do
  reply <- command server ["CLIENT", "LIST", "TYPE", "normal"]
  pure (maybe False ("cmd=monitor" `ByteString.isInfixOf`) (replyText reply))
