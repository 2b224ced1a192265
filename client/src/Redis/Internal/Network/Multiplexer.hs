-- | A multiplexer: one connection that many callers share (docs/adr/0001-multiplexer.md).
--
-- A caller encodes its command straight into the connection's buffer, under a short lock, and gets a
-- 'ResponseSlot'. Replies come in the order of the commands, so the n-th goes to the n-th slot; a caller
-- that stops waiting forgets its slot and changes nothing for the others.
--
-- Two threads serve a connection, on the capability it was made for: the reader, which does all the work in
-- the ordinary case, and the watchdog, which notices what does not happen. A third, the writer, sends while
-- the socket is full. A caller sends the unsent commands itself at the 'flushMark'.
module Redis.Internal.Network.Multiplexer
  ( Multiplexer,
    MuxSettings (..),
    BufferSize (..),
    Neighbours (..),
    openMultiplexer,
    closeMultiplexer,
    abortMultiplexer,

    -- * Submitting
    Terms (..),
    termsUntil,
    usualTerms,
    submitCommand,
    submitCommandAsync,
    submitTo,
    submitRun,
    submitRunTo,
    waitSlotResult,

    -- * Looking
    countFromHere,
    muxEndpoint,
    muxOrder,
    isOpen,
    hasRoomFor,
    MuxGauges (..),
    muxGauges,
    isGone,
    awaitGone,
    untilGone,
  )
where

import Control.Concurrent.MVar
import Control.Concurrent.STM (STM, atomically, isEmptyTMVar, orElse, readTMVar)
import Control.Exception (evaluate, mask_, onException)
import Control.Monad (unless, void, when)
import Data.List qualified as List
import Redis.Error
import Redis.Internal.Network.Connection
import Redis.Internal.Network.Deadlines
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Outgoing
import Redis.Internal.Network.Reader (readerLoop)
import Redis.Internal.Network.Runtime
import Redis.Internal.Network.Transport
import Redis.Internal.Network.Wakeup
import Redis.Internal.Protocol.Encode (Request, request, requestSize)

-- | Takes over a connected transport and starts the threads of the connection.
openMultiplexer :: MuxSettings -> Transport -> IO Multiplexer
openMultiplexer settings transport = mask_ $ do
  order <- case muxBufferSize settings of
    ManyCallers -> newOrderCounts
    OneCaller -> noOrderCounts
  mux <- newMuxState settings transport order
  let spawnHere role = spawnOn (muxCapability settings) ("redis " <> role <> " " <> renderEndpoint (transportEndpoint transport))
  void (spawnHere "reader" (readerLoop mux))
  void (spawnHere "watchdog" (watchdogLoop mux (probe mux)))
  pure mux

-- | Takes no more commands, waits up to so many seconds for those in flight, and closes. Blocks until then.
closeMultiplexer :: Double -> Multiplexer -> IO ()
closeMultiplexer grace mux = do
  after <- withLock mux $ do
    life <- lifeOf mux
    -- They come in and are refused.
    when (life == Open) (admitAll (muxAdmission mux))
    transition mux Drains
  wake mux after
  over <- expiry grace
  atomically (untilGone mux `orElse` over)
  gone <- isGone mux
  unless gone (abortMultiplexer mux)

-- | Closes at once; commands in flight fail. Blocks until the descriptor is free.
abortMultiplexer :: Multiplexer -> IO ()
abortMultiplexer mux = do
  killMultiplexer mux ClosedLocally
  awaitGone mux

-- | The terms on which a command is submitted.
data Terms = Terms
  { -- | The key of the thread that the command is counted for.
    termsOrderKey :: OrderKey,
    -- | When the reply must have come.
    termsDeadline :: {-# UNPACK #-} !Deadline
  }

-- | The terms of a command that is not counted.
termsUntil :: Deadline -> Terms
termsUntil deadline = Terms {termsOrderKey = noOrderKey, termsDeadline = deadline}

-- | The terms of a command that is not counted and has the connection's command timeout from now.
usualTerms :: Multiplexer -> IO Terms
usualTerms mux = termsUntil . deadlineAfter (usualLimit mux) <$> coarseNanos

-- | Submits a command and waits for its outcome. If that is interrupted, a command that has been
-- submitted is sent, and its reply is dropped.
submitCommand :: Multiplexer -> Terms -> Request -> IO Outcome
submitCommand mux terms encoded = submitCommandAsync mux terms encoded >>= waitSlotResult

-- | Submits a command and returns without waiting for its reply. Blocks while the queue is full,
-- until the command's deadline. Never throws an 'Error': a dead connection fills the slot.
submitCommandAsync :: Multiplexer -> Terms -> Request -> IO ResponseSlot
submitCommandAsync mux terms encoded = do
  slot <- newResponseSlot
  slot <$ submitTo mux terms encoded slot
{-# INLINE submitCommandAsync #-}

-- | Like 'submitCommandAsync', but the reply arrives in a given slot.
submitTo :: Multiplexer -> Terms -> Request -> ResponseSlot -> IO ()
submitTo mux terms encoded slot = do
  -- Forced here, so that no exception of the caller's is thrown under the lock.
  _ <- evaluate terms
  encoded `seq` mask_ (enter mux terms (One encoded slot))
{-# INLINE submitTo #-}

-- | Submits requests that must reach the server with nothing in between (ASKING and a command,
-- MULTI … EXEC); one slot each. Otherwise like 'submitCommandAsync'.
submitRun :: Multiplexer -> Terms -> [Request] -> IO [ResponseSlot]
submitRun mux terms requests = do
  slots <- mapM (const newResponseSlot) requests
  slots <$ submitRunTo mux terms (zip requests slots)

-- | Like 'submitRun', but into given slots. A run longer than the ring fails with 'RunTooLong'.
submitRunTo :: Multiplexer -> Terms -> [(Request, ResponseSlot)] -> IO ()
submitRunTo mux !terms run
  | count > ringCapacity (muxRing mux) = mapM_ (\(_, slot) -> fillSlot slot (deadlineBegan (termsDeadline terms)) (Failure (RefusedError (RunTooLong count)))) run
  -- Forces all of them, as above.
  | otherwise = mapM_ (mask_ . enter mux terms) (batchOf run)
  where
    count = length run

-- | Requests that go out together, each with the slot of its reply.
data Batch
  = One Request ResponseSlot
  | More Request ResponseSlot Batch

batchOf :: [(Request, ResponseSlot)] -> Maybe Batch
batchOf entries = case reverse entries of
  [] -> Nothing
  (encoded, slot) : before -> Just $! List.foldl' (\batch (r, s) -> More r s batch) (One encoded slot) before

-- | The number of requests, and an upper bound of their size in bytes.
batchLoad :: Batch -> (Int, Int)
batchLoad = \case
  One encoded _ -> (1, requestSize encoded)
  More encoded _ rest -> go 1 (requestSize encoded) rest
  where
    go !count !size = \case
      One encoded _ -> (count + 1, size + requestSize encoded)
      More encoded _ rest -> go (count + 1) (size + requestSize encoded) rest

eachOf :: (Request -> ResponseSlot -> IO ()) -> Batch -> IO ()
eachOf action = \case
  One encoded slot -> action encoded slot
  More encoded slot rest -> action encoded slot *> eachOf action rest
{-# INLINE eachOf #-}

-- | A batch on its way into the connection.
data Submission = Submission
  { submissionTerms :: Terms,
    submissionBatch :: Batch,
    submissionCount :: Int,
    -- | An upper bound.
    submissionBytes :: Int
  }

-- | Puts requests in the buffer and their slots in the ring, or fails the slots. Call it masked.
enter :: Multiplexer -> Terms -> Batch -> IO ()
enter mux terms batch = do
  -- Strict: a thunk for each of these would be allocated with every submit.
  let !(!submissionCount, !submissionBytes) = batchLoad batch
  takeMVar (muxLock mux)
  waiting <- waitingForCapacity (muxAdmission mux)
  room <- if waiting == 0 then hasCapacity mux submissionCount submissionBytes else pure False
  life <- lifeOf mux
  let submission = Submission {submissionTerms = terms, submissionBatch = batch, submissionCount, submissionBytes}
  case life of
    Open
      | room -> append mux submission
      | otherwise -> enterLater mux submission
    _ -> refuse mux submission

-- | The second half of 'enter', when there is no room. Called with the lock, which it releases.
enterLater :: Multiplexer -> Submission -> IO ()
enterLater mux submission = do
  overdue <- allOverdue mux
  if overdue
    then putMVar (muxLock mux) () *> tooLate submission
    else do
      let deadline = termsDeadline (submissionTerms submission)
      noteShortest mux (deadlineLimit deadline)
      waiter <- joinQueue (muxAdmission mux) (submissionCount submission) (submissionBytes submission) (deadlineAt deadline)
      putMVar (muxLock mux) ()
      waitForCapacity mux submission waiter

-- | Sends a PING, as a request for a sign of life. Does nothing if there is no room: then the peer has
-- enough to answer, and the watchdog, which calls this, must not wait for room that only it can make.
probe :: Multiplexer -> IO ()
probe mux = mask_ $ do
  slot <- newResponseSlot
  terms <- usualTerms mux
  takeMVar (muxLock mux)
  waiting <- waitingForCapacity (muxAdmission mux)
  room <- hasCapacity mux 1 (requestSize ping)
  life <- lifeOf mux
  case life of
    Open
      | waiting == 0 && room ->
        append mux Submission {submissionTerms = terms, submissionBatch = One ping slot, submissionCount = 1, submissionBytes = requestSize ping}
    _ -> putMVar (muxLock mux) ()
  where
    ping = request ["PING"]

-- | The second half of @enter@, when there is room. Called with the lock, which it releases; then it sends if it
-- is the caller's turn.
append :: Multiplexer -> Submission -> IO ()
append mux !submission = do
  let count = submissionCount submission
      bytes = submissionBytes submission
  ready <- (&&) <$> bufferReady (muxBuffer mux) bytes <*> ringReady (muxRing mux) count
  -- Memory is made before anything is changed, so that the connection lives on if there is none.
  unless ready $
    (bufferReserve (muxBuffer mux) bytes *> ringReserve (muxRing mux) count)
      `onException` (admitWaiting mux *> putMVar (muxLock mux) ())
  case submissionBatch submission of
    One encoded slot -> push mux submission encoded slot
    More {} -> eachOf (push mux submission) (submissionBatch submission)
  noteTimes mux (termsDeadline (submissionTerms submission))
  busy <- inFlight mux
  peak <- (`peakAfter` busy) <$> readWord mux WordPeak
  writeWord mux WordPeak peak
  after <- transition mux (Queued count (flushMark peak))
  case stepAnswer after of
    Send -> do
      (unlooked, block) <- takeQueued mux
      putMVar (muxLock mux) ()
      sendBlock mux unlooked block
    _ -> putMVar (muxLock mux) ()
  wake mux after
-- Inlined where a command comes in, so that no 'Submission' is allocated for it.
{-# INLINE append #-}

-- Call it under the lock.
push :: Multiplexer -> Submission -> Request -> ResponseSlot -> IO ()
push mux Submission {submissionTerms = Terms {termsOrderKey, termsDeadline}} encoded slot = do
  size <- appendRequest (muxBuffer mux) encoded
  queued <- (+ size) <$> readWord mux WordQueued
  writeWord mux WordQueued queued
  countSubmitted (muxOrder mux) termsOrderKey
  ringPush
    (muxRing mux)
    RingEntry
      { entrySlot = slot,
        entryEnd = queued,
        entryDeadline = deadlineAt termsDeadline,
        entryBegan = deadlineBegan termsDeadline,
        entryOrderKey = termsOrderKey
      }
{-# INLINE push #-}

-- | The flush mark: how many unsent commands make their submitter send them, given the recent peak of
-- commands in flight. Sending at once is best with few callers; with many, sending a part of the commands
-- while the others are being answered keeps both sides busy: half of up to 128, a quarter of 256 and more,
-- so that the server does not run dry. Measured (docs/adr/0001-multiplexer.md).
flushMark :: Int -> Int
flushMark peak = max 1 (max (min 64 (busy `quot` 2)) (min 128 (busy `quot` 4)))
  where
    busy = peak `quot` peakUnit

-- | The recent peak of commands in flight, in parts of 'peakUnit', after one more command. A peak is half
-- forgotten after 180 commands. With the present number instead, a node of a cluster that has answered
-- everything would be sent its next commands one by one, then by twos and fours.
peakAfter :: Int -> Int -> Int
peakAfter before busy = max (busy * peakUnit) (before - before `quot` peakUnit)

-- | Waits for room, or until the deadline of the command has passed.
waitForCapacity :: Multiplexer -> Submission -> Waiter -> IO ()
waitForCapacity mux !submission waiter =
  -- Interruptible, like every wait for room.
  (awaitAdmission waiter `onException` leave) >>= \case
    TooLate -> tooLate submission
    Admitted -> do
      takeMVar (muxLock mux) `onException` leave
      takePromised (muxAdmission mux) waiter
      lifeOf mux >>= \case
        Open -> append mux submission
        _ -> refuse mux submission
  where
    leave = withLockAlways mux (leaveQueue (muxAdmission mux) waiter *> admitWaiting mux)

-- | Fails the slots of commands that found no room in time.
tooLate :: Submission -> IO ()
tooLate submission = failBatch submission (timedOut NotSent (termsDeadline (submissionTerms submission)))

-- | Fails the slots of commands that came too late. The caller holds the lock; this function releases it.
refuse :: Multiplexer -> Submission -> IO ()
refuse mux !submission = do
  cause <- deathCause mux
  putMVar (muxLock mux) ()
  failBatch submission (ConnectionError (ConnectionFailure "" NotSent (muxEndpoint mux) cause))

failBatch :: Submission -> Error -> IO ()
failBatch Submission {submissionTerms, submissionBatch} failure =
  eachOf (\_ slot -> fillSlot slot (deadlineBegan (termsDeadline submissionTerms)) (Failure failure)) submissionBatch

-- | Counts commands from now on: those before were the handshake's. Nothing may be in flight.
countFromHere :: Multiplexer -> IO ()
countFromHere mux = ringTail (muxRing mux) >>= writeWord mux WordCountedFrom

-- | The endpoint of the connection.
muxEndpoint :: Multiplexer -> Endpoint
muxEndpoint = transportEndpoint . muxTransport

-- | Whether the connection takes commands. May be out of date when it returns.
isOpen :: Multiplexer -> IO Bool
isOpen mux = (== Open) <$> lifeOf mux
{-# INLINE isOpen #-}

-- | Whether a command of at most so many bytes would not have to wait for room. Takes the lock for a moment. May be
-- out of date when it returns.
hasRoomFor :: Multiplexer -> Int -> IO Bool
hasRoomFor mux bytes = withLock mux $ do
  waiting <- waitingForCapacity (muxAdmission mux)
  if waiting == 0 then hasCapacity mux 1 bytes else pure False

-- | The sizes of one connection's queues.
data MuxGauges = MuxGauges
  { -- | Commands submitted and not yet answered, sent or not. A command that its caller no longer
    -- waits for counts until its reply has come.
    gaugeInFlight :: Int,
    -- | Encoded bytes that nobody has begun to send.
    gaugeQueuedBytes :: Int,
    -- | Callers that wait for room before they submit.
    gaugeWaiting :: Int
  }
  deriving stock (Eq, Show)

-- | The sizes of the queues at this moment. Takes the lock for a moment.
muxGauges :: Multiplexer -> IO MuxGauges
muxGauges mux = withLock mux $ do
  gaugeInFlight <- inFlight mux
  gaugeQueuedBytes <- bufferedBytes (muxBuffer mux)
  gaugeWaiting <- waitingForCapacity (muxAdmission mux)
  pure MuxGauges {gaugeInFlight, gaugeQueuedBytes, gaugeWaiting}

-- | Blocks until the connection has ended and all waiting callers have been told.
awaitGone :: Multiplexer -> IO ()
awaitGone = atomically . untilGone

-- | Retries until the connection has ended and all waiting callers have been told.
untilGone :: Multiplexer -> STM ()
untilGone = readTMVar . muxGone

-- | Whether the descriptor is free and nothing is left. Never blocks.
isGone :: Multiplexer -> IO Bool
isGone mux = not <$> atomically (isEmptyTMVar (muxGone mux))
