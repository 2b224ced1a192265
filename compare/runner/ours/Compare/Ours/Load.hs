-- | The load of our own peer: callers that are threads, a window of time, and the results within
-- it. @compare/PROTOCOL.md@ describes what all peers have in common.
--
-- This deliberately does not use the driver of the load tool, which has pacing, series over time
-- and other commands that no peer has. It is code that a user of the library would write: threads,
-- 'Redis.tryRun', 'Redis.submit' and 'Redis.tryAwaitReply', with the checks that all peers make.
-- Only so is this row comparable with the others.
module Compare.Ours.Load
  ( Found (..),
    runLoad,
  )
where

import Compare.Ours.Counts
import Compare.Ours.Options
import Compare.Stream
import Control.Concurrent (newEmptyMVar, putMVar, readMVar, threadDelay)
import Control.Concurrent.Async (forConcurrently_, wait, withAsync)
import Control.Monad (forM, when)
import Data.Bits (shiftR, (.&.))
import Data.ByteString (ByteString)
import Data.Primitive.ByteArray
  ( MutableByteArray,
    newAlignedPinnedByteArray,
    newByteArray,
    readByteArray,
    writeByteArray,
  )
import Data.Primitive.SmallArray (SmallMutableArray, newSmallArray, readSmallArray, writeSmallArray)
import GHC.Clock (getMonotonicTimeNSec)
import GHC.Exts (RealWorld)
import GHC.Stats (RTSStats (allocated_bytes), getRTSStats, getRTSStatsEnabled)
import Redis (Client, Pending)
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.Error (Error)
import System.CPUTime (getCPUTime)

-- | The results of a run.
data Found = Found
  { foundSeconds :: Double,
    foundLatencies :: Latencies,
    foundHits :: Int,
    foundMisses :: Int,
    foundWrong :: Int,
    foundErrors :: Int,
    foundAllGet :: Int,
    foundAllSet :: Int,
    foundCpuNanos :: Int,
    -- | Bytes allocated in the window, if the runtime counts them.
    foundAllocated :: Maybe Int
  }
  deriving stock (Eq, Show)

data Load = Load
  { loadClient :: Client,
    loadKeyspace :: Keyspace,
    loadSetsBelow :: Word64,
    loadMisses :: Bool,
    loadBatch :: Int,
    loadCounts :: Counts,
    loadOpens :: Int,
    loadCloses :: Int
  }

-- | Runs the load for warm-up and duration. Blocks until each command that was sent has its reply
-- or its error.
runLoad :: Client -> Options -> IO Found
runLoad client options = do
  counts <- newCounts
  -- Computed here, not while the clock runs.
  let keyspace = newKeyspace kind (optionsKeys options) (optionsKeySize options) (optionsValueSize options)
  _ <- pure $! keyOf keyspace 0
  _ <- pure $! valueOf keyspace 0
  barrier <- newEmptyMVar
  callers <- forM [0 .. optionsCallers options - 1] (newCaller (optionsSeed options))
  withAsync (forConcurrently_ callers (\caller -> readMVar barrier >>= \load -> work load caller)) $ \running -> do
    now <- monotonic
    let opens = now + nanos (optionsWarmup options)
        closes = opens + nanos (optionsDuration options)
    putMVar
      barrier
      Load
        { loadClient = client,
          loadKeyspace = keyspace,
          loadSetsBelow = setsBelow $ case optionsOperation options of
            OnlyGet -> 0
            OnlySet -> 1
            FifthSet -> 5,
          loadMisses = optionsMisses options,
          loadBatch = optionsBatch options,
          loadCounts = counts,
          loadOpens = opens,
          loadCloses = closes
        }
    sleepUntil opens
    before <- snapshot
    sleepUntil closes
    after <- snapshot
    wait running
    let -- This thread wakes a little late at both ends of the window.
        exact :: (Snapshot -> Int) -> Int
        exact field =
          round
            ( fromIntegral (field after - field before) * fromIntegral (closes - opens)
                / fromIntegral (max 1 (snapshotTime after - snapshotTime before)) ::
                Double
            )
    found <- latencies counts
    hits <- read' counts Hits
    misses <- read' counts Misses
    wrong <- read' counts Wrong
    errors <- read' counts Errors
    sent <- forM callers callerSent
    enabled <- getRTSStatsEnabled
    pure
      Found
        { foundSeconds = fromIntegral (closes - opens) / 1e9,
          foundLatencies = found,
          foundHits = hits,
          foundMisses = misses,
          foundWrong = wrong,
          foundErrors = errors,
          foundAllGet = sum (map fst sent),
          foundAllSet = sum (map snd sent),
          foundCpuNanos = exact snapshotCpu,
          foundAllocated = if enabled then Just (exact snapshotAllocated) else Nothing
        }
  where
    kind = if optionsMisses options then AbsentKeys else PresentKeys
    nanos seconds = round (seconds * 1e9)

data Snapshot = Snapshot
  { snapshotTime :: Int,
    snapshotCpu :: Int,
    snapshotAllocated :: Int
  }

snapshot :: IO Snapshot
snapshot = do
  time <- monotonic
  cpu <- getCPUTime
  enabled <- getRTSStatsEnabled
  allocated <- if enabled then fromIntegral . allocated_bytes <$> getRTSStats else pure 0
  pure Snapshot {snapshotTime = time, snapshotCpu = fromInteger (cpu `div` 1000), snapshotAllocated = allocated}

-- The state of a caller's stream, and the numbers of GETs and SETs that it sent. One cache line.
newtype Caller = Caller (MutableByteArray RealWorld)

newCaller :: Word64 -> Int -> IO Caller
newCaller seed number = do
  array <- newAlignedPinnedByteArray 64 64
  writeByteArray array 0 (firstState seed number)
  writeByteArray array 1 (0 :: Int)
  writeByteArray array 2 (0 :: Int)
  pure (Caller array)

callerSent :: Caller -> IO (Int, Int)
callerSent (Caller array) = (,) <$> readByteArray array 1 <*> readByteArray array 2

-- Draws a command, counts it as sent, and passes the number of its key on.
draw :: Load -> Caller -> (Int -> IO a) -> (Int -> IO a) -> IO a
draw load (Caller array) onGet onSet = do
  state <- nextState <$> readByteArray array 0
  writeByteArray array 0 state
  let word = wordOf state
      number = keyNumber (keyspaceKeys (loadKeyspace load)) word
      count :: Int -> IO ()
      count place = readByteArray array place >>= \sent -> writeByteArray array place (sent + 1 :: Int)
  if isSet (loadSetsBelow load) word
    then count 2 >> onSet number
    else count 1 >> onGet number
{-# INLINE draw #-}

work :: Load -> Caller -> IO ()
work load caller
  | loadBatch load == 1 = waiting load caller
  | otherwise = do
    submitted <- newSmallArray (loadBatch load) NothingSubmitted
    starts <- newByteArray (loadBatch load * 8)
    batches load caller submitted starts

-- One command at a time. The time of one reply is the start of the next command.
waiting :: Load -> Caller -> IO ()
waiting load caller = monotonic >>= go
  where
    keyspace = loadKeyspace load
    client = loadClient load
    go start
      | start >= loadCloses load = pure ()
      | otherwise = draw load caller (onGet start) (onSet start)
    onGet start number =
      Redis.tryRun client (Commands.get (keyOf keyspace number)) >>= \case
        Right value -> do
          done <- monotonic
          answeredGet load start done number value
          go done
        Left problem -> onError problem
    onSet start number =
      Redis.tryRun client (Commands.set (keyOf keyspace number) (valueOf keyspace number)) >>= \case
        Right () -> do
          done <- monotonic
          answered load start done
          go done
        Left problem -> onError problem
    onError problem = failed load problem >> monotonic >>= go

-- A command in flight, with the number of its key.
data Submitted
  = NothingSubmitted
  | SubmittedGet {-# UNPACK #-} !Int (Pending (Maybe ByteString))
  | SubmittedSet (Pending ())

-- Submits a batch, then awaits each of its replies.
batches :: Load -> Caller -> SmallMutableArray RealWorld Submitted -> MutableByteArray RealWorld -> IO ()
batches load caller submitted starts = monotonic >>= go
  where
    keyspace = loadKeyspace load
    client = loadClient load
    batch = loadBatch load
    go now
      | now >= loadCloses load = pure ()
      | otherwise = send 0 >> collect 0 >> monotonic >>= go
    send place
      | place == batch = pure ()
      | otherwise = do
        when (place .&. 7 == 0) (monotonic >>= writeByteArray starts (place `shiftR` 3))
        draw
          load
          caller
          ( \number ->
              Redis.submit client (Commands.get (keyOf keyspace number))
                >>= writeSmallArray submitted place . SubmittedGet number
          )
          ( \number ->
              Redis.submit client (Commands.set (keyOf keyspace number) (valueOf keyspace number))
                >>= writeSmallArray submitted place . SubmittedSet
          )
        send (place + 1)
    collect :: Int -> IO ()
    collect place
      | place == batch = pure ()
      | otherwise = do
        start <- readByteArray starts (place `shiftR` 3)
        readSmallArray submitted place >>= \case
          SubmittedGet number onItsWay ->
            Redis.tryAwaitReply onItsWay >>= \case
              Right value -> do
                done <- monotonic
                answeredGet load start done number value
              Left problem -> failed load problem
          SubmittedSet onItsWay ->
            Redis.tryAwaitReply onItsWay >>= \case
              Right () -> monotonic >>= answered load start
              Left problem -> failed load problem
          NothingSubmitted -> pure ()
        collect (place + 1)

answeredGet :: Load -> Int -> Int -> Int -> Maybe ByteString -> IO ()
answeredGet load start done number = \case
  Just value
    | loadMisses load || value /= valueOf (loadKeyspace load) number -> add counts Wrong 1
    | otherwise -> when inside (add counts Hits 1) >> answered load start done
  Nothing -> do
    when inside (add counts Misses 1)
    -- An unwanted miss does not count as an operation.
    when (loadMisses load) (answered load start done)
  where
    counts = loadCounts load
    inside = done >= loadOpens load && done < loadCloses load
{-# INLINE answeredGet #-}

answered :: Load -> Int -> Int -> IO ()
answered load start done =
  when (done >= loadOpens load && done < loadCloses load) (record (loadCounts load) (done - start))
{-# INLINE answered #-}

-- If the server is gone, commands fail faster than it ever answered them: the pause keeps the count
-- of errors from becoming a measure of the processor.
failed :: Load -> Error -> IO ()
failed load _ = add (loadCounts load) Errors 1 >> threadDelay 1000

monotonic :: IO Int
monotonic = fromIntegral <$> getMonotonicTimeNSec

sleepUntil :: Int -> IO ()
sleepUntil time = do
  now <- monotonic
  when (now < time) $ do
    threadDelay ((time - now + 999) `div` 1000)
    sleepUntil time
