-- | Reads that the client answers by itself until the server reports a change.
module Caching (main) where

import Control.Monad (replicateM)
import Redis
import Redis.Cache
import Redis.Commands qualified as Redis
import Redis.Duration (minutes)
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient (setCaching (Just cachingDefaults) config) $ \client -> do
    let fresh = minutes 1
    run client (Redis.set "example:config" "blue")

    -- A hundred callers want the value, and one command is sent.
    begun <- replicateM 100 (submitCached client fresh (Redis.get "example:config"))
    answers <- traverse awaitReply begun
    print (all (== Just "blue") answers)

    -- From here on a read costs a fraction of a microsecond.
    runCached client fresh (Redis.get "example:config") >>= print
    gauges <- cacheGauges client
    print (cacheMisses gauges, cacheKept gauges)

    -- The server reports a change within a moment.
    run client (Redis.set "example:config" "green")
    untilIs client fresh (Just "green")

    -- Of a command with several keys, each key is kept by itself.
    run client (Redis.mset (("example:a", "1") :| [("example:b", "2")]))
    runCached client fresh (Redis.mget ("example:a" :| ["example:b"])) >>= print

    -- The result of this read must not be old at all.
    runCached client mempty (Redis.get "example:config") >>= print
  where
    untilIs client fresh wanted = do
      found <- runCached client fresh (Redis.get "example:config")
      if found == wanted then print found else untilIs client fresh wanted
