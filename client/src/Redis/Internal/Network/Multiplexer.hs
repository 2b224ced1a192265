-- | Many callers, one connection.
--
-- A caller encodes its command straight into the connection's buffer, under a
-- short lock, and gets a 'ResponseSlot'. Replies come in the order of the
-- commands, so the n-th goes to the n-th slot; a caller that stops waiting
-- forgets its slot and changes nothing for the others.
--
-- Three threads serve a connection, all on the capability it was made for:
-- the reader, which does all the work in the ordinary case; the writer, for
-- when the socket is full; the watchdog, for what does not happen. Callers
-- help: the one whose command makes half of what is usually in flight unsent
-- sends it (see @flushMark@).
--
-- Rejected: a writer thread that sends everything, which costs a switch per
-- flush and makes client and server take turns when callers wait for replies;
-- sending under the lock, which doubles the processor time per command; one
-- timer per command; slots that are used again.
module Redis.Internal.Network.Multiplexer
  ( Multiplexer,
    MuxSettings (..),
    openMultiplexer,
    closeMultiplexer,
    abortMultiplexer,

    -- * Submitting
    submitCommand,
    submitCommandAsync,
    submitRun,
    waitSlotResult,

    -- * Looking
    muxEndpoint,
    muxOrder,
    isOpen,
    MuxGauges (..),
    muxGauges,
    isGone,
    awaitGone,
  )
where

import Control.Concurrent.MVar
import Control.Exception (mask_, onException)
import Control.Monad (replicateM, unless, void, when)
import Data.IORef (readIORef, writeIORef)
import Data.List qualified as List
import Data.Maybe (isJust)
import Redis.Error
import Redis.Internal.Network.Clock
import Redis.Internal.Network.MuxState
import Redis.Internal.Network.OrderCounts
import Redis.Internal.Network.PendingRing
import Redis.Internal.Network.Reader (readerLoop)
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Network.Sender (sendBlock, writerLoop)
import Redis.Internal.Network.Transport
import Redis.Internal.Network.Watchdog (watchdogLoop)
import Redis.Internal.Network.Worker (spawnOn)
import Redis.Internal.Network.WriteBuffer
import Redis.Internal.Protocol.Encode (Request, request, requestSize)
import System.Timeout (timeout)

-- | Takes over a connected transport and starts its threads. From here on the
-- transport is closed by the multiplexer.
openMultiplexer :: MuxSettings -> Transport -> IO Multiplexer
openMultiplexer settings transport = mask_ $ do
  order <- newOrderCounts
  mux <- newMuxState settings transport order
  let spawnHere role = spawnOn (muxCapability settings) ("redis " <> role <> " " <> renderEndpoint (transportEndpoint transport))
  void (spawnHere "reader" (readerLoop mux))
  void (spawnHere "writer" (writerLoop mux))
  void (spawnHere "watchdog" (watchdogLoop mux (probe mux)))
  pure mux

-- | Takes no more commands, waits up to so many seconds for those in flight,
-- and closes. Blocks until the descriptor is free.
closeMultiplexer :: Double -> Multiplexer -> IO ()
closeMultiplexer grace mux = do
  withLock mux $
    readIORef (muxStatus mux) >>= \case
      Open -> do
        writeIORef (muxStatus mux) Draining
        -- To be refused.
        admitAll mux
      _ -> pure ()
  kickReader mux
  gone <- timeout (round (grace * 1e6)) (readMVar (muxGone mux))
  unless (isJust gone) (abortMultiplexer mux)

-- | Closes at once; commands in flight fail. Blocks until the descriptor is free.
abortMultiplexer :: Multiplexer -> IO ()
abortMultiplexer mux = do
  killMultiplexer mux ClosedLocally
  readMVar (muxGone mux)

-- | Submits a command and waits for what becomes of it.
--
-- An asynchronous exception leaves the connection as it is: a command that was
-- submitted is sent, and its reply is dropped.
submitCommand :: Multiplexer -> OrderKey -> Request -> IO Outcome
submitCommand mux orderKey encoded = submitCommandAsync mux orderKey encoded >>= waitSlotResult

-- | Submits a command without waiting for the reply. Blocks while the queue is
-- full, for at most the command timeout. Never throws an 'Error': a dead
-- connection fills the slot.
submitCommandAsync :: Multiplexer -> OrderKey -> Request -> IO ResponseSlot
submitCommandAsync mux orderKey encoded =
  -- Forced here: the lock must never meet a caller's exception.
  encoded `seq` mask_ (newResponseSlot >>= \slot -> slot <$ enter mux orderKey (One encoded slot))
{-# INLINE submitCommandAsync #-}

-- | Submits requests that nothing may come between (ASKING and a command,
-- MULTI … EXEC); one slot each. Otherwise as 'submitCommandAsync'.
submitRun :: Multiplexer -> OrderKey -> [Request] -> IO [ResponseSlot]
submitRun mux orderKey requests
  | count > ringCapacity (muxRing mux) =
    mapM (const (newFilledSlot (Failure (RefusedError (RunTooLong count))))) requests
  | otherwise = do
    slots <- replicateM count newResponseSlot
    -- Forces the requests too, as above.
    case batchOf (zip requests slots) of
      Nothing -> pure ()
      Just batch -> mask_ (enter mux orderKey batch)
    pure slots
  where
    count = length requests

-- | Requests that go out together, each with the slot of its reply. Each keeps
-- its own end in the stream: of a run that is cut off in the middle, the
-- first commands may have run.
data Batch
  = One Request ResponseSlot
  | More Request ResponseSlot Batch

batchOf :: [(Request, ResponseSlot)] -> Maybe Batch
batchOf entries = case reverse entries of
  [] -> Nothing
  (encoded, slot) : before -> Just $! List.foldl' (\batch (r, s) -> More r s batch) (One encoded slot) before

batchCount, batchSize :: Batch -> Int
batchCount = go 1
  where
    go !count = \case
      One _ _ -> count
      More _ _ rest -> go (count + 1) rest

-- | An upper bound, in bytes.
batchSize = go 0
  where
    go !size = \case
      One encoded _ -> size + requestSize encoded
      More encoded _ rest -> go (size + requestSize encoded) rest

eachOf :: (Request -> ResponseSlot -> IO ()) -> Batch -> IO ()
eachOf action = \case
  One encoded slot -> action encoded slot
  More encoded slot rest -> action encoded slot *> eachOf action rest
{-# INLINE eachOf #-}

-- | Puts requests in the buffer and their slots in the ring, or fails the slots.
-- Masked.
enter :: Multiplexer -> OrderKey -> Batch -> IO ()
enter mux orderKey batch = do
  -- A thunk for each of these would be a tenth of what a submit allocates.
  let !count = batchCount batch
      !bytes = batchSize batch
  takeMVar (muxLock mux)
  waiting <- readFlag mux flagWaiting
  room <- if waiting == 0 then hasRoom mux count bytes else pure False
  status <- readIORef (muxStatus mux)
  case status of
    Open
      | room -> coarseNanos >>= append mux orderKey batch count
      | otherwise -> do
        since <- coarseNanos
        ticket <- joinQueue mux count bytes
        putMVar (muxLock mux) ()
        waitForRoom mux orderKey batch count since ticket
    _ -> refuse mux batch status

-- | Asks the peer for a sign of life. Never blocks: with the queue full there
-- is enough that the peer could answer, and the watchdog, which asks, must not
-- wait for room that only it can make.
probe :: Multiplexer -> IO ()
probe mux = mask_ $ do
  slot <- newResponseSlot
  takeMVar (muxLock mux)
  waiting <- readFlag mux flagWaiting
  room <- hasRoom mux 1 (requestSize ping)
  status <- readIORef (muxStatus mux)
  case status of
    Open | waiting == 0 && room -> coarseNanos >>= append mux noOrderKey (One ping slot) 1
    _ -> putMVar (muxLock mux) ()
  where
    ping = request ["PING"]

-- | The second half of @enter@, for a batch that is there since that time: takes
-- the lock's right over and gives it back.
append :: Multiplexer -> OrderKey -> Batch -> Int -> Nanos -> IO ()
append mux !orderKey batch !count !since = do
  case batch of
    One encoded slot -> push mux orderKey since encoded slot
    More {} -> eachOf (push mux orderKey since) batch
  unflushed <- (+ count) <$> readFlag mux flagUnflushed
  busy <- inFlight mux
  peak <- (`peakAfter` busy) <$> readFlag mux flagPeak
  writeFlag mux flagPeak peak
  writerBusy <- readFlag mux flagWriterBusy
  watchdogParked <- readFlag mux flagWatchdogParked
  when (watchdogParked /= 0) (void (tryPutMVar (muxWatchdogWake mux) ()))
  if writerBusy /= 0
    then do
      writeFlag mux flagUnflushed unflushed
      putMVar (muxLock mux) ()
    else do
      parked <- readFlag mux flagParked
      token <- if unflushed >= flushMark peak then tryTakeMVar (muxToken mux) else pure Nothing
      case token of
        Just () -> do
          writeFlag mux flagUnflushed 0
          block <- swapBlocks (muxBuffer mux)
          admitWaiting mux
          polling <- readFlag mux flagPolling
          unwatched <- readFlag mux flagUnwatched
          let kick = parked /= 0 && polling + unwatched /= 0
          when kick (writeFlag mux flagParked 0)
          putMVar (muxLock mux) ()
          sendBlock mux block
          when kick (kickReader mux)
        Nothing -> do
          writeFlag mux flagUnflushed unflushed
          let kick = parked /= 0
          when kick (writeFlag mux flagParked 0)
          putMVar (muxLock mux) ()
          when kick (kickReader mux)

-- Under the lock.
push :: Multiplexer -> OrderKey -> Nanos -> Request -> ResponseSlot -> IO ()
push mux !orderKey since encoded slot = do
  size <- appendRequest (muxBuffer mux) encoded
  queued <- (+ size) <$> readFlag mux flagQueued
  writeFlag mux flagQueued queued
  countSubmitted (muxOrder mux) orderKey
  ringPush (muxRing mux) Pending {pendingSlot = slot, pendingEnd = queued, pendingSince = since, pendingOrderKey = orderKey}
{-# INLINE push #-}

-- | How many unsent commands make their submitter send them, given what has
-- been in flight of late. Few callers are served best at once; with many,
-- sending half of them while the other half is still being answered keeps both
-- sides busy, and no more than 128 wait for company.
--
-- One server, 16 waiting callers, 512-byte GETs: a quarter at most 32 gives
-- 255-314 k/s, a half at most 128 gives 421-458 k/s. Five servers, 16 × 64:
-- 1.4-2.0 µs of processor per command becomes 1.1-1.2 µs, because five sockets
-- take fewer and larger writes. 64 and 256 waiting callers are within 5 %.
flushMark :: Int -> Int
flushMark peak = max 1 (min 128 (peak `quot` (2 * peakUnit)))

-- | The most that has been in flight of late, in parts of 'peakUnit', after one
-- more command; a peak is half forgotten after 180 commands.
--
-- Not what is in flight at the moment: a node of a cluster that has answered
-- everything is sent its next commands one by one, then by twos and fours. Five
-- servers, 16 × 64: 15 commands per write become 47.
peakAfter :: Int -> Int -> Int
peakAfter before busy = max (busy * peakUnit) (before - before `quot` peakUnit)

-- | Waits to be called; gives up when the command's time is over. What it has
-- waited is part of that time: the queue is first come first served, so that the
-- oldest in flight is still the first to expire.
waitForRoom :: Multiplexer -> OrderKey -> Batch -> Int -> Nanos -> MVar () -> IO ()
waitForRoom mux orderKey batch count since ticket = do
  -- Interruptible, like every wait for room.
  called <- wait `onException` leave
  case called of
    Nothing -> do
      leave
      failBatch (TimeoutError NotSent (maybe 0 secondsFromNanos limit)) batch
    Just () -> do
      takeMVar (muxLock mux) `onException` leave
      takeCalledRoom mux count bytes
      readIORef (muxStatus mux) >>= \case
        Open -> append mux orderKey batch count since
        status -> refuse mux batch status
  where
    limit = muxCommandTimeout (muxSettings mux)
    bytes = batchSize batch
    leave = leaveQueue mux ticket count bytes
    wait = case limit of
      Nothing -> Just <$> takeMVar ticket
      Just nanos -> timeout (fromIntegral (nanos `quot` 1000)) (takeMVar ticket)

-- | Fails slots of commands that came too late. Has the lock, gives it back.
refuse :: Multiplexer -> Batch -> Status -> IO ()
refuse mux batch status = do
  putMVar (muxLock mux) ()
  let cause = case status of
        Dead why -> why
        _ -> ClosedLocally
  failBatch (ConnectionError NotSent (muxEndpoint mux) cause) batch

failBatch :: Error -> Batch -> IO ()
failBatch failure = eachOf (\_ slot -> fillSlot slot (Failure failure))

-- | Where it leads.
muxEndpoint :: Multiplexer -> Endpoint
muxEndpoint = transportEndpoint . muxTransport

-- | Whether it takes commands. May be out of date when it returns.
isOpen :: Multiplexer -> IO Bool
isOpen mux =
  readIORef (muxStatus mux) >>= \case
    Open -> pure True
    _ -> pure False

-- | A look at the queues of one connection.
--
-- @since 0.1.0.0
data MuxGauges = MuxGauges
  { -- | Commands submitted and not yet answered, sent or not. One that its caller
    -- no longer waits for counts until its reply has come.
    gaugeInFlight :: Int,
    -- | Encoded bytes that nobody has begun to send.
    gaugeQueuedBytes :: Int,
    -- | Callers that wait for room before they submit.
    gaugeWaiting :: Int
  }
  deriving stock (Eq, Show)

-- | Takes the lock for a moment.
muxGauges :: Multiplexer -> IO MuxGauges
muxGauges mux = withLock mux $ do
  gaugeInFlight <- inFlight mux
  gaugeQueuedBytes <- bufferedBytes (muxBuffer mux)
  gaugeWaiting <- readFlag mux flagWaiting
  pure MuxGauges {gaugeInFlight, gaugeQueuedBytes, gaugeWaiting}

-- | Blocks until the connection has ended and everybody has been told.
awaitGone :: Multiplexer -> IO ()
awaitGone mux = readMVar (muxGone mux)

-- | Whether the descriptor is free and nothing is left. Never blocks.
isGone :: Multiplexer -> IO Bool
isGone mux = isJust <$> tryReadMVar (muxGone mux)
