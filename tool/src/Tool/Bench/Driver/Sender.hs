-- | A sender of the load: what a sending thread needs to draw commands, send them, and count their
-- results; and its two loops.
--
-- In the closed loop a thread sends a command or a batch, waits for the replies, and sends again.
-- Within a batch the clock is read before every eighth submit, so a command's start is early by
-- at most seven submits and its latency never too small.
--
-- In the open loop a pacing thread submits commands when they are due, and others wait for the
-- replies. Service time counts from the submit, response time from the moment at which the
-- command was due. There is one waiting thread per node, so that a late reply of one node does
-- not delay the time noted for another's.
module Tool.Bench.Driver.Sender
  ( Sender (..),
    closed,
    open,
  )
where

import Control.Concurrent (threadDelay, yield)
import Control.Concurrent.Async (withAsyncOn)
import Control.Concurrent.Async qualified as Async
import Control.Concurrent.Chan (Chan, newChan, readChan, writeChan)
import Control.Concurrent.STM
import Control.Exception (SomeException, finally, mask_, throwIO, try)
import Control.Monad (unless, void, when)
import Data.Bits (shiftR, (.&.))
import Data.Foldable (for_)
import Data.Primitive.ByteArray (MutableByteArray, newByteArray, readByteArray, writeByteArray)
import Data.Primitive.SmallArray
import GHC.Exts (RealWorld)
import Redis (Client, Pending)
import Redis qualified
import Redis.Error (Error)
import Tool.Bench.Counters
import Tool.Bench.Nodes (Nodes, nodeCount, nodeFor)
import Tool.Bench.Time (Nanos, monotonic, sleepUntilExactly)
import Tool.Bench.Workload (Drawn (..), Outcome (..), Stream, Workload, next, verdict)

-- | All senders share everything but their streams and their counters. Those of one capability
-- share counters.
data Sender = Sender
  { senderClient :: Client,
    senderWorkload :: Workload,
    senderNodes :: Nodes,
    senderWindow :: Window,
    -- | When the plan of an open loop ends, if a number of commands ends it.
    senderPlanned :: Nanos,
    senderStream :: Stream,
    senderCounters :: Counters
  }

-- Counts the result of a command at a moment, and returns whether it was answered. Takes the time
-- at which the command was due, in an open loop.
settle :: Counters -> Maybe Nanos -> Sent -> Nanos -> Either Error Outcome -> IO Bool
settle counters due sent !done = \case
  Left problem -> False <$ failed counters sent done problem
  Right outcome ->
    True <$ case due of
      Nothing -> answered counters sent done outcome
      Just moment -> answeredWithin counters moment sent done outcome
{-# INLINE settle #-}

-- | Runs one thread's part of a closed loop: at most this number of operations, in batches of this
-- size, until the end of the window. Blocks until the last reply or error has come.
closed :: Int -> Int -> Sender -> IO ()
closed count batch sender
  | batch == 1 = waiting count sender
  | otherwise = newBatch batch >>= batching count sender

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
            result <- Redis.tryRun senderClient command
            let sent = Sent kind (nodeFor senderNodes command) start
            finish left sent (verdict senderWorkload key <$> result)
          DrawnAlone kind action -> action senderClient >>= finish left (Sent kind (-1) start)
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
        unless good recover
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
            fine <- settle senderCounters Nothing (Sent kind (-1) start) done result
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
            fine <-
              settle senderCounters Nothing (Sent kind node start) done $
                verdict senderWorkload key <$> result
            collectReplies size (place + 1) (good && fine)

-- If the server is gone, commands fail faster than it ever answered them. Without a pause, the
-- count of errors would measure the processor.
recover :: IO ()
recover = threadDelay 1000

-- A command on its way.
data InFlight = InFlight
  { inFlightSent :: Sent,
    inFlightKey :: Int,
    inFlightDue :: Nanos,
    inFlightPending :: Pending Outcome
  }

-- The commands that a sender has in flight.
data Waiters = Waiters
  { -- To the threads that wait for replies: one for each node, and the last one for commands whose
    -- node is not known.
    waitersQueues :: SmallArray (Chan [InFlight]),
    -- The number of operations that run in threads of their own.
    waitersAlone :: TVar Int,
    -- An exception that ended one of these threads.
    waitersBroken :: TVar (Maybe SomeException)
  }

-- | Runs one sender on a capability: a pacing thread and the threads that wait for replies. Sends at
-- these ascending times until there are no more or the window ends. Blocks until the last reply or
-- error has come.
open :: Int -> [Nanos] -> Sender -> IO ()
open capability dues sender = do
  queues <- traverse (const newChan) [0 .. nodeCount (senderNodes sender)]
  waiters <- Waiters (smallArrayFromList queues) <$> newTVarIO 0 <*> newTVarIO Nothing
  let waiter queue others = withAsyncOn capability (await sender queue) $ \one ->
        others `finally` (writeChan queue [] >> Async.wait one)
  foldr waiter (pacing dues sender waiters) queues
  fault <- atomically $ do
    readTVar (waitersAlone waiters) >>= check . (== 0)
    readTVar (waitersBroken waiters)
  mapM_ throwIO fault

pacing :: [Nanos] -> Sender -> Waiters -> IO ()
pacing planned sender Waiters {waitersQueues, waitersAlone, waitersBroken} = go planned
  where
    go dues = do
      now <- monotonic
      end <- windowEnd (senderWindow sender)
      (rest, sent) <- sendDue atOnce (min now (end - 1)) dues []
      handOff (reverse sent)
      case rest of
        [] -> pure ()
        due : _
          | due >= end -> pure ()
          -- No command was due: there is time to sleep. Not for long, because the end of the
          -- window may be set meanwhile.
          | null sent ->
            sleepUntilExactly (min (max due (now + least)) (now + longest)) >> go rest
          -- Late, but the threads that read replies must not wait for this thread.
          | otherwise -> yield >> go rest
    -- Sends at most this many commands that are due at this time. Returns the newest first.
    sendDue :: Int -> Nanos -> [Nanos] -> [InFlight] -> IO ([Nanos], [InFlight])
    sendDue left now dues commands = case dues of
      due : later | due <= now && left > 0 -> do
        drawn <- next (senderWorkload sender) (senderStream sender)
        moment <- monotonic
        lagged (senderCounters sender) (senderPlanned sender) due moment
        case drawn of
          Drawn kind key command -> do
            pending <- Redis.submit (senderClient sender) command
            let sent = Sent kind (nodeFor (senderNodes sender) command) moment
            sendDue (left - 1) now later (InFlight sent key due pending : commands)
          DrawnAlone kind action -> do
            alone due (Sent kind (-1) moment) (action (senderClient sender))
            sendDue (left - 1) now later commands
      _ -> pure (dues, commands)
    -- Keeps the order per node.
    handOff :: [InFlight] -> IO ()
    handOff commands =
      unless (null commands) $
        if sizeofSmallArray waitersQueues == 1
          then writeChan (indexSmallArray waitersQueues 0) commands
          else for_ [0 .. sizeofSmallArray waitersQueues - 1] $ \number -> do
            let own = [one | one <- commands, queueOf one == number]
            unless (null own) $ writeChan (indexSmallArray waitersQueues number) own
    queueOf one
      | sentNode (inFlightSent one) < 0 = sizeofSmallArray waitersQueues - 1
      | otherwise = sentNode (inFlightSent one)
    -- In a thread of its own, because it may block for long.
    alone due sent action = mask_ $ do
      atomically (modifyTVar' waitersAlone (+ 1))
      void $
        Async.asyncWithUnmask $ \unmask -> do
          outcome <- try . unmask $ do
            result <- action
            done <- monotonic
            settle (senderCounters sender) (Just due) sent done result
          atomically $ do
            modifyTVar' waitersAlone (subtract 1)
            either (writeTVar waitersBroken . Just) (const (pure ())) outcome
    -- Few enough that the thread that waits for the first reply starts in time.
    atOnce = 64
    -- A wake-up costs processor time. So commands that are closer together than this are sent
    -- together, late by at most this time.
    least = 50000
    longest = 250000000

-- Waits for replies in the order of their commands, until it gets an empty list.
await :: Sender -> Chan [InFlight] -> IO ()
await sender queue =
  readChan queue >>= \case
    [] -> pure ()
    commands -> mapM_ finish commands >> await sender queue
  where
    finish one = do
      result <- Redis.tryAwaitReply (inFlightPending one)
      done <- monotonic
      settle (senderCounters sender) (Just (inFlightDue one)) (inFlightSent one) done $
        verdict (senderWorkload sender) (inFlightKey one) <$> result
