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
-- This module brings what a program needs to run commands, under names that do
-- not clash with others. The commands themselves have the servers' names, many of
-- which do: they are in "Redis.Commands", to be imported qualified. So are
-- "Redis.Value" (replies as they are) and "Redis.Command.Build" (commands of your
-- own). "Redis.Transaction", "Redis.Cache", "Redis.Scan", "Redis.Script", "Redis.Metrics"
-- and "Redis.Tracing" are imported beside it.
module Redis
  ( module Redis.Client,
    module Redis.Command,
    module Redis.Commands.Raw,
    module Redis.Config,
    module Redis.Duration,
    module Redis.Error,
    module Redis.Pipeline,
    Value,
  )
where

import Redis.Client
import Redis.Command (Audience (..), Command, decodedBy, onEach, onEvery, onNode, readFrom, repeatable, timeLimit)
import Redis.Commands.Raw (raw)
import Redis.Config
import Redis.Duration (Duration, milliseconds, seconds)
import Redis.Error
import Redis.Pipeline
import Redis.Value (Value)
