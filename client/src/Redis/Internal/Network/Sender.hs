-- | Sends queued bytes: the caller or the reader whose turn it is sends them, or the writer when
-- the socket is full. "Redis.Internal.Network.Wakeup" says whose turn it is, and why nothing is
-- left unsent.
module Redis.Internal.Network.Sender
  ( flushQueued,
    sendBlock,
    writerLoop,
  )
where

import Control.Concurrent.MVar
import Control.Exception (IOException, try)
import Control.Monad (when)
import Data.IORef (readIORef, writeIORef)
import Foreign.Ptr (plusPtr)
import Redis.Error (ConnectionCause (BrokenConnection))
import Redis.Internal.Network.MuxState
import Redis.Internal.Network.Transport
import Redis.Internal.Network.Wakeup hiding (Event (Stuck))
import Redis.Internal.Network.Wakeup qualified as Wakeup
import Redis.Internal.Network.WriteBuffer

-- | Sends the queued commands, unless another thread is sending. Never blocks.
flushQueued :: Multiplexer -> IO ()
flushQueued mux = do
  -- Read without the lock, because the reader comes here before every read. A caller that queues a
  -- command at this moment finds the reader awake, and the reader looks again, under the lock,
  -- before it sleeps.
  unsent <- wakeupUnsent <$> wakeup mux
  when (unsent > 0) $ do
    taken <- withLock mux $ do
      after <- transition mux WouldSend
      case stepAnswer after of
        Send -> Just <$> takeQueued mux
        _ -> pure Nothing
    mapM_ (sendBlock mux) taken

-- | Swaps the blocks. Call it under the lock, with the right to send.
takeQueued :: Multiplexer -> IO Block
takeQueued mux = do
  block <- swapBlocks (muxBuffer mux)
  markSent mux
  block <$ admitWaiting mux

-- | Sends a block and gives the right to send back, or hands both to the
-- writer. The caller is masked and has the right. Never blocks.
sendBlock :: Multiplexer -> Block -> IO ()
sendBlock mux block =
  attemptAll mux block 0 >>= \case
    AllSent -> finish
    Broken reason -> do
      -- Killed first: anything sent now would follow a hole in the stream.
      killMultiplexer mux (BrokenConnection reason)
      finish
    Stuck sent _ -> do
      -- An interruption here would lose the block.
      after <- withLockAlways mux $ do
        after <- transition mux Wakeup.Stuck
        case stepAnswer after of
          Send -> writeIORef (muxLeftover mux) (Just (block, sent))
          -- Dead, and the writer may have ended already.
          _ -> releaseBlock (muxBuffer mux) block
        pure after
      wake mux after
  where
    finish = do
      releaseBlock (muxBuffer mux) block
      after <- withLockAlways mux (transition mux Sent)
      wake mux after

data Progress
  = AllSent
  | -- | How many bytes are sent, and what the transport waits for.
    Stuck Int Attempt
  | Broken String

-- | Sends from an offset until the block ends or the socket is full.
attemptAll :: Multiplexer -> Block -> Int -> IO Progress
attemptAll mux block = go
  where
    size = blockSize block
    go sent
      | sent >= size = pure AllSent
      | otherwise =
        try (withBlock block $ \start -> transportTryWrite (muxTransport mux) (start `plusPtr` sent) (size - sent)) >>= \case
          Left (reason :: IOException) -> pure (Broken (show reason))
          Right attempt
            | attempt > 0 -> do
              before <- readWord mux wordSent
              writeWord mux wordSent (before + attempt)
              go (sent + attempt)
            | otherwise -> pure (Stuck sent attempt)

-- | The body of the writer: sleeps until a sender hands it a block.
writerLoop :: Multiplexer -> IO ()
writerLoop mux = do
  takeMVar (muxWriterWake mux)
  readIORef (muxLeftover mux) >>= mapM_ (\(block, sent) -> writeIORef (muxLeftover mux) Nothing *> pushOut block sent)
  lifeOf mux >>= \case
    Dead -> pure ()
    _ -> writerLoop mux
  where
    pushOut block sent =
      attemptAll mux block sent >>= \case
        AllSent -> next block
        Broken reason -> killMultiplexer mux (BrokenConnection reason) *> next block
        Stuck sent' waitsFor ->
          lifeOf mux >>= \case
            Dead -> next block
            _ -> do
              if waitsFor == attemptWouldRead
                then transportWaitReadable (muxTransport mux)
                else transportWaitWritable (muxTransport mux)
              pushOut block sent'

    next block = do
      releaseBlock (muxBuffer mux) block
      (after, more) <- withLockAlways mux $ do
        after <- transition mux WriterSent
        more <- case stepAnswer after of
          Send -> Just <$> takeQueued mux
          _ -> pure Nothing
        pure (after, more)
      wake mux after
      mapM_ (`pushOut` 0) more
