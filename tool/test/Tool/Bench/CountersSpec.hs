module Tool.Bench.CountersSpec (spec) where

import Control.Concurrent.Async (forConcurrently_)
import Control.Monad (foldM, forM_, when)
import Data.Foldable (fold)
import Data.IORef (atomicModifyIORef', newIORef)
import Data.IntMap.Strict qualified as IntMap
import Data.Map.Strict qualified as Map
import GHC.Conc (setNumCapabilities)
import Redis.Error (Error (ClientClosed))
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck hiding (collect)
import Tool.Bench.Counters
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Nodes
import Tool.Bench.Progress (sparkline)
import Tool.Bench.Time (Nanos)
import Tool.Bench.Workload.Dataset (Outcome (..))

-- | Counters with memory of their own.
newCounters :: Window -> Shape -> Nanos -> IO Counters
newCounters window shape now = newSides shape >>= \sides -> countersOf window sides now

-- | Counts in slices of 100 that begin at 1000; the window ends at 1250.
counted :: (Counters -> IO ()) -> IO Parts
counted count = do
  window <- newWindow 1000 100
  endAt window 1250
  counters <- newCounters window Shape {shapeKinds = 2, shapeNodes = 2} 900
  count counters
  handOver counters
  collect counters IntMap.empty

spec :: Spec
spec = describe "counters" $ do
  it "puts each reply into the slice in which it came" $ do
    parts <- counted $ \counters -> do
      answered counters (Sent 0 (-1) 930) 950 Hit
      answered counters (Sent 0 (-1) 990) 1000 Miss
      answered counters (Sent 1 (-1) 1000) 1099 Done
      answered counters (Sent 0 (-1) 1050) 1100 Hit
      answered counters (Sent 0 (-1) 1050) 1249 Hit
      answered counters (Sent 0 (-1) 1050) 1250 Hit
      answered counters (Sent 0 (-1) 1050) 9999 Hit
    IntMap.map partOps parts `shouldBe` IntMap.fromList [(-1, 1), (0, 2), (1, 1), (2, 1), (afterwards, 2)]
    fmap (fmap kindMisses . partKinds) (IntMap.lookup 0 parts) `shouldBe` Just (IntMap.fromList [(0, 1), (1, 0)])

  prop "loses nothing, whatever the slices" $ \(gaps :: [NonNegative Int]) -> ioProperty $ do
    let times = drop 1 (scanl (+) 900 (map getNonNegative gaps))
    parts <- counted $ \counters -> forM_ times $ \time -> answered counters (Sent (time `mod` 2) (-1) (time - 7)) time Hit
    let whole = fold parts
    pure $
      partOps whole === length times
        .&&. sum (fmap kindHits (partKinds whole)) === length times
        .&&. foldMap kindService (partKinds whole) === Histogram.fromValues (map (const 7) times)

  it "loses nothing that threads count at the same time" $ do
    parts <- counted $ \counters ->
      onTwoCores . forConcurrently_ [0 .. 7 :: Int] $ \thread -> forM_ [0 .. 9999] $ \count' -> do
        -- The times pass the ends of several slices.
        let time = 950 + count' `div` 25
        answered counters (Sent 0 (thread `mod` 2) (time - 3)) time Hit
    let whole = fold parts
    partOps whole `shouldBe` 80000
    sum (fmap kindHits (partKinds whole)) `shouldBe` 80000
    sum (fmap Histogram.count (partNodes whole)) `shouldBe` 80000
    foldMap kindService (partKinds whole) `shouldBe` Histogram.fromValues (replicate 80000 3)

  forM_ [("a closed", False), ("an open", True)] $ \(loop, open) -> it ("has all counts of a command of " <> loop <> " loop in one slice, whenever threads are stopped and others go on") $ do
    -- The clock advances with each command, so it does not matter how busy the machine is. A slice
    -- is much shorter than a thread's turn, so a thread that is stopped in the middle of a command
    -- finds the others some slices further on.
    clock <- newIORef (0 :: Int)
    let slice = 1000
        end = 100 * slice
    window <- newWindow 0 slice
    endAt window end
    counters <- newCounters window Shape {shapeKinds = 1, shapeNodes = 5} 0
    forConcurrently_ [0 .. 7 :: Int] $ \thread -> do
      let go count' = do
            now <- atomicModifyIORef' clock (\time -> (time + 1, time))
            when (now < end) $ do
              let node = (thread + count') `mod` 5
              if open
                then answeredWithin counters (now - 5) (Sent 0 node (now - 3)) now Hit
                else answered counters (Sent 0 node (now - 3)) now Hit
              go (count' + 1)
      go (0 :: Int)
    handOver counters
    parts <- collect counters IntMap.empty
    IntMap.size parts `shouldSatisfy` (> 1)
    partOps (fold parts) `shouldBe` end
    IntMap.map (sum . fmap Histogram.count . partNodes) parts `shouldBe` IntMap.map partOps parts
    IntMap.map (sum . fmap kindHits . partKinds) parts `shouldBe` IntMap.map partOps parts
    when open $ IntMap.map (sum . fmap (Histogram.count . kindResponse) . partKinds) parts `shouldBe` IntMap.map partOps parts

  it "has all counts of a command in one slice, though a thread is stopped in the middle of it for several" $ do
    window <- newWindow 1000 100
    counters <- newCounters window Shape {shapeKinds = 1, shapeNodes = 2} 1000
    let others times = forM_ times $ \time -> answered counters (Sent 0 1 (time - 3)) time Hit
    counting counters 1010 $ \side -> do
      served side (Sent 0 0 1000) 1010
      -- Past the end of its slice, and past the time at which the slice is handed over.
      others [1090, 1110 .. 1590]
      looked side 0 True
    others [1610, 1630 .. 2590]
    handOver counters
    parts <- collect counters IntMap.empty
    IntMap.map (sum . fmap kindHits . partKinds) parts `shouldBe` IntMap.map partOps parts
    partOps (fold parts) `shouldBe` 1 + 26 + 50
    -- No thread is stopped any more, so each slice has its own counts.
    [partOps part | (slice, part) <- IntMap.toAscList parts, slice >= 7] `shouldBe` replicate 9 5

  it "keeps out of the window what was answered after it, though a change of slices is delayed" $ do
    window <- newWindow 1000 100
    endAt window 1250
    counters <- newCounters window Shape {shapeKinds = 1, shapeNodes = 0} 1000
    counting counters 1010 $ \side -> do
      served side (Sent 0 (-1) 1000) 1010
      answered counters (Sent 0 (-1) 1100) 1110 Done
      -- The old side cannot be handed over while this thread counts there.
      answered counters (Sent 0 (-1) 1200) 9999 Done
    handOver counters
    parts <- collect counters IntMap.empty
    IntMap.map partOps parts `shouldBe` IntMap.fromList [(0, 1), (1, 1), (afterwards, 1)]

  it "adds up with those of other threads" $ do
    window <- newWindow 0 100
    counters <- mapM (const (newCounters window Shape {shapeKinds = 1, shapeNodes = 0} 0)) [1 .. 3 :: Int]
    forM_ counters $ \one -> answered one (Sent 0 (-1) 10) 20 Done >> handOver one
    parts <- foldM (flip collect) IntMap.empty counters
    IntMap.map partOps parts `shouldBe` IntMap.fromList [(0, 3)]
    sum <$> mapM answeredSoFar counters `shouldReturn` 3

  it "counts what failed, and wrong replies, as errors and not as answered" $ do
    parts <- counted $ \counters -> do
      failed counters (Sent 1 0 1000) 1010 ClientClosed
      failed counters (Sent 0 (-1) 1000) 1010 ClientClosed
      answered counters (Sent 1 1 1000) 1020 (Wrong "x")
      answered counters (Sent 1 1 1000) 1020 (Found "x")
    partOps (fold parts) `shouldBe` 0
    fmap kindErrors (IntMap.lookup 1 (partKinds (fold parts))) `shouldBe` Just (Map.fromList [("ServerAway", 1), ("NotCompared", 1), ("WrongReply", 1)])
    partNodeErrors (fold parts) `shouldBe` IntMap.fromList [(0, Map.singleton "ServerAway" 1), (1, Map.fromList [("NotCompared", 1), ("WrongReply", 1)])]

  it "keeps service and response time, and lateness, apart" $ do
    parts <- counted $ \counters -> do
      lagged counters never 1000 1030
      answeredWithin counters 1000 (Sent 0 1 1030) 1050 Done
    let whole = fold parts
    fmap kindService (IntMap.lookup 0 (partKinds whole)) `shouldBe` Just (Histogram.fromValues [20])
    fmap kindResponse (IntMap.lookup 0 (partKinds whole)) `shouldBe` Just (Histogram.fromValues [50])
    partSchedule whole `shouldBe` Histogram.fromValues [30]
    partNodes whole `shouldBe` IntMap.fromList [(1, Histogram.fromValues [20])]

  it "counts what was sent after the end of the plan as sent after the window" $ do
    parts <- counted $ \counters -> lagged counters 1100 1000 1100 >> lagged counters 1100 1000 1101
    IntMap.map partSchedule parts `shouldBe` IntMap.fromList [(1, Histogram.fromValues [100]), (afterwards, Histogram.fromValues [101])]

  it "tells nodes apart only where there are several" $ do
    nodeNames (nodesOf [("a", [(0, 16383)])]) `shouldBe` []
    nodeNames (nodesOf [("a", [(0, 99)]), ("b", [(100, 16383)])]) `shouldBe` ["a", "b"]

  it "is shown as a curve" $
    sparkline [0, 4, 8] `shouldBe` "▁▅█"

-- On one capability, threads hardly ever meet within an addition. The process keeps both afterwards:
-- after a return to one, GHC 9.0's runtime sometimes leaves all threads waiting until a timer wakes
-- it (docs/lab/2026-11-27-standstill.md).
onTwoCores :: IO a -> IO a
onTwoCores action = setNumCapabilities 2 >> action
