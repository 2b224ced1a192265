-- | A queue of callers that wait for room on a connection: first come, first served.
--
-- A caller that is called in has been promised its room until it takes the room or leaves; no other
-- caller gets room that was promised. A caller that leaves only marks its place, and the queue is
-- swept when more than half of its places are such marks: so any number may leave at once at a
-- constant cost each.
--
-- No exception is thrown to a caller whose time is over. The connection's watchdog calls it, with
-- 'TooLate'.
--
-- Everything here but 'awaitCall' and 'waitingForRoom' is done under the connection's lock.
module Redis.Internal.Network.RoomQueue
  ( RoomQueue,
    newRoomQueue,
    waitingForRoom,

    -- * A caller
    Waiter,
    Wish (..),
    joinQueue,
    Call (..),
    awaitCall,
    takePromised,
    leaveQueue,

    -- * Whoever makes room
    callWhile,
    callAll,
    callLate,
  )
where

import Control.Concurrent.MVar
import Control.Monad (when)
import Control.Monad.Primitive (RealWorld)
import Data.Foldable (toList)
import Data.IORef
import Data.List qualified as List
import Data.Primitive.ByteArray
import Data.Sequence (Seq (..), (|>))
import Data.Sequence qualified as Seq
import Redis.Internal.Network.Clock (Nanos)

-- | The queue of one connection.
data RoomQueue = RoomQueue
  { roomWaiters :: IORef (Seq Waiter),
    -- | See 'Count'.
    roomCounts :: MutableByteArray RealWorld,
    -- | A time that is no later than the first deadline in the queue.
    roomEarliest :: IORef Nanos
  }

-- | A caller that waits.
data Waiter = Waiter
  { waiterCall :: MVar Call,
    waiterPlace :: IORef Standing,
    waiterWish :: Wish
  }

-- | The room that a caller waits for.
data Wish = Wish
  { wishCommands :: Int,
    wishBytes :: Int,
    -- | The deadline, on the coarse clock.
    wishDeadline :: Nanos
  }

-- | The state of a caller.
data Standing = InQueue | Promised | Gone
  deriving stock (Eq)

-- | How a wait ends.
data Call = ComeIn | TooLate
  deriving stock (Eq, Show)

newtype Count = Count Int

-- | Callers that wait, and callers that were called in and have not come in yet.
countWaiting :: Count
countWaiting = Count 0

-- | Commands and bytes promised to callers that were called in.
countCommands, countBytes :: Count
countCommands = Count 1
countBytes = Count 2

-- | Places in the queue whose callers have left.
countGone :: Count
countGone = Count 3

-- | An empty queue.
newRoomQueue :: IO RoomQueue
newRoomQueue = do
  roomWaiters <- newIORef Seq.empty
  roomCounts <- newByteArray (4 * 8)
  setByteArray roomCounts 0 4 (0 :: Int)
  roomEarliest <- newIORef maxBound
  pure RoomQueue {roomWaiters, roomCounts, roomEarliest}

-- | The number of callers that wait or were called in and have not come in yet. \(O(1)\). Without
-- the lock it may be a little old.
waitingForRoom :: RoomQueue -> IO Int
waitingForRoom queue = readCount queue countWaiting
{-# INLINE waitingForRoom #-}

-- | Adds a caller at the end. \(O(1)\).
joinQueue :: RoomQueue -> Wish -> IO Waiter
joinQueue queue waiterWish = do
  waiterCall <- newEmptyMVar
  waiterPlace <- newIORef InQueue
  let waiter = Waiter {waiterCall, waiterPlace, waiterWish}
  modifyIORef' (roomWaiters queue) (|> waiter)
  modifyIORef' (roomEarliest queue) (min (wishDeadline waiterWish))
  waiter <$ addCount queue countWaiting 1

-- | Blocks until the caller is called. May be interrupted; then the caller must leave
-- ('leaveQueue').
awaitCall :: Waiter -> IO Call
awaitCall = takeMVar . waiterCall

-- | Ends the wait of a caller that was called in: its room is no longer promised
-- but taken. \(O(1)\).
takePromised :: RoomQueue -> Waiter -> IO ()
takePromised queue waiter = do
  writeIORef (waiterPlace waiter) Gone
  addCount queue countWaiting (-1)
  addCount queue countCommands (negate (wishCommands (waiterWish waiter)))
  addCount queue countBytes (negate (wishBytes (waiterWish waiter)))

-- | Gives up a place in the queue, or the promised room. A caller that leaves must have the next
-- ones called. \(O(1)\) amortised.
leaveQueue :: RoomQueue -> Waiter -> IO ()
leaveQueue queue waiter =
  readIORef (waiterPlace waiter) >>= \case
    Promised -> takePromised queue waiter
    Gone -> pure ()
    InQueue -> do
      writeIORef (waiterPlace waiter) Gone
      addCount queue countWaiting (-1)
      addCount queue countGone 1
      gone <- readCount queue countGone
      waiters <- readIORef (roomWaiters queue)
      when (2 * gone > Seq.length waiters) $
        mapM keepIfWaiting (toList waiters) >>= setWaiters queue . Seq.fromList . concat

keepIfWaiting :: Waiter -> IO [Waiter]
keepIfWaiting waiter = (\place -> [waiter | place == InQueue]) <$> readIORef (waiterPlace waiter)

-- | Replaces the queue. All of these callers must be waiting.
setWaiters :: RoomQueue -> Seq Waiter -> IO ()
setWaiters queue waiters = do
  writeIORef (roomWaiters queue) waiters
  writeCount queue countGone 0

-- | Calls in as many callers as there is room for, in order. It stops at the first without room:
-- otherwise a long run would never get its turn. The function decides whether there is room, given
-- the commands and bytes that are promised, and those that the caller wishes for.
callWhile :: RoomQueue -> (Int -> Int -> Int -> Int -> Bool) -> IO ()
callWhile queue fits = do
  waiting <- waitingForRoom queue
  when (waiting > 0) go
  where
    go =
      readIORef (roomWaiters queue) >>= \case
        Seq.Empty -> pure ()
        waiter :<| rest ->
          readIORef (waiterPlace waiter) >>= \case
            InQueue -> do
              commands <- readCount queue countCommands
              bytes <- readCount queue countBytes
              let Wish {wishCommands, wishBytes} = waiterWish waiter
              when (fits commands bytes wishCommands wishBytes) $ do
                writeIORef (roomWaiters queue) rest
                promise queue waiter
                go
            _ -> do
              writeIORef (roomWaiters queue) rest
              addCount queue countGone (-1)
              go

-- | Calls in everybody: the connection takes no more commands, and the callers must be told.
callAll :: RoomQueue -> IO ()
callAll queue = callWhile queue (\_ _ _ _ -> True)

promise :: RoomQueue -> Waiter -> IO ()
promise queue waiter = do
  writeIORef (waiterPlace waiter) Promised
  addCount queue countCommands (wishCommands (waiterWish waiter))
  addCount queue countBytes (wishBytes (waiterWish waiter))
  putMVar (waiterCall waiter) ComeIn

-- | Tells the callers whose deadlines have passed at this time. Then those behind them must be
-- called ('callWhile'). \(O(1)\) if there are none, otherwise \(O(n)\).
callLate :: RoomQueue -> Nanos -> IO ()
callLate queue now = do
  earliest <- readIORef (roomEarliest queue)
  when (earliest <= now) $ do
    waiters <- readIORef (roomWaiters queue) >>= fmap concat . mapM keepIfWaiting . toList
    let late waiter = wishDeadline (waiterWish waiter) <= now
        inTime = filter (not . late) waiters
    mapM_ tellLate (filter late waiters)
    setWaiters queue (Seq.fromList inTime)
    -- Forced: a thunk would keep all these callers alive, and make the next look linear.
    writeIORef (roomEarliest queue) $! List.foldl' min maxBound (map (wishDeadline . waiterWish) inTime)
  where
    tellLate waiter = do
      writeIORef (waiterPlace waiter) Gone
      addCount queue countWaiting (-1)
      putMVar (waiterCall waiter) TooLate

readCount :: RoomQueue -> Count -> IO Int
readCount queue (Count index) = readByteArray (roomCounts queue) index
{-# INLINE readCount #-}

writeCount :: RoomQueue -> Count -> Int -> IO ()
writeCount queue (Count index) = writeByteArray (roomCounts queue) index

addCount :: RoomQueue -> Count -> Int -> IO ()
addCount queue count change = readCount queue count >>= writeCount queue count . (+ change)
