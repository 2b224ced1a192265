-- | Calls a user's hooks on a thread of its own.
--
-- Events come from threads that must not wait: a connection's reader, the driver that
-- learns a cluster's map, an attempt to connect. None of them runs foreign code. They put
-- the event into a queue, which never blocks, and one thread calls the hooks, one event
-- after the other, in the order in which they came. A slow hook delays only the events
-- behind it; a hook that throws loses only its own event.
--
-- The queue is bounded. Events that find it full are dropped, and the hook for connections
-- is told how many when the queue is empty again.
--
-- The thread ends when the queue is empty. So nothing has to be stopped.
module Redis.Internal.Client.Herald
  ( Herald,
    newHerald,
    heraldedHooks,
    awaitTold,
    maxWaitingEvents,
  )
where

import Control.Concurrent.STM
import Control.Exception (SomeException, interruptible, mask_, try)
import Control.Monad (void, when)
import Data.Foldable (for_)
import Data.Sequence (Seq (..), (|>))
import Data.Sequence qualified as Seq
import Redis.Internal.Hooks
import Redis.Internal.Network.Worker (expiry, spawn)

-- | The events of one client that its hooks have not been told of.
data Herald = Herald
  { heraldHooks :: Hooks,
    heraldQueue :: TVar (Seq (IO ())),
    -- | How many events found the queue full since the hook was last told.
    heraldDropped :: TVar Int,
    -- | Whether the thread runs.
    heraldSpeaks :: TVar Bool
  }

-- | A herald without events, for these hooks.
newHerald :: Hooks -> IO Herald
newHerald heraldHooks = do
  heraldQueue <- newTVarIO Seq.empty
  heraldDropped <- newTVarIO 0
  heraldSpeaks <- newTVarIO False
  pure Herald {heraldHooks, heraldQueue, heraldDropped, heraldSpeaks}

-- | The hooks as the library calls them: they never block and never throw. The hook
-- for commands stays as it is, because it runs on the thread that waits for the result.
heraldedHooks :: Herald -> Hooks
heraldedHooks herald =
  hooks
    { hookConnection = (\hook -> tell herald . hook) <$> hookConnection hooks,
      hookPush = (\hook endpoint push -> tell herald (hook endpoint push)) <$> hookPush hooks
    }
  where
    hooks = heraldHooks herald

-- | How many events may wait for the hooks.
maxWaitingEvents :: Int
maxWaitingEvents = 131072

tell :: Herald -> IO () -> IO ()
tell herald event = mask_ $ do
  silent <- atomically $ do
    waiting <- readTVar (heraldQueue herald)
    if Seq.length waiting >= maxWaitingEvents
      then modifyTVar' (heraldDropped herald) (+ 1)
      else writeTVar (heraldQueue herald) (waiting |> event)
    not <$> swapTVar (heraldSpeaks herald) True
  when silent (void (spawn "redis hooks" (speak herald)))

-- | Calls the hooks until there is nothing to tell.
speak :: Herald -> IO ()
speak herald = do
  next <- atomically $ do
    waiting <- readTVar (heraldQueue herald)
    dropped <- readTVar (heraldDropped herald)
    case waiting of
      event :<| rest -> Just event <$ writeTVar (heraldQueue herald) rest
      -- The dropped events came after all those that found room before them.
      Empty | dropped > 0 -> Just (tellDropped dropped) <$ writeTVar (heraldDropped herald) 0
      Empty -> Nothing <$ writeTVar (heraldSpeaks herald) False
  for_ next $ \event -> do
    -- Every exception here is the hook's own: no other code knows this thread.
    void (try (interruptible event) :: IO (Either SomeException ()))
    speak herald
  where
    tellDropped dropped = for_ (hookConnection (heraldHooks herald)) ($ EventsDropped dropped)

-- | Blocks until no event waits for the hooks, but no longer than so many seconds.
awaitTold :: Double -> Herald -> IO ()
awaitTold limit herald = do
  over <- expiry limit
  atomically $ (readTVar (heraldSpeaks herald) >>= check . not) `orElse` over
