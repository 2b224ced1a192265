-- | The bytes that wait to be sent, in two blocks of pinned memory that take turns.
--
-- Submitters fill the front block, under the connection's lock. The holder of the right to send
-- swaps the blocks and sends the other one without the lock, so all that is submitted meanwhile
-- leaves in one system call afterwards. A block grows by doubling. A block that a large command has
-- enlarged is given back to the collector.
module Redis.Internal.Network.WriteBuffer
  ( WriteBuffer,
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
  )
where

import Control.Exception (SomeException, try)
import Control.Monad (when)
import Control.Monad.Primitive (RealWorld, touch)
import Data.IORef (IORef, newIORef, readIORef, writeIORef)
import Data.Primitive.ByteArray
import Data.Word (Word8)
import Foreign.Ptr (Ptr, plusPtr)
import Redis.Internal.Protocol.Encode (Request, requestPoke, requestSize)

-- | Two blocks and how much of the front one is used.
data WriteBuffer = WriteBuffer
  { bufferFront :: IORef (MutableByteArray RealWorld),
    bufferBack :: IORef (MutableByteArray RealWorld),
    bufferUsed :: MutableByteArray RealWorld
  }

-- | Bytes taken out of a buffer, to be sent.
data Block = Block (MutableByteArray RealWorld) Int

-- | A block larger than this is not kept once it has been sent.
keptCapacity :: Int
keptCapacity = 1024 * 1024

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

-- | Appends a request, for which room was made, and returns how many bytes it
-- took. The caller holds the lock and has forced the request. \(O(n)\).
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

-- | Takes out the front block and puts the other block, empty, in its place. The caller holds the
-- lock and the right to send, and calls 'releaseBlock' before it gives that right away.
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

-- | Hands a block back after it was sent. Never throws: without memory for a smaller block, a large
-- one is kept.
releaseBlock :: WriteBuffer -> Block -> IO ()
releaseBlock buffer (Block block _) = do
  capacity <- getSizeofMutableByteArray block
  kept <-
    if capacity > keptCapacity
      then either (\(_ :: SomeException) -> block) id <$> try (newPinnedByteArray (16 * 1024))
      else pure block
  writeIORef (bufferBack buffer) kept
