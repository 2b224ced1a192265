-- | Calls a user's hooks on a thread of its own.
--
-- Events come from threads that must not wait. They put the event into a queue, which never blocks, and
-- one thread calls the hooks, one event after the other, in the order in which they came. A hook that
-- throws loses only its own event.
--
-- The queue is bounded. Events that find it full are dropped, and the hook for connections
-- is told how many when the queue is empty again. Then the thread ends.
module Redis.Internal.Client.EventDispatcher
  ( EventDispatcher,
    newEventDispatcher,
    dispatchedHooks,
    awaitDispatched,
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
import Redis.Internal.Network.Runtime (expiry, spawn)

-- | The events of one client that its hooks have not been told of.
data EventDispatcher = EventDispatcher
  { dispatcherHooks :: Hooks,
    dispatcherQueue :: TVar (Seq (IO ())),
    -- | How many events found the queue full since the hook was last told.
    dispatcherDropped :: TVar Int,
    -- | Whether the thread runs.
    dispatcherRuns :: TVar Bool
  }

newEventDispatcher :: Hooks -> IO EventDispatcher
newEventDispatcher hooks = EventDispatcher hooks <$> newTVarIO Seq.empty <*> newTVarIO 0 <*> newTVarIO False

-- | The hooks as the library calls them: they never block and never throw. The hook
-- for commands stays as it is, because it runs on the thread that waits for the result.
dispatchedHooks :: EventDispatcher -> Hooks
dispatchedHooks dispatcher =
  hooks
    { hookConnection = (\hook -> tell dispatcher . hook) <$> hookConnection hooks,
      hookPush = (\hook endpoint push -> tell dispatcher (hook endpoint push)) <$> hookPush hooks
    }
  where
    hooks = dispatcherHooks dispatcher

maxWaitingEvents :: Int
maxWaitingEvents = 131072

tell :: EventDispatcher -> IO () -> IO ()
tell dispatcher event = mask_ $ do
  silent <- atomically $ do
    waiting <- readTVar (dispatcherQueue dispatcher)
    if Seq.length waiting >= maxWaitingEvents
      then modifyTVar' (dispatcherDropped dispatcher) (+ 1)
      else writeTVar (dispatcherQueue dispatcher) (waiting |> event)
    not <$> swapTVar (dispatcherRuns dispatcher) True
  when silent (void (spawn "redis hooks" (dispatch dispatcher)))

dispatch :: EventDispatcher -> IO ()
dispatch dispatcher = do
  next <- atomically $ do
    waiting <- readTVar (dispatcherQueue dispatcher)
    dropped <- readTVar (dispatcherDropped dispatcher)
    case waiting of
      event :<| rest -> Just event <$ writeTVar (dispatcherQueue dispatcher) rest
      -- The dropped events came after all those that found room before them.
      Empty | dropped > 0 -> Just (tellDropped dropped) <$ writeTVar (dispatcherDropped dispatcher) 0
      Empty -> Nothing <$ writeTVar (dispatcherRuns dispatcher) False
  for_ next $ \event -> do
    -- Every exception here is the hook's own: no other code knows this thread.
    void (try (interruptible event) :: IO (Either SomeException ()))
    dispatch dispatcher
  where
    tellDropped dropped = for_ (hookConnection (dispatcherHooks dispatcher)) ($ EventsDropped dropped)

-- | Blocks until no event waits for the hooks, but no longer than so many seconds.
awaitDispatched :: Double -> EventDispatcher -> IO ()
awaitDispatched limit dispatcher = do
  over <- expiry limit
  atomically $ (readTVar (dispatcherRuns dispatcher) >>= check . not) `orElse` over
