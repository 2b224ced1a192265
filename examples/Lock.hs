-- | A lock, and a store that checks its fencing token.
module Lock (main) where

import Control.Concurrent.Async (forConcurrently_)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.Patterns.Lock
import Redis.Script
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    _ <- run client (Redis.del ("{example}:report" :| ["{example}:count"]))

    -- Eight threads read, add and write, one after the other.
    forConcurrently_ [1 .. 8 :: Int] $ \_ ->
      withLock client (lock "example") {lockTimeout = Nothing} $ \_ -> do
        count <- maybe 0 (maybe 0 fst . Char8.readInt) <$> run client (Redis.get "{example}:count")
        run client (Redis.set "{example}:count" (Char8.pack (show (count + 1))))
    run client (Redis.get "{example}:count") >>= print

    -- A store that remembers the greatest token refuses a holder whose lease is over, even if the
    -- holder believes that it still has the lock.
    first <- withLock client (lock "example") (pure . lockFence)
    second <- withLock client (lock "example") (pure . lockFence)
    mapM_ (\fence -> run client (store fence "a report") >>= print) [second, first]

    -- A caller that does not want to wait gets 'Nothing' while another one holds the lock.
    outcome <- withLock client (lock "example") {lockOwner = "main"} $ \hold -> do
      still <- isHeld (grantLease hold)
      holder <- run client (lockHolder "example")
      other <- withLock client (lock "example") {lockTimeout = Just mempty} (const (pure ()))
      pure (still, holderOwner <$> holder, other)
    print outcome
  where
    store fence content =
      evalScript guardedSet ["{example}:report"] [maybe "0" (Char8.pack . show) fence, content] `decodedBy` Decode.boolean

-- | Writes the content, unless a holder with a greater token has written.
guardedSet :: Script
guardedSet =
  script
    "if tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) > tonumber(ARGV[1]) then return 0 end\n\
    \redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'content', ARGV[2])\n\
    \return 1"
