-- | All callers: how they are started, parked and stopped.
--
-- A caller pauses between two calls, so that the servers have time for each other.
module Soak.Load
  ( Load,
    startLoad,
    loadCallers,
    parked,
    undrained,
    stopLoad,
    ledgers,
  )
where

import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Monad (filterM, forM)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import GHC.Clock (getMonotonicTime)
import Redis.TestKit.Wait (upTo)
import Soak.Audit
import Soak.Broadcasting
import Soak.Caller
import Soak.Deeds
import Soak.Lag
import Soak.Locks
import Soak.Places
import Soak.Streams

-- | Callers at work.
data Load = Load
  { loadCallersOf :: [Caller],
    loadThreads :: [Async ()],
    loadStreams :: [Stream],
    loadGate :: TVar Gate
  }

-- | Starts the callers. For each place and each of its clients: this number of callers that do
-- everything, a pair that passes elements from one to the other, one that broadcasts, three that
-- contend for a lock, and one that adds to a stream with two workers.
startLoad :: Lag -> Int -> Int -> (String -> IO ()) -> [Place] -> IO Load
startLoad lag seed each alarm places = do
  gate <- newTVarIO Open
  (streams, wanted) <- unzip <$> sequence [troop gate place speaker | place <- places, speaker <- placeSpeakers place]
  callers <- sequence [(,) work <$> newCaller lag alarm (seed * 1000 + number) who | (number, (work, who)) <- zip [1 ..] (concat wanted)]
  threads <- forM callers $ \(work, one) -> async (work one)
  pure Load {loadCallersOf = map snd callers, loadThreads = threads, loadStreams = streams, loadGate = gate}
  where
    troop gate place speaker = do
      guarded <- newGuarded (named "k" 0)
      -- The first of a place's slots keeps what it has acknowledged.
      stream <- newStream ("{" <> foldr (const . fst) "t" (placeTags place) <> "}" <> named "x" 0)
      let again once one = looping gate one (once one)
      pure
        ( stream,
          [(again anything, who "" number) | number <- [1 .. each]]
            <> [(again handsOver, who "" (each + 1)), (again takesOver, who "" (each + 1))]
            <> [(broadcasts gate, who "b" 0)]
            <> [(again (contends guarded), who "k" number) | number <- [1 .. 3]]
            <> [(again (adds stream), who "x" 0)]
            <> [(again (works gate stream), who "w" number) | number <- [1, 2]]
        )
      where
        who prefix number = (named prefix number, place, speaker)
        named :: ByteString -> Int -> ByteString
        named prefix number = prefix <> placeName place <> speakerName speaker <> Char8.pack (show number)

-- | The number of callers.
loadCallers :: Load -> Int
loadCallers = length . loadCallersOf

-- | Runs an action while no caller calls. 'Left' lists the callers that do not return within this
-- number of seconds.
parked :: Load -> Double -> IO a -> IO (Either [String] a)
parked load limit action = do
  atomically (writeTVar (loadGate load) Shut)
  arrived <- upTo limit . atomically $ mapM_ (\one -> readTVar (callerParked one) >>= check) (loadCallersOf load)
  result <- case arrived of
    Just () -> Right <$> action
    Nothing -> Left <$> underWay load
  result <$ atomically (writeTVar (loadGate load) Open)

-- | The callers at work, with their current call and its duration.
underWay :: Load -> IO [String]
underWay load = do
  now <- getMonotonicTime
  atWork <- filterM (fmap not . readTVarIO . callerParked) (loadCallersOf load)
  forM atWork $ \one ->
    readIORef (callerUnderWay one) >>= \call -> pure $ case call of
      Just (began, kind) -> Char8.unpack (callerName one) <> ": " <> kind <> " for " <> show (now - began) <> " s"
      Nothing -> Char8.unpack (callerName one) <> ": at work, and no call under way"

-- | Waits until the workers have handled the entries that are acknowledged by now, for at most this
-- number of seconds per stream. Then returns the violations of the streams.
undrained :: Load -> Double -> IO [String]
undrained load limit = concat <$> mapM (stillUnhandled limit) (loadStreams load)

-- | Ends the load. Returns the callers that did not return within this number of seconds.
stopLoad :: Load -> Double -> IO [String]
stopLoad load limit = do
  atomically (writeTVar (loadGate load) Over)
  ended <- upTo limit (mapM waitCatch (loadThreads load))
  case ended of
    Just results -> pure ["a caller's thread died: " <> show problem | Left problem <- results]
    Nothing -> do
      calls <- underWay load
      mapM_ cancel (loadThreads load)
      pure (map ("never returned: " <>) calls)

-- | The ledger of each caller so far.
ledgers :: Load -> IO [Ledger]
ledgers = mapM (readIORef . callerLedger) . loadCallersOf
