-- | The open loop: a pacing thread submits commands when they are due, and others wait for the
-- replies. Service time counts from the submit, response time from the moment at which the
-- command was due. There is one waiting thread per node, so that a late reply of one node does
-- not delay the time noted for another's.
module Tool.Bench.Driver.Open
  ( open,
  )
where

import Control.Concurrent (yield)
import Control.Concurrent.Async (withAsyncOn)
import Control.Concurrent.Async qualified as Async
import Control.Concurrent.Chan (Chan, newChan, readChan, writeChan)
import Control.Concurrent.STM
  ( TVar,
    atomically,
    check,
    modifyTVar',
    newTVarIO,
    readTVar,
    writeTVar,
  )
import Control.Exception (SomeException, finally, mask_, throwIO, try)
import Control.Monad (unless, void)
import Data.Foldable (for_)
import Data.Primitive.SmallArray (SmallArray, indexSmallArray, sizeofSmallArray, smallArrayFromList)
import Redis (Pending)
import Redis qualified
import Tool.Bench.Driver.Lane
import Tool.Bench.Nodes (nodeCount, nodeFor)
import Tool.Bench.Tally (Sent (..), lagged)
import Tool.Bench.Time (Nanos, monotonic, sleepUntilExactly)
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
    flyingAlone :: TVar Int,
    -- An exception that ended one of these threads.
    flyingBroken :: TVar (Maybe SomeException)
  }

-- | Runs one lane on a capability: a pacing thread and the threads that wait for replies. Sends at
-- these ascending times until there are no more or the window ends. Blocks until the last reply or
-- error has come.
open :: Int -> [Nanos] -> Lane -> IO ()
open capability dues lane = do
  queues <- traverse (const newChan) [0 .. nodeCount (laneNodes lane)]
  outstanding <- newTVarIO 0
  broken <- newTVarIO Nothing
  let waiter queue others = withAsyncOn capability (await lane queue) $ \one ->
        others `finally` (writeChan queue [] >> Async.wait one)
      flying =
        Flying
          { flyingQueues = smallArrayFromList queues,
            flyingAlone = outstanding,
            flyingBroken = broken
          }
  foldr waiter (pacing dues lane flying) queues
  fault <- atomically $ do
    readTVar outstanding >>= check . (== 0)
    readTVar broken
  mapM_ throwIO fault

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
      Flying {flyingQueues, flyingAlone, flyingBroken} = flying
      go dues = do
        now <- monotonic
        end <- windowEnd laneWindow
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
      sendDue :: Int -> Nanos -> [Nanos] -> [Flight] -> IO ([Nanos], [Flight])
      sendDue left now dues flights = case dues of
        due : later | due <= now && left > 0 -> do
          drawn <- next laneWorkload laneStream
          moment <- monotonic
          lagged laneTally due moment
          case drawn of
            Drawn kind key command -> do
              pending <- Redis.submit laneClient command
              let sent =
                    Sent {sentKind = kind, sentNode = nodeFor laneNodes command, sentAt = moment}
                  flight =
                    Flight
                      { flightSent = sent,
                        flightKey = key,
                        flightDue = due,
                        flightPending = pending
                      }
              sendDue (left - 1) now later (flight : flights)
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
        void $
          Async.asyncWithUnmask $ \unmask -> do
            outcome <- try . unmask $ do
              result <- action
              done <- monotonic
              settle laneTally (Just due) sent done result
            atomically $ do
              modifyTVar' flyingAlone (subtract 1)
              either (writeTVar flyingBroken . Just) (const (pure ())) outcome
      -- Few enough that the thread that waits for the first reply starts in time.
      atOnce = 64
      -- A wake-up costs processor time. So commands that are closer together than this are sent
      -- together, late by at most this time.
      least = 50000
      longest = 250000000

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
