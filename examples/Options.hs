-- | Options are records with defaults: set only the fields that you need.
module Options (main) where

import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    _ <- run client (Redis.del (pure "example:lock"))

    -- Set the key only if it does not exist, and for one minute.
    let lock = Redis.setDefaults {Redis.setCondition = Just Redis.OnlyIfAbsent, Redis.setExpiry = Redis.ExpireIn (seconds 60)}
    run client (Redis.setWith lock "example:lock" "mine") >>= print
    run client (Redis.setWith lock "example:lock" "theirs") >>= print
    run client (Redis.get "example:lock") >>= print

    _ <- run client (Redis.del (pure "example:lock"))
    pure ()
