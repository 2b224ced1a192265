-- | The open loop: commands are sent when they are due, whatever happens to those before.
--
-- A pacing thread sleeps until the next command is due, submits all that are due, and hands them to
-- threads that wait for the replies. This gives two latencies: the service time, from the submit to
-- the reply, and the response time, from the time at which the command was due. They differ by the
-- time that the command waited to be sent, which a closed loop does not see, nor a tool that does
-- not correct for it.
--
-- The commands that one thread submits to one node are answered in that order. So there is one
-- waiting thread per node: a late reply of one node does not delay the time noted for another's.
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
import Redis (Pending)
import Redis qualified
import Redis.Error (Error)
import Tool.Bench.Cpu (Nanos, monotonic)
import Tool.Bench.Driver.Lane
import Tool.Bench.Nodes (nodeCount, nodeFor)
import Tool.Bench.Sleep (sleepUntilExactly)
import Tool.Bench.Tally (Sent (..), failed, lagged)
import Tool.Bench.Window (windowEnd)
import Tool.Bench.Workload (Drawn (..), Outcome, next, verdict)

-- A command on its way.
data Flight = Flight
  { flightSent :: Sent,
    flightKey :: Int,
    flightDue :: Nanos,
    flightPending :: Pending Outcome
  }

-- The commands that a lane has on their way.
data Flying = Flying
  { -- To the threads that wait for replies: one for each node, and the last one for commands whose
    -- node is not known.
    flyingQueues :: SmallArray (Chan [Flight]),
    -- The number of operations that run in threads of their own.
    flyingAlone :: TVar Int
  }

-- | Runs one lane on a capability: a pacing thread and the threads that wait for replies. Sends at
-- these ascending times until there are no more or the window ends. Blocks until the last reply or
-- error has come.
open :: Int -> [Nanos] -> Lane -> IO ()
open capability dues lane = do
  queues <- traverse (const newChan) [0 .. nodeCount (laneNodes lane)]
  outstanding <- newTVarIO 0
  let waiter queue others = withAsyncOn capability (await lane queue) $ \one ->
        others `finally` (writeChan queue [] >> Async.wait one)
      flying = Flying {flyingQueues = smallArrayFromList queues, flyingAlone = outstanding}
  foldr waiter (pacing dues lane flying) queues
  atomically (readTVar outstanding >>= check . (== 0))

pacing :: [Nanos] -> Lane -> Flying -> IO ()
pacing
  planned
  Lane
    { laneClient,
      laneWorkload,
      laneNodes,
      laneWindow,
      laneStream,
      laneTally
    }
  flying =
    go planned
    where
      Flying {flyingQueues, flyingAlone} = flying
      go dues = do
        now <- monotonic
        end <- windowEnd laneWindow
        (rest, sent) <- sendDue atOnce (min now (end - 1)) dues []
        handOff (reverse sent)
        case rest of
          [] -> pure ()
          due : _
            | due >= end -> pure ()
            -- No command was due: there is time to sleep.
            | null sent -> sleepUntilExactly (max due (now + least)) >> go rest
            -- Late, but the threads that read replies must not wait for this thread.
            | otherwise -> yield >> go rest
      -- Sends at most this many commands that are due at this time. Returns the newest first.
      sendDue :: Int -> Nanos -> [Nanos] -> [Flight] -> IO ([Nanos], [Flight])
      sendDue left now dues flights = case dues of
        due : later | due <= now && left > 0 -> do
          drawn <- next laneWorkload laneStream
          moment <- monotonic
          lagged laneTally due moment
          case drawn of
            Drawn kind key command -> do
              let sent =
                    Sent {sentKind = kind, sentNode = nodeFor laneNodes command, sentAt = moment}
              try (Redis.submit laneClient command) >>= \case
                Right pending -> do
                  let flight =
                        Flight
                          { flightSent = sent,
                            flightKey = key,
                            flightDue = due,
                            flightPending = pending
                          }
                  sendDue (left - 1) now later (flight : flights)
                Left problem -> do
                  failed laneTally sent moment (problem :: Error)
                  sendDue (left - 1) now later flights
            DrawnAlone kind action -> do
              alone due Sent {sentKind = kind, sentNode = -1, sentAt = moment} (action laneClient)
              sendDue (left - 1) now later flights
        _ -> pure (dues, flights)
      -- Keeps the order per node.
      handOff :: [Flight] -> IO ()
      handOff flights =
        unless (null flights) $
          if sizeofSmallArray flyingQueues == 1
            then writeChan (indexSmallArray flyingQueues 0) flights
            else for_ [0 .. sizeofSmallArray flyingQueues - 1] $ \number ->
              handTo number [flight | flight <- flights, queueOf flight == number]
      handTo number = \case
        [] -> pure ()
        flights -> writeChan (indexSmallArray flyingQueues number) flights
      queueOf flight
        | sentNode (flightSent flight) < 0 = sizeofSmallArray flyingQueues - 1
        | otherwise = sentNode (flightSent flight)
      -- In a thread of its own, because it may block for long.
      alone due sent action = mask_ $ do
        atomically (modifyTVar' flyingAlone (+ 1))
        void . Async.async . flip finally (atomically (modifyTVar' flyingAlone (subtract 1))) $ do
          result <- action
          done <- monotonic
          settle laneTally (Just due) sent done result
      -- Few enough that the thread that waits for the first reply starts in time.
      atOnce = 64
      -- A wake-up costs ten microseconds of processor time. So commands that are closer together
      -- than this are sent together, late by at most this time.
      least = 50000

-- Waits for replies in the order of their commands, until it gets an empty list.
await :: Lane -> Chan [Flight] -> IO ()
await lane queue =
  readChan queue >>= \case
    [] -> pure ()
    flights -> do
      mapM_ one flights
      await lane queue
  where
    one flight = do
      result <- Redis.tryAwaitReply (flightPending flight)
      done <- monotonic
      settle (laneTally lane) (Just (flightDue flight)) (flightSent flight) done $
        verdict (laneWorkload lane) (flightKey flight) <$> result
