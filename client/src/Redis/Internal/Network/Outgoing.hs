-- | The way into a connection: the bytes that wait to be sent, and the callers that wait until
-- there is capacity for theirs.
--
-- The bytes are in two blocks of pinned memory that take turns. Submitters fill the front block, under the
-- connection's lock. The holder of the right to send swaps the blocks and sends the other one without the
-- lock, so all that is submitted meanwhile leaves in one system call afterwards. A block grows by doubling.
--
-- Callers that find no capacity wait in a queue: first come, first served. A caller that is admitted has
-- been promised its capacity until it takes the capacity or leaves. A caller that leaves only marks its
-- place, and the queue is swept when more than half of its places are such marks: so any number may leave
-- at once at a constant cost each. The watchdog calls a caller whose time is over, with 'TooLate'. The queue
-- is used under the connection's lock, but for 'awaitAdmission' and 'waitingForCapacity'.
module Redis.Internal.Network.Outgoing
  ( -- * Bytes
    WriteBuffer,
    newWriteBuffer,
    bufferedBytes,
    bufferReady,
    bufferReserve,
    appendRequest,
    swapBlocks,
    Block,
    blockSize,
    withBlock,
    releaseBlock,

    -- * Callers
    AdmissionQueue,
    newAdmissionQueue,
    waitingForCapacity,
    Waiter,
    joinQueue,
    Admission (..),
    awaitAdmission,
    takePromised,
    leaveQueue,
    admitWhile,
    admitAll,
    refuseLate,
  )
where

import Control.Concurrent.MVar
import Control.Exception (SomeException, try)
import Control.Monad (when)
import Control.Monad.Primitive (RealWorld, touch)
import Data.Foldable (toList)
import Data.IORef
import Data.List qualified as List
import Data.Primitive.ByteArray
import Data.Sequence (Seq (..), (|>))
import Data.Sequence qualified as Seq
import Data.Word (Word8)
import Foreign.Ptr (Ptr, plusPtr)
import Redis.Internal.Network.Runtime (Nanos)
import Redis.Internal.Protocol.Encode (Request, requestPoke, requestSize)

-- | Two blocks and how much of the front one is used.
data WriteBuffer = WriteBuffer
  { bufferFront :: IORef (MutableByteArray RealWorld),
    bufferBack :: IORef (MutableByteArray RealWorld),
    bufferUsed :: MutableByteArray RealWorld
  }

-- | Bytes taken out of a buffer, to be sent.
data Block = Block (MutableByteArray RealWorld) Int

-- | A buffer of two empty blocks of so many bytes.
newWriteBuffer :: Int -> IO WriteBuffer
newWriteBuffer initialCapacity = do
  front <- newPinnedByteArray initialCapacity
  back <- newPinnedByteArray initialCapacity
  bufferUsed <- newByteArray 8
  writeByteArray bufferUsed 0 (0 :: Int)
  WriteBuffer <$> newIORef front <*> newIORef back <*> pure bufferUsed

-- | The number of bytes in the front block. The caller holds the lock.
bufferedBytes :: WriteBuffer -> IO Int
bufferedBytes buffer = readByteArray (bufferUsed buffer) 0

-- | Whether so many more bytes fit without new memory. The caller holds the lock.
bufferReady :: WriteBuffer -> Int -> IO Bool
bufferReady buffer bytes = do
  used <- bufferedBytes buffer
  capacity <- readIORef (bufferFront buffer) >>= getSizeofMutableByteArray
  pure (used + bytes <= capacity)
{-# INLINE bufferReady #-}

-- | Makes room for so many more bytes. The caller holds the lock. \(O(n)\), amortised. Throws when
-- there is no memory, and then has changed nothing.
bufferReserve :: WriteBuffer -> Int -> IO ()
bufferReserve buffer bytes = do
  used <- bufferedBytes buffer
  block <- readIORef (bufferFront buffer)
  capacity <- getSizeofMutableByteArray block
  when (used + bytes > capacity) $ do
    larger <- newPinnedByteArray (max (2 * capacity) (used + bytes))
    copyMutableByteArray larger 0 block 0 used
    writeIORef (bufferFront buffer) larger
{-# NOINLINE bufferReserve #-}

-- | Appends a request, which is forced and has room; returns its size. The caller holds the lock. \(O(n)\).
appendRequest :: WriteBuffer -> Request -> IO Int
appendRequest buffer request = do
  let !size = requestSize request
  used <- bufferedBytes buffer
  block <- readIORef (bufferFront buffer)
  requestPoke request (mutableByteArrayContents block `plusPtr` used)
  touch block
  writeByteArray (bufferUsed buffer) 0 (used + size)
  pure size
{-# INLINE appendRequest #-}

-- | Takes out the front block and puts the other one, empty, in its place. The caller holds the lock and the right
-- to send, and calls 'releaseBlock' before it gives that away.
swapBlocks :: WriteBuffer -> IO Block
swapBlocks buffer = do
  used <- bufferedBytes buffer
  front <- readIORef (bufferFront buffer)
  back <- readIORef (bufferBack buffer)
  writeIORef (bufferFront buffer) back
  writeByteArray (bufferUsed buffer) 0 (0 :: Int)
  pure (Block front used)

-- | The number of bytes in a block.
blockSize :: Block -> Int
blockSize (Block _ size) = size

-- | The memory of a block, while the action runs.
withBlock :: Block -> (Ptr Word8 -> IO a) -> IO a
withBlock (Block block _) action = do
  result <- action (mutableByteArrayContents block)
  touch block
  pure result
{-# INLINE withBlock #-}

-- | Hands a block back after it was sent. A large one is not kept, unless there is no memory. Never throws.
releaseBlock :: WriteBuffer -> Block -> IO ()
releaseBlock buffer (Block block _) = do
  capacity <- getSizeofMutableByteArray block
  kept <-
    if capacity > 1024 * 1024
      then either (\(_ :: SomeException) -> block) id <$> try (newPinnedByteArray (16 * 1024))
      else pure block
  writeIORef (bufferBack buffer) kept

-- | The queue of one connection.
data AdmissionQueue = AdmissionQueue
  { admissionWaiters :: IORef (Seq Waiter),
    -- | See 'Count'.
    admissionCounts :: MutableByteArray RealWorld,
    -- | A time that is no later than the first deadline in the queue.
    admissionEarliest :: IORef Nanos
  }

-- | A caller that waits.
data Waiter = Waiter
  { waiterAdmission :: MVar Admission,
    waiterStanding :: IORef Standing,
    -- | The capacity that it waits for.
    waiterCommands :: Int,
    waiterBytes :: Int,
    -- | On the coarse clock.
    waiterDeadline :: Nanos
  }

-- | The state of a caller.
data Standing = InQueue | Promised | Gone
  deriving stock (Eq)

-- | How a wait ends.
data Admission = Admitted | TooLate
  deriving stock (Eq, Show)

data Count
  = -- | Callers that wait, and callers that were admitted and have not taken it yet.
    CountWaiting
  | -- | Commands and bytes promised to callers that were admitted.
    CountCommands
  | CountBytes
  | -- | Places in the queue whose callers have left.
    CountGone
  deriving stock (Enum)

-- | An empty queue.
newAdmissionQueue :: IO AdmissionQueue
newAdmissionQueue = do
  admissionWaiters <- newIORef Seq.empty
  admissionCounts <- newByteArray (4 * 8)
  setByteArray admissionCounts 0 4 (0 :: Int)
  admissionEarliest <- newIORef maxBound
  pure AdmissionQueue {admissionWaiters, admissionCounts, admissionEarliest}

-- | The callers that wait or have not taken what they were promised. \(O(1)\). Without the lock a little old.
waitingForCapacity :: AdmissionQueue -> IO Int
waitingForCapacity queue = readCount queue CountWaiting
{-# INLINE waitingForCapacity #-}

-- | Adds a caller at the end, given how many commands and bytes it has, and its deadline. \(O(1)\).
joinQueue :: AdmissionQueue -> Int -> Int -> Nanos -> IO Waiter
joinQueue queue waiterCommands waiterBytes waiterDeadline = do
  waiterAdmission <- newEmptyMVar
  waiterStanding <- newIORef InQueue
  let waiter = Waiter {waiterAdmission, waiterStanding, waiterCommands, waiterBytes, waiterDeadline}
  modifyIORef' (admissionWaiters queue) (|> waiter)
  modifyIORef' (admissionEarliest queue) (min waiterDeadline)
  waiter <$ addCount queue CountWaiting 1

-- | Blocks until the caller is admitted. If it is interrupted, the caller must leave ('leaveQueue').
awaitAdmission :: Waiter -> IO Admission
awaitAdmission = takeMVar . waiterAdmission

-- | Ends the wait of a caller that was admitted: its capacity is taken. \(O(1)\).
takePromised :: AdmissionQueue -> Waiter -> IO ()
takePromised queue waiter = do
  writeIORef (waiterStanding waiter) Gone
  addCount queue CountWaiting (-1)
  addCount queue CountCommands (negate (waiterCommands waiter))
  addCount queue CountBytes (negate (waiterBytes waiter))

-- | Gives up a place, or what was promised. Then the next callers must be called. \(O(1)\) amortised.
leaveQueue :: AdmissionQueue -> Waiter -> IO ()
leaveQueue queue waiter =
  readIORef (waiterStanding waiter) >>= \case
    Promised -> takePromised queue waiter
    Gone -> pure ()
    InQueue -> do
      writeIORef (waiterStanding waiter) Gone
      addCount queue CountWaiting (-1)
      addCount queue CountGone 1
      gone <- readCount queue CountGone
      waiters <- readIORef (admissionWaiters queue)
      when (2 * gone > Seq.length waiters) $
        mapM keepIfWaiting (toList waiters) >>= setWaiters queue . Seq.fromList . concat

keepIfWaiting :: Waiter -> IO [Waiter]
keepIfWaiting waiter = (\place -> [waiter | place == InQueue]) <$> readIORef (waiterStanding waiter)

-- | Replaces the queue. All of these callers must be waiting.
setWaiters :: AdmissionQueue -> Seq Waiter -> IO ()
setWaiters queue waiters = do
  writeIORef (admissionWaiters queue) waiters
  writeCount queue CountGone 0

-- | Admits callers in order, up to the first for which there is no capacity: otherwise a long run would
-- never get its turn. The function decides, given the commands and bytes that are promised, and those that
-- the caller wishes for.
admitWhile :: AdmissionQueue -> (Int -> Int -> Int -> Int -> Bool) -> IO ()
admitWhile queue fits = do
  waiting <- waitingForCapacity queue
  when (waiting > 0) go
  where
    go =
      readIORef (admissionWaiters queue) >>= \case
        Seq.Empty -> pure ()
        waiter :<| rest ->
          readIORef (waiterStanding waiter) >>= \case
            InQueue -> do
              commands <- readCount queue CountCommands
              bytes <- readCount queue CountBytes
              when (fits commands bytes (waiterCommands waiter) (waiterBytes waiter)) $ do
                writeIORef (admissionWaiters queue) rest
                promise queue waiter
                go
            _ -> do
              writeIORef (admissionWaiters queue) rest
              addCount queue CountGone (-1)
              go

-- | Admits all callers: the connection takes no more commands, and refuses theirs.
admitAll :: AdmissionQueue -> IO ()
admitAll queue = admitWhile queue (\_ _ _ _ -> True)

promise :: AdmissionQueue -> Waiter -> IO ()
promise queue waiter = do
  writeIORef (waiterStanding waiter) Promised
  addCount queue CountCommands (waiterCommands waiter)
  addCount queue CountBytes (waiterBytes waiter)
  putMVar (waiterAdmission waiter) Admitted

-- | Tells the callers whose deadlines have passed at this time. Then those behind them must be
-- called ('admitWhile'). \(O(1)\) if there are none, otherwise \(O(n)\).
refuseLate :: AdmissionQueue -> Nanos -> IO ()
refuseLate queue now = do
  earliest <- readIORef (admissionEarliest queue)
  when (earliest <= now) $ do
    waiters <- readIORef (admissionWaiters queue) >>= fmap concat . mapM keepIfWaiting . toList
    let late waiter = waiterDeadline waiter <= now
        inTime = filter (not . late) waiters
    mapM_ tellLate (filter late waiters)
    setWaiters queue (Seq.fromList inTime)
    -- Forced: a thunk would keep all these callers alive, and make the next look linear.
    writeIORef (admissionEarliest queue) $! List.foldl' min maxBound (map waiterDeadline inTime)
  where
    tellLate waiter = do
      writeIORef (waiterStanding waiter) Gone
      addCount queue CountWaiting (-1)
      putMVar (waiterAdmission waiter) TooLate

readCount :: AdmissionQueue -> Count -> IO Int
readCount queue count = readByteArray (admissionCounts queue) (fromEnum count)
{-# INLINE readCount #-}

writeCount :: AdmissionQueue -> Count -> Int -> IO ()
writeCount queue count = writeByteArray (admissionCounts queue) (fromEnum count)

addCount :: AdmissionQueue -> Count -> Int -> IO ()
addCount queue count change = readCount queue count >>= writeCount queue count . (+ change)
