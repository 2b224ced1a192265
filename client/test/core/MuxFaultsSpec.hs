-- | The errors that callers get when a connection fails.
module MuxFaultsSpec (spec) where

import Control.Concurrent
import Control.Exception (AsyncException (HeapOverflow), throwIO)
import Control.Monad
import Data.ByteString qualified as ByteString
import Data.IORef
import Data.List qualified as List
import Fake
import Foreign.C.Types (CInt (..), CUInt (..))
import Peer
import Redis.Config (standaloneConfig)
import Redis.Duration
import Redis.Error
import Redis.Internal.Network.Connection
import Redis.Internal.Network.Handshake
import Redis.Internal.Network.InFlight (newTellingSlot)
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Runtime (nanosFromSeconds)
import Redis.Internal.Network.Transport (Transport (..), attemptWouldRead)
import Redis.Internal.Network.Wakeup
import Redis.Internal.Protocol.Encode (request, requestBytes)
import Redis.Value
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (within)

-- | How a connection fails.
data Fault = HangsUp | TalksRubbish | SaysTooMuch | IsAborted | FailsToWrite
  deriving stock (Eq, Show, Enum, Bounded)

isCauseOf :: Fault -> ConnectionCause -> Bool
isCauseOf fault cause = case (fault, cause) of
  (HangsUp, ClosedByPeer) -> True
  -- The sender may notice the end before the reader does.
  (HangsUp, BrokenConnection _) -> True
  (TalksRubbish, ProtocolViolation _) -> True
  (SaysTooMuch, ProtocolViolation _) -> True
  (IsAborted, ClosedLocally) -> True
  (FailsToWrite, BrokenConnection _) -> True
  _ -> False

spec :: Spec
spec = describe "a multiplexer whose connection fails" $ do
  modifyMaxSuccess (const 150) . prop "tells every waiter, and rightly whether its command can have run" $
    forAll arbitraryBoundedEnum $ \fault ->
      forAll (listOf1 (choose (1, 4))) $ \runs ->
        forAll (choose (1, 400)) $ \window ->
          forAll (choose (0, 6)) $ \answers -> ioProperty . within 10 $ do
            deaths <- newIORef []
            fake <- newFake goodManners {mannersWindow = window, mannersWriteMost = 13} 1
            -- A peer that reads nothing: the transport accepts no more than the window holds.
            mux <- openMux plainSettings {muxOnDeath = \cause -> modifyIORef' deaths (cause :)} fake
            slots <- concat <$> forM (zip [0 ..] runs) (\(k, size) -> usually submitRun mux (map (command k) [1 .. size]))
            let encoded = concat [map (command k) [1 .. size] | (k, size) <- zip [0 ..] runs]
                ends = drop 1 (scanl (+) 0 (map (ByteString.length . requestBytes) encoded))
                everything = List.foldl' max 0 ends
            eventually ((== min window everything) <$> heardBytes fake)
            let whole = length (filter (<= min window everything) ends)
                answered = min answers whole
            say fake (ByteString.concat (replicate answered "+OK\r\n"))
            eventually ((== length ends - answered) . gaugeInFlight <$> muxGauges mux)
            case fault of
              HangsUp -> hangUp fake
              TalksRubbish -> say fake "rubbish\r\n"
              SaysTooMuch -> say fake (ByteString.concat (replicate (length ends - answered + 1) "+NO\r\n"))
              IsAborted -> abortMultiplexer mux
              FailsToWrite -> do
                writeIORef (fakeBeforeWrite fake) (ioError (userError "no route to host"))
                -- Makes a thread write, whether the last bytes are stuck or not.
                void (usually submitCommandAsync mux (request ["PING"]))
                void (hear fake)
            awaitGone mux
            accepted <- heardBytes fake
            outcomes <- mapM (fmap outcomeText . waitSlotResult) slots
            causes <- readIORef deaths
            misuse <- breaches fake
            times <- closes fake
            let expected position end = case fault of
                  _ | position < answered -> [Right (SimpleString "OK")]
                  -- A reply may come while a command is being sent, and not before.
                  SaysTooMuch -> Right (SimpleString "NO") : [Left NotSent | end > accepted]
                  _ -> [Left (if end <= accepted then MaybeExecuted else NotSent)]
                delivery = \case
                  Right value -> Right value
                  Left failure -> Left (errorDelivery failure)
            pure . counterexample (show (causes, accepted, ends)) $
              conjoin [counterexample (show (position, delivery outcome)) (delivery outcome `elem` expected position end) | (position, end, outcome) <- zip3 [0 ..] ends outcomes]
                .&&. (misuse === [])
                .&&. (times === 1)
                .&&. (map (isCauseOf fault) causes === [True])

  it "tells callers of all kinds when it dies under them, and leaves none waiting" . within 25 $
    forM_ [1 .. 30 :: Int] $ \round' -> do
      fake <- newFake badManners round'
      withPeer fake (echoing fake) $ do
        mux <- openMux plainSettings {muxMaxInFlight = 3} fake
        ends <- forM [0 .. 11] $ \who -> do
          end <- newEmptyMVar
          void . forkFinally (callUntilDead mux (who * 100000)) $ \result -> putMVar end result
          pure end
        eventually ((>= 3) . gaugeWaiting <$> muxGauges mux)
        replicateM_ (round' * 17) yield
        case round' `rem` 3 of
          0 -> hangUp fake
          1 -> say fake "?"
          _ -> killMultiplexer mux ClosedLocally
        results <- mapM takeMVar ends
        [show failure | Left failure <- results] `shouldBe` []
        [problem | Right (Just problem) <- results] `shouldBe` []
        awaitGone mux
        closes fake >>= (`shouldBe` 1)
        breaches fake >>= (`shouldBe` [])

  it "dies of a reply that nobody asked for" . within 10 $ do
    fake <- newFake goodManners 1
    deaths <- newEmptyMVar
    mux <- openMux plainSettings {muxOnDeath = putMVar deaths} fake
    say fake "+hello\r\n"
    takeMVar deaths >>= (`shouldBe` ProtocolViolation "a reply that nobody asked for")
    awaitGone mux

  it "takes an error that nobody asked for, as the first that is said, for a refusal" . within 10 $ do
    fake <- newFake goodManners 1
    deaths <- newEmptyMVar
    mux <- openMux plainSettings {muxOnDeath = putMVar deaths} fake
    say fake "-ERR max number of clients reached\r\n"
    hangUp fake
    takeMVar deaths >>= (`shouldBe` HandshakeRefused (serverErrorFromText "ERR max number of clients reached"))
    awaitGone mux
    outcome <- outcomeText <$> usually submitCommand mux (tokenRequest 1)
    errorDelivery <$> either Just (const Nothing) outcome `shouldBe` Just NotSent

  it "takes an error that nobody asked for after a reply for no refusal" . within 10 $ do
    fake <- newFake goodManners 1
    deaths <- newEmptyMVar
    mux <- openMux plainSettings {muxOnDeath = putMVar deaths} fake
    slot <- usually submitCommandAsync mux (tokenRequest 1)
    say fake (bulk (token 1))
    outcomeText <$> waitSlotResult slot >>= (`shouldBe` Right (BulkString (token 1)))
    say fake "-ERR of nobody\r\n"
    takeMVar deaths >>= (`shouldBe` ProtocolViolation "a reply that nobody asked for: ERR of nobody")
    awaitGone mux

  it "takes it for none either if both come in one piece" . within 10 $ do
    fake <- newFake goodManners 1
    deaths <- newEmptyMVar
    mux <- openMux plainSettings {muxOnDeath = putMVar deaths} fake
    slot <- usually submitCommandAsync mux (tokenRequest 1)
    say fake (bulk (token 1) <> "-ERR of nobody\r\n")
    outcomeText <$> waitSlotResult slot >>= (`shouldBe` Right (BulkString (token 1)))
    takeMVar deaths >>= (`shouldBe` ProtocolViolation "a reply that nobody asked for: ERR of nobody")
    awaitGone mux

  it "still delivers what the peer said before it hung up on what was sent" . within 10 $
    forM_ [1 .. 20 :: Int] $ \_ -> do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings fake
      slots <- replicateM 64 (usually submitCommandAsync mux (request ["PING"]))
      eventually ((== 64 * ByteString.length (requestBytes (request ["PING"]))) <$> heardBytes fake)
      writeIORef (fakeBeforeWrite fake) $ do
        say fake (bulk "why")
        ioError (userError "broken pipe")
      answer <- newEmptyMVar
      -- As one of many commands in flight, it is left to the reader to send, and the reader sends
      -- it when it finds nothing more to read.
      void . forkIO $ mapM_ waitSlotResult (take 1 slots) *> usually submitCommand mux (tokenRequest 1) >>= putMVar answer
      yield
      say fake (ByteString.concat (replicate 64 "+PONG\r\n"))
      outcomeText <$> takeMVar answer >>= (`shouldBe` Right (BulkString "why"))
      awaitGone mux
      breaches fake >>= (`shouldBe` [])

  it "that finds no memory to read a reply tells who waits for it" . within 10 $ do
    fake <- newFake goodManners 1
    let transport = fakeTransport fake
        tryRead memory size = do
          attempt <- transportTryRead transport memory size
          if attempt > 0 then throwIO HeapOverflow else pure attempt
    mux <- openMultiplexer plainSettings transport {transportTryRead = tryRead}
    slot <- usually submitCommandAsync mux (tokenRequest 1)
    eventually ((> 0) <$> heardBytes fake)
    say fake "+OK\r\n"
    (either (Just . errorDelivery) (const Nothing) . outcomeText <$> waitSlotResult slot) >>= (`shouldBe` Just MaybeExecuted)
    awaitGone mux
    closes fake >>= (`shouldBe` 1)

  it "still delivers what the peer said before it closed" . within 10 $ do
    fake <- newFake goodManners {mannersReadMost = 3} 1
    mux <- openMux plainSettings fake
    slots <- mapM (usually submitCommandAsync mux . tokenRequest) [1 .. 3]
    mapM_ (say fake . bulk . token) [1, 2]
    hangUp fake
    mapM (fmap (either (Left . errorDelivery) Right . outcomeText) . waitSlotResult) slots
      >>= (`shouldBe` [Right (BulkString (token 1)), Right (BulkString (token 2)), Left MaybeExecuted])

  it "whose server turns it away says so, although a send had failed before that was read" . within 10 $ do
    fake <- newFake goodManners 1
    told <- newEmptyMVar
    failed <- newIORef False
    let transport = fakeTransport fake
        tryRead memory size = readIORef failed >>= \over -> if over then transportTryRead transport memory size else pure attemptWouldRead
    mux <- openMultiplexer plainSettings {muxOnDeath = putMVar told} transport {transportTryRead = tryRead, transportShutdown = writeIORef failed True >> transportShutdown transport}
    say fake "-ERR max number of clients reached\r\n"
    killMultiplexer mux (BrokenConnection "send: broken pipe")
    takeMVar told `shouldReturn` HandshakeRefused (serverErrorFromText "ERR max number of clients reached")

  it "has no reply for a command that was not sent, whatever the peer said before it hung up" . within 10 $
    forM_ ["+OK\r\n", "-ERR idle for too long\r\n"] $ \line -> do
      (fake, hungUp, mux) <- openUnread
      first <- usually submitCommandAsync mux (tokenRequest 1)
      heard <- heardBytes fake
      say fake (bulk (token 1))
      void (waitSlotResult first)
      -- Only after such a silence a sender looks at the socket.
      threadDelay 1000
      say fake line *> writeIORef hungUp True
      outcome <- outcomeText <$> usually submitCommand mux (tokenRequest 2)
      outcome `shouldBe` Left (ConnectionError (ConnectionFailure "" NotSent (muxEndpoint mux) ClosedByPeer))
      awaitGone mux
      heardBytes fake `shouldReturn` heard

  it "whose server turns it away before its first command says so" . within 10 $ do
    (fake, hungUp, mux) <- openUnread
    say fake "-ERR max number of clients reached\r\n" *> writeIORef hungUp True
    handshake (standaloneConfig "fake" 1) Nothing (SharedFor ForPrimary) Usual mux
      `shouldReturn` Left (Refused (HandshakeRefused (serverErrorFromText "ERR max number of clients reached")))
    awaitGone mux
    heardBytes fake `shouldReturn` 0

  it "ends also when it is killed while a caller finds the socket full" . within 10 $ do
    fake <- newFake goodManners {mannersWindow = 0} 1
    mux <- openMux plainSettings fake
    writeIORef (fakeOnFull fake) $ do
      writeIORef (fakeOnFull fake) (pure ())
      -- The writer that is started afterwards finds the connection dead.
      killMultiplexer mux ClosedLocally
      replicateM_ 2000 yield
    slot <- usually submitCommandAsync mux (tokenRequest 1)
    outcome <- outcomeText <$> waitSlotResult slot
    outcome `shouldBe` Left (ConnectionError (ConnectionFailure "" NotSent (muxEndpoint mux) ClosedLocally))
    awaitGone mux

  it "ends also when its writer cannot wait for the socket" . within 10 $ do
    fake <- newFake goodManners {mannersWindow = 0} 1
    mux <- openMultiplexer plainSettings (fakeTransport fake) {transportWaitWritable = ioError (userError "no memory")}
    outcome <- outcomeText <$> usually submitCommand mux (tokenRequest 1)
    outcome `shouldBe` Left (ConnectionError (ConnectionFailure "" NotSent (muxEndpoint mux) (BrokenConnection "user error (no memory)")))
    awaitGone mux
    closes fake >>= (`shouldBe` 1)

  it "that ends says so behind the last push and reply, and before any waiter is told" . within 10 $
    forM_ [1 .. 50 :: Int] $ \_ -> do
      happened <- newIORef []
      let note what = atomicModifyIORef' happened (\earlier -> ((what :: String) : earlier, ()))
          noting what = newTellingSlot (const (note what))
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxOnPush = const (note "push"), muxOnLastWord = Just (note "the last word"), muxOnDeath = const (note "the end")} fake
      slots <- mapM noting ["a reply", "a failure", "a failure"]
      usually submitRunTo mux (zip (map tokenRequest [1 ..]) slots)
      eventually ((> 0) <$> heardBytes fake)
      say fake "+OK\r\n>1\r\n+news\r\n"
      hangUp fake
      mapM_ waitSlotResult slots
      awaitGone mux
      reverse <$> readIORef happened `shouldReturn` ["a reply", "push", "the last word", "a failure", "a failure", "the end"]

  it "gives nobody the right to send after a write has failed" . within 10 $ do
    fake <- newFake goodManners 1
    mux <- openMux plainSettings fake
    writing <- newEmptyMVar
    go <- newEmptyMVar
    writeIORef (fakeBeforeWrite fake) $ do
      writeIORef (fakeBeforeWrite fake) (pure ())
      putMVar writing ()
      takeMVar go
      ioError (userError "out of buffers")
    submitter <- newEmptyMVar
    void . forkIO $ usually submitCommandAsync mux (tokenRequest 1) >>= putMVar submitter
    takeMVar writing
    -- While the test holds the lock, the death cannot be recorded. The right to send must not come
    -- back before it is.
    early <- withLock mux $ do
      putMVar go ()
      replicateM_ 2000 yield
      (== Idle) . wakeupSender <$> wakeup mux
    early `shouldBe` False
    slot <- takeMVar submitter
    (either (Left . errorDelivery) Right . outcomeText <$> waitSlotResult slot) >>= (`shouldBe` Left NotSent)
    awaitGone mux
    heardBytes fake >>= (`shouldBe` 0)

  describe "and time" $ do
    it "ends a command that is not answered in time, and drops its late reply" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxCommandTimeout = Just (nanosFromSeconds 0.03)} fake
      late <- outcomeText <$> usually submitCommand mux (tokenRequest 1)
      late `shouldBe` Left (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 0.03) Nothing))
      say fake (bulk (token 1))
      eventually ((== 0) . gaugeInFlight <$> muxGauges mux)
      slot <- usually submitCommandAsync mux (tokenRequest 2)
      say fake (bulk (token 2))
      (outcomeText <$> waitSlotResult slot) >>= (`shouldBe` Right (BulkString (token 2)))
      abortMultiplexer mux

    it "ends every one of many commands in time" . within 30 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxCommandTimeout = Just (nanosFromSeconds 0.05), muxMaxInFlight = 16384} fake
      slots <- forM [1 .. 10000] (usually submitCommandAsync mux . tokenRequest)
      outcomes <- mapM (fmap outcomeText . waitSlotResult) slots
      filter (/= Left (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 0.05) Nothing))) outcomes `shouldBe` []
      abortMultiplexer mux

    it "wakes the watchdog that slept while nothing was in flight" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxCommandTimeout = Just (nanosFromSeconds 0.02)} fake
      eventually ((== Resting) . wakeupWatchdog <$> withLock mux (wakeup mux))
      (outcomeText <$> usually submitCommand mux (tokenRequest 1)) >>= (`shouldBe` Left (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 0.02) Nothing)))
      abortMultiplexer mux

    it "probes a silent peer, and leaves one alone that answers" . within 10 $ do
      probed <- newEmptyMVar
      let answer fake = \case
            ["PING"] -> say fake "+OK\r\n+PONG\r\n" *> putMVar probed ()
            _ -> pure ()
      withMux plainSettings {muxSilenceLimit = Just (nanosFromSeconds 0.05)} goodManners answer $ \_ mux -> do
        slot <- usually submitCommandAsync mux (tokenRequest 1)
        takeMVar probed
        (outcomeText <$> waitSlotResult slot) >>= (`shouldBe` Right (SimpleString "OK"))
        isOpen mux >>= (`shouldBe` True)

    it "spares a connection whose peer reads a large request for long" . within 10 $ do
      fake <- newFake goodManners {mannersWindow = 64} 1
      mux <- openMux plainSettings {muxSilenceLimit = Just (nanosFromSeconds 0.2)} fake
      let large = request ["SET", "key", ByteString.replicate 6400 120]
          -- A hundred times the size of the window, each windowful after a pause.
          readAll left
            | left <= 0 = pure ()
            | otherwise = threadDelay 10000 *> hear fake >>= maybe (pure ()) (readAll . (left -) . ByteString.length)
      slot <- usually submitCommandAsync mux large
      readAll (ByteString.length (requestBytes large))
      say fake "+OK\r\n"
      (outcomeText <$> waitSlotResult slot) >>= (`shouldBe` Right (SimpleString "OK"))
      isOpen mux >>= (`shouldBe` True)
      abortMultiplexer mux

    it "gives the probe its time, however long this program stood still before" . within 10 $ do
      let answer fake = \case
            -- Some ticks late, and long before the limit, even on a busy machine.
            ["PING"] -> threadDelay 200000 *> say fake "+OK\r\n+PONG\r\n"
            _ -> pure ()
      withMux plainSettings {muxSilenceLimit = Just (nanosFromSeconds 1)} goodManners answer $ \_ mux -> do
        slot <- usually submitCommandAsync mux (tokenRequest 1)
        standStill 2300000
        (outcomeText <$> waitSlotResult slot) >>= (`shouldBe` Right (SimpleString "OK"))
        isOpen mux >>= (`shouldBe` True)

    it "closes a connection whose peer stays silent" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxSilenceLimit = Just (nanosFromSeconds 0.05)} fake
      (outcomeText <$> usually submitCommand mux (tokenRequest 1)) >>= (`shouldSatisfy` silent)
      awaitGone mux

    it "closes it also when there is no room for a probe and commands have no limit" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxSilenceLimit = Just (nanosFromSeconds 0.05), muxMaxInFlight = 2} fake
      slots <- mapM (usually submitCommandAsync mux . tokenRequest) [1, 2]
      mapM_ (waitSlotResult >=> ((`shouldSatisfy` silent) . outcomeText)) slots
      awaitGone mux
  where
    command k j = tokenRequest (k * 10 + j :: Int)
    silent = \case
      Left (ConnectionError (ConnectionFailure _ MaybeExecuted _ (SilentPeer _))) -> True
      _ -> False

-- | A connection whose reader reads nothing between the peer's end, which the test notes, and the shutdown.
openUnread :: IO (Fake, IORef Bool, Multiplexer)
openUnread = do
  fake <- newFake goodManners 1
  hungUp <- newIORef False
  over <- newIORef False
  let transport = fakeTransport fake
      tryRead memory size = do
        unread <- (&&) <$> readIORef hungUp <*> (not <$> readIORef over)
        if unread then pure attemptWouldRead else transportTryRead transport memory size
      shutDown = writeIORef over True *> transportShutdown transport
  mux <- openMultiplexer plainSettings transport {transportTryRead = tryRead, transportHungUp = readIORef hungUp, transportShutdown = shutDown}
  pure (fake, hungUp, mux)

-- | Lets no Haskell thread run for this many microseconds.
standStill :: CUInt -> IO ()
standStill micros = do
  capabilities <- getNumCapabilities
  done <- forM [1 .. capabilities] $ \number -> do
    over <- newEmptyMVar
    over <$ forkOn number (c_usleep micros *> putMVar over ())
  mapM_ takeMVar done

foreign import ccall unsafe "usleep"
  c_usleep :: CUInt -> IO CInt

-- | Sends commands until the connection is dead. Returns 'Nothing', or a description of the wrong
-- outcome.
callUntilDead :: Multiplexer -> Int -> IO (Maybe String)
callUntilDead mux n = do
  outcome <- outcomeText <$> usually submitCommand mux (tokenRequest n)
  case outcome of
    Right (BulkString text) | text == token n -> callUntilDead mux (n + 1)
    Left ConnectionError {} -> pure Nothing
    other -> pure (Just (show (token n) <> " came to " <> show other))
