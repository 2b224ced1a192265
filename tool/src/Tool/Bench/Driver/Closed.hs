-- | The closed loop: a thread sends, waits for what it has sent, and sends
-- again.
--
-- With a batch of one a thread runs a command and waits; otherwise it submits a
-- batch and then waits for each reply in turn. Latency is taken per command,
-- from before its submit to when this thread has its reply in hand, whatever the
-- batch. Within a batch the clock is read before every eighth submit, so a
-- command's start is early by at most seven submits (about 2 µs) and its latency
-- never too small.
module Tool.Bench.Driver.Closed
  ( closed,
    Goal (..),
  )
where

import Control.Concurrent (threadDelay)
import Control.Exception (handle)
import Control.Monad (when)
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
import Tool.Bench.Cpu (Nanos, monotonic)
import Tool.Bench.Nodes (Nodes, nodeFor)
import Tool.Bench.Tally
import Tool.Bench.Window (Window, windowEnd)
import Tool.Bench.Workload (Drawn (..), Outcome, Stream, Workload, next)

-- | When a thread has done enough.
data Goal
  = -- | At the end of the window.
    UntilEnd
  | -- | After so many operations.
    Operations Int
  deriving stock (Eq, Show)

-- | Runs one thread's part of the load, with batches of that size. Blocks until
-- the last reply or error is there.
closed :: Client -> Workload -> Nodes -> Window -> Goal -> Int -> Stream -> Tally -> IO ()
closed client workload nodes window goal batch stream tally = do
  if batch == 1
    then waiting client workload nodes window left stream tally
    else do
      submitted <- newSmallArray batch NothingSubmitted
      starts <- newByteArray (batch * 8)
      batching client workload nodes batch window left stream tally submitted starts
  handOver tally
  where
    left = case goal of
      UntilEnd -> maxBound
      Operations count -> count

-- One operation at a time. The reply of one is the start of the next: nothing
-- but the draw lies between.
waiting :: Client -> Workload -> Nodes -> Window -> Int -> Stream -> Tally -> IO ()
waiting client workload nodes window count stream tally = monotonic >>= go count
  where
    go left start = do
      end <- windowEnd window
      when (start < end && left > 0) $
        next workload stream >>= \case
          Drawn kind command -> Redis.tryRun client command >>= settle left kind (nodeFor nodes command) start
          DrawnAlone kind action -> action client >>= settle left kind (-1) start
    settle :: Int -> Int -> Int -> Nanos -> Either Error Outcome -> IO ()
    settle left kind node start = \case
      Right outcome -> do
        done <- monotonic
        answered tally kind start done outcome
        onNode tally node (done - start)
        go (left - 1) done
      Left problem -> do
        now <- monotonic
        failed tally kind now problem
        recover
        monotonic >>= go (left - 1)

-- An operation of a batch.
data Submitted
  = NothingSubmitted
  | -- | On its way; of this kind, to this node.
    InFlight Int Int (Pending Outcome)
  | -- | Done while it was this thread's turn: kind, start, end, and what it came to.
    Settled Int Nanos Nanos (Either Error Outcome)

batching ::
  Client ->
  Workload ->
  Nodes ->
  Int ->
  Window ->
  Int ->
  Stream ->
  Tally ->
  SmallMutableArray RealWorld Submitted ->
  MutableByteArray RealWorld ->
  IO ()
batching client workload nodes batch window count stream tally submitted starts = monotonic >>= go count
  where
    go left now = do
      end <- windowEnd window
      when (now < end && left > 0) $ do
        let size = min left batch
        good <- handle refused (send size 0 >> collectReplies size 0 True)
        if good then pure () else recover
        monotonic >>= go (left - size)
    -- A client that will not even take a command says so by throwing.
    refused :: Error -> IO Bool
    refused problem = do
      now <- monotonic
      False <$ failed tally 0 now problem
    send :: Int -> Int -> IO ()
    send size place
      | place == size = pure ()
      | otherwise = do
        when (place .&. 7 == 0) (monotonic >>= writeByteArray starts (place `shiftR` 3))
        next workload stream >>= \case
          Drawn kind command -> Redis.submit client command >>= writeSmallArray submitted place . InFlight kind (nodeFor nodes command)
          DrawnAlone kind action -> do
            start <- monotonic
            result <- action client
            done <- monotonic
            writeSmallArray submitted place (Settled kind start done result)
        send size (place + 1)
    collectReplies :: Int -> Int -> Bool -> IO Bool
    collectReplies size place good
      | place == size = pure good
      | otherwise = do
        fine <-
          readSmallArray submitted place >>= \case
            InFlight kind node pending -> do
              start <- readByteArray starts (place `shiftR` 3)
              result <- Redis.tryWait pending
              done <- monotonic
              settle kind node start done result
            Settled kind start done result -> settle kind (-1) start done result
            NothingSubmitted -> pure True
        collectReplies size (place + 1) (good && fine)
    settle :: Int -> Int -> Nanos -> Nanos -> Either Error Outcome -> IO Bool
    settle kind node start done = \case
      Right outcome -> do
        answered tally kind start done outcome
        onNode tally node (done - start)
        pure True
      Left problem -> False <$ failed tally kind done problem

-- A server that is gone fails commands faster than it ever answered them: a
-- pause keeps the count of errors from becoming a measure of the processor.
recover :: IO ()
recover = threadDelay 1000
