-- | Many commands at once: all are submitted, then all are waited for.
--
-- > (name, visits) <- runPipeline client ((,) <$> pipelined (get "name") <*> pipelined (incr "visits"))
-- > values <- runPipeline client (traverse (pipelined . get) keys)
-- > results <- runPipeline client (traverse (tryPipelined . get) keys)
--
-- A pipeline is no transaction: other clients' commands may run in between,
-- and some commands may fail when others have run. In a cluster each command
-- goes to its own node. Which commands it has cannot depend on their results;
-- that is what lets them all leave before the first answer.
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
import Redis.Client
import Redis.Command (Command)
import Redis.Error (Error)

-- | Commands, and what becomes of their results.
--
-- @since 0.1.0.0
newtype Pipeline a = Pipeline (Client -> IO (IO (Either Error a)))

instance Functor Pipeline where
  fmap f (Pipeline begin) = Pipeline (fmap (fmap (fmap f)) . begin)

instance Applicative Pipeline where
  pure a = Pipeline (\_ -> pure (pure (Right a)))
  Pipeline beginF <*> Pipeline beginA = Pipeline $ \client -> do
    finishF <- beginF client
    finishA <- beginA client
    pure $ do
      f <- finishF
      -- Also when the first failed: when the pipeline returns, every command
      -- of it has ended.
      a <- finishA
      pure (f <*> a)

-- | One command. If it fails, so does the pipeline, when all its commands have
-- ended.
--
-- @since 0.1.0.0
pipelined :: Command a -> Pipeline a
pipelined command = Pipeline (fmap tryAwaitReply . (`submit` command))

-- | One command, with its own result or 'Error': it fails alone.
--
-- @since 0.1.0.0
tryPipelined :: Command a -> Pipeline (Either Error a)
tryPipelined command = Pipeline (fmap (fmap Right . tryAwaitReply) . (`submit` command))

-- | Runs a pipeline. Blocks until every command has a result, or has failed;
-- throws the first 'Error' of a 'pipelined' command, in the order of the
-- commands. Submitting blocks while queues are full, so a pipeline may be longer
-- than they are.
--
-- @since 0.1.0.0
runPipeline :: Client -> Pipeline a -> IO a
runPipeline client pipeline = tryRunPipeline client pipeline >>= either throwIO pure

-- | Runs a pipeline; the first 'Error' of a 'pipelined' command, if any.
--
-- @since 0.1.0.0
tryRunPipeline :: Client -> Pipeline a -> IO (Either Error a)
tryRunPipeline client (Pipeline begin) = join (begin client)
