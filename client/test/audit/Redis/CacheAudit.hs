-- | An audit of cached reads while something breaks.
--
-- A writer for each key writes versions that only grow, and records when each was acknowledged.
-- Readers read the keys through the cache. The audit checks of each read:
--
-- * It is of no version older than one that was acknowledged longer ago than the age that
--   was allowed.
-- * It is of no version older than the same reader has read before, if the servers lose
--   nothing.
--
-- At the end, when the writers have stopped, every key must soon be read in the last version that
-- was acknowledged, or in a later one, whose write may have run.
module Redis.CacheAudit
  ( Watch (..),
    Audit (..),
    auditedReads,
    versionOf,
  )
where

import Control.Concurrent.Async (async, cancel, wait)
import Control.Concurrent.STM
import Control.Exception (finally)
import Control.Monad (forM, forM_, unless, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Cache
import Redis.Commands qualified as Redis
import Redis.TestKit.Wait (eventually, pause, within)

-- | The parameters of an audit.
data Watch = Watch
  { watchKeys :: [ByteString],
    -- | The number of readers of each key.
    watchReaders :: Int,
    -- | The greatest age of a read in seconds.
    watchAge :: Double,
    -- | The seconds between two writes of a key.
    watchPace :: Double,
    -- | Writes a version. Returns whether it is certain that no server will lose it.
    watchWrite :: ByteString -> Int -> IO Bool,
    -- | Whether servers may lose values that were read.
    watchForgets :: Bool
  }

-- | The results of an audit.
data Audit = Audit
  { auditReads :: Int,
    auditFailedReads :: Int,
    -- | The errors of the last few failed reads.
    auditFailures :: [Error],
    auditWrites :: Int,
    auditWrong :: [String]
  }
  deriving stock (Eq, Show)

versionOf :: ByteString -> Maybe Int
versionOf text = fst <$> Char8.readInt text

-- | Audits while an action runs. The action begins when all readers have read.
auditedReads :: Client -> Watch -> IO () -> IO Audit
auditedReads client watch action = do
  over <- newTVarIO False
  written <- newTVarIO (0 :: Int)
  rights <- forM (watchKeys watch) (const (newTVarIO (0 :: Int)))
  failed <- newTVarIO (0 :: Int, [])
  wrong <- newTVarIO []
  -- For each key: the versions and when they were acknowledged, the newest first.
  histories <- forM (watchKeys watch) (const (newTVarIO []))
  let keyed = zip3 (watchKeys watch) histories rights
  writers <- forM keyed (\(key, history, _) -> async (writer over written key history 0 1))
  readers <- forM [one | one <- keyed, _ <- [1 .. watchReaders watch]] $ \(key, history, right) -> do
    newest <- newIORef 0
    async (reader over right failed wrong key history newest)
  flip finally (mapM_ cancel writers *> mapM_ cancel readers) $ do
    let progress = forM_ rights $ \right -> do
          before <- readTVarIO right
          within 20 (atomically (readTVar right >>= check . (>= before + 20)))
    progress
    action
    progress
    atomically (writeTVar over True)
    lasts <- within 20 (mapM wait writers)
    within 20 (mapM_ wait readers)
    -- No outdated value may stay in the cache for ever.
    forM_ (zip (watchKeys watch) lasts) $ \(key, lastVersion) ->
      eventually 10 ("the last version of " <> show key) $
        tryRunCached client (seconds 3600) (Redis.get key) >>= \case
          Right (Just text) -> pure (maybe False (>= lastVersion) (versionOf text) || watchForgets watch)
          _ -> pure False
    (auditFailedReads, auditFailures) <- readTVarIO failed
    auditReads <- sum <$> mapM readTVarIO rights
    auditWrites <- readTVarIO written
    auditWrong <- readTVarIO wrong
    pure Audit {auditReads, auditFailedReads, auditFailures, auditWrites, auditWrong}
  where
    -- Returns the last version that was acknowledged.
    writer over written key history acknowledged version = do
      done <- readTVarIO over
      if done
        then pure acknowledged
        else do
          certain <- watchWrite watch key version
          now <- getMonotonicTime
          when certain . atomically $ do
            modifyTVar' history (take 100000 . ((version, now) :))
            modifyTVar' written (+ 1)
          pause (watchPace watch)
          writer over written key history (if certain then version else acknowledged) (version + 1)

    reader over right failed wrong key history newest = do
      done <- readTVarIO over
      unless done $ do
        began <- getMonotonicTime
        -- The versions that were acknowledged longer ago than the greatest age, plus a tick of the
        -- clock.
        bound <- dropWhile ((> began - watchAge watch - 0.005) . snd) <$> readTVarIO history
        tryRunCached client (seconds (watchAge watch)) (Redis.get key) >>= \case
          Left why -> atomically (modifyTVar' failed (\(count, reasons) -> (count + 1, take 3 (why : reasons)))) *> pause 0.001
          Right found -> do
            before <- readIORef newest
            let version = found >>= versionOf
                complain text = atomically (modifyTVar' wrong (take 20 . (text :)))
            case (version, bound) of
              (Just got, (must, when') : _)
                | got < must -> complain (show key <> ": version " <> show got <> ", although " <> show must <> " was acknowledged " <> show (began - when') <> " s ago")
              _ -> pure ()
            forM_ version $ \got -> do
              when (got < before && not (watchForgets watch)) (complain (show key <> ": version " <> show got <> " after " <> show before))
              writeIORef newest (max got before)
            atomically (modifyTVar' right (+ 1))
        -- A hit waits for nothing, so the pause lets other threads run.
        pause 0.0005
        reader over right failed wrong key history newest
