-- | Sends queued bytes: the caller or the reader whose turn it is sends them, or the writer when
-- the socket is full. "Redis.Internal.Network.Wakeup" says whose turn it is, and why nothing is
-- left unsent.
--
-- The kernel takes bytes for a connection that it knows the peer to have closed, and a write that it
-- took may have run, for all the client can tell. A reader that sleeps unwatched does not know of the
-- end. So after a time without replies a sender looks at the socket first: what it does not send, is
-- sent again on another connection.
module Redis.Internal.Network.Sender
  ( flushQueued,
    takeQueued,
    sendBlock,
    writerLoop,
  )
where

import Control.Concurrent.MVar
import Control.Exception (IOException, SomeException, try)
import Control.Monad (when)
import Data.Foldable (for_)
import Data.IORef (readIORef, writeIORef)
import Foreign.Ptr (plusPtr)
import Redis.Error (ConnectionCause (BrokenConnection, ClosedByPeer))
import Redis.Internal.Network.MuxState
import Redis.Internal.Network.PendingRing
import Redis.Internal.Network.ReplyChecks (ReplyChecks, checkKey, nextCheck)
import Redis.Internal.Network.ResponseSlot (newResponseSlot)
import Redis.Internal.Network.Transport
import Redis.Internal.Network.Wakeup hiding (Event (Stuck))
import Redis.Internal.Network.Wakeup qualified as Wakeup
import Redis.Internal.Network.WriteBuffer
import Redis.Internal.Protocol.Encode (requestSize)

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
    mapM_ (uncurry (sendBlock mux)) taken

-- | Swaps the blocks. Returns also whether to look at the socket before the block is sent. Call it
-- under the lock, with the right to send.
takeQueued :: Multiplexer -> IO (Bool, Block)
takeQueued mux = do
  for_ (muxChecks mux) (queueCheck mux)
  block <- swapBlocks (muxBuffer mux)
  quiet <- markSent mux
  (quiet, block) <$ admitWaiting mux

-- | Ends the block that is about to be sent with a check. Without memory for it the next block's
-- check stands for both.
queueCheck :: Multiplexer -> ReplyChecks -> IO ()
queueCheck mux checks = do
  counted <- readWord mux wordCountedFrom
  next <- ringTail (muxRing mux)
  when (next > counted) $ do
    (check, queued) <- nextCheck checks
    made <- try (bufferReserve (muxBuffer mux) (requestSize check) *> ringReserve (muxRing mux) 1)
    case made of
      Left (_ :: SomeException) -> pure ()
      Right () -> do
        size <- appendRequest (muxBuffer mux) check
        end <- (+ size) <$> readWord mux wordQueued
        writeWord mux wordQueued end
        -- Its time is over when that of the command before it is.
        before <- ringPeek (muxRing mux) (next - 1)
        nobody <- newResponseSlot
        ringPush (muxRing mux) before {pendingSlot = nobody, pendingEnd = end, pendingOrderKey = checkKey}
        queued
{-# NOINLINE queueCheck #-}

-- | Sends a block and gives the right to send back, or hands both to the
-- writer. With the flag it looks first whether the peer has ended the connection. The caller is masked
-- and has the right. Never blocks.
sendBlock :: Multiplexer -> Bool -> Block -> IO ()
sendBlock mux quiet block = do
  over <- if quiet then transportHungUp (muxTransport mux) else pure False
  (if over then pure (Broken ClosedByPeer) else attemptAll mux block 0) >>= \case
    AllSent -> finish
    Broken cause -> do
      -- Killed first: anything sent now would follow a hole in the stream.
      killMultiplexer mux cause
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
  | Broken ConnectionCause

-- | Sends from an offset until the block ends or the socket is full.
attemptAll :: Multiplexer -> Block -> Int -> IO Progress
attemptAll mux block = go
  where
    size = blockSize block
    go sent
      | sent >= size = pure AllSent
      | otherwise =
        try (withBlock block $ \start -> transportTryWrite (muxTransport mux) (start `plusPtr` sent) (size - sent)) >>= \case
          Left (reason :: IOException) -> pure (Broken (BrokenConnection (show reason)))
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
        Broken cause -> killMultiplexer mux cause *> next block
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
          -- Bytes that are still on their way out keep the reader watching.
          Send -> Just . snd <$> takeQueued mux
          _ -> pure Nothing
        pure (after, more)
      wake mux after
      mapM_ (`pushOut` 0) more
