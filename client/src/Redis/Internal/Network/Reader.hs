{-# LANGUAGE MultiWayIf #-}

-- | The thread that drives a connection: it flushes, reads, parses in place
-- and hands every reply to its slot.
--
-- One round reads what is there and delivers it. Queued commands are sent when there is nothing to read:
-- while replies come, submitters fill the next block and send it themselves when it is large. After every
-- few replies the reader yields, so that the callers it woke run and submit again while the rest of the
-- replies waits (docs/adr/0001-multiplexer.md). With nothing to read it polls for a while, then sleeps, as
-- "Redis.Internal.Network.Wakeup" says. If it would poll when it is woken, it first sleeps without a request
-- to watch the socket (docs/adr/0010-polling-in-a-cluster.md). Otherwise, a reader that a caller wakes only sends,
-- and sleeps on: the socket wakes it to read.
--
-- Only the reader pops from the ring, and only the reader cleans up: whatever ends a connection, the
-- transport is shut down first, which wakes the reader.
--
-- = How long it polls
--
-- Waking a processor that has gone to sleep costs more than a local round trip. So a reader with commands
-- outstanding keeps asking the socket, letting other threads run in between, for about twice as long as
-- replies usually take: a moving average of the waits, 7\/8 old and 1\/8 new. It does not poll when the last
-- read brought many replies (then there is work enough to keep both sides awake; not judged beside others of its
-- node), nor when the average is above the cap. Then it does not know when a lone caller's wait began, and
-- takes it for the cap: after about a hundred such waits it polls again, and finds out. In a cluster it polls
-- for few callers only ('fewEnough'). @docs/lab/2026-11-23-tuning.md@ has the measurements.
--
-- With a deep queue of short replies (SET) the server sends a few at a time, and each few wake the reader.
-- Then the reader waits in the kernel until a good number has gathered ('worthGathering').
module Redis.Internal.Network.Reader
  ( readerLoop,

    -- * How long it polls
    PollPolicy,
    newPollPolicy,
    observeWait,
    pollBudget,
    wouldPoll,
    fewEnough,
    Haul (..),
    Gather (..),
    worthGathering,
  )
where

import Control.Concurrent (yield)
import Control.Concurrent.MVar
import Control.Concurrent.STM (atomically, putTMVar)
import Control.Exception (SomeException, try)
import Control.Monad (unless, void, when)
import Control.Monad.Primitive (RealWorld, touch)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import Data.IORef (IORef, newIORef, readIORef, writeIORef)
import Data.Maybe (fromMaybe, isJust, isNothing)
import Data.Primitive.ByteArray
import Data.Word (Word8)
import Foreign.ForeignPtr (withForeignPtr)
import Foreign.Ptr (Ptr, plusPtr)
import Redis.Duration (inMicroseconds)
import Redis.Error (ConnectionCause (..), ConnectionFailure (..), Delivery (..), Error (ConnectionError), serverErrorFromText)
import Redis.Internal.Config (Polling (..))
import Redis.Internal.Network.Connection
import Redis.Internal.Network.Counters (Count (..), countOne, recordTimes)
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Outgoing (admitAll, waitingForCapacity)
import Redis.Internal.Network.ReplyChecks
import Redis.Internal.Network.Runtime (Nanos, preciseNanos, quietly)
import Redis.Internal.Network.Tls (beginsLikeTls, wantsTls)
import Redis.Internal.Network.Transport
import Redis.Internal.Network.Wakeup
import Redis.Internal.Protocol.Decode
import Redis.Value (Value (..), withoutAttributes)

-- | The receive buffer: bytes before @inStart@ are used up, those up to @inEnd@ are received.
data Input = Input
  { inMemory :: MutableByteArray RealWorld,
    inStart :: Int,
    inEnd :: Int,
    inFrames :: Frames
  }

-- | The result of delivering what was read.
data Consumed
  = Received Input Haul
  | Ended ConnectionCause

-- | The reader's state between rounds.
data Reader = Reader
  { readerMux :: Multiplexer,
    -- | The action that withdraws the last request to watch the socket, if one was made.
    readerWatch :: IORef (Maybe (IO ())),
    -- | Whether that request has been answered, so that none is pending.
    readerWatchDone :: IORef Bool,
    -- | Whether a push has ever come, or is expected. Then the reader never sleeps unwatched.
    readerPushed :: IORef Bool
  }

-- | The size of the receive buffer.
capacity :: Multiplexer -> Int
capacity mux = case muxBufferSize (muxSettings mux) of
  ManyCallers -> 128 * 1024
  OneCaller -> leastBuffer

-- | Replies between two yields.
repliesPerYield :: Int
repliesPerYield = 64

-- | The body of the reader; masked. Returns when the connection is cleaned up.
readerLoop :: Multiplexer -> IO ()
readerLoop mux = do
  reader <- Reader mux <$> newIORef Nothing <*> newIORef False <*> newIORef (isJust (muxOnLastWord (muxSettings mux)))
  memory <- newPinnedByteArray (capacity mux)
  let policy = newPollPolicy (muxPolling (muxSettings mux))
      input = Input {inMemory = memory, inStart = 0, inEnd = 0, inFrames = startFrames}
  notePolling mux policy
  -- Whatever is thrown must end the connection: only this thread tells the waiting callers.
  cause <- either (BrokenConnection . show @SomeException) id <$> try (rounds reader policy input (Haul 0 0))
  killMultiplexer mux cause
  cleanUp reader

-- | Runs rounds until the connection ends, given what the last read brought.
rounds :: Reader -> PollPolicy -> Input -> Haul -> IO ConnectionCause
rounds reader policy input haul = do
  let mux = readerMux reader
  -- Without this, pushes or the parts of a large reply could keep queued commands from being sent.
  when (haulReplies haul == 0) (flushQueued mux)
  readSome mux input >>= \case
    Left cause -> pure cause
    Right (attempt, input')
      | attempt > 0 -> afterRead policy input'
      | attempt == attemptEnd -> pure ClosedByPeer
      | otherwise -> do
        flushQueued mux
        busy <- inFlight mux
        began <- if busy > 0 then Just <$> preciseNanos else pure Nothing
        polls <- mayPoll mux policy
        let manner =
              Manner
                { mannerPolls = polls,
                  mannerBudget = if polls && not (enoughWork mux (haulReplies haul)) then pollBudget policy else 0,
                  mannerGather = \inFlight' -> worthGathering haul inFlight' policy
                }
        waitForMore reader manner began attempt input' >>= \case
          Left cause -> pure cause
          Right (input'', waitedSince) -> do
            policy' <- case waitedSince of
              -- Nobody knows when it began. It counts as the cap, so that the reader polls again in time.
              Nothing -> pure (if wouldPoll policy then policy else observeWait (policyCap policy) policy)
              Just since -> do
                now <- preciseNanos
                pure (observeWait (now - since) policy)
            notePolling mux policy'
            afterRead policy' input''
  where
    afterRead policy' input' =
      consume reader input' >>= \case
        Ended cause -> pure cause
        Received input'' haul' -> do
          settle (readerMux reader)
          yield
          rounds reader policy' input'' haul'

-- | Tells the other parties whether the reader would poll when it is woken, if that has changed.
notePolling :: Multiplexer -> PollPolicy -> IO ()
notePolling mux policy = do
  polls <- mayPoll mux policy
  known <- wakeupPolls <$> wakeup mux
  when (polls /= known) . void $ withLock mux (transition mux (Judged polls))

-- | Whether the reader may poll for replies.
mayPoll :: Multiplexer -> PollPolicy -> IO Bool
mayPoll mux policy
  | muxNeighbours (muxSettings mux) < OfOtherNodes = pure (wouldPoll policy)
  | otherwise = do
    peak <- readWord mux WordPeak
    pure (wouldPoll policy && fewEnough (peak `quot` peakUnit))

-- | Makes one attempt to read, behind the bytes that are in the buffer. The rest of a long string
-- is read straight to its place, as long as it would fill the buffer.
readSome :: Multiplexer -> Input -> IO (Either ConnectionCause (Attempt, Input))
readSome mux input = case placeOfRest (inFrames input) of
  Just (place, size)
    | size >= capacity mux -> do
      result <- attempted (withForeignPtr place $ \start -> transportTryRead (muxTransport mux) start (min mostAtOnce size))
      noted result input (\count -> input {inFrames = placed count (inFrames input)})
  _ -> do
    input' <- withSpace mux input
    let start = mutableByteArrayContents (inMemory input') `plusPtr` inEnd input'
    result <- attempted (transportTryRead (muxTransport mux) start (capacity mux - inEnd input'))
    touch (inMemory input')
    noted result input' (\count -> input' {inEnd = inEnd input' + count})
  where
    noted result before after = case result of
      Left cause -> pure (Left cause)
      Right attempt
        | attempt > 0 -> do
          reads' <- readWord mux WordReads
          writeWord mux WordReads (reads' + 1)
          pure (Right (attempt, after attempt))
        | otherwise -> pure (Right (attempt, before))
    {-# INLINE noted #-}

-- | The most bytes of one attempt: copying them keeps the capability busy.
mostAtOnce :: Int
mostAtOnce = 1024 * 1024

-- | Makes room at the end: an empty buffer starts again at its beginning; one that is nearly full moves its
-- unparsed bytes there, which are few.
withSpace :: Multiplexer -> Input -> IO Input
withSpace mux input
  | inStart input == inEnd input = pure input {inStart = 0, inEnd = 0}
  | capacity mux - inEnd input >= capacity mux `quot` 4 = pure input
  | otherwise = do
    copyMutableByteArray (inMemory input) 0 (inMemory input) (inStart input) size
    pure input {inStart = 0, inEnd = size}
  where
    size = inEnd input - inStart input

-- | Delivers every complete reply.
consume :: Reader -> Input -> IO Consumed
consume reader input = do
  -- The bytes are there at this time; parsing them takes its own time.
  now <- preciseNanos
  writeWord mux WordReadAt (fromIntegral now)
  before <- ringHead (muxRing mux)
  -- Read once and behind the bytes: a command that is sent meanwhile is not what they answer.
  handed <- readWord mux WordHandedOver
  let deliverOne value = case muxChecks mux of
        Nothing -> deliver reader handed value
        Just checks -> deliverChecked reader checks handed value
  result <- decodeWhile limits memory deliverOne (inStart input) (inEnd input) (inFrames input)
  touch (inMemory input)
  ringPublish (muxRing mux)
  after <- ringHead (muxRing mux)
  when (after > before) (noteReplies mux before after now)
  case result of
    NeedMore frames next _ ->
      pure (Received input {inStart = next, inFrames = frames} Haul {haulReplies = after - before, haulBytes = next - inStart input})
    Done value _ -> do
      position <- maybe (pure after) (fmap (after +) . heldReplies) (muxChecks mux)
      pure (Ended (if position < handed then shifted value else unasked after value))
    Malformed reason -> do
      first <- if before == 0 then firstBytes else pure ByteString.empty
      pure (Ended (if beginsLikeTls first then wantsTls else ProtocolViolation reason))
  where
    mux = readerMux reader
    memory = mutableByteArrayContents (inMemory input) :: Ptr Word8
    limits = muxDecodeLimits (muxSettings mux)
    firstBytes = ByteString.pack <$> mapM (readByteArray (inMemory input)) [inStart input .. min (inEnd input) (inStart input + 2) - 1]

-- | The cause for ending a connection with something else than the number at the place of a check.
shifted :: Value -> ConnectionCause
shifted value = ProtocolViolation ("replies do not belong to their commands; the answer to a check was " <> said)
  where
    said = case value of
      -- A server that is busy, or a user who may not run ECHO.
      ErrorReply text -> "the error " <> Char8.unpack (Char8.take 200 text)
      _ -> "another's reply"

-- | Records how long the server took for the commands between two positions, whose replies were
-- there at this time, and that it answers. Late replies do not show that.
noteReplies :: Multiplexer -> Int -> Int -> Nanos -> IO ()
noteReplies mux before after now = do
  counted <- readWord mux WordCountedFrom
  when (after > counted) . for_ (muxCounters settings) $ \counters ->
    takeSendTimes (muxSendTimes mux) (max counted before) after $ \many sent -> do
      recordTimes counters (muxCapability settings) many (fromIntegral (now - sent))
      when (now - sent <= fromMaybe maxBound (muxCommandTimeout settings)) (muxOnAnswers settings)
  where
    settings = muxSettings mux
{-# NOINLINE noteReplies #-}

-- | The cause for ending a connection with a reply to no command that was sent, after so many replies. A server that
-- turns a client away says so at once, and hangs up: whether HELLO has been sent by then is chance.
unasked :: Int -> Value -> ConnectionCause
unasked before = \case
  ErrorReply text
    | before == 0 -> HandshakeRefused (serverErrorFromText text)
    | otherwise -> ProtocolViolation (nobodys <> ": " <> Char8.unpack text)
  _ -> ProtocolViolation nobodys
  where
    nobodys = "a reply that nobody asked for"

-- | Hands a reply to the oldest command in flight, or a push to its handler, and lets the callers
-- run from time to time. 'False' if the reply comes before any command that it could belong to was
-- sent, given the position behind the last that was.
deliver :: Reader -> Int -> Value -> IO Bool
deliver reader@Reader {readerMux = mux} handed value = case withoutAttributes value of
  push@(Push _) -> True <$ handPush reader push
  _ -> do
    answered <- ringHead (muxRing mux)
    if answered >= handed then pure False else True <$ answer mux value

-- | Like 'deliver', but holds replies until the check behind them is answered. 'False' also if that is wrong.
deliverChecked :: Reader -> ReplyChecks -> Int -> Value -> IO Bool
deliverChecked reader@Reader {readerMux = mux} checks handed value = case withoutAttributes value of
  push@(Push _) -> True <$ handPush reader push
  plain -> do
    held <- heldReplies checks
    position <- (+ held) <$> ringHead (muxRing mux)
    counted <- readWord mux WordCountedFrom
    if
        | position >= handed -> pure False
        | position < counted -> True <$ answer mux value
        | otherwise -> do
          pending <- ringPeek (muxRing mux) position
          if entryOrderKey pending /= checkKey
            then True <$ hold checks value
            else
              release checks plain >>= \case
                Nothing -> pure False
                Just replies -> True <$ (mapM_ (answer mux) replies *> answer mux plain)

-- | Hands a push to its handler.
handPush :: Reader -> Value -> IO ()
handPush Reader {readerMux = mux, readerPushed} push = do
  writeIORef readerPushed True
  -- The handler promises not to throw; if it does, replies must not suffer.
  quietly (muxOnPush (muxSettings mux) push)

-- | Hands a reply to the oldest command in flight.
answer :: Multiplexer -> Value -> IO ()
answer mux value = do
  pending <- ringPop (muxRing mux)
  countAnswered (muxOrder mux) (entryOrderKey pending)
  fillSlot (entrySlot pending) (entryBegan pending) (Reply value)
  answered <- ringHead (muxRing mux)
  when (answered `rem` repliesPerYield == 0) (ringPublish (muxRing mux) *> yield)
{-# INLINE answer #-}

-- | Admits callers that wait for room, after replies were delivered.
settle :: Multiplexer -> IO ()
settle mux = do
  waiting <- waitingForCapacity (muxAdmission mux)
  when (waiting > 0) (withLock mux (admitWaiting mux))

-- | How to wait for replies.
data Manner = Manner
  { mannerPolls :: Bool,
    -- | How long to poll.
    mannerBudget :: Nanos,
    -- | The wait in the kernel, given how many commands are in flight.
    mannerGather :: Int -> Maybe Gather
  }

-- | Polls (if it may), then sleeps, until something can be read. Takes and returns the time since
-- when replies have been awaited: 'Nothing' while nothing was in flight, because an idle
-- connection's silence says nothing about the server.
--
-- It polls, gathers once, and sleeps; each wake reads again. If nothing came, it sleeps again when the socket woke it,
-- and polls when a party of the connection did, if it may.
waitForMore :: Reader -> Manner -> Maybe Nanos -> Attempt -> Input -> IO (Either ConnectionCause (Input, Maybe Nanos))
waitForMore reader Manner {mannerPolls = polls, mannerBudget = budget, mannerGather} = poll
  where
    mux = readerMux reader

    poll since waitsFor input = do
      yield
      flushQueued mux
      busy <- inFlight mux
      since' <- since `orNowIf` (busy > 0)
      case since' of
        Just began | budget > 0 -> do
          now <- preciseNanos
          if not (enoughWork mux busy) && now - began < budget then again poll since' input else gather since' waitsFor input
        _ -> gather since' waitsFor input

    -- Once per wait. After that the reader sleeps until more comes.
    gather since waitsFor input = do
      busy <- inFlight mux
      case transportGather (muxTransport mux) of
        Just gathering
          | NoNeighbours <- muxNeighbours (muxSettings mux),
            Just wanted <- mannerGather busy -> do
            gathering (gatherBytes wanted) (gatherMicros wanted)
            again sleep since input
        _ -> sleep since waitsFor input

    sleep since waitsFor input =
      prepareSleep reader polls >>= \case
        Finish -> deathCause mux >>= lastWords since input
        Sleep -> do
          woken <-
            if waitsFor == attemptWouldWrite
              then False <$ transportWaitWritable (muxTransport mux)
              else do
                takeMVar (muxReaderWake mux)
                -- Whether a party of this connection woke the reader, not the socket.
                not <$> readIORef (readerWatchDone reader)
          busy <- withLock mux $ do
            busy <- (> 0) <$> inFlight mux
            busy <$ transition mux (Woken busy)
          since' <- since `orNowIf` (woken && busy)
          if
              | not woken -> flushQueued mux *> again sleep since' input
              | polls && busy -> flushQueued mux *> again poll since' input
              -- Woken to send. The socket is watched before it sleeps, and wakes it to read.
              | otherwise -> gatherUnsent mux *> flushQueued mux *> sleep since' waitsFor input
        _ -> do
          yield
          flushQueued mux
          again sleep since input

    -- If nothing was in flight before, the wait for a reply, which may be worth polling for, begins now.
    orNowIf since begins = case since of
      Nothing | begins -> Just <$> preciseNanos
      _ -> pure since

    -- What a server said before it hung up can still be read.
    lastWords since input cause
      | endedByPeer cause = again (\_ _ _ -> pure (Left cause)) since input
      | otherwise = pure (Left cause)

    again otherwiseDo since input =
      readSome mux input >>= \case
        Left cause -> pure (Left cause)
        Right (attempt, input')
          | attempt > 0 -> pure (Right (input', since))
          | attempt == attemptEnd -> pure (Left ClosedByPeer)
          | otherwise -> otherwiseDo since attempt input'

-- | Lets the callers that can run now queue their commands behind those of the caller that woke the reader, as long
-- as they do and the send would be small.
gatherUnsent :: Multiplexer -> IO ()
gatherUnsent mux = wakeup mux >>= go . wakeupUnsent
  where
    go before = when (before < 16) $ do
      yield
      unsent <- wakeupUnsent <$> wakeup mux
      when (unsent > before) (go unsent)

-- | Asks whether the reader may sleep. An earlier wake is forgotten first: everything that it could
-- have meant is looked at afterwards. Takes whether the reader would poll when it is woken.
prepareSleep :: Reader -> Bool -> IO Answer
prepareSleep reader polls = do
  void (tryTakeMVar (muxReaderWake mux))
  idle <- (== 0) <$> inFlight mux
  watch <- wakeupWatch <$> wakeup mux
  pushed <- readIORef (readerPushed reader)
  let unwatched = polls && idle && not watch && not pushed
  done <- readIORef (readerWatchDone reader)
  if unwatched
    then -- An answered request is forgotten, or the wake by a caller would count as the socket's.
      when done (writeIORef (readerWatch reader) Nothing *> writeIORef (readerWatchDone reader) False)
    else watchReadable reader
  withLock mux $ do
    -- A caller that is admitted finds the reader awake, or wakes it.
    admitWaiting mux
    busy <- (> 0) <$> inFlight mux
    stepAnswer <$> transition mux (WouldSleep (not unwatched) busy)
  where
    mux = readerMux reader

-- | Makes sure that a request to watch the socket is pending.
watchReadable :: Reader -> IO ()
watchReadable Reader {readerMux, readerWatch, readerWatchDone} = do
  made <- readIORef readerWatch
  done <- readIORef readerWatchDone
  when (done || isNothing made) $ do
    writeIORef readerWatchDone False
    withdraw <- transportWatchReadable (muxTransport readerMux) $ do
      -- In this order, or the reader could take the wake and believe that the request is pending.
      writeIORef readerWatchDone True
      wakeReader readerMux
    writeIORef readerWatch (Just withdraw)

-- | Cleans up after the end of the connection, once.
cleanUp :: Reader -> IO ()
cleanUp reader = do
  let mux = readerMux reader
      transport = muxTransport mux
  awaitSender mux
  sent <- readWord mux WordSent
  cause <- deathCause mux
  -- Before callers are told: who knows of the end must not find a reply cached before it.
  quietly (sequence_ (muxOnLastWord (muxSettings mux)))
  failAll mux sent cause
  withLock mux (admitAll (muxAdmission mux))
  quietly (readIORef (readerWatch reader) >>= sequence_)
  -- Nothing can be done about a descriptor that does not close.
  quietly (transportClose transport)
  quietly (muxOnDeath (muxSettings mux) cause)
  atomically (putTMVar (muxGone mux) ())

-- | Takes the right to send for good. Whoever sends is soon done, for the transport is shut down.
awaitSender :: Multiplexer -> IO ()
awaitSender mux =
  withLock mux (stepAnswer <$> transition mux WouldEnd) >>= \case
    Finish -> pure ()
    _ -> takeMVar (muxReaderWake mux) *> awaitSender mux

failAll :: Multiplexer -> Int -> ConnectionCause -> IO ()
failAll mux sent cause = do
  busy <- inFlight mux
  unless (busy <= 0) $ do
    position <- ringHead (muxRing mux)
    counted <- readWord mux WordCountedFrom
    pending <- ringPop (muxRing mux)
    countAnswered (muxOrder mux) (entryOrderKey pending)
    let -- A command whose last byte never left cannot have run.
        delivery = if entryEnd pending <= sent then MaybeExecuted else NotSent
        endpoint = transportEndpoint (muxTransport mux)
    when (position >= counted) . for_ (muxCounters (muxSettings mux)) $ \counters ->
      countOne counters (if delivery == NotSent then CutUnsent else CutSent)
    -- What a slot does with it must not keep the others, or the end, from being told.
    quietly (fillSlot (entrySlot pending) (entryBegan pending) (Failure (ConnectionError (ConnectionFailure "" delivery endpoint cause))))
    failAll mux sent cause

-- | The longest time to poll, called the cap (zero: never poll), and the average wait.
data PollPolicy = PollPolicy
  { policyCap :: {-# UNPACK #-} Nanos,
    policyAverage :: {-# UNPACK #-} Nanos
  }
  deriving stock (Eq, Show)

-- | The policy at the start: an average of half the cap, so that it polls.
newPollPolicy :: Polling -> PollPolicy
newPollPolicy polling = PollPolicy {policyCap = cap, policyAverage = cap `quot` 2}
  where
    cap = case polling of
      PollUpTo limit -> max 0 (inMicroseconds limit) * 1000
      NeverPoll -> 0

-- | Adds a wait to the average. A long one (a stall, an idle server) counts as 'longestWait'.
observeWait :: Nanos -> PollPolicy -> PollPolicy
observeWait wait policy =
  policy {policyAverage = (7 * policyAverage policy + min wait (longestWait policy)) `quot` 8}

-- | The longest wait that matters: four times the cap, or the default cap if the client never polls.
longestWait :: PollPolicy -> Nanos
longestWait policy
  | policyCap policy > 0 = 4 * policyCap policy
  | otherwise = 800000

-- | How long to poll; zero is not at all.
pollBudget :: PollPolicy -> Nanos
pollBudget policy
  | wouldPoll policy = min (policyCap policy) (2 * policyAverage policy + 20000)
  | otherwise = 0

-- | Whether so many replies came with the last read, or are awaited, that there is work enough to keep both
-- sides awake. Beside others of its node a connection polls all the same.
enoughWork :: Multiplexer -> Int -> Bool
enoughWork mux replies = replies > 64 && muxNeighbours (muxSettings mux) /= OfSameNode

-- | Whether the server is near enough for polling.
wouldPoll :: PollPolicy -> Bool
wouldPoll policy = policyCap policy > 0 && policyAverage policy <= policyCap policy

-- | Whether so few commands have been in flight of late that the connection may poll although its
-- capability has connections to other nodes (docs/adr/0010-polling-in-a-cluster.md).
fewEnough :: Int -> Bool
fewEnough most = most <= 2

-- | The replies and bytes that the last read brought.
data Haul = Haul
  { haulReplies :: {-# UNPACK #-} Int,
    haulBytes :: {-# UNPACK #-} Int
  }

-- | A wait in the kernel: for so many bytes, and for so many microseconds at most.
data Gather = Gather
  { gatherBytes :: {-# UNPACK #-} Int,
    gatherMicros :: {-# UNPACK #-} Int
  }
  deriving stock (Eq, Show)

-- | The wait in the kernel that is worth its cost, given what the last read brought and how many commands
-- are in flight. It waits for the replies to a quarter of those, which leaves the server enough to do
-- meanwhile. Nothing else runs on the reader's capability then, so it lasts no longer than 30 µs, or about
-- 100 µs for the most replies. Replies of a few hundred bytes come in large segments by themselves.
worthGathering :: Haul -> Int -> PollPolicy -> Maybe Gather
worthGathering (Haul replies bytes) busy policy
  | busy < 128 || replies == 0 || bytes > shortReply * replies || not (wouldPoll policy) = Nothing
  | otherwise = Just Gather {gatherBytes = bytes * wanted `quot` replies, gatherMicros = max 30 (wanted * 2 `quot` 5)}
  where
    wanted = min 256 (busy `quot` 4)

shortReply :: Int
shortReply = 64
