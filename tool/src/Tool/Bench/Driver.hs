-- | The measured part of a run: many threads, one client, one clock.
--
-- Each worker draws operations from its own stream and counts into its own tally,
-- so that workers share nothing but the client. With a batch of one a worker
-- runs a command and waits; otherwise it submits a batch and then waits for
-- each reply in turn. Latency is taken per command, from before its submit to
-- when this worker has its reply in hand, whatever the batch. Within a batch the
-- clock is read before every eighth submit, so a command's start is early by at
-- most seven submits (about 2 µs) and its latency never too small.
--
-- All workers start behind one barrier. A reply is measured when it comes inside
-- the window between the end of the warm-up and the deadline, so the rate is the
-- number of replies in a known span, and nothing is measured while the load
-- builds up or runs out. This is a closed loop: the latencies are those of this
-- load, not of a schedule that goes on while the server stalls.
module Tool.Bench.Driver
  ( Drive (..),
    drive,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (wait, withAsync, withAsyncOn)
import Control.Concurrent.MVar (MVar, newEmptyMVar, putMVar, readMVar)
import Control.Exception (handle)
import Control.Monad (foldM, replicateM, when, (<$!>))
import Data.Bits (shiftR, (.&.))
import Data.Primitive.ByteArray (MutableByteArray, newByteArray, readByteArray, writeByteArray)
import Data.Primitive.SmallArray
  ( SmallMutableArray,
    newSmallArray,
    readSmallArray,
    writeSmallArray,
  )
import GHC.Exts (RealWorld)
import Redis (Client, Pending)
import Redis qualified
import Redis.Error (Error)
import Tool.Bench.Cpu (Nanos, monotonic, ownCpu)
import Tool.Bench.Document (Memory)
import Tool.Bench.Environment (memory)
import Tool.Bench.Progress (Progress, tick)
import Tool.Bench.Tally
import Tool.Bench.Workload (Drawn (..), Outcome, Stream, Workload, kinds, newStream, next)
import Tool.Options.Bench (LoadOptions (..))

-- | What was found.
data Drive = Drive
  { driveTotals :: Totals,
    -- | The window's length.
    driveSeconds :: Double,
    -- | This process's processor time over the window, in nanoseconds.
    driveCpu :: Double,
    -- | What the load needed.
    driveMemory :: Memory
  }

-- | Runs the load for warm-up and duration. Blocks until every command that was
-- sent has its reply or its error.
drive :: Progress -> Client -> Workload -> LoadOptions -> IO Drive
drive progress client workload load = do
  tallies <- replicateM (loadThreads load) (newTally (length (kinds workload)))
  barrier <- newEmptyMVar
  let work number tally = do
        stream <- newStream workload number
        worker client workload (loadBatch load) barrier stream tally
      -- Each stays on one capability. Left to itself, the runtime moves waiting
      -- threads to whichever capability is idle for a moment: with -N2 and 256
      -- of them that costs a fifth of the throughput (500 against 600 k/s).
      alongside (number, tally) others = withAsyncOn number (work number tally) (\one -> others >> wait one)
      workers = foldr alongside (pure ()) (zip [0 ..] tallies)
  withAsync workers $ \running -> do
    now <- monotonic
    let from = now + nanos (loadWarmup load)
        window = Window {windowFrom = from, windowTo = from + nanos (loadDuration load)}
        soFar = sum <$> traverse measuredSoFar tallies
    putMVar barrier window
    sleepUntil from
    began <- monotonic
    cpuBefore <- ownCpu
    watch progress window soFar
    ended <- monotonic
    cpuAfter <- ownCpu
    wait running
    used <- memory
    found <- foldM (\sofar tally -> (sofar <>) <$!> totals tally) mempty tallies
    let span' = windowTo window - windowFrom window
    pure
      Drive
        { driveTotals = found,
          driveSeconds = fromIntegral span' / 1e9,
          -- This thread wakes a little late at both ends of the window, so the
          -- processor time is scaled to its exact length.
          driveCpu =
            fromIntegral (cpuAfter - cpuBefore) * fromIntegral span'
              / fromIntegral (max 1 (ended - began)),
          driveMemory = used
        }
  where
    nanos seconds = round (seconds * 1e9)

-- Until the window closes, says now and then how far it is.
watch :: Progress -> Window -> IO Int -> IO ()
watch progress window soFar = go
  where
    go = do
      now <- monotonic
      when (now < windowTo window) $ do
        sleepUntil (min (windowTo window) (now + 250000000))
        measured <- soFar
        later <- monotonic
        tick progress (later - windowFrom window) (windowTo window - windowFrom window) measured
        go

sleepUntil :: Nanos -> IO ()
sleepUntil time = do
  now <- monotonic
  when (now < time) $ do
    threadDelay ((time - now + 999) `div` 1000)
    sleepUntil time

worker :: Client -> Workload -> Int -> MVar Window -> Stream -> Tally -> IO ()
worker client workload batch barrier stream tally = do
  window <- readMVar barrier
  if batch == 1
    then waiting client workload window stream tally
    else do
      submitted <- newSmallArray batch NothingSubmitted
      starts <- newByteArray (batch * 8)
      kindsOf <- newByteArray (batch * 8)
      batching client workload batch window stream tally submitted starts kindsOf

-- One operation at a time. The reply of one is the start of the next: nothing
-- but the draw lies between.
waiting :: Client -> Workload -> Window -> Stream -> Tally -> IO ()
waiting client workload window stream tally = monotonic >>= go
  where
    go start
      | start >= windowTo window = pure ()
      | otherwise =
        next workload stream >>= \case
          Drawn kind command -> Redis.tryRun client command >>= settle kind start
          DrawnAlone kind action -> action client >>= settle kind start
    settle kind start = \case
      Right outcome -> do
        done <- monotonic
        answered window tally kind start done outcome
        go done
      Left problem -> do
        failed tally problem
        recover
        monotonic >>= go

-- An operation of a batch.
data Submitted
  = NothingSubmitted
  | -- | On its way.
    InFlight (Pending Outcome)
  | -- | Done while it was this worker's turn: start, end, and what it came to.
    Settled Nanos Nanos (Either Error Outcome)

batching ::
  Client ->
  Workload ->
  Int ->
  Window ->
  Stream ->
  Tally ->
  SmallMutableArray RealWorld Submitted ->
  MutableByteArray RealWorld ->
  MutableByteArray RealWorld ->
  IO ()
batching client workload batch window stream tally submitted starts kindsOf = monotonic >>= go
  where
    go now
      | now >= windowTo window = pure ()
      | otherwise = do
        good <- handle refused (send 0 >> collect 0 True)
        if good then pure () else recover
        monotonic >>= go
    -- A client that will not even take a command says so by throwing.
    refused :: Error -> IO Bool
    refused problem = False <$ failed tally problem
    send place
      | place == batch = pure ()
      | otherwise = do
        when (place .&. 7 == 0) (monotonic >>= writeByteArray starts (place `shiftR` 3))
        next workload stream >>= \case
          Drawn kind command -> do
            writeByteArray kindsOf place kind
            Redis.submit client command >>= writeSmallArray submitted place . InFlight
          DrawnAlone kind action -> do
            writeByteArray kindsOf place kind
            start <- monotonic
            result <- action client
            done <- monotonic
            writeSmallArray submitted place (Settled start done result)
        send (place + 1)
    collect :: Int -> Bool -> IO Bool
    collect place good
      | place == batch = pure good
      | otherwise = do
        kind <- readByteArray kindsOf place
        outcome <-
          readSmallArray submitted place >>= \case
            InFlight pending -> do
              start <- readByteArray starts (place `shiftR` 3)
              Redis.tryWait pending >>= \case
                Right outcome -> do
                  done <- monotonic
                  True <$ answered window tally kind start done outcome
                Left problem -> False <$ failed tally problem
            Settled start done (Right outcome) -> True <$ answered window tally kind start done outcome
            Settled _ _ (Left problem) -> False <$ failed tally problem
            NothingSubmitted -> pure True
        collect (place + 1) (good && outcome)

-- A server that is gone fails commands faster than it ever answered them: a
-- pause keeps the count of errors from becoming a measure of the processor.
recover :: IO ()
recover = threadDelay 1000
