-- | What the parts of a 'Multiplexer' share, and the rules they share it by.
--
-- A multiplexer has one lock, held for the time it takes to copy one request;
-- nothing that can block is done under it. Under the lock: the front block of
-- the write buffer, pushing to the ring, the status, and every flag below
-- except 'flagSent' (the holder of the right to send), 'flagReads' and
-- 'flagPushed' (the reader).
--
-- The /right to send/ ('muxToken') is a second, longer-lived lock: whoever has
-- taken it may swap the blocks and write to the transport, without the lock.
-- It is only ever taken without waiting, except by the writer, to which a
-- sender hands both block and right when the socket is full.
--
-- Death is a state, not an exception: 'killMultiplexer' records the cause
-- once and shuts the transport down; the reader, woken by that, fails every
-- command in flight exactly once and frees the descriptor.
module Redis.Internal.Network.MuxState
  ( Multiplexer (..),
    MuxSettings (..),
    Status (..),
    newMuxState,
    withLock,
    killMultiplexer,

    -- * Flags
    Flag,
    flagUnflushed,
    flagQueued,
    flagSent,
    flagPeak,
    flagParked,
    flagWriterBusy,
    flagReads,
    flagPolling,
    flagUnwatched,
    flagWatchWanted,
    flagPushed,
    flagWatchdogParked,
    flagWaiting,
    readFlag,
    writeFlag,
    repliesUntilEnd,
    peakUnit,

    -- * Waiting for room
    inFlight,
    hasRoom,
    joinQueue,
    takeCalledRoom,
    leaveQueue,
    admitWaiting,
    admitAll,

    -- * Waking
    kickReader,
  )
where

import Control.Concurrent.MVar
import Control.Exception (mask_, uninterruptibleMask_)
import Control.Monad (void, when)
import Control.Monad.Primitive (RealWorld)
import Data.IORef (IORef, newIORef, readIORef, writeIORef)
import Data.Primitive.ByteArray
import Data.Sequence (Seq, ViewL ((:<)), (|>))
import Data.Sequence qualified as Seq
import Redis.Error (ConnectionCause (ClosedLocally), Delivery (NotSent), Error (ConnectionError))
import Redis.Internal.Config (Polling)
import Redis.Internal.Network.Clock (Nanos)
import Redis.Internal.Network.OrderCounts (OrderCounts)
import Redis.Internal.Network.PendingRing
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Network.Transport
import Redis.Internal.Network.WriteBuffer
import Redis.Internal.Protocol.Decode (DecodeLimits)
import Redis.Value (Value)

-- | What a multiplexer is told when it is made.
data MuxSettings = MuxSettings
  { -- | Commands in flight at most.
    muxMaxInFlight :: Int,
    -- | Encoded bytes not yet sent at most; one larger command may exceed it
    -- when nothing else is queued.
    muxMaxQueued :: Int,
    muxDecodeLimits :: DecodeLimits,
    -- | From submitting to the reply; 'Nothing' waits for ever.
    muxCommandTimeout :: Maybe Nanos,
    -- | Silence, with bytes outstanding, before a probe, and again before death.
    muxSilenceLimit :: Maybe Nanos,
    muxPolling :: Polling,
    -- | Whether no other connection of the client needs its capability, so that
    -- the reader may block it for a moment.
    muxAlone :: Bool,
    -- | The capability its threads run on.
    muxCapability :: Int,
    -- | Called by the reader with every push; must be quick and must not throw.
    muxOnPush :: Value -> IO (),
    -- | Called once by the reader, after every waiter has been told.
    muxOnDeath :: ConnectionCause -> IO ()
  }

-- | Whether commands are taken.
data Status
  = Open
  | -- | No new commands; ends when those in flight are answered.
    Draining
  | Dead ConnectionCause

-- | One connection that many callers share.
data Multiplexer = Multiplexer
  { muxSettings :: MuxSettings,
    muxTransport :: Transport,
    muxLock :: MVar (),
    muxStatus :: IORef Status,
    muxBuffer :: WriteBuffer,
    muxRing :: PendingRing,
    -- | Full when nobody sends.
    muxToken :: MVar (),
    -- | What the writer must send first: the block and how much of it is sent.
    muxLeftover :: IORef (Maybe (Block, Int)),
    muxWriterWake :: MVar (),
    muxWatchdogWake :: MVar (),
    -- | Filled to wake the reader.
    muxReaderWake :: MVar (),
    -- | Callers waiting for room, longest first.
    muxQueue :: IORef (Seq Waiter),
    muxFlags :: MutableByteArray RealWorld,
    -- | What each thread has in flight here.
    muxOrder :: OrderCounts,
    -- | Full when the reader has cleaned up.
    muxGone :: MVar ()
  }

-- | The same connection.
instance Eq Multiplexer where
  one == other = muxGone one == muxGone other

-- | The state of an open connection with nothing in flight.
newMuxState :: MuxSettings -> Transport -> OrderCounts -> IO Multiplexer
newMuxState muxSettings muxTransport muxOrder = do
  muxLock <- newMVar ()
  muxStatus <- newIORef Open
  muxBuffer <- newWriteBuffer
  nobody <- newFilledSlot (Failure (ConnectionError NotSent (transportEndpoint muxTransport) noCause))
  -- Room for a handshake however low the limit: it is one run.
  muxRing <- newPendingRing (max 16 (muxMaxInFlight muxSettings)) nobody
  muxToken <- newMVar ()
  muxLeftover <- newIORef Nothing
  muxWriterWake <- newEmptyMVar
  muxWatchdogWake <- newEmptyMVar
  muxReaderWake <- newEmptyMVar
  muxQueue <- newIORef Seq.empty
  muxFlags <- newByteArray (flagCount * 8)
  setByteArray muxFlags 0 flagCount (0 :: Int)
  muxGone <- newEmptyMVar
  pure
    Multiplexer
      { muxSettings,
        muxTransport,
        muxLock,
        muxStatus,
        muxBuffer,
        muxRing,
        muxToken,
        muxLeftover,
        muxWriterWake,
        muxWatchdogWake,
        muxReaderWake,
        muxQueue,
        muxFlags,
        muxOrder,
        muxGone
      }
  where
    -- Nobody waits for the slot that this fills.
    noCause = ClosedLocally

-- | Runs a short action under the lock. Only waiting for the lock may be
-- interrupted, before the action has begun.
withLock :: Multiplexer -> IO a -> IO a
withLock mux action = mask_ $ do
  takeMVar (muxLock mux)
  result <- action
  putMVar (muxLock mux) ()
  pure result
{-# INLINE withLock #-}

-- | Ends a multiplexer, for the first cause that is given. \(O(1)\); does not
-- wait for the waiters to be told, see 'muxGone'.
killMultiplexer :: Multiplexer -> ConnectionCause -> IO ()
killMultiplexer mux cause = uninterruptibleMask_ $ do
  -- Bounded: the lock is only ever held for a copy. A caller that is
  -- interrupted here would leave a broken connection alive.
  withLock mux $
    readIORef (muxStatus mux) >>= \case
      Dead _ -> pure ()
      _ -> do
        writeIORef (muxStatus mux) (Dead cause)
        ringHead (muxRing mux) >>= writeFlag mux flagReplies
        -- Under the lock: the reader takes it before it frees the descriptor.
        transportShutdown (muxTransport mux)
  void (tryPutMVar (muxWriterWake mux) ())
  kickReader mux

-- | A word of 'muxFlags'. Those that different threads write lie on different
-- cache lines.
newtype Flag = Flag Int

-- | Commands appended since the last swap.
flagUnflushed :: Flag
flagUnflushed = Flag 0

-- | Bytes ever appended.
flagQueued :: Flag
flagQueued = Flag 1

-- | Whether the reader sleeps and must be kicked to flush or poll.
flagParked :: Flag
flagParked = Flag 2

-- | Whether the writer has the right to send and will send what is queued.
flagWriterBusy :: Flag
flagWriterBusy = Flag 3

-- | Whether the watchdog sleeps.
flagWatchdogParked :: Flag
flagWatchdogParked = Flag 4

-- | Callers waiting for room, and those called who are not in yet.
flagWaiting :: Flag
flagWaiting = Flag 5

-- | Room promised to those called.
flagCalledCommands, flagCalledBytes :: Flag
flagCalledCommands = Flag 6
flagCalledBytes = Flag 7

-- | Bytes ever accepted by the kernel.
flagSent :: Flag
flagSent = Flag 8

-- | The most commands in flight of late, in parts of 'peakUnit'.
flagPeak :: Flag
flagPeak = Flag 18

-- | The parts of one command in flight.
peakUnit :: Int
peakUnit = 256

-- | Times that something was read.
flagReads :: Flag
flagReads = Flag 16

-- | Whether the reader would poll if it were kicked.
flagPolling :: Flag
flagPolling = Flag 17

-- | Whether the reader sleeps without a request to be woken by its socket, so that
-- every submitter must kick it.
flagUnwatched :: Flag
flagUnwatched = Flag 21

-- | Whether the watchdog has found it so, and nothing has been in flight since:
-- the reader sleeps with a request from then on.
flagWatchWanted :: Flag
flagWatchWanted = Flag 22

-- | Whether a push has ever come. The reader's own.
flagPushed :: Flag
flagPushed = Flag 23

-- | Replies that had come when it died.
flagReplies :: Flag
flagReplies = Flag 19

flagCount :: Int
flagCount = 24

-- | Reads without a barrier: other threads' writes may be seen late.
readFlag :: Multiplexer -> Flag -> IO Int
readFlag mux (Flag index) = readByteArray (muxFlags mux) index
{-# INLINE readFlag #-}

-- | Writes without a barrier; the lock is one.
writeFlag :: Multiplexer -> Flag -> Int -> IO ()
writeFlag mux (Flag index) = writeByteArray (muxFlags mux) index
{-# INLINE writeFlag #-}

-- | Commands submitted and not answered.
inFlight :: Multiplexer -> IO Int
inFlight mux = do
  -- In this order a pop in between makes the result too large, not negative.
  answered <- ringHead (muxRing mux)
  submitted <- ringTail (muxRing mux)
  pure (submitted - answered)
{-# INLINE inFlight #-}

-- | Replies that have come; those of a dead connection, until it died. \(O(1)\),
-- never blocks; from a thread other than the reader it may be a little old.
repliesUntilEnd :: Multiplexer -> IO Int
repliesUntilEnd mux =
  readIORef (muxStatus mux) >>= \case
    -- Since then commands have been taken from the ring because they failed.
    Dead _ -> readFlag mux flagReplies
    _ -> ringHead (muxRing mux)

-- | Whether so many more commands of so many more bytes may be submitted.
-- Under the lock.
hasRoom :: Multiplexer -> Int -> Int -> IO Bool
hasRoom mux commands bytes = do
  busy <- inFlight mux
  used <- bufferedBytes (muxBuffer mux)
  pure (fits (muxSettings mux) busy used commands bytes)
{-# INLINE hasRoom #-}

-- | The rule: commands in flight, bytes queued, and how much more of both.
fits :: MuxSettings -> Int -> Int -> Int -> Int -> Bool
fits limits busy used commands bytes =
  -- A run longer than the limit may go when nothing else is in flight,
  -- as far as the ring holds it.
  (busy + commands <= muxMaxInFlight limits || busy == 0)
    && (used == 0 || used + bytes <= muxMaxQueued limits)
{-# INLINE fits #-}

-- | Somebody who waits for room: how to call, and room for how many commands
-- and bytes.
data Waiter = Waiter (MVar ()) Int Int

-- | Queues up for room for so many commands and bytes. Under the lock.
--
-- Who is called has the room until it takes it ('takeCalledRoom') or leaves
-- ('leaveQueue'): nobody else is let in to what was promised.
joinQueue :: Multiplexer -> Int -> Int -> IO (MVar ())
joinQueue mux commands bytes = do
  ticket <- newEmptyMVar
  queue <- readIORef (muxQueue mux)
  writeIORef (muxQueue mux) (queue |> Waiter ticket commands bytes)
  addFlag mux flagWaiting 1
  pure ticket

-- | Ends the wait of somebody who was called. Under the lock.
takeCalledRoom :: Multiplexer -> Int -> Int -> IO ()
takeCalledRoom mux commands bytes = do
  addFlag mux flagWaiting (-1)
  addFlag mux flagCalledCommands (negate commands)
  addFlag mux flagCalledBytes (negate bytes)

-- | Gives a place in the queue up; whoever was already called passes it on.
leaveQueue :: Multiplexer -> MVar () -> Int -> Int -> IO ()
leaveQueue mux ticket commands bytes = uninterruptibleMask_ . withLock mux $ do
  -- Bounded, as in 'killMultiplexer'; losing a call would strand the next in line.
  queue <- readIORef (muxQueue mux)
  let others = Seq.filter (\(Waiter other _ _) -> other /= ticket) queue
  if Seq.length others == Seq.length queue
    then takeCalledRoom mux commands bytes
    else do
      writeIORef (muxQueue mux) others
      addFlag mux flagWaiting (-1)
  -- Its place may have been the head, for which there was not room enough.
  admitWaiting mux

-- | Calls as many waiting callers as there is room for, and nobody past one
-- that there is no room for: a long run would never get its turn. Under the
-- lock.
admitWaiting :: Multiplexer -> IO ()
admitWaiting mux = do
  waiting <- readFlag mux flagWaiting
  when (waiting > 0) $ do
    busy <- (+) <$> inFlight mux <*> readFlag mux flagCalledCommands
    used <- (+) <$> bufferedBytes (muxBuffer mux) <*> readFlag mux flagCalledBytes
    queue <- readIORef (muxQueue mux)
    case Seq.viewl queue of
      waiter@(Waiter _ commands bytes) :< rest
        | fits (muxSettings mux) busy used commands bytes -> do
          writeIORef (muxQueue mux) rest
          call mux waiter
          admitWaiting mux
      _ -> pure ()

-- | Calls everybody: no more commands are taken. Under the lock.
admitAll :: Multiplexer -> IO ()
admitAll mux = do
  queue <- readIORef (muxQueue mux)
  writeIORef (muxQueue mux) Seq.empty
  mapM_ (call mux) queue

call :: Multiplexer -> Waiter -> IO ()
call mux (Waiter ticket commands bytes) = do
  addFlag mux flagCalledCommands commands
  addFlag mux flagCalledBytes bytes
  putMVar ticket ()

addFlag :: Multiplexer -> Flag -> Int -> IO ()
addFlag mux flag change = readFlag mux flag >>= writeFlag mux flag . (+ change)

-- | Wakes the reader if it sleeps. \(O(1)\).
kickReader :: Multiplexer -> IO ()
kickReader mux = void (tryPutMVar (muxReaderWake mux) ())
