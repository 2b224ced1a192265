-- | Callers that wait for room on a connection: first come, first served.
--
-- A caller that is called has been promised its room, until it takes it or
-- leaves; nobody else is let in to what was promised. A caller that leaves only
-- marks its place, and the queue is swept when half of it is such marks: so any
-- number may leave at once for a constant price each.
--
-- Nobody throws to a caller whose time is over. The connection's watchdog calls
-- it, with 'TooLate'.
--
-- Everything here but 'awaitCall' is done under the connection's lock.
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
    -- | No later than when the first of those in the queue runs out of time.
    roomEarliest :: IORef Nanos
  }

-- | Somebody who waits.
data Waiter = Waiter
  { waiterCall :: MVar Call,
    waiterPlace :: IORef Standing,
    waiterWish :: Wish
  }

-- | What somebody waits for.
data Wish = Wish
  { wishCommands :: Int,
    wishBytes :: Int,
    -- | When its time is over, on the coarse clock.
    wishDeadline :: Nanos
  }

-- | Where a caller stands.
data Standing = InQueue | Promised | Gone
  deriving stock (Eq)

-- | How a wait ends.
data Call = ComeIn | TooLate
  deriving stock (Eq, Show)

newtype Count = Count Int

-- | Callers that wait, and those called who are not in yet.
countWaiting :: Count
countWaiting = Count 0

-- | Commands and bytes promised.
countCommands, countBytes :: Count
countCommands = Count 1
countBytes = Count 2

-- | Places in the queue whose callers have left.
countGone :: Count
countGone = Count 3

-- | Nobody waits.
newRoomQueue :: IO RoomQueue
newRoomQueue = do
  roomWaiters <- newIORef Seq.empty
  roomCounts <- newByteArray (4 * 8)
  setByteArray roomCounts 0 4 (0 :: Int)
  roomEarliest <- newIORef maxBound
  pure RoomQueue {roomWaiters, roomCounts, roomEarliest}

-- | Callers that wait, and those called who are not in yet. \(O(1)\). Without the
-- lock it may be a little old.
waitingForRoom :: RoomQueue -> IO Int
waitingForRoom queue = readCount queue countWaiting
{-# INLINE waitingForRoom #-}

-- | Queues up. \(O(1)\).
joinQueue :: RoomQueue -> Wish -> IO Waiter
joinQueue queue waiterWish = do
  waiterCall <- newEmptyMVar
  waiterPlace <- newIORef InQueue
  let waiter = Waiter {waiterCall, waiterPlace, waiterWish}
  modifyIORef' (roomWaiters queue) (|> waiter)
  modifyIORef' (roomEarliest queue) (min (wishDeadline waiterWish))
  waiter <$ addCount queue countWaiting 1

-- | Blocks until the caller is called. May be interrupted; then it must leave.
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

-- | Gives a place up, or what was promised. Whoever leaves must have the next
-- called. \(O(1)\) amortised.
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

-- | Of those who wait only.
setWaiters :: RoomQueue -> Seq Waiter -> IO ()
setWaiters queue waiters = do
  writeIORef (roomWaiters queue) waiters
  writeCount queue countGone 0

-- | Calls as many as there is room for, and nobody past one that there is no room
-- for: a long run would never get its turn. The function is given commands and
-- bytes, what was promised included.
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

-- | Calls everybody: no more commands are taken, and they are to be told.
callAll :: RoomQueue -> IO ()
callAll queue = callWhile queue (\_ _ _ _ -> True)

promise :: RoomQueue -> Waiter -> IO ()
promise queue waiter = do
  writeIORef (waiterPlace waiter) Promised
  addCount queue countCommands (wishCommands (waiterWish waiter))
  addCount queue countBytes (wishBytes (waiterWish waiter))
  putMVar (waiterCall waiter) ComeIn

-- | Tells those whose time is over at this moment. \(O(1)\) while it is nobody's,
-- otherwise \(O(n)\).
callLate :: RoomQueue -> Nanos -> IO ()
callLate queue now = do
  earliest <- readIORef (roomEarliest queue)
  when (earliest <= now) $ do
    waiters <- readIORef (roomWaiters queue) >>= fmap concat . mapM keepIfWaiting . toList
    let late waiter = wishDeadline (waiterWish waiter) <= now
        inTime = filter (not . late) waiters
    mapM_ tellLate (filter late waiters)
    setWaiters queue (Seq.fromList inTime)
    -- Forced: it would keep them all, and cost the next look their number.
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
