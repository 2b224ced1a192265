-- | A worker of a stream, which stops when its work is done.
module Worker (main) where

import Control.Concurrent.STM
import Control.Monad (unless)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.Foldable (for_)
import Data.List (sort)
import Redis
import Redis.Commands qualified as Redis
import Redis.Patterns.Worker
import Redis.Transaction
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    _ <- run client (Redis.del ("example:mail" :| ["{example:mail}:dead"]))
    for_ ["ada", "grace", "nobody"] $ \to -> run client (Redis.xadd "example:mail" (("to", to) :| []))

    sent <- newTVarIO []
    dead <- newTVarIO (0 :: Int)
    let settings =
          (worker "example:mail" "senders")
            { workerConcurrency = 8,
              -- Two tries with a short rest, so that the example does not take long.
              workerMaxAttempts = 2,
              workerBackoff = backoffDefaults {backoffFirst = milliseconds 20},
              workerPollInterval = milliseconds 20,
              -- A service would stop on a signal.
              workerUntil = do
                done <- length <$> readTVar sent
                failed <- readTVar dead
                check (done + failed == 3),
              workerReport = \case
                DeadLettered {} -> atomically (modifyTVar' dead (+ 1))
                _ -> pure ()
            }
    runWorker client settings $ \entry -> do
      to <- send entry
      atomically (modifyTVar' sent (to :))

    readTVarIO sent >>= print . sort
    letters <- run client (Redis.xrange "{example:mail}:dead" Redis.LowestId Redis.HighestId)
    for_ letters $ \letter ->
      print [lookup name (Redis.streamEntryFields letter) | name <- ["to", "dead:reason", "dead:deliveries"]]
    for_ letters $ \letter -> revive client "{example:mail}:dead" "example:mail" letter
    run client (Redis.xlen "{example:mail}:dead") >>= print

-- REVIVE begins
-- Adds a dead letter to its stream again, as it was, and deletes it.
revive :: Client -> ByteString -> ByteString -> Redis.StreamEntry -> IO ()
revive client letters stream letter =
  for_ (nonEmpty [field | field <- Redis.streamEntryFields letter, not ("dead:" `ByteString.isPrefixOf` fst field)]) $ \fields ->
    runTransaction client $
      queued (Redis.xadd stream fields) *> queued (Redis.xdel letters (pure (Redis.streamEntryId letter)))

-- REVIVE ends

-- | Sends a mail. It may run again for the same entry, so a real handler would check whether the
-- mail was sent already.
send :: Entry -> IO ByteString
send entry = do
  to <- maybe (fail "to whom?") pure (lookup "to" (entryFields entry))
  unless (to /= "nobody") (fail "no such address")
  pure to
