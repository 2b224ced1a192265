-- | A client for Redis and Valkey, servers and clusters.
--
-- > import Redis
-- > import Redis.Commands qualified as Redis
-- >
-- > main :: IO ()
-- > main = withClient (standaloneConfig "localhost" 6379) $ \client -> do
-- >   run client (Redis.set "greeting" "hello")
-- >   run client (Redis.get "greeting") >>= print
--
-- The commands are in "Redis.Commands", to be imported qualified.
module Redis
  ( module Redis.Client,
    module Redis.Command,
    module Redis.Commands.Raw,
    module Redis.Config,
    module Redis.Duration,
    module Redis.Error,
    module Redis.Pipeline,
    module Redis.Value,
  )
where

import Redis.Client
import Redis.Command (Command, repeatable)
import Redis.Commands.Raw (raw)
import Redis.Config
import Redis.Duration
import Redis.Error
import Redis.Pipeline
import Redis.Value
