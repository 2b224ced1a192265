-- | The queue of callers that wait for room, by itself: which callers it calls, and what that
-- costs.
module AdmissionQueueSpec (spec) where

import Control.Concurrent
import Control.Exception (bracket, evaluate)
import Control.Monad (forM, forM_, replicateM, void)
import Data.IORef
import Data.Int (Int64)
import GHC.Conc (ThreadStatus (..), threadStatus)
import Redis.Internal.Network.Outgoing
import System.Mem (getAllocationCounter, setAllocationCounter)
import Test.Hspec hiding (after, before)

spec :: Spec
spec = describe "the queue for room" $ do
  it "has room for nobody that was promised to another, who has not come in yet" $
    forM_ [(\queue -> joinQueue queue 2 1 maxBound, \commands _ more _ -> commands + more <= 3), (\queue -> joinQueue queue 1 200 maxBound, \_ bytes _ more -> bytes + more <= 300)] $ \(join, fits) -> do
      queue <- newAdmissionQueue
      waiters <- replicateM 3 (join queue)
      admitWhile queue fits
      admitWhile queue fits
      called waiters `shouldReturn` [Just Admitted, Nothing, Nothing]
      waitingForCapacity queue `shouldReturn` 3
      -- Once the caller has taken its room, the room is no longer promised, and the caller counts
      -- it itself.
      mapM_ (takePromised queue) (take 1 waiters)
      admitWhile queue fits
      called (drop 1 waiters) `shouldReturn` [Just Admitted, Nothing]
      mapM_ (leaveQueue queue) (drop 1 waiters)
      waitingForCapacity queue `shouldReturn` 0

  it "has what was promised to somebody who leaves for the next one" $ do
    queue <- newAdmissionQueue
    waiters <- replicateM 2 (joinQueue queue 1 1 maxBound)
    admitWhile queue one
    mapM_ (leaveQueue queue) (take 1 waiters)
    -- Leaving a second time changes nothing.
    mapM_ (leaveQueue queue) (take 1 waiters)
    waitingForCapacity queue `shouldReturn` 1
    admitWhile queue one
    called (drop 1 waiters) `shouldReturn` [Just Admitted]

  it "calls nobody past one that there is no room for" $ do
    queue <- newAdmissionQueue
    waiters <- forM [5, 1, 1] $ \commands -> joinQueue queue commands 1 maxBound
    admitWhile queue (\commands _ more _ -> commands + more <= 2)
    called waiters `shouldReturn` [Nothing, Nothing, Nothing]

  it "tells those whose time is over at that moment, and nobody before it" $ do
    queue <- newAdmissionQueue
    waiters <- forM [30, 10, 20, 10] $ \deadline -> joinQueue queue 1 1 deadline
    told <- forM [9, 10, 19, 20, 29, 30] $ \now -> refuseLate queue now *> called waiters
    let late = Just TooLate
        nobody = [Nothing, Nothing, Nothing, Nothing]
    told
      `shouldBe` [ nobody,
                   [Nothing, late, Nothing, late],
                   nobody,
                   [Nothing, Nothing, late, Nothing],
                   nobody,
                   [late, Nothing, Nothing, Nothing]
                 ]
    waitingForCapacity queue `shouldReturn` 0

  it "looks at nobody while nobody's time is over, also after some were told" $ do
    queue <- newAdmissionQueue
    forM_ (10 : replicate many 1000) $ \deadline -> joinQueue queue 1 1 deadline
    refuseLate queue 10
    cost (forM_ [11 .. 20] (refuseLate queue)) >>= (`shouldSatisfy` (< 200000))

  it "keeps no more places of those who have left than of those who wait" $ do
    queue <- newAdmissionQueue
    waiters <- replicateM many (joinQueue queue 1 1 maxBound)
    stays <- joinQueue queue 1 1 5
    mapM_ (leaveQueue queue) waiters
    cost (refuseLate queue 5) >>= (`shouldSatisfy` (< 200000))
    called [stays] `shouldReturn` [Just TooLate]

  it "is swept for what has gathered only, whoever was called over" $ do
    queue <- newAdmissionQueue
    gone <- replicateM many (joinQueue queue 1 1 maxBound)
    kept <- replicateM (many + 1) (joinQueue queue 1 1 maxBound)
    mapM_ (leaveQueue queue) gone
    -- This goes over the places of the waiters that have left.
    admitWhile queue one
    called (take 1 kept) `shouldReturn` [Just Admitted]
    cost (mapM_ (leaveQueue queue) (take 10 (drop 1 kept))) >>= (`shouldSatisfy` (< 200000))
  where
    one commands _ more _ = commands + more <= 1
    many = 5000 :: Int

-- | The call that each waiter has received, without waiting for one.
called :: [Waiter] -> IO [Maybe Admission]
called = mapM $ \waiter -> do
  end <- newEmptyMVar
  bracket (forkIO (awaitAdmission waiter >>= putMVar end)) killThread $ \thread -> do
    let look =
          threadStatus thread >>= \case
            ThreadBlocked _ -> pure Nothing
            ThreadFinished -> tryTakeMVar end
            _ -> yield *> look
    look

-- | The number of bytes that the thread allocates for an action.
cost :: IO () -> IO Int64
cost action = do
  result <- newIORef ()
  setAllocationCounter maxBound
  before <- getAllocationCounter
  void (action >>= evaluate) *> writeIORef result ()
  after <- getAllocationCounter
  pure (before - after)
