-- | Testing what a service does with Redis: by a server that says what the test wants, and
-- by real ones of the test's own.
module Testing (main) where

import Control.Monad (unless, void)
import Data.ByteString (ByteString)
import Redis
import Redis.Commands qualified as Redis
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Proxy (Direction (ToClient), Ending (Reset), cutAfter, heal, proxyPort, withProxy)
import Redis.TestKit.Scripted
import Redis.TestKit.Server (defaultServerOptions, serverAddress, serverPort, withServer)

-- | The service: greets who it knows, and counts visits.
greet :: Client -> ByteString -> IO ByteString
greet client user =
  run client (Redis.get ("name:" <> user)) >>= \case
    Nothing -> pure "Who are you?"
    Just name -> do
      counted <- tryRun client (Redis.incr ("visits:" <> user))
      pure (either (const ("Hello " <> name <> ", I cannot count.")) (const ("Hello " <> name <> ".")) counted)

main :: IO ()
main = do
  -- No Redis is needed: the script says what the server hears and what it answers.
  let script = inOrder [on ["GET", "name:ada"] [replies (Text "Ada")], on ["INCR", "visits:ada"] [fails "OOM command not allowed"]]
  withScripted script $ \server -> withClient (local (scriptedPort server)) $ \client ->
    greet client "ada" `gives` "Hello Ada, I cannot count."

  -- What no real server does on demand: half an answer, and then nothing.
  let cutting = inOrder [on ["GET", "name:bob"] [cutsAfter 3 (Text "Bob")], on ["GET", "name:bob"] [replies Nil]]
  withScripted cutting $ \server -> withClient (local (scriptedPort server)) $ \client ->
    greet client "bob" `gives` "Who are you?"

  -- A private server, gone afterwards, and a proxy before it that breaks connections.
  withServer defaultServerOptions $ \server -> do
    withClient (local (serverPort server)) $ \client -> run client (Redis.set "name:eve" "Eve")
    withProxy (serverAddress server) $ \proxy -> withClient (local (proxyPort proxy)) $ \client -> do
      greet client "eve" `gives` "Hello Eve."
      cutAfter proxy ToClient 2 Reset
      -- The read is sent again by the client; the write may have run, and is not.
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
