-- | What a client reports: events of its connections, spans of its commands, slow commands, and a
-- page of metrics. It prints nothing by itself.
module Observing (main) where

import Control.Exception (displayException)
import Data.ByteString.Builder (toLazyByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.Foldable (for_)
import Data.IORef
import Redis
import Redis.Commands qualified as Redis
import Redis.Duration (inSeconds)
import Redis.Metrics
import Redis.Tracing
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  lines' <- newIORef []
  let note line = atomicModifyIORef' lines' (\earlier -> (line : earlier, ()))
      hooks =
        noHooks
          { hookConnection = Just (note . describe),
            hookCommand = Just (spans note <> slowCommands (milliseconds 50) (\slow -> note ("slow: " <> Char8.unpack (begunText (slowBegun slow)))))
          }
  page <- withClient (setHooks hooks config) $ \client -> do
    run client (Redis.set "example:observed" "1")
    _ <- runPipeline client (traverse (pipelined . Redis.get) ["example:observed", "example:absent"])
    _ <- tryRun client (Redis.lpush "example:observed" (pure "an element"))
    _ <- run client (Redis.blpop (pure "example:queue") (Just (milliseconds 60)))
    _ <- run client (Redis.unlink (pure "example:observed"))
    clientSnapshot client

  readIORef lines' >>= mapM_ putStrLn . reverse
  for_ (snapshotNodes page) $ \node ->
    putStrLn (show (roundTripCount (roundTrips node)) <> " replies on shared connections, half of them within " <> maybe "?" (\time -> show (inSeconds time) <> " s") (roundTripWithin 0.5 (roundTrips node)))
  Lazy.putStr (toLazyByteString (prometheusText page))

-- | Spans as a tracing library uses them: a span begins with its attributes, and ends with others.
spans :: (String -> IO ()) -> CommandHook
spans note begun = do
  note ("begin " <> Char8.unpack (spanName begun) <> concatMap shown (begunAttributes begun))
  pure $ \ended -> note ("end " <> Char8.unpack (spanName begun) <> concatMap shown (endedAttributes ended))
  where
    shown (name, value) =
      " " <> Char8.unpack name <> "=" <> case value of
        TextAttribute words' -> show (Char8.unpack words')
        NumberAttribute number -> show number

describe :: ConnectionEvent -> String
describe = \case
  Connected endpoint took -> "connected to " <> renderEndpoint endpoint <> " within " <> show (inSeconds took) <> " s"
  ConnectAttemptFailed endpoint cause delay ->
    displayException (ConnectionError (ConnectionFailure "" NotSent endpoint cause)) <> ", again in " <> show (inSeconds delay) <> " s"
  Disconnected endpoint cause -> renderEndpoint endpoint <> " is gone: " <> show cause
  CredentialsNotRenewed endpoint cause -> "old credentials at " <> renderEndpoint endpoint <> ": " <> renderCause cause
  NodeAdded endpoint -> "new node " <> renderEndpoint endpoint
  NodeRemoved endpoint -> "node left: " <> renderEndpoint endpoint
  TopologyChanged covered -> "new map of the cluster, " <> show covered <> " slots"
  TopologyRefreshFailed reasons -> "no map of the cluster: " <> show reasons
  NobodyInZone zone -> "no node is known in the zone " <> show zone
  EventsDropped count -> show count <> " events came too fast to be told"
