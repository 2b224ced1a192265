-- | Listening to published messages, and to changes of keys.
module Subscriptions (main) where

import Control.Monad (replicateM_)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Commands qualified as Redis
import Redis.Subscription
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    withSubscription client (channel "example:news" <> matching "example:user:*") $ \subscription -> do
      -- The server has confirmed the subscription, so these messages arrive.
      _ <- run client (Redis.publish "example:news" "it rains")
      _ <- run client (Redis.publish "example:user:7" "came in")
      replicateM_ 2 (nextEvent subscription >>= tell)
      -- More channels while the subscription exists.
      subscribe subscription (channel "example:other")
      heard <- run client (Redis.publish "example:other" "hello")
      putStrLn (show heard <> " listens")
      nextEvent subscription >>= tell

    -- Servers report changes of keys if they are configured to.
    run client (Redis.configSet (("notify-keyspace-events", "KEA") :| []))
    withSubscription client (keyspace 0 "example:*") $ \subscription -> do
      run client (Redis.set "example:key" "value")
      nextEvent subscription >>= \case
        Message message -> print (keyEventOf message)
        Gap gap -> tell (Gap gap)

-- | A gap gives the time since which messages may be missing.
tell :: Event -> IO ()
tell = \case
  Message message -> Char8.putStrLn (messageChannel message <> ": " <> messagePayload message)
  Gap gap -> putStrLn ("something may be missing since " <> show (gapSince gap))
