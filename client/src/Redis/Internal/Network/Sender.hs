-- | How queued bytes leave: by the thread that finds it right to send them, or
-- by the writer when the socket is full.
--
-- Nobody waits for the right to send. A thread that does not get it leaves its
-- bytes to the one that has it or to the reader's next turn; the rule that
-- makes this safe is that the reader never goes to sleep while bytes are queued,
-- unless the writer is busy, that whoever queues bytes while it sleeps wakes it,
-- and that the writer, before it gives the right back, looks once more under the
-- lock.
module Redis.Internal.Network.Sender
  ( flushQueued,
    sendBlock,
    writerLoop,
  )
where

import Control.Concurrent.MVar
import Control.Exception (IOException, try, uninterruptibleMask_)
import Control.Monad (void)
import Data.IORef (readIORef, writeIORef)
import Foreign.Ptr (plusPtr)
import Redis.Error (ConnectionCause (BrokenConnection))
import Redis.Internal.Network.MuxState
import Redis.Internal.Network.Transport
import Redis.Internal.Network.WriteBuffer

-- | Sends what is queued, unless somebody else is sending. Never blocks.
flushQueued :: Multiplexer -> IO ()
flushQueued mux = do
  -- Read without the lock: the reader comes here before every read, and a
  -- command that is appended at this moment finds the reader awake.
  unflushed <- readFlag mux flagUnflushed
  if unflushed == 0
    then pure ()
    else do
      taken <- withLock mux $ do
        busy <- readFlag mux flagWriterBusy
        stillUnflushed <- readFlag mux flagUnflushed
        if busy /= 0 || stillUnflushed == 0
          then pure Nothing
          else
            tryTakeMVar (muxToken mux) >>= \case
              Nothing -> pure Nothing
              Just () -> Just <$> takeQueued mux
      case taken of
        Nothing -> pure ()
        Just block -> sendBlock mux block

-- | Swaps the blocks. Under the lock, with the right to send.
takeQueued :: Multiplexer -> IO Block
takeQueued mux = do
  writeFlag mux flagUnflushed 0
  block <- swapBlocks (muxBuffer mux)
  admitWaiting mux
  pure block

-- | Sends a block and gives the right to send back, or hands both to the
-- writer. The caller is masked and has the right. Never blocks.
sendBlock :: Multiplexer -> Block -> IO ()
sendBlock mux block =
  attemptAll mux block 0 >>= \case
    AllSent -> finish
    Broken reason -> do
      -- Dead first: what followed now would leave a hole in the stream.
      killMultiplexer mux (BrokenConnection reason)
      finish
    Stuck sent _ ->
      -- Bounded: the lock is only ever held for a copy. An interruption here
      -- would lose the block.
      uninterruptibleMask_ $ do
        handedOver <-
          withLock mux $
            readIORef (muxStatus mux) >>= \case
              -- Then the writer may have ended already.
              Dead _ -> pure False
              _ -> do
                writeIORef (muxLeftover mux) (Just (block, sent))
                writeFlag mux flagWriterBusy 1
                pure True
        if handedOver then void (tryPutMVar (muxWriterWake mux) ()) else finish
  where
    finish = do
      releaseBlock (muxBuffer mux) block
      putMVar (muxToken mux) ()

data Progress
  = AllSent
  | -- | So much is sent; what the transport waits for.
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
              before <- readFlag mux flagSent
              writeFlag mux flagSent (before + attempt)
              go (sent + attempt)
            | otherwise -> pure (Stuck sent attempt)

-- | The body of the writer: idle until a sender hands it a block.
writerLoop :: Multiplexer -> IO ()
writerLoop mux = do
  takeMVar (muxWriterWake mux)
  leftover <- readIORef (muxLeftover mux)
  case leftover of
    Just (block, sent) -> do
      writeIORef (muxLeftover mux) Nothing
      pushOut block sent
    Nothing -> unlessDead
  where
    unlessDead =
      readIORef (muxStatus mux) >>= \case
        Dead _ -> pure ()
        _ -> writerLoop mux

    pushOut block sent =
      attemptAll mux block sent >>= \case
        AllSent -> do
          releaseBlock (muxBuffer mux) block
          more <- withLock mux $ do
            unflushed <- readFlag mux flagUnflushed
            if unflushed > 0
              then Just <$> takeQueued mux
              else do
                writeFlag mux flagWriterBusy 0
                putMVar (muxToken mux) ()
                pure Nothing
          case more of
            Just next -> pushOut next 0
            Nothing -> unlessDead
        Broken reason -> do
          killMultiplexer mux (BrokenConnection reason)
          giveUp block
        Stuck sent' waitsFor ->
          readIORef (muxStatus mux) >>= \case
            Dead _ -> giveUp block
            _ -> do
              if waitsFor == attemptWouldRead
                then transportWaitReadable (muxTransport mux)
                else transportWaitWritable (muxTransport mux)
              pushOut block sent'

    giveUp block = do
      releaseBlock (muxBuffer mux) block
      putMVar (muxToken mux) ()
