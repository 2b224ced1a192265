module Redis.Patterns.RateLimitSpec (spec) where

import Control.Concurrent.Async
import Control.Monad (forM, forM_, replicateM)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.Int (Int64)
import Data.List (mapAccumL, sort)
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Commands qualified as Redis
import Redis.Duration
import Redis.Patterns.RateLimit
import Redis.Patterns.Surroundings
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (freeze, thaw)
import Redis.TestKit.Wait
import Test.Hspec
import Test.QuickCheck

spec :: Spec
spec = do
  describe "on any history" . aroundAll withRedisAndClient' $ do
    it "spaces as a model of GCRA does" $ \(client, fresh) ->
      property $ \(History steps) -> forAll ((,) <$> choose (1, 5) <*> choose (1, 7)) $ \(burst, count) -> ioProperty $ do
        key <- fresh
        let rule = gcraWithBurst burst count (seconds 100)
        answers <- runPipeline client (traverse (\(now, cost) -> pipelined (attemptAt (microseconds now) rule key cost)) steps)
        pure (answers === snd (mapAccumL (spaced burst ((100000000 + count - 1) `div` count)) 0 steps))

    it "looks back as a model of a window does" $ \(client, fresh) ->
      property $ \(History steps) -> forAll (choose (1, 5)) $ \count -> ioProperty $ do
        key <- fresh
        answers <- runPipeline client (traverse (\(now, cost) -> pipelined (attemptAt (microseconds now) (slidingWindow count (seconds 100)) key cost)) steps)
        pure (answers === snd (mapAccumL (looking count 100000000) [] steps))

    it "never allows more than the window's limit in any window" $ \(client, fresh) ->
      property $ \(History steps) -> forAll (choose (1, 5)) $ \count -> ioProperty $ do
        key <- fresh
        answers <- runPipeline client (traverse (\(now, cost) -> pipelined (attemptAt (microseconds now) (slidingWindow count (seconds 100)) key cost)) steps)
        let taken = concat [replicate (fromIntegral cost) now | ((now, cost), answer) <- zip steps answers, allowed answer]
        pure (conjoin [counterexample (show start) (length [() | at <- taken, at > start - 100000000, at <= start] <= fromIntegral count) | start <- taken])

    it "never allows more than the window's limit in any window, though the clock is set back by less than a period again and again" $ \(client, fresh) ->
      withMaxSuccess 1000 . property $ \(Unsteady steps) -> forAll (choose (1, 5)) $ \count -> ioProperty $ do
        key <- fresh
        answers <- runPipeline client (traverse (\(now, cost) -> pipelined (attemptAt (microseconds now) (slidingWindow count (seconds 100)) key cost)) steps)
        let taken = [(now, cost) | ((now, cost), answer) <- zip steps answers, allowed answer]
            within' start = sum [cost | (at, cost) <- taken, at > start - 100000000, at <= start]
        pure (conjoin [counterexample (show taken) (within' start <= count) | (start, _) <- taken])

    it "names what it has allowed as nothing before, though the clock stands still" $ \(client, fresh) -> do
      key <- fresh
      let at now cost = allowed <$> run client (attemptAt (seconds now) (slidingWindow 3 (seconds 100)) key cost)
      sequence [at 1000 1, at 1050 2, at 1100 3] `shouldReturn` [True, True, False]
      traverse (at 1040) [1, 1, 1] `shouldReturn` [False, False, False]
      sequence [at 1150 2, at 1150 1, at 1150 1] `shouldReturn` [True, True, False]

  forM_ [("spaced", gcra 50 (seconds 1)), ("looking back", slidingWindow 50 (seconds 1))] $ \(how, rule) -> do
    it ("lets no more through than its bound, however many ask together, " <> how) $
      withRedisAndClient $ \_ client -> do
        began <- getMonotonicTime
        -- Each caller asks until so many requests were allowed that the rate decides, and not the
        -- burst.
        allowedSoFar <- newIORef (0 :: Int)
        forConcurrently_ [1 .. 16 :: Int] $ \_ ->
          let go = do
                answer <- run client (attempt rule "shared" 1)
                taken <- atomicModifyIORef' allowedSoFar (\n -> let m = if allowed answer then n + 1 else n in (m, m))
                if taken < 120 then go else pure ()
           in go
        took <- subtract began <$> getMonotonicTime
        taken <- fromIntegral <$> readIORef allowedSoFar
        -- The burst, the rate since then, and the requests on their way when it was enough.
        taken `shouldSatisfy` (<= 50 + 50 * (took + 1) + 16)
        took `shouldSatisfy` (>= 1)

    it ("is as good in a cluster, " <> how) $
      inCluster $ \client -> do
        answers <- forConcurrently [1 .. 80 :: Int] $ \_ -> run client (attempt (slower rule) "{one}key" 1)
        length (filter allowed answers) `shouldBe` 50

    it ("counts a request whose reply was lost at most twice, and allows no more, " <> how) $
      behindProxy $ \_ proxy client -> do
        _ <- run client (attempt (slower rule) "other" 1)
        answers <- forM [1 .. 60 :: Int] $ \turn -> do
          if even turn then Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Reset else pure ()
          run client (attempt (slower rule) "cut" 1)
        let served = length (filter allowed answers)
        served `shouldSatisfy` (<= 50)
        -- Every second request counted twice.
        served `shouldSatisfy` (>= 33)

    it ("takes nothing when it only looks, and nothing when it refuses, " <> how) $
      withRedisAndClient $ \_ client -> do
        let look = run client (attempt (slower rule) "look" 0)
        remaining <$> look `shouldReturn` 50
        run client (Redis.exists (pure "look")) `shouldReturn` 0
        _ <- run client (attempt (slower rule) "look" 49)
        refused <- run client (attempt (slower rule) "look" 2)
        (allowed refused, remaining refused) `shouldBe` (False, 1)
        never <- run client (attempt (slower rule) "look" 51)
        (allowed never, retryAfter never) `shouldBe` (False, Nothing)
        remaining <$> look `shouldReturn` 1
        run client (forget "look") `shouldReturn` True
        remaining <$> look `shouldReturn` 50

    it ("says when to come back, and is right, " <> how) $
      withRedisAndClient $ \_ client -> do
        let at now = run client (attemptAt (seconds now) (slower rule) "back" 50)
        first <- at 1000
        allowed first `shouldBe` True
        refused <- at 1001
        wait' <- maybe (failure "never") pure (retryAfter refused)
        allowed <$> at (1001 + inSeconds wait' - 0.000001) `shouldReturn` False
        allowed <$> at (1001 + inSeconds wait') `shouldReturn` True

  it "takes the greatest numbers as limits" $
    withRedisAndClient $ \_ client ->
      forM_ [(how <> Char8.pack (show period), rule maxBound period) | (how, rule) <- [("spaced", gcra), ("looking", slidingWindow)], period <- [hours 1, microseconds maxBound]] $ \(key, rule) -> do
        answer <- run client (attempt rule key 1)
        (allowed answer, remaining answer > 1000000) `shouldBe` (True, True)

  it "keeps nobody waiting for longer than a burst, or twice a window, when a clock is set back" $
    withRedisAndClient $ \_ client -> do
      let at now rule = run client (attemptAt (seconds now) rule "clock" 3)
      allowed <$> at 100000 (gcra 3 (seconds 60)) `shouldReturn` True
      retryAfter <$> at 100 (gcra 3 (seconds 60)) `shouldReturn` Just (seconds 60)
      allowed <$> at 159 (gcra 3 (seconds 60)) `shouldReturn` False
      allowed <$> at 160 (gcra 3 (seconds 60)) `shouldReturn` True
      _ <- run client (forget "clock")
      allowed <$> at 100000 (slidingWindow 3 (seconds 60)) `shouldReturn` True
      retryAfter <$> at 99970 (slidingWindow 3 (seconds 60)) `shouldReturn` Just (seconds 90)
      allowed <$> at 100059 (slidingWindow 3 (seconds 60)) `shouldReturn` False
      allowed <$> at 100060 (slidingWindow 3 (seconds 60)) `shouldReturn` True
      allowed <$> at 100 (slidingWindow 3 (seconds 60)) `shouldReturn` True

  it "is an error in doubt when the server is silent" $
    behindProxy $ \server _ client -> do
      _ <- run client (attempt (gcra 5 (seconds 60)) "silent" 1)
      freeze server
      answer <- tryRun client (timeLimit (milliseconds 200) (attempt (gcra 5 (seconds 60)) "silent" 1))
      either (Just . errorDelivery) (const Nothing) answer `shouldBe` Just MaybeExecuted
      thaw server
      -- The request that was sent counts when the server goes on.
      eventuallyReturns 10 3 (remaining <$> run client (attempt (gcra 5 (seconds 60)) "silent" 0))
  where
    withRedisAndClient' test = withRedisAndClient $ \_ client -> do
      count <- newIORef (0 :: Int)
      test (client, (\n -> "key:" <> Char8.pack (show n)) <$> atomicModifyIORef' count (\n -> (n + 1, n)))
    -- So slow that nothing becomes available during a test.
    slower rule = if rule == gcra 50 (seconds 1) then gcra 50 (hours 10) else slidingWindow 50 (hours 10)

-- | Times that never decrease, in microseconds, each with a cost.
newtype History = History [(Int64, Int64)]
  deriving stock (Show)

instance Arbitrary History where
  arbitrary = do
    size <- choose (1, 30)
    times <- sort <$> replicateM size (choose (1000000000000, 1000400000000))
    costs <- replicateM size (frequency [(6, pure 1), (1, pure 0), (2, choose (2, 6))])
    pure (History (zip times costs))
  shrink (History steps) = map History (filter (not . null) (shrinkList (const []) steps))

-- | Times in microseconds, each with a cost. Each may be earlier than the one before, but by less than
-- 100 s than any; several come again and again.
newtype Unsteady = Unsteady [(Int64, Int64)]
  deriving stock (Show)

instance Arbitrary Unsteady where
  arbitrary = do
    size <- choose (1, 60)
    steps <- replicateM size ((,) <$> elements [-99, -60, -50, -10, -1, 0, 0, 1, 10, 40, 50, 60, 99, 100] <*> frequency [(6, pure 1), (1, pure 0), (2, choose (2, 4))])
    pure (Unsteady (unsteady (1000, 1000) steps))
    where
      unsteady (_, _) [] = []
      unsteady (latest, now) ((by, cost) : others) =
        let next = max (latest - 99) (now + by)
         in (next * 1000000, cost) : unsteady (max latest next, next) others
  shrink (Unsteady steps) = map Unsteady (filter setBack (shrinkList (const []) steps))
    where
      setBack times = and [at > maximum (map fst (take n times)) - 100000000 | (n, (at, _)) <- zip [1 ..] times]

-- | GCRA by its definition: a request of some cost is allowed if, with it, the time at which all
-- requests are spaced out is no more than the burst ahead.
spaced :: Int64 -> Int64 -> Int64 -> (Int64, Int64) -> (Int64, Allowance)
spaced burst interval kept (now, cost)
  | after' - now <= burst * interval = (if cost > 0 then after' else kept, answer True (Just mempty) after')
  | otherwise = (kept, answer False (if cost > burst then Nothing else Just (microseconds (after' - now - burst * interval))) begun)
  where
    begun = max now kept
    after' = begun + cost * interval
    answer taken wait' theoretical =
      Allowance
        { allowed = taken,
          remaining = (burst * interval - (theoretical - now)) `div` interval,
          retryAfter = wait',
          resetAfter = microseconds (theoretical - now)
        }

-- | The sliding window by its definition. It keeps the times of the allowed requests, the oldest
-- first.
looking :: Int64 -> Int64 -> [Int64] -> (Int64, Int64) -> ([Int64], Allowance)
looking limit period kept (now, cost)
  | sum' <= limit = (inside <> replicate (fromIntegral cost) now, Allowance True (limit - sum') (Just mempty) (reset (inside <> replicate (fromIntegral cost) now)))
  | otherwise = (inside, Allowance False (limit - fromIntegral (length inside)) wait' (reset inside))
  where
    inside = filter (> now - period) kept
    sum' = fromIntegral (length inside) + cost
    reset = \case
      [] -> mempty
      times -> microseconds (maximum times + period - now)
    wait'
      | cost > limit = Nothing
      | otherwise = case drop (fromIntegral (sum' - limit - 1)) inside of
        leaves : _ -> Just (microseconds (leaves + period - now))
        [] -> Nothing
