-- | The open loop: commands are sent when they are due, whatever became of those
-- before.
--
-- A thread that paces sleeps until the next one is due, submits all that are,
-- and hands them to threads that wait for the replies. Two latencies come of
-- it: the service time, from the submit to the reply, and the response time,
-- from when the command was due. They differ by the time it had to wait to be
-- sent, which a closed loop, and a tool that corrects nothing, does not see.
--
-- What one thread submits to one node is answered in that order, so there is
-- one waiting thread per node: a reply is never noted late because another
-- node's is.
module Tool.Bench.Driver.Open
  ( open,
  )
where

import Control.Concurrent (yield)
import Control.Concurrent.Async (withAsyncOn)
import Control.Concurrent.Async qualified as Async
import Control.Concurrent.Chan (Chan, newChan, readChan, writeChan)
import Control.Concurrent.STM (TVar, atomically, check, modifyTVar', newTVarIO, readTVar)
import Control.Exception (finally, mask_, try)
import Control.Monad (unless, void)
import Data.Foldable (for_)
import Data.Primitive.SmallArray (SmallArray, indexSmallArray, sizeofSmallArray, smallArrayFromList)
import Redis (Client, Pending)
import Redis qualified
import Redis.Error (Error)
import Tool.Bench.Cpu (Nanos, monotonic)
import Tool.Bench.Nodes (Nodes, nodeCount, nodeFor)
import Tool.Bench.Sleep (sleepUntilExactly)
import Tool.Bench.Tally
import Tool.Bench.Window (Window, windowEnd)
import Tool.Bench.Workload (Drawn (..), Outcome, Stream, Workload, next, verdict)

-- A command on its way.
data Flight = Flight
  { flightKind :: Int,
    flightKey :: Int,
    flightNode :: Int,
    flightDue :: Nanos,
    flightSent :: Nanos,
    flightPending :: Pending Outcome
  }

-- | Runs one lane, a pacing thread and those that wait for replies, on a capability:
-- sends at these moments, ascending, until there are no more or the window ends.
-- Blocks until the last reply or error is there.
open :: Int -> Client -> Workload -> Nodes -> Window -> [Nanos] -> Stream -> Tally -> IO ()
open capability client workload nodes window dues stream tally = do
  -- One per node, and one for commands whose node is not known.
  queues <- traverse (const newChan) [0 .. nodeCount nodes]
  outstanding <- newTVarIO (0 :: Int)
  let waiter queue others = withAsyncOn capability (await workload tally queue) $ \one ->
        others `finally` (writeChan queue [] >> Async.wait one)
      pace = pacing client workload nodes window dues stream tally (smallArrayFromList queues) outstanding
  foldr waiter pace queues
  atomically (readTVar outstanding >>= check . (== 0))

pacing ::
  Client ->
  Workload ->
  Nodes ->
  Window ->
  [Nanos] ->
  Stream ->
  Tally ->
  SmallArray (Chan [Flight]) ->
  TVar Int ->
  IO ()
pacing client workload nodes window planned stream tally queues outstanding = go planned
  where
    go dues = do
      now <- monotonic
      end <- windowEnd window
      (rest, sent) <- sendDue atOnce (min now (end - 1)) dues []
      handOff (reverse sent)
      case rest of
        [] -> pure ()
        due : _
          | due >= end -> pure ()
          -- Nothing was due: there is time to sleep.
          | null sent -> sleepUntilExactly (max due (now + least)) >> go rest
          -- Late: but those who read replies must not wait for this thread.
          | otherwise -> yield >> go rest
    -- Sends up to so many that are due by then; newest first.
    sendDue :: Int -> Nanos -> [Nanos] -> [Flight] -> IO ([Nanos], [Flight])
    sendDue left now dues flights = case dues of
      due : later | due <= now && left > 0 -> do
        drawn <- next workload stream
        sent <- monotonic
        lagged tally due sent
        case drawn of
          Drawn kind key command ->
            try (Redis.submit client command) >>= \case
              Right pending -> do
                let flight = Flight {flightKind = kind, flightKey = key, flightNode = nodeFor nodes command, flightDue = due, flightSent = sent, flightPending = pending}
                sendDue (left - 1) now later (flight : flights)
              Left problem -> do
                failed tally kind (nodeFor nodes command) sent (problem :: Error)
                sendDue (left - 1) now later flights
          DrawnAlone kind action -> do
            alone kind due sent (action client)
            sendDue (left - 1) now later flights
      _ -> pure (dues, flights)
    -- In order, to each node's waiting thread.
    handOff :: [Flight] -> IO ()
    handOff flights =
      unless (null flights) $
        if sizeofSmallArray queues == 1
          then writeChan (indexSmallArray queues 0) flights
          else for_ [0 .. sizeofSmallArray queues - 1] $ \number -> handTo number [flight | flight <- flights, queueOf flight == number]
    handTo number = \case
      [] -> pure ()
      flights -> writeChan (indexSmallArray queues number) flights
    queueOf flight
      | flightNode flight < 0 = sizeofSmallArray queues - 1
      | otherwise = flightNode flight
    -- In a thread of its own: it may block for long.
    alone kind due sent action = mask_ $ do
      atomically (modifyTVar' outstanding (+ 1))
      void . Async.async . flip finally (atomically (modifyTVar' outstanding (subtract 1))) $ do
        result <- action
        done <- monotonic
        settle tally kind (-1) due sent done result
    -- Few enough that the first of them is not waited for late.
    atOnce = 64
    -- To wake up costs ten microseconds of processor time, so commands that are
    -- closer together than this are sent together, late by at most as much.
    least = 50000

-- Waits for replies in the order of their commands, until it is handed nothing.
await :: Workload -> Tally -> Chan [Flight] -> IO ()
await workload tally queue =
  readChan queue >>= \case
    [] -> pure ()
    flights -> do
      mapM_ one flights
      await workload tally queue
  where
    one flight = do
      result <- Redis.tryAwaitReply (flightPending flight)
      done <- monotonic
      settle tally (flightKind flight) (flightNode flight) (flightDue flight) (flightSent flight) done (verdict workload (flightKey flight) <$> result)

settle :: Tally -> Int -> Int -> Nanos -> Nanos -> Nanos -> Either Error Outcome -> IO ()
settle tally kind node due sent done = \case
  Right outcome -> answeredWithin tally kind node due sent done $! outcome
  Left problem -> failed tally kind node done problem
