-- | Servers that cannot be connected to while a load runs, and why. After the end of the window,
-- commands that were not sent to a server that is away fail at once; those that were sent are
-- waited for. A load of a number of commands gets an end when its server stays away.
module Tool.Bench.Outage
  ( Outages,
    withObserved,
    unlessAway,
    whenGone,
    outageNotes,
  )
where

import Control.Concurrent.Async (Async, wait, waitCatch)
import Control.Monad (when)
import Data.IORef (IORef, atomicModifyIORef', newIORef, readIORef, writeIORef)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (isNothing)
import Data.Text (Text)
import Data.Text qualified as Text
import Redis (Client, Endpoint)
import Redis qualified
import Redis.Config qualified as Config
import Redis.Error (ConnectionCause, renderCause)
import System.Timeout (timeout)
import Tool.Bench.Time (monotonic)
import Tool.Connect (Target, Tuning, nodeName, targetConfig)

-- | A client, and what is known of the servers that it could not connect to.
data Outages = Outages
  { outagesClient :: Client,
    outagesSeen :: IORef (Map Endpoint Outage)
  }

data Outage = Outage
  { outageCause :: ConnectionCause,
    -- Whether no attempt has succeeded since.
    outageLasts :: Bool
  }

-- | Runs an action with a client of the whole target whose outages are noted.
withObserved :: Tuning -> Target -> (Outages -> Client -> IO a) -> IO a
withObserved tuning target action = do
  seen <- newIORef Map.empty
  let change = atomicModifyIORef' seen . (flip (,) () .)
      hooks =
        Config.noHooks
          { Config.hookConnection = Just $ \case
              Config.ConnectAttemptFailed node cause _ -> change (Map.insert node (Outage cause True))
              Config.Connected node _ -> change (Map.adjust (\one -> one {outageLasts = False}) node)
              _ -> pure ()
          }
  Redis.withClient (Config.setHooks hooks (targetConfig tuning target)) $ \client ->
    action Outages {outagesClient = client, outagesSeen = seen} client

-- | Waits for threads that send no more new commands. Closes the client when a server is away and
-- the number of replies, which the action returns, does not grow any more.
unlessAway :: Outages -> IO Int -> Async a -> IO a
unlessAway outages replies running = replies >>= go
  where
    go before = do
      ended <- timeout 50000 (waitCatch running)
      now <- replies
      away <- isAway outages
      if isNothing ended && not (away && now == before)
        then go now
        else do
          -- This waits for the replies to commands that were sent.
          when (isNothing ended) (Redis.closeClient (outagesClient outages))
          wait running

-- | A step to call now and then with the number of replies: runs the action when a server is away and
-- no reply has come for as long as a command waits for one, five seconds. A load without an end of its
-- own ends then: each of its other commands would wait as long.
whenGone :: Outages -> IO () -> IO (Int -> IO ())
whenGone outages action = do
  now <- monotonic
  latest <- newIORef (0, now)
  pure $ \replies -> do
    moment <- monotonic
    (before, since) <- readIORef latest
    away <- isAway outages
    if away && replies == before
      then when (moment - since >= 5000000000) action
      else writeIORef latest (replies, moment)

isAway :: Outages -> IO Bool
isAway outages = any outageLasts <$> readIORef (outagesSeen outages)

-- | For each server that could not be connected to, the last reason.
outageNotes :: Outages -> IO [Text]
outageNotes outages = map note . Map.toList <$> readIORef (outagesSeen outages)
  where
    note (node, outage) =
      (if outageLasts outage then "no connection to " else "for a while no connection to ")
        <> nodeName node
        <> ": "
        <> Text.pack (renderCause (outageCause outage))
