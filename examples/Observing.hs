-- | Hooks: what the library has to tell, for logs and metrics. It prints
-- nothing by itself.
module Observing (main) where

import Control.Exception (displayException)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.Map.Strict qualified as Map
import Redis
import Redis.Commands qualified as Redis
import Redis.Duration (inSeconds)
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  events <- newIORef []
  counts <- newIORef Map.empty
  let hooks =
        noHooks
          { hookConnection = Just $ \event -> atomicModifyIORef' events (\earlier -> (event : earlier, ())),
            hookCommand = Just $ \timing -> atomicModifyIORef' counts (\known -> (note timing known, ()))
          }
  withClient (setHooks hooks config) $ \client -> do
    run client (Redis.set "example:observed" "1")
    _ <- runPipeline client (traverse (pipelined . Redis.get) ["example:observed", "example:absent"])
    _ <- run client (Redis.unlink (pure "example:observed"))
    pure ()

  readIORef events >>= mapM_ (putStrLn . describe) . reverse
  readIORef counts >>= mapM_ putStrLn . Map.foldrWithKey line []
  where
    note CommandTiming {timingCommand, timingNanos, timingResult} =
      Map.insertWith add timingCommand (1 :: Int, timingNanos, either (const 1) (const 0) timingResult)
    add (count, nanos, failures) (count', nanos', failures') = (count + count', nanos + nanos', failures + failures' :: Int)
    line name (count, nanos, failures) rest =
      (Char8.unpack name <> ": " <> show count <> ", " <> show failures <> " failed, " <> show (nanos `quot` 1000) <> " us in all") : rest

describe :: ConnectionEvent -> String
describe = \case
  Connected endpoint took -> "connected to " <> renderEndpoint endpoint <> " within " <> show (inSeconds took) <> " s"
  ConnectAttemptFailed endpoint cause delay ->
    displayException (ConnectionError (ConnectionFailure NotSent endpoint cause)) <> ", again in " <> show (inSeconds delay) <> " s"
  Disconnected endpoint cause -> renderEndpoint endpoint <> " is gone: " <> show cause
  CredentialsNotRenewed endpoint cause -> "old credentials at " <> renderEndpoint endpoint <> ": " <> renderCause cause
  NodeAdded endpoint -> "new node " <> renderEndpoint endpoint
  NodeRemoved endpoint -> "node left: " <> renderEndpoint endpoint
  TopologyChanged covered -> "new map of the cluster, " <> show covered <> " slots"
  TopologyRefreshFailed reasons -> "no map of the cluster: " <> show reasons
  EventsDropped count -> show count <> " events came too fast to be told"
