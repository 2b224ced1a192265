-- | Tells a user's hooks what happens, on a thread of its own.
--
-- Events come from threads that must not wait: from a connection's reader, from the
-- one that learns a cluster's map, from an attempt to connect. None of them runs
-- foreign code. They leave the event here, which never blocks, and one thread calls the
-- hooks, one event after the other, in the order in which they came. A hook that is
-- slow delays only the events behind it; one that throws loses only its own.
--
-- The queue has an end. Events that find it full are dropped, and the hook for
-- connections is told how many, as soon as it listens again.
--
-- The thread lives while there is something to tell. So nothing has to be stopped.
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
import Redis.Internal.Network.Worker (spawn)

-- | The events of one client that its hooks have not been told of.
data Herald = Herald
  { heraldHooks :: Hooks,
    heraldQueue :: TVar (Seq (IO ())),
    -- | Events that found the queue full, since that was last told.
    heraldDropped :: TVar Int,
    -- | Whether the thread runs.
    heraldSpeaks :: TVar Bool
  }

-- | One with nothing to tell, for these hooks.
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

-- | How many events wait for the hooks at most.
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
      -- Where they would have come: behind all that found room before them.
      Empty | dropped > 0 -> Just (tellDropped dropped) <$ writeTVar (heraldDropped herald) 0
      Empty -> Nothing <$ writeTVar (heraldSpeaks herald) False
  for_ next $ \event -> do
    -- Whatever arrives here is the hook's own: nobody else knows this thread.
    void (try (interruptible event) :: IO (Either SomeException ()))
    speak herald
  where
    tellDropped dropped = for_ (hookConnection (heraldHooks herald)) ($ EventsDropped dropped)

-- | Blocks until every event so far has been told, but no longer than so many seconds.
awaitTold :: Double -> Herald -> IO ()
awaitTold limit herald = do
  over <- registerDelay (ceiling (limit * 1e6))
  atomically $ do
    speaks <- readTVar (heraldSpeaks herald)
    late <- readTVar over
    check (late || not speaks)
