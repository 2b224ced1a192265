-- | A client for Redis and Valkey: for single servers, for primaries with replicas, and for clusters.
--
-- > import Redis
-- > import Redis.Commands qualified as Redis
-- >
-- > main :: IO ()
-- > main = withClient (standaloneConfig "localhost" 6379) $ \client -> do
-- >   run client (Redis.set "greeting" "hello")
-- >   run client (Redis.get "greeting") >>= print
--
-- This module exports what a program needs to run commands, under names that seldom clash with
-- others (@run@ is also a name of Warp, and @Error@ one of hedis). The commands themselves are in "Redis.Commands". They have the servers' names, many of
-- which clash with names of other modules, so import that module qualified. Import "Redis.Value"
-- (replies as they are) and "Redis.Command.Build" (commands of your own) qualified, too.
--
-- Other tasks have modules of their own: "Redis.Transaction", "Redis.Subscription", "Redis.Cache",
-- "Redis.Scan", "Redis.Script", "Redis.Metrics" and "Redis.Tracing".
module Redis
  ( module Redis.Client,
    module Redis.Command,
    module Redis.Commands.Raw,
    module Redis.Config,
    module Redis.Duration,
    module Redis.Error,
    module Redis.Pipeline,
    Value,

    -- * Arguments of which there is at least one
    NonEmpty ((:|)),
    nonEmpty,
  )
where

import Data.List.NonEmpty (NonEmpty ((:|)), nonEmpty)
import Redis.Client
import Redis.Command (Command, NodeSet (..), decodedBy, idempotent, onEach, onEvery, onNode, readFrom, refine, timeLimit)
import Redis.Commands.Raw (raw)
import Redis.Config
import Redis.Duration (Duration, milliseconds, seconds)
import Redis.Error
import Redis.Pipeline
import Redis.Value (Value)
