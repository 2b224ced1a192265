-- | The state of a 'Multiplexer', which its parts share, and sending from it.
--
-- A multiplexer has one lock, held for the time it takes to copy one request; nothing that can
-- block is done under it. The lock guards the front block of the write buffer, pushing to the ring,
-- the queue for room, the state of "Redis.Internal.Network.Wakeup", and every word below except
-- those that their comments name.
--
-- The /right to send/ is a second, longer-lived lock, which is part of that state. Its holder may swap the
-- blocks, under the first lock, and write to the transport, without it. A thread asks for the right and
-- never waits for it, except the reader at the end. A caller or the reader that finds the socket full
-- starts a writer, which goes on.
--
-- The kernel takes bytes for a connection that it knows the peer to have closed, and a write that it
-- took may have run, for all the client can tell. A reader that sleeps unwatched does not know of the
-- end. So after a time without replies a sender looks at the socket first: what it does not send, is
-- sent again on another connection.
module Redis.Internal.Network.Connection
  ( Multiplexer (..),
    MuxSettings (..),
    Neighbours (..),
    BufferSize (..),
    newMuxState,
    withLock,
    withLockAlways,
    killMultiplexer,
    deathCause,

    -- * Who sends, who sleeps
    wakeup,
    lifeOf,
    transition,
    wake,
    wakeReader,
    wakeWatchdog,

    -- * Words
    Word (..),
    readWord,
    writeWord,
    repliesUntilEnd,
    peakUnit,

    -- * Room
    inFlight,
    hasCapacity,
    admitWaiting,

    -- * Sending
    flushQueued,
    takeQueued,
    sendBlock,
    endedByPeer,
  )
where

import Control.Concurrent.MVar
import Control.Concurrent.STM (TMVar, atomically, newEmptyTMVarIO, tryPutTMVar)
import Control.Exception (SomeException, mask_, try, uninterruptibleMask_)
import Control.Monad (unless, void, when)
import Control.Monad.Primitive (RealWorld)
import Data.Foldable (for_)
import Data.IORef (IORef, modifyIORef', newIORef, readIORef, writeIORef)
import Data.Primitive.ByteArray
import Foreign.Ptr (plusPtr)
import Redis.Error (ConnectionCause (BrokenConnection, ClosedByPeer, ClosedLocally, HandshakeRefused, TlsFailed), ConnectionFailure (..), Delivery (NotSent), Error (ConnectionError), renderEndpoint)
import Redis.Internal.Config (Polling)
import Redis.Internal.Network.Counters (Counters)
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Outgoing
import Redis.Internal.Network.ReplyChecks (ReplyChecks, checkKey, newReplyChecks, nextCheck)
import Redis.Internal.Network.Runtime (Nanos, preciseNanos, spawnOn)
import Redis.Internal.Network.Transport
import Redis.Internal.Network.Wakeup
import Redis.Internal.Protocol.Decode (Limits)
import Redis.Internal.Protocol.Encode (requestSize)
import Redis.Value (Value)
import Prelude hiding (Word)

-- | The settings of a multiplexer.
data MuxSettings = MuxSettings
  { -- | The largest number of commands in flight.
    muxMaxInFlight :: Int,
    -- | The largest number of unsent encoded bytes. A larger command may enter when nothing is queued.
    muxMaxQueued :: Int,
    muxDecodeLimits :: Limits,
    -- | The usual time limit of a command. 'Nothing' is no limit.
    muxCommandTimeout :: Maybe Nanos,
    -- | How long the peer may be silent while commands are in flight before it is probed, and again
    -- before the connection is ended ("Redis.Internal.Network.Deadlines").
    muxSilenceLimit :: Maybe Nanos,
    muxPolling :: Polling,
    muxNeighbours :: Neighbours,
    -- | How much memory the connection has at rest.
    muxBufferSize :: BufferSize,
    -- | The capability its threads run on.
    muxCapability :: Int,
    -- | The counters of how commands went, if there is one. Counts commands from 'WordCountedFrom' on.
    muxCounters :: Maybe Counters,
    -- | Whether each block ends with a check, from 'WordCountedFrom' on.
    muxReplyChecks :: Bool,
    -- | Called by the reader for each block of commands that were answered within the usual time limit;
    -- must be quick and must not throw.
    muxOnAnswers :: IO (),
    -- | Called by the reader with every push; must be quick and must not throw.
    muxOnPush :: Value -> IO (),
    -- | Set if pushes are expected; then the reader never sleeps unwatched. Called once by the reader,
    -- after the last push and reply, before any waiting caller is told.
    muxOnLastWord :: Maybe (IO ()),
    -- | Called once by the reader, after every waiting caller has been told.
    muxOnDeath :: ConnectionCause -> IO ()
  }

-- | The other connections that the client has on the same capability. A reader polls freely beside those of
-- its own node (docs/adr/0010-polling-in-a-cluster.md).
data Neighbours = NoNeighbours | OfSameNode | OfOtherNodes
  deriving stock (Eq, Ord, Show)

-- | The number of callers that a connection is for.
data BufferSize
  = -- | Buffers for the commands of many callers, and counts of each thread's commands.
    ManyCallers
  | -- | Small buffers, which grow when they must, and no counts.
    OneCaller
  deriving stock (Eq, Show)

-- | One connection that many callers share.
data Multiplexer = Multiplexer
  { muxSettings :: MuxSettings,
    muxTransport :: Transport,
    muxLock :: MVar (),
    -- | The cause of the connection's death, once it is dead.
    muxCause :: IORef ConnectionCause,
    muxBuffer :: WriteBuffer,
    muxRing :: PendingRing,
    -- | When the commands in flight were sent.
    muxSendTimes :: SendTimes,
    muxReaderWake :: MVar (),
    -- | A 'TMVar', because the watchdog waits with a time limit.
    muxWatchdogWake :: TMVar (),
    muxAdmission :: AdmissionQueue,
    -- | The packed 'Wakeup' and the words.
    muxWords :: MutableByteArray RealWorld,
    -- | What each thread has in flight here.
    muxOrder :: OrderCounts,
    muxChecks :: Maybe ReplyChecks,
    -- | Full when the reader has cleaned up.
    muxGone :: TMVar ()
  }

-- | The same connection.
instance Eq Multiplexer where
  one == other = muxGone one == muxGone other

-- | The state of an open connection with nothing in flight.
newMuxState :: MuxSettings -> Transport -> OrderCounts -> IO Multiplexer
newMuxState muxSettings muxTransport muxOrder = do
  muxLock <- newMVar ()
  -- The cause while a connection drains, and at its end.
  muxCause <- newIORef ClosedLocally
  muxBuffer <- newWriteBuffer $ case muxBufferSize muxSettings of
    ManyCallers -> 16 * 1024
    OneCaller -> 1024
  nobody <- newFilledSlot (Failure (ConnectionError (ConnectionFailure "" NotSent (transportEndpoint muxTransport) ClosedLocally)))
  -- A handshake is one run, and must fit however low the limit is.
  muxRing <- newPendingRing (max 16 (muxMaxInFlight muxSettings)) nobody
  muxSendTimes <- newSendTimes $ case muxBufferSize muxSettings of
    ManyCallers -> 256
    OneCaller -> 16
  muxReaderWake <- newEmptyMVar
  muxWatchdogWake <- newEmptyTMVarIO
  muxAdmission <- newAdmissionQueue
  muxWords <- newByteArray (wordCount * 8)
  setByteArray muxWords 0 wordCount (0 :: Int)
  muxChecks <- if muxReplyChecks muxSettings then Just <$> newReplyChecks else pure Nothing
  muxGone <- newEmptyTMVarIO
  let mux = Multiplexer {muxSettings, muxTransport, muxLock, muxCause, muxBuffer, muxRing, muxSendTimes, muxReaderWake, muxWatchdogWake, muxAdmission, muxWords, muxOrder, muxChecks, muxGone}
  writeWord mux WordWakeup (wakeupWord atFirst)
  writeWord mux WordEarliest maxBound
  writeWord mux WordShortest maxBound
  writeWord mux WordShortestNext maxBound
  writeWord mux WordOverdue (-1)
  writeWord mux WordCountedFrom maxBound
  pure mux

-- | Runs a short action, which must not throw, under the lock. Only the wait for the lock is interruptible.
withLock :: Multiplexer -> IO a -> IO a
withLock mux action = mask_ $ do
  takeMVar (muxLock mux)
  result <- action
  putMVar (muxLock mux) ()
  pure result
{-# INLINE withLock #-}

-- | Like 'withLock', but never interrupted. The wait is bounded, because the lock is only held for a copy.
withLockAlways :: Multiplexer -> IO a -> IO a
withLockAlways mux action = uninterruptibleMask_ (withLock mux action)
{-# INLINE withLockAlways #-}

-- | Ends a multiplexer. The first cause counts, except that the error with which a server turned this client
-- away replaces a failed send. \(O(1)\); does not wait until the callers have been told, see 'muxGone'.
killMultiplexer :: Multiplexer -> ConnectionCause -> IO ()
killMultiplexer mux cause = do
  after <- withLockAlways mux $ do
    life <- lifeOf mux
    case life of
      Dead -> modifyIORef' (muxCause mux) (`unlessRefused` cause)
      _ -> do
        writeIORef (muxCause mux) cause
        ringHead (muxRing mux) >>= writeWord mux WordReplies
        -- Under the lock: the reader takes it before it frees the descriptor.
        transportShutdown (muxTransport mux)
    transition mux Dies
  wake mux after

-- | Of an earlier cause and a later one, the more precise one.
unlessRefused :: ConnectionCause -> ConnectionCause -> ConnectionCause
unlessRefused earlier later
  | endedByPeer earlier && says later = later
  | otherwise = earlier
  where
    says = \case
      HandshakeRefused _ -> True
      TlsFailed _ -> True
      _ -> False

-- | Whether it was noticed while sending, and the peer may have said why before.
endedByPeer :: ConnectionCause -> Bool
endedByPeer = \case
  BrokenConnection _ -> True
  ClosedByPeer -> True
  _ -> False

-- | Why a dead multiplexer is dead.
deathCause :: Multiplexer -> IO ConnectionCause
deathCause = readIORef . muxCause

-- | The state of the connection's parties. Without the lock it may be a little old.
wakeup :: Multiplexer -> IO Wakeup
wakeup mux = fromWord <$> readWord mux WordWakeup
{-# INLINE wakeup #-}

-- | Whether the connection takes commands. Without the lock it may be a little old.
lifeOf :: Multiplexer -> IO Life
lifeOf mux = wakeupLife <$> wakeup mux
{-# INLINE lifeOf #-}

-- | Takes the step for an event. Call it under the lock, and 'wake' afterwards.
transition :: Multiplexer -> Event -> IO Step
transition mux event = do
  before <- wakeup mux
  let after = step event before
  writeWord mux WordWakeup (wakeupWord (stepState after))
  pure after
{-# INLINE transition #-}

-- | Wakes the threads that a step names. Call it without the lock. \(O(1)\), never blocks.
wake :: Multiplexer -> Step -> IO ()
wake mux after = do
  when (wakesWatchdog after) (wakeWatchdog mux)
  when (wakesReader after) (wakeReader mux)
{-# INLINE wake #-}

-- | Wakes the reader if it sleeps. \(O(1)\), never blocks.
wakeReader :: Multiplexer -> IO ()
wakeReader mux = void (tryPutMVar (muxReaderWake mux) ())

-- | Wakes the watchdog if it sleeps. \(O(1)\), never blocks.
wakeWatchdog :: Multiplexer -> IO ()
wakeWatchdog mux = void (atomically (tryPutTMVar (muxWatchdogWake mux) ()))
{-# NOINLINE wakeWatchdog #-}

-- | A word of 'muxWords'.
data Word
  = -- | The packed 'Wakeup'.
    WordWakeup
  | -- | Bytes ever appended.
    WordQueued
  | -- | The most commands in flight of late, in parts of 'peakUnit'.
    WordPeak
  | -- | A time that is no later than the first deadline of the commands in flight.
    WordEarliest
  | -- | From which position to which all commands were past their deadlines when the watchdog looked
    -- last.
    WordOverdueFrom
  | WordOverdue
  | -- | The shortest time limit of a command, of those that have not the usual one or waited for room.
    WordShortest
  | -- | The shortest of those that came since 'WordShortest' was last looked at. It becomes that once all
    -- commands before the position in the second word, which came earlier, are answered.
    WordShortestNext
  | WordShortestUntil
  | -- | The longest time limit of a command, of those that have not the usual one. It counts until
    -- all commands before the position in the second word are answered.
    WordLongest
  | WordLongestUntil
  | -- | The number of replies that had come when the connection died.
    WordReplies
  | -- | The position of the first command that the counters count: those before are the handshake's.
    WordCountedFrom
  | -- | The number of commands that somebody has begun to send. No reply can belong to a later one.
    WordHandedOver
  | -- | Bytes ever accepted by the kernel. Written by the holder of the right to send.
    WordSent
  | -- | The number of reads that brought bytes. Written by the reader.
    WordReads
  | -- | When bytes came last. Written by the reader.
    WordReadAt
  deriving stock (Enum)

-- | Words that different threads write lie on different cache lines.
wordIndex :: Word -> Int
wordIndex = \case
  WordSent -> 16
  WordReads -> 24
  WordReadAt -> 25
  word -> fromEnum word
{-# INLINE wordIndex #-}

wordCount :: Int
wordCount = 32

-- | After so long without bytes a sender looks at the socket first, which costs a small part of this time.
quietNanos :: Int
quietNanos = 100000

-- | The number of parts that make one command in flight.
peakUnit :: Int
peakUnit = 256

-- | Reads without a barrier: other threads' writes may be seen late.
readWord :: Multiplexer -> Word -> IO Int
readWord mux word = readByteArray (muxWords mux) (wordIndex word)
{-# INLINE readWord #-}

-- | Writes without a barrier; the lock is one.
writeWord :: Multiplexer -> Word -> Int -> IO ()
writeWord mux word = writeByteArray (muxWords mux) (wordIndex word)
{-# INLINE writeWord #-}

-- | Notes that all commands so far are being sent. If the peer may have ended the connection unnoticed,
-- returns their number, which 'WordHandedOver' gets only when the sender has looked: what is not sent has no
-- reply. That is so if nothing that was sent is unanswered, so that the reader may sleep unwatched, and
-- nothing has come for so long. Call it under the lock, with the right to send.
markSent :: Multiplexer -> IO (Maybe Int)
markSent mux = do
  now <- preciseNanos
  submitted <- ringTail (muxRing mux)
  answered <- ringHead (muxRing mux)
  sent <- readWord mux WordHandedOver
  addSendTime (muxSendTimes mux) submitted now
  heard <- readWord mux WordReadAt
  if answered >= sent && fromIntegral now - heard > quietNanos
    then pure (Just submitted)
    else Nothing <$ writeWord mux WordHandedOver submitted
{-# NOINLINE markSent #-}

-- | Commands submitted and not answered.
inFlight :: Multiplexer -> IO Int
inFlight mux = do
  -- In this order a pop in between makes the result too large, not negative.
  answered <- ringHead (muxRing mux)
  submitted <- ringTail (muxRing mux)
  pure (submitted - answered)
{-# INLINE inFlight #-}

-- | The replies that have come; for a dead connection, until it died. \(O(1)\), never blocks. May be a little old.
repliesUntilEnd :: Multiplexer -> IO Int
repliesUntilEnd mux =
  lifeOf mux >>= \case
    -- Since then commands have been taken from the ring because they failed.
    Dead -> readWord mux WordReplies
    _ -> ringHead (muxRing mux)

-- | Whether so many more commands of so many more bytes may be submitted. Call it under the lock.
hasCapacity :: Multiplexer -> Int -> Int -> IO Bool
hasCapacity mux commands bytes = do
  busy <- inFlight mux
  used <- bufferedBytes (muxBuffer mux)
  pure $! fits (muxSettings mux) busy used commands bytes
{-# INLINE hasCapacity #-}

-- | The rule, given the commands in flight, the bytes queued, and how much more of both is wanted.
fits :: MuxSettings -> Int -> Int -> Int -> Int -> Bool
fits limits busy used commands bytes =
  -- A run longer than the limit may go when nothing else is in flight, as far as the ring holds it.
  (busy + commands <= muxMaxInFlight limits || busy == 0)
    && (used == 0 || used + bytes <= muxMaxQueued limits)
{-# INLINE fits #-}

-- | Admits the waiting callers that there is room for. Call it under the lock.
admitWaiting :: Multiplexer -> IO ()
admitWaiting mux = do
  waiting <- waitingForCapacity (muxAdmission mux)
  when (waiting > 0) $ do
    busy <- inFlight mux
    used <- bufferedBytes (muxBuffer mux)
    admitWhile (muxAdmission mux) (\commands bytes -> fits (muxSettings mux) (busy + commands) (used + bytes))
{-# INLINE admitWaiting #-}

-- | Sends the queued commands, unless another thread is sending. Never blocks.
flushQueued :: Multiplexer -> IO ()
flushQueued mux = do
  -- Without the lock, because the reader comes here whenever a read brings no reply. It looks again, under
  -- the lock, before it sleeps.
  unsent <- wakeupUnsent <$> wakeup mux
  when (unsent > 0) $ do
    taken <- withLock mux $ do
      after <- transition mux WouldSend
      case stepAnswer after of
        Send -> Just <$> takeQueued mux
        _ -> pure Nothing
    mapM_ (uncurry (sendBlock mux)) taken

-- | Swaps the blocks, and says whether to look at the socket first ('markSent'). Under the lock, with the right to send.
takeQueued :: Multiplexer -> IO (Maybe Int, Block)
takeQueued mux = do
  for_ (muxChecks mux) (queueCheck mux)
  block <- swapBlocks (muxBuffer mux)
  unlooked <- markSent mux
  (unlooked, block) <$ admitWaiting mux

-- | Ends the block that is about to be sent with a check. Without memory for it, the next check stands for both.
queueCheck :: Multiplexer -> ReplyChecks -> IO ()
queueCheck mux checks = do
  counted <- readWord mux WordCountedFrom
  next <- ringTail (muxRing mux)
  when (next > counted) $ do
    (check, queued) <- nextCheck checks
    made <- try (bufferReserve (muxBuffer mux) (requestSize check) *> ringReserve (muxRing mux) 1)
    case made of
      Left (_ :: SomeException) -> pure ()
      Right () -> do
        size <- appendRequest (muxBuffer mux) check
        end <- (+ size) <$> readWord mux WordQueued
        writeWord mux WordQueued end
        -- Its time is over when that of the command before it is.
        before <- ringPeek (muxRing mux) (next - 1)
        nobody <- newResponseSlot
        ringPush (muxRing mux) before {entrySlot = nobody, entryEnd = end, entryOrderKey = checkKey}
        queued
{-# NOINLINE queueCheck #-}

-- | Sends a block and gives the right to send back, or starts a writer, which gets both. With the number from
-- 'takeQueued' it looks first whether the peer has ended the connection. The caller is masked. Never blocks.
sendBlock :: Multiplexer -> Maybe Int -> Block -> IO ()
sendBlock mux unlooked block = do
  over <- maybe (pure False) looked unlooked
  (if over then pure (Broken ClosedByPeer) else attemptAll mux block 0) >>= \case
    AllSent -> finish
    Broken cause -> do
      -- Killed first: anything sent now would follow a hole in the stream.
      killMultiplexer mux cause
      finish
    Full sent waitsFor -> do
      -- An interruption here would lose the block.
      void (withLockAlways mux (transition mux Stuck))
      startWriter mux block sent waitsFor
  where
    looked handed = do
      over <- transportHungUp (muxTransport mux)
      over <$ unless over (withLockAlways mux (writeWord mux WordHandedOver handed))

    finish = do
      releaseBlock (muxBuffer mux) block
      after <- withLockAlways mux (transition mux Sent)
      wake mux after

data Progress
  = AllSent
  | -- | How many bytes are sent, and what the transport waits for.
    Full Int Attempt
  | Broken ConnectionCause

-- | Sends from an offset until the block ends or the socket is full.
attemptAll :: Multiplexer -> Block -> Int -> IO Progress
attemptAll mux block = go
  where
    size = blockSize block
    go sent
      | sent >= size = pure AllSent
      | otherwise =
        attempted (withBlock block $ \start -> transportTryWrite (muxTransport mux) (start `plusPtr` sent) (size - sent)) >>= \case
          Left cause -> pure (Broken cause)
          Right attempt
            | attempt > 0 -> do
              before <- readWord mux WordSent
              writeWord mux WordSent (before + attempt)
              go (sent + attempt)
            | otherwise -> pure (Full sent attempt)

-- | Starts a thread with the right to send. It sends the rest of a block behind so many bytes, then all that is queued.
startWriter :: Multiplexer -> Block -> Int -> Attempt -> IO ()
startWriter mux = \block sent waitsFor ->
  void . spawnOn (muxCapability (muxSettings mux)) ("redis writer " <> renderEndpoint (transportEndpoint (muxTransport mux))) $
    await block sent waitsFor
  where
    await block sent waitsFor =
      lifeOf mux >>= \case
        Dead -> next block
        _ ->
          try (awaitAttempt (muxTransport mux) waitsFor) >>= \case
            -- The writer must give the right to send back: the reader waits for it before it tells anybody.
            Left problem -> broken block (BrokenConnection (show @SomeException problem))
            Right () -> pushOut block sent

    broken block cause = killMultiplexer mux cause *> next block

    pushOut block sent =
      attemptAll mux block sent >>= \case
        AllSent -> next block
        Broken cause -> broken block cause
        Full sent' waitsFor -> await block sent' waitsFor

    next block = do
      releaseBlock (muxBuffer mux) block
      (after, more) <- withLockAlways mux $ do
        after <- transition mux WriterSent
        more <- case stepAnswer after of
          -- Bytes that are still on their way out keep the reader watching.
          Send -> do
            (unlooked, block') <- takeQueued mux
            Just block' <$ mapM_ (writeWord mux WordHandedOver) unlooked
          _ -> pure Nothing
        pure (after, more)
      wake mux after
      mapM_ (`pushOut` 0) more
