-- | The closed loop: a thread sends a command or a batch, waits for the replies, and sends again.
-- Within a batch the clock is read before every eighth submit, so a command's start is early by
-- at most seven submits and its latency never too small.
module Tool.Bench.Driver.Closed
  ( closed,
    Goal (..),
  )
where

import Control.Concurrent (threadDelay)
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
import Redis (Pending)
import Redis qualified
import Tool.Bench.Counters (Sent (..))
import Tool.Bench.Driver.Sender
import Tool.Bench.Nodes (nodeFor)
import Tool.Bench.Time (Nanos, monotonic)
import Tool.Bench.Window (windowEnd)
import Tool.Bench.Workload (Drawn (..), Outcome (..), next, verdict)

-- | When a thread stops sending.
data Goal
  = -- | At the end of the window.
    UntilEnd
  | -- | After this number of operations.
    Operations Int
  deriving stock (Eq, Show)

-- | Runs one thread's part of the load, with batches of this size. Blocks until the last reply or
-- error has come.
closed :: Goal -> Int -> Sender -> IO ()
closed goal batch sender
  | batch == 1 = waiting left sender
  | otherwise = newBatch batch >>= batching left sender
  where
    left = case goal of
      UntilEnd -> maxBound
      Operations count -> count

-- One operation at a time. The time of a reply is the start of the next command: only the verdict
-- on the reply and the draw of the next command lie between them.
waiting :: Int -> Sender -> IO ()
waiting count Sender {senderClient, senderWorkload, senderNodes, senderWindow, senderStream, senderCounters} =
  monotonic >>= go count
  where
    go :: Int -> Nanos -> IO ()
    go !left !start = do
      end <- windowEnd senderWindow
      when (start < end && left > 0) $
        next senderWorkload senderStream >>= \case
          Drawn kind key command -> do
            let sent = Sent {sentKind = kind, sentNode = nodeFor senderNodes command, sentAt = start}
            result <- Redis.tryRun senderClient command
            finish left sent (verdict senderWorkload key <$> result)
          DrawnAlone kind action ->
            action senderClient >>= finish left Sent {sentKind = kind, sentNode = -1, sentAt = start}
    finish left sent result = do
      done <- monotonic
      good <- settle senderCounters Nothing sent done result
      if good then go (left - 1) done else recover >> monotonic >>= go (left - 1)

-- The commands on their way, by their places in the batch. The kinds and nodes are stored apart, as
-- words: the collector would copy an object per command.
data Batch = Batch
  { batchPending :: SmallMutableArray RealWorld (Pending Outcome),
    -- | For each place its kind, its key and its node; a kind of -1 where there is no reply to wait
    -- for. Behind these: the time at which every eighth command was submitted.
    batchNotes :: MutableByteArray RealWorld,
    batchSize :: Int
  }

newBatch :: Int -> IO Batch
newBatch size = do
  pending <- newSmallArray size nothingPending
  notes <- newByteArray (8 * (3 * size + size `shiftR` 3 + 1))
  pure Batch {batchPending = pending, batchNotes = notes, batchSize = size}

nothingPending :: Pending Outcome
nothingPending = Redis.pendingFrom (Right Done)

batching :: Int -> Sender -> Batch -> IO ()
batching count Sender {senderClient, senderWorkload, senderNodes, senderWindow, senderStream, senderCounters} batch =
  monotonic >>= go count
  where
    Batch {batchPending, batchNotes, batchSize} = batch
    go left now = do
      end <- windowEnd senderWindow
      when (now < end && left > 0) $ do
        let size = min left batchSize
        good <- send size 0 True >>= collectReplies size 0
        if good then pure () else recover
        monotonic >>= go (left - size)
    startOf place = 3 * batchSize + place `shiftR` 3
    send :: Int -> Int -> Bool -> IO Bool
    send !size !place !good
      | place == size = pure good
      | otherwise = do
        when (place .&. 7 == 0) (monotonic >>= writeByteArray batchNotes (startOf place))
        next senderWorkload senderStream >>= \case
          Drawn kind key command -> do
            writeByteArray batchNotes (3 * place) kind
            writeByteArray batchNotes (3 * place + 1) key
            writeByteArray batchNotes (3 * place + 2) (nodeFor senderNodes command)
            Redis.submit senderClient command >>= writeSmallArray batchPending place
            send size (place + 1) good
          DrawnAlone kind action -> do
            writeByteArray batchNotes (3 * place) (-1 :: Int)
            start <- monotonic
            result <- action senderClient
            done <- monotonic
            let sent = Sent {sentKind = kind, sentNode = -1, sentAt = start}
            fine <- settle senderCounters Nothing sent done result
            send size (place + 1) (good && fine)
    collectReplies :: Int -> Int -> Bool -> IO Bool
    collectReplies !size !place !good
      | place == size = pure good
      | otherwise = do
        kind <- readByteArray batchNotes (3 * place)
        if kind < 0
          then collectReplies size (place + 1) good
          else do
            pending <- readSmallArray batchPending place
            result <- Redis.tryAwaitReply pending
            done <- monotonic
            -- Drop the reply: the next batch gets to this place only later.
            writeSmallArray batchPending place nothingPending
            key <- readByteArray batchNotes (3 * place + 1)
            node <- readByteArray batchNotes (3 * place + 2)
            start <- readByteArray batchNotes (startOf place)
            let sent = Sent {sentKind = kind, sentNode = node, sentAt = start}
            fine <- settle senderCounters Nothing sent done (verdict senderWorkload key <$> result)
            collectReplies size (place + 1) (good && fine)

-- If the server is gone, commands fail faster than it ever answered them. Without a pause, the
-- count of errors would measure the processor.
recover :: IO ()
recover = threadDelay 1000
