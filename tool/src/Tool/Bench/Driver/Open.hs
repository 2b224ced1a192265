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
import Tool.Bench.Counters (Sent (..), lagged)
import Tool.Bench.Driver.Sender
import Tool.Bench.Nodes (nodeCount, nodeFor)
import Tool.Bench.Time (Nanos, monotonic, sleepUntilExactly)
import Tool.Bench.Window (windowEnd)
import Tool.Bench.Workload (Drawn (..), Outcome, next, verdict)

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
  outstanding <- newTVarIO 0
  broken <- newTVarIO Nothing
  let waiter queue others = withAsyncOn capability (await sender queue) $ \one ->
        others `finally` (writeChan queue [] >> Async.wait one)
      waiters =
        Waiters
          { waitersQueues = smallArrayFromList queues,
            waitersAlone = outstanding,
            waitersBroken = broken
          }
  foldr waiter (pacing dues sender waiters) queues
  fault <- atomically $ do
    readTVar outstanding >>= check . (== 0)
    readTVar broken
  mapM_ throwIO fault

pacing :: [Nanos] -> Sender -> Waiters -> IO ()
pacing
  planned
  Sender
    { senderClient,
      senderWorkload,
      senderNodes,
      senderWindow,
      senderStream,
      senderCounters
    }
  waiters =
    go planned
    where
      Waiters {waitersQueues, waitersAlone, waitersBroken} = waiters
      go dues = do
        now <- monotonic
        end <- windowEnd senderWindow
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
          drawn <- next senderWorkload senderStream
          moment <- monotonic
          lagged senderCounters due moment
          case drawn of
            Drawn kind key command -> do
              pending <- Redis.submit senderClient command
              let sent =
                    Sent {sentKind = kind, sentNode = nodeFor senderNodes command, sentAt = moment}
                  one =
                    InFlight
                      { inFlightSent = sent,
                        inFlightKey = key,
                        inFlightDue = due,
                        inFlightPending = pending
                      }
              sendDue (left - 1) now later (one : commands)
            DrawnAlone kind action -> do
              alone due Sent {sentKind = kind, sentNode = -1, sentAt = moment} (action senderClient)
              sendDue (left - 1) now later commands
        _ -> pure (dues, commands)
      -- Keeps the order per node.
      handOff :: [InFlight] -> IO ()
      handOff commands =
        unless (null commands) $
          if sizeofSmallArray waitersQueues == 1
            then writeChan (indexSmallArray waitersQueues 0) commands
            else for_ [0 .. sizeofSmallArray waitersQueues - 1] $ \number ->
              handTo number [one | one <- commands, queueOf one == number]
      handTo number = \case
        [] -> pure ()
        commands -> writeChan (indexSmallArray waitersQueues number) commands
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
              settle senderCounters (Just due) sent done result
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
    commands -> do
      mapM_ finish commands
      await sender queue
  where
    finish one = do
      result <- Redis.tryAwaitReply (inFlightPending one)
      done <- monotonic
      settle (senderCounters sender) (Just (inFlightDue one)) (inFlightSent one) done $
        verdict (senderWorkload sender) (inFlightKey one) <$> result
