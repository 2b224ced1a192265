-- | A stream, a caller that adds to it, and a group of workers that come and go.
module Soak.Streams
  ( Stream,
    newStream,
    adds,
    works,
    stillUnhandled,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (waitCatchSTM, withAsync)
import Control.Concurrent.STM
import Control.Exception (throwIO)
import Control.Monad (void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IntSet qualified as IntSet
import Redis (Backoff (..), backoffDefaults, milliseconds, seconds)
import Redis.Commands qualified as Redis
import Redis.Patterns.Worker
import Redis.TestKit.Wait (upTo)
import Soak.Book
import Soak.Caller

data Stream = Stream
  { streamKey :: ByteString,
    streamBook :: TVar StreamBook,
    streamDead :: TVar Int
  }

-- | Makes a stream with this key.
newStream :: ByteString -> IO Stream
newStream key = Stream key <$> newTVarIO mempty <*> newTVarIO 0

-- | Adds the next entry.
adds :: Stream -> Caller -> IO ()
adds stream caller = do
  number <- atomically (stateTVar (streamBook stream) nextEntry)
  outcome <- plainly caller (Redis.xadd (streamKey stream) (pure ("number", Char8.pack (show number))))
  atomically (modifyTVar' (streamBook stream) (added number (void' outcome)))
  where
    void' = mapped (const ())

-- | Works for some seconds, or until the gate shuts, and then stops: by itself or, one time in
-- three, because it is interrupted. Some handlers fail.
works :: TVar Gate -> Stream -> Caller -> IO ()
works gate stream caller = do
  over <- dice caller (1, 8) >>= registerDelay . (* 1000000)
  abruptly <- (== 1) <$> dice caller (1, 3)
  let enough = (readTVar gate >>= check . (/= Open)) `orElse` (readTVar over >>= check)
      run settings = runWorker (clientOf caller) settings handle
  if abruptly
    then withAsync (run worker') $ \thread ->
      atomically ((Left <$> enough) `orElse` (Right <$> waitCatchSTM thread)) >>= either pure (either throwIO pure)
    else run worker' {workerUntil = enough}
  where
    worker' =
      (worker (streamKey stream) "soak")
        { workerConcurrency = 3,
          -- No entry shall become a dead letter.
          workerMaxAttempts = 100000,
          workerBackoff = backoffDefaults {backoffFirst = milliseconds 50, backoffCap = milliseconds 500},
          workerClaimAfter = seconds 3,
          workerPollInterval = milliseconds 300,
          workerGrace = seconds 1,
          workerReport = \case
            DeadLettered {} -> atomically (modifyTVar' (streamDead stream) (+ 1))
            _ -> pure ()
        }
    handle entry = do
      fails <- (== 1) <$> dice caller (1, 20)
      dice caller (0, 5) >>= threadDelay . (* 1000)
      when fails (throwIO (userError "a handler that fails"))
      case lookup "number" (entryFields entry) >>= Char8.readInt of
        Just (number, "") -> atomically (modifyTVar' (streamBook stream) (handled number))
        _ -> pure ()

-- | Waits until all entries are handled that are acknowledged by now, for at most this number of
-- seconds. Then returns the violations.
stillUnhandled :: Double -> Stream -> IO [String]
stillUnhandled limit stream = do
  due <- unhandled <$> readTVarIO (streamBook stream)
  void . upTo limit . atomically $ do
    book <- readTVar (streamBook stream)
    check (due `IntSet.isSubsetOf` streamHandled book)
  book <- readTVarIO (streamBook stream)
  dead <- readTVarIO (streamDead stream)
  pure $
    streamHolds (streamKey stream) book {streamAdded = IntSet.intersection due (streamAdded book) <> IntSet.intersection (streamHandled book) (streamAdded book)}
      <> [Char8.unpack (streamKey stream) <> ": " <> show dead <> " dead letters" | dead > 0]
