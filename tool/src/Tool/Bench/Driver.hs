-- | The measured part of a run: threads that share all but their random draws and, between
-- capabilities, their counters.
-- Commands that end between the end of the warm-up and the end of the window are measured. If the
-- window ends after a number of commands, the warm-up is a run of its own, and the window ends
-- with the last reply.
module Tool.Bench.Driver
  ( Setup (..),
    Drive (..),
    drive,
    senderCount,
  )
where

import Control.Concurrent (myThreadId, threadCapability)
import Control.Concurrent.Async (Async, wait, waitCatch, withAsync, withAsyncOn)
import Control.Concurrent.MVar (MVar, newEmptyMVar, putMVar, readMVar)
import Control.Monad (foldM, when)
import Data.Foldable (fold, toList)
import Data.IORef (newIORef, readIORef, writeIORef)
import Data.IntMap.Strict qualified as IntMap
import Data.Maybe (isJust, isNothing)
import Data.Primitive.SmallArray (indexSmallArray, sizeofSmallArray, smallArrayFromList)
import GHC.Conc (getNumCapabilities)
import Redis (Client)
import System.Timeout (timeout)
import Tool.Bench.Arrivals (Arrivals (..), arrivals, secondsFor)
import Tool.Bench.Counters
import Tool.Bench.Document (Memory)
import Tool.Bench.Driver.Sender
import Tool.Bench.Environment (Usage, clocks, memory, usage, usedSince)
import Tool.Bench.Nodes (Nodes, nodeCount)
import Tool.Bench.Outage (Outages, unlessAway, whenGone)
import Tool.Bench.Progress (Progress, State (..), tick)
import Tool.Bench.Time (Nanos, monotonic, sleepUntil, sleepUntilExactly)
import Tool.Bench.Trust (untilSteady)
import Tool.Bench.Workload (Workload, kinds, newStream)
import Tool.Options.Bench (LoadOptions (..))
import Tool.Options.Load (Plan (..), Sending (..), Warmup (..), planArrivals, planIsOpen)
import Tool.Span (nanosIn, secondsIn)

-- | What a drive needs.
data Setup = Setup
  { setupProgress :: Progress,
    setupClient :: Client,
    setupOutages :: Outages,
    setupWorkload :: Workload,
    setupLoad :: LoadOptions,
    setupNodes :: Nodes,
    -- | The moment at which the load begins, on the monotonic clock. 'Nothing' means at once.
    setupBegin :: Maybe Nanos
  }

data Drive = Drive
  { -- | The counts by slice. The first slice of the window has the number 'driveFirst'.
    driveParts :: Parts,
    driveFirst :: Int,
    -- | The begin of the window, and of its first slice.
    driveFrom :: Nanos,
    driveTo :: Nanos,
    driveSlice :: Nanos,
    -- | Seconds of load before the window.
    driveWarmup :: Double,
    -- | Whether the rate became steady in the warm-up, if the warm-up waited for that.
    driveSettled :: Maybe Bool,
    -- | When the window began, in nanoseconds since 1970.
    driveStarted :: Int,
    -- | What this process used over the window.
    driveUsage :: Usage,
    driveMemory :: Memory
  }

-- | How many threads send, on this number of capabilities: in an open loop one each is enough.
senderCount :: LoadOptions -> Int -> Int
senderCount load capabilities
  | planIsOpen (loadPlan load) = min (loadThreads load) capabilities
  | otherwise = loadThreads load

-- | Runs the load for warm-up and window. Blocks until every command that was sent has its reply or
-- its error. At the end of a window, commands that wait for a server that is away fail
-- ("Tool.Bench.Outage").
drive :: Setup -> IO Drive
drive setup = case planRequests plan of
  Nothing -> stretch setup (planWarmup plan) Nothing
  Just count -> do
    before <- case planWarmup plan of
      WarmupFor 0 -> pure Nothing
      WarmupFor seconds -> Just <$> stretch (lasting seconds) (WarmupFor 0) Nothing
      steady -> Just <$> stretch (lasting 0.001) steady Nothing
    let begin = maybe (setupBegin setup) (const Nothing) before
    found <- stretch setup {setupBegin = begin} (WarmupFor 0) (Just count)
    pure (maybe found (afterWarmup found) before)
  where
    plan = loadPlan (setupLoad setup)
    lasting seconds =
      let calm = plan {planSending = atFirstRate (planSending plan)}
       in setup {setupLoad = (setupLoad setup) {loadDuration = seconds, loadPlan = calm}}
    -- The warm-up of a ramp is at the ramp's first rate.
    atFirstRate = \case
      AtTimes (Ramp from _ _) -> AtTimes (Constant from)
      sending -> sending

-- The results of a window, and of the run of its own that was its warm-up, all of it before the window.
afterWarmup :: Drive -> Drive -> Drive
afterWarmup found warmup =
  found
    { driveParts = IntMap.insertWith (<>) (-1) (fold (driveParts warmup)) (driveParts found),
      driveWarmup = driveWarmup warmup + secondsIn (driveTo warmup - driveFrom warmup),
      driveSettled = driveSettled warmup
    }

-- One warm-up and one window, by time or by count.
stretch :: Setup -> Warmup -> Maybe Int -> IO Drive
stretch setup warmup count = do
  capabilities <- getNumCapabilities
  let threads = senderCount load capabilities
      shape = Shape {shapeKinds = length (kinds workload), shapeNodes = nodeCount nodes}
  -- This takes time, so the load begins after it.
  sides <- traverse (const (newSides shape)) [1 .. min threads capabilities]
  called <- monotonic
  let begin = maybe (called + 1000000) (max called) (setupBegin setup)
      anchor = case warmup of
        WarmupFor seconds -> begin + nanosIn seconds
        WarmupUntilSteady _ -> begin
  window <- newWindow anchor (nanosIn (planSlice plan))
  let endFrom from = when (isNothing count) $ endAt window (from + nanosIn (loadDuration load))
  case warmup of
    -- Before the load begins: a window may be shorter than the turns of the threads.
    WarmupFor _ -> endFrom anchor
    WarmupUntilSteady _ -> pure ()
  barrier <- newEmptyMVar :: IO (MVar ())
  -- Each thread stays on one capability, chosen by its number.
  shared <- smallArrayFromList <$> traverse (\made -> countersOf window made begin) sides
  jobs <- traverse (job window barrier begin threads shared) [0 .. threads - 1]
  let all' = toList shared
      -- Each thread stays on one capability. By default the runtime moves waiting threads to
      -- whichever capability is idle for a moment, which costs throughput where there are many
      -- threads. The result is the time at which the last thread ended.
      alongside (number, run) others =
        withAsyncOn number run (\one -> max <$> others <*> wait one)
  collected <- newIORef IntMap.empty
  let pick =
        readIORef collected >>= \parts -> foldM (flip collect) parts all' >>= writeIORef collected
      soFar = sum <$> traverse answeredSoFar all'
  withAsync (foldr alongside (pure begin) (zip [0 ..] jobs)) $ \running -> do
    sleepUntilExactly begin
    putMVar barrier ()
    (first, steady) <- case warmup of
      WarmupFor _ -> pure (0, Nothing)
      WarmupUntilSteady most -> do
        let counted moment = sleepUntil moment >> (,) <$> monotonic <*> soFar
        (waited, found) <- untilSteady counted quarter begin (begin + nanosIn most)
        pure (sliceOf window waited + 1, Just found)
    let from = sliceStart window first
    endFrom from
    sleepUntil from
    started <- (\(wall, late) -> wall - (late - from)) <$> clocks
    before <- usage
    answeredBefore <- soFar
    limit <- windowEnd window
    -- The threads send no more after the end.
    gone <- whenGone (setupOutages setup) (when (isJust count) (monotonic >>= endAt window))
    watch running (subtract <$> monotonic <*> windowEnd window) $ \now -> do
      pick
      measured <- subtract answeredBefore <$> soFar
      gone measured
      parts <- readIORef collected
      let left = if isNothing count then Just (limit - from) else Nothing
      tick (setupProgress setup) left (stateOf window parts from now measured)
    after <- usage
    ended <- unlessAway (setupOutages setup) soFar running
    mapM_ handOver all'
    used <- memory
    pick
    parts <- readIORef collected
    pure
      Drive
        { driveParts = parts,
          driveFirst = first,
          driveFrom = from,
          driveTo = if isNothing count then limit else ended,
          driveSlice = windowSpan window,
          driveWarmup = secondsIn (from - begin),
          driveSettled = steady,
          driveStarted = started,
          driveUsage = usedSince before after,
          driveMemory = used
        }
  where
    load = setupLoad setup
    plan = loadPlan load
    workload = setupWorkload setup
    nodes = setupNodes setup
    -- What a thread does after the barrier opens. Returns the time at which it ended.
    job window barrier begin threads shared number = do
      stream <- newStream workload number
      let counters = indexSmallArray shared (number `rem` sizeofSmallArray shared)
          planEnd = case (planArrivals plan, count) of
            (Just arriving, Just all') -> begin + nanosIn (secondsFor arriving all')
            _ -> never
          sender = Sender (setupClient setup) workload nodes window planEnd stream counters
      pure $ do
        () <- readMVar barrier
        case planArrivals plan of
          Nothing -> closed (share threads number) (loadBatch load) sender
          Just arriving -> do
            let dues = planned begin (windowAnchor window) arriving threads number
            (capability, _) <- threadCapability =<< myThreadId
            open capability (take (share threads number) dues) sender
        monotonic
    -- One thread's share of the commands; without a number of them, more than it can send.
    share threads number = case count of
      Just all' -> all' `div` threads + (if number < all' `mod` threads then 1 else 0)
      Nothing -> maxBound
    -- The warm-up of a ramp is at the ramp's first rate.
    planned begin anchor arriving threads number = case arriving of
      Ramp from _ _ ->
        takeWhile (< anchor) (map (begin +) (times (Constant from)))
          <> map (anchor +) (times arriving)
      _ -> map (begin +) (times arriving)
      where
        times one = arrivals one (loadSeed load) threads number

-- Calls the action four times a second until the time is over or the threads have ended.
watch :: Async a -> IO Nanos -> (Nanos -> IO ()) -> IO ()
watch running left step = do
  remaining <- left
  when (remaining > 0) $ do
    ended <- timeout (min quarter remaining `div` 1000) (waitCatch running)
    monotonic >>= step
    when (isNothing ended) (watch running left step)

quarter :: Nanos
quarter = 250000000

-- The state that the progress display shows: its latencies are those of the latest complete slice.
stateOf :: Window -> Parts -> Nanos -> Nanos -> Int -> State
stateOf window parts from now measured =
  State
    { statePassed = now - from,
      stateMeasured = measured,
      stateLatest =
        foldMap (foldMap kindService . partKinds . snd) (IntMap.lookupLT (sliceOf window now) parts),
      stateErrors = sum (partErrors <$> parts)
    }
