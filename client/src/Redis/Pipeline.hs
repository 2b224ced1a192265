-- | Pipelines: many commands at once. All are submitted, then all are waited for.
--
-- > (name, visits) <- runPipeline client ((,) <$> pipelined (get "name") <*> pipelined (incr "visits"))
-- > values <- runPipeline client (traverse (pipelined . get) keys)
-- > results <- runPipeline client (traverse (tryPipelined . get) keys)
--
-- A pipeline is not a transaction: commands of other clients may run in between, and some commands
-- may fail while others have run. In a cluster each command goes to its own node. A command of a
-- pipeline cannot depend on the result of another; so all of them can leave before the first reply.
module Redis.Pipeline
  ( Pipeline,
    pipelined,
    tryPipelined,
    runPipeline,
    tryRunPipeline,
  )
where

import Control.Exception (throwIO)
import Control.Monad (join)
import Data.ByteString (ByteString)
import Data.IORef
import Redis.Error (Error (ClientClosed))
import Redis.Internal.Client.Core
import Redis.Internal.Client.Execute
import Redis.Internal.Client.Trace
import Redis.Internal.Command (Command, commandArguments)
import Redis.Internal.Config
import Redis.Internal.Hooks

-- | Commands, and what to make of their results.
newtype Pipeline a = Pipeline (Pass -> IO (IO (Either Error a)))

-- | The purpose of a walk over a pipeline.
data Pass
  = -- | To submit its commands.
    Submitting Core
  | -- | To list its commands before it begins: nothing is sent, and there is no result.
    -- The latest command comes first.
    Listing (IORef [[ByteString]])

-- | One command's part in a walk.
passing :: Command a -> Pass -> IO (Pending a)
passing command = \case
  Submitting core -> start core command
  Listing known -> do
    modifyIORef' known (commandArguments command :)
    pure (settled (Left ClientClosed))
{-# INLINE passing #-}

instance Functor Pipeline where
  fmap f (Pipeline begin) = Pipeline (fmap (fmap (fmap f)) . begin)

instance Applicative Pipeline where
  pure a = Pipeline (\_ -> pure (pure (Right a)))
  Pipeline beginF <*> Pipeline beginA = Pipeline $ \pass -> do
    finishF <- beginF pass
    finishA <- beginA pass
    -- Both are awaited: when the pipeline returns, all its commands have ended.
    pure ((<*>) <$> finishF <*> finishA)

-- | One command. If it fails, the pipeline fails, when all its commands have ended.
pipelined :: Command a -> Pipeline a
pipelined command = Pipeline (fmap awaitStarted . passing command)

-- | One command, with its own result or 'Error'. If it fails, the pipeline does not.
tryPipelined :: Command a -> Pipeline (Either Error a)
tryPipelined command = Pipeline (fmap (fmap Right . awaitStarted) . passing command)

-- | Runs a pipeline. Blocks until every command has a result, or has failed; then throws the first
-- 'Error' of a 'pipelined' command, in the order of the commands. Submitting blocks while a queue is
-- full, so a pipeline may be longer than the queues.
runPipeline :: Client -> Pipeline a -> IO a
runPipeline client pipeline = tryRunPipeline client pipeline >>= either throwIO pure

-- | Like 'runPipeline', but returns the first 'Error' of a 'pipelined' command.
tryRunPipeline :: Client -> Pipeline a -> IO (Either Error a)
tryRunPipeline (Client core) (Pipeline begin) = case hookCommand (configHooks (coreConfig core)) of
  Nothing -> join (begin (Submitting core))
  Just hook -> do
    listed <- newIORef []
    _ <- begin (Listing listed)
    given <- readIORef listed
    toItsEnd (beginTrace core hook (pipelineOf (reverse given))) (join . begin . Submitting . traceCore) <* keepOpen core
