-- | Testing a service that uses Redis: with a server that answers as the test says, and with real
-- servers that the test starts.
module Testing (main) where

import Control.Monad (unless, void)
import Data.ByteString (ByteString)
import Redis
import Redis.Commands qualified as Redis
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Proxy (Direction (ToClient), Ending (Reset), cutAfter, heal, proxyPort, withProxy)
import Redis.TestKit.Scripted
import Redis.TestKit.Server (serverAddress, serverDefaults, serverPort, withServer)

-- | The service: greets the users that it knows, and counts their visits.
greet :: Client -> ByteString -> IO ByteString
greet client user =
  run client (Redis.get ("name:" <> user)) >>= \case
    Nothing -> pure "Who are you?"
    Just name -> do
      counted <- tryRun client (Redis.incr ("visits:" <> user))
      pure (either (const ("Hello " <> name <> ", I cannot count.")) (const ("Hello " <> name <> ".")) counted)

main :: IO ()
main = do
  -- No Redis is needed: the script lists the commands that the server expects, and its answers.
  let script = inOrder [on ["GET", "name:ada"] [replies (Text "Ada")], on ["INCR", "visits:ada"] [fails "OOM command not allowed"]]
  withScripted script $ \server -> withClient (local (scriptedPort server)) $ \client ->
    greet client "ada" `gives` "Hello Ada, I cannot count."

  -- No real server does this on demand: it sends half a reply and closes the connection.
  let cutting = inOrder [on ["GET", "name:bob"] [cutsAfter 3 (Text "Bob")], on ["GET", "name:bob"] [replies Nil]]
  withScripted cutting $ \server -> withClient (local (scriptedPort server)) $ \client ->
    greet client "bob" `gives` "Who are you?"

  -- A private server that is removed afterwards, and a proxy in front of it that breaks
  -- connections.
  withServer serverDefaults $ \server -> do
    withClient (local (serverPort server)) $ \client -> run client (Redis.set "name:eve" "Eve")
    withProxy (serverAddress server) $ \proxy -> withClient (local (proxyPort proxy)) $ \client -> do
      greet client "eve" `gives` "Hello Eve."
      cutAfter proxy ToClient 2 Reset
      -- The client sends a read again. It does not send a write again that may have run.
      void (tryRun client (Redis.get "name:eve"))
      heal proxy
      greet client "eve" `gives` "Hello Eve."
  putStrLn "all as expected"

local :: Int -> Config
local port = standaloneConfig "127.0.0.1" (fromIntegral port)

gives :: IO ByteString -> ByteString -> IO ()
gives action expected = do
  result <- action
  unless (result == expected) (fail (show result <> " instead of " <> show expected))
