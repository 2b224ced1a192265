-- | Commands with time limits of their own, and commands that end without the help of a timer.
module MuxTimeSpec (spec) where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.Either (isLeft)
import Data.IORef
import Fake
import Foreign.ForeignPtr (newForeignPtr_)
import Foreign.Ptr (nullPtr)
import GHC.Conc (BlockReason (BlockedOnMVar), ThreadStatus (ThreadBlocked), threadStatus)
import Peer
import Redis.Config (standaloneConfig)
import Redis.Duration
import Redis.Error
import Redis.Internal.Config (Polling (..))
import Redis.Internal.Network.Connection
import Redis.Internal.Network.Handshake (Approach (Usual), ConnectionRole (ForPrimary), ConnectionUse (SharedFor), handshake)
import Redis.Internal.Network.InFlight (newOrderCounts, newTellingSlot)
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Reader (readerLoop)
import Redis.Internal.Network.Runtime (deadlineAfter, nanosFromSeconds)
import Redis.Internal.Network.Transport (Transport (..))
import Redis.Internal.Network.Wakeup (ReaderState (AsleepUnwatched, AwaitsSender), Sender (Writing), asleep, wakeupReader, wakeupSender)
import Redis.Internal.Protocol.Encode (request, requestBytes)
import Redis.Value
import System.CPUTime (getCPUTime)
import Test.Hspec

spec :: Spec
spec = do
  describe "a command with a time of its own" $ do
    it "ends when that is over, and those before and after it do not" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxCommandTimeout = Just (nanosFromSeconds 1000)} fake
      before' <- usually submitCommandAsync mux (tokenRequest 1)
      short <- limitedTo 0.03 submitCommandAsync mux (tokenRequest 2)
      after' <- usually submitCommandAsync mux (tokenRequest 3)
      (outcomeText <$> waitSlotResult short) >>= (`shouldBe` Left (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 0.03) Nothing)))
      mapM_ (say fake . bulk . token) [1, 2, 3]
      mapM (fmap outcomeText . waitSlotResult) [before', after'] >>= (`shouldBe` [Right (BulkString (token 1)), Right (BulkString (token 3))])
      abortMultiplexer mux

    it "has the watchdog tick often only while it is in flight" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings fake
      -- In flight throughout, so that the watchdog does not rest.
      _ <- usually submitCommandAsync mux (tokenRequest 1)
      short <- limitedTo 1 submitCommandAsync mux (tokenRequest 2)
      readWord mux WordShortest `shouldReturn` 1000000000
      mapM_ (say fake . bulk . token) [1, 2]
      void (waitSlotResult short)
      _ <- usually submitCommandAsync mux (tokenRequest 3)
      eventually ((== maxBound) <$> readWord mux WordShortest)
      abortMultiplexer mux

    it "has it tick often only for so long also while others with times of their own overlap" . within 10 $ do
      unanswered <- newIORef Nothing
      let -- Answers each command when the next has come.
          answer fake parts = readIORef unanswered >>= mapM_ (echoing fake) >> writeIORef unanswered (Just parts)
      withMux plainSettings goodManners answer $ \_ mux -> do
        let overlapping n before' = do
              after' <- limitedTo 1000 submitCommandAsync mux (tokenRequest n)
              void (waitSlotResult before')
              shortest <- readWord mux WordShortest
              unless (shortest >= 1000000000000) (overlapping (n + 1) after')
        _ <- limitedTo 1000 submitCommandAsync mux (tokenRequest 1)
        short <- limitedTo 0.02 submitCommandAsync mux (tokenRequest 2)
        readWord mux WordShortest `shouldReturn` 20000000
        overlapping 3 short

    it "outlives the time of the others" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxCommandTimeout = Just (nanosFromSeconds 0.03)} fake
      long <- limitedTo 1000 submitCommandAsync mux (tokenRequest 1)
      forever' <- unlimited submitCommandAsync mux (tokenRequest 2)
      others <- replicateM 3 (usually submitCommandAsync mux (tokenRequest 3))
      mapM (fmap outcomeText . waitSlotResult) others >>= (`shouldBe` replicate 3 (Left (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 0.03) Nothing))))
      mapM_ (say fake . bulk . token) [1, 2]
      mapM (fmap outcomeText . waitSlotResult) [long, forever'] >>= (`shouldBe` [Right (BulkString (token 1)), Right (BulkString (token 2))])
      abortMultiplexer mux

    it "ends in the order of the times, whatever the order of the commands" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings fake
      ended <- newIORef []
      ends <- forM [0.3, 0.05, 0.4, 0.1 :: Double] $ \limit -> do
        end <- newEmptyMVar
        end <$ forkIO (limitedTo limit submitCommand mux (tokenRequest 1) >>= \outcome -> modifyIORef' ended (outcomeText outcome :) *> putMVar end ())
      mapM_ takeMVar ends
      reverse <$> readIORef ended >>= (`shouldBe` [Left (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds limit) Nothing)) | limit <- [0.05, 0.1, 0.3, 0.4]])
      abortMultiplexer mux

    it "waits that long for room" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxMaxInFlight = 1} fake
      void (usually submitCommandAsync mux (tokenRequest 1))
      (outcomeText <$> limitedTo 0.03 submitCommand mux (tokenRequest 2)) >>= (`shouldBe` Left (TimeoutError (TimeoutFailure "" NotSent (seconds 0.03) Nothing)))
      abortMultiplexer mux

    it "is waited for although the peer is silent for longer than its limit" . within 20 $ do
      let answer fake = \case
            -- Busy for many times the silence limit.
            [_, text] -> threadDelay 400000 *> say fake (bulk text)
            _ -> say fake "+PONG\r\n"
      withMux plainSettings {muxSilenceLimit = Just (nanosFromSeconds 0.02)} goodManners answer $ \_ mux -> do
        (outcomeText <$> limitedTo 15 submitCommand mux (tokenRequest 1)) >>= (`shouldBe` Right (BulkString (token 1)))
        isOpen mux >>= (`shouldBe` True)

  describe "a peer that never answers" $ do
    it "keeps a thread that submits many commands for no longer than one of them may take" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxMaxInFlight = 16, muxCommandTimeout = Just (nanosFromSeconds 0.2)} fake
      slots <- forM [1 .. 1000] (usually submitCommandAsync mux . tokenRequest)
      outcomes <- mapM (fmap outcomeText . waitSlotResult) slots
      outcomes `shouldBe` replicate 16 (Left (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 0.2) Nothing))) <> replicate 984 (Left (TimeoutError (TimeoutFailure "" NotSent (seconds 0.2) Nothing)))
      abortMultiplexer mux

    it "lets callers wait for room again after a late answer" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxMaxInFlight = 2, muxCommandTimeout = Just (nanosFromSeconds 0.05)} fake
      slots <- forM [1, 2] (usually submitCommandAsync mux . tokenRequest)
      mapM_ waitSlotResult slots
      say fake (bulk (token 1))
      eventually ((== 1) . gaugeInFlight <$> muxGauges mux)
      third <- limitedTo 1000 submitCommandAsync mux (tokenRequest 3)
      end <- newEmptyMVar
      void (forkIO (limitedTo 1000 submitCommand mux (tokenRequest 4) >>= putMVar end . outcomeText))
      eventually ((== 1) . gaugeWaiting <$> muxGauges mux)
      mapM_ (say fake . bulk . token) [2, 3]
      (outcomeText <$> waitSlotResult third) >>= (`shouldBe` Right (BulkString (token 3)))
      eventually ((== 1) . gaugeInFlight <$> muxGauges mux)
      say fake (bulk (token 4))
      takeMVar end >>= (`shouldBe` Right (BulkString (token 4)))
      abortMultiplexer mux

    it "sends callers that wait for room away together, at a price that does not grow with their number" . within 25 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxMaxInFlight = 16, muxCommandTimeout = Just (nanosFromSeconds 2)} fake
      begun <- getCPUTime
      ends <- forM [1 .. 20000] $ \n -> do
        end <- newEmptyMVar
        end <$ forkIO (usually submitCommand mux (tokenRequest n) >>= putMVar end . outcomeText)
      outcomes <- mapM takeMVar ends
      ended <- getCPUTime
      length (filter (== Left (TimeoutError (TimeoutFailure "" NotSent (seconds 2) Nothing))) outcomes) `shouldBe` 19984
      fromIntegral (ended - begun) / 1e12 `shouldSatisfy` (< (2 :: Double))
      abortMultiplexer mux

    it "is no peer that is alive when it takes nothing, also if commands have no limit" . within 10 $ do
      fake <- newFake goodManners {mannersWindow = 64} 1
      mux <- openMux plainSettings {muxSilenceLimit = Just (nanosFromSeconds 0.05)} fake
      slot <- usually submitCommandAsync mux (request ["SET", "key", ByteString.replicate 6400 120])
      waitSlotResult slot >>= \outcome ->
        outcomeText outcome `shouldSatisfy` \case
          Left (ConnectionError (ConnectionFailure _ NotSent _ (SilentPeer _))) -> True
          _ -> False
      awaitGone mux

  -- With only a reader: nothing in these tests may wait for a tick.
  describe "a connection whose watchdog does not help" $ do
    it "sends what too few callers have queued for one of them to send it" . within 10 $
      withoutWatchdog plainSettings goodManners $ \fake mux -> do
        answered fake mux [1 .. 64]
        forM_ [65 .. 100] $ \n -> do
          sleeps mux
          sent <- heardBytes fake
          slot <- usually submitCommandAsync mux (tokenRequest n)
          eventually ((== sent + ByteString.length (requestBytes (tokenRequest n))) <$> heardBytes fake)
          say fake (bulk (token n))
          void (waitSlotResult slot)

    it "sends what was queued while the socket was full" . within 10 $
      withoutWatchdog plainSettings goodManners {mannersWindow = 16} $ \fake mux -> do
        slots <- mapM (usually submitCommandAsync mux . tokenRequest) [1 .. 20]
        eventually ((== Writing) . wakeupSender <$> wakeup mux)
        withPeer fake (echoing fake) $
          mapM (fmap outcomeText . waitSlotResult) slots >>= (`shouldBe` [Right (BulkString (token n)) | n <- [1 .. 20]])

    -- The reader is between its last look at the queue and its sleep. It is awake, so no other
    -- thread wakes it, and only the reader itself can notice the command (R9).
    it "sends what is queued when its reader is about to sleep" . within 10 $ do
      queueing <- newIORef (pure ())
      let once action = writeIORef queueing (pure ()) *> action
          noticed transport = transport {transportWatchReadable = \whenReadable -> join (readIORef queueing) *> transportWatchReadable transport whenReadable}
      withoutWatchdogOver noticed plainSettings goodManners $ \fake mux -> do
        answered fake mux [1 .. 64]
        late <- newEmptyMVar
        forM_ [65, 67 .. 99] $ \n -> do
          sleeps mux
          sent <- heardBytes fake
          let heard numbers = eventually ((== sent + sum (map (ByteString.length . requestBytes . tokenRequest) numbers)) <$> heardBytes fake)
          slot <- usually submitCommandAsync mux (tokenRequest n)
          heard [n]
          sleeps mux
          -- The reply makes the reader run once more, and ask once more to be woken.
          writeIORef queueing (once (usually submitCommandAsync mux (tokenRequest (n + 1)) >>= putMVar late))
          say fake (bulk (token n))
          void (waitSlotResult slot)
          heard [n, n + 1]
          say fake (bulk (token (n + 1)))
          (takeMVar late >>= fmap outcomeText . waitSlotResult) >>= (`shouldBe` Right (BulkString (token (n + 1))))

    it "sends what was queued while a caller was sending" . within 10 $
      withoutWatchdog plainSettings goodManners $ \fake mux -> do
        sleeps mux
        writeIORef (fakeBeforeWrite fake) $ do
          writeIORef (fakeBeforeWrite fake) (pure ())
          void (usually submitCommandAsync mux (tokenRequest 2))
        slot <- usually submitCommandAsync mux (tokenRequest 1)
        eventually ((== sum [ByteString.length (requestBytes (tokenRequest n)) | n <- [1, 2]]) <$> heardBytes fake)
        say fake (bulk (token 1))
        (outcomeText <$> waitSlotResult slot) >>= (`shouldBe` Right (BulkString (token 1)))

    it "ends when it is killed while a caller is sending, as soon as that is done" . within 10 $
      withoutWatchdog plainSettings goodManners $ \fake mux -> do
        sleeps mux
        writeIORef (fakeBeforeWrite fake) $ do
          writeIORef (fakeBeforeWrite fake) (pure ())
          killMultiplexer mux ClosedLocally
          eventually ((== AwaitsSender) . wakeupReader <$> withLock mux (wakeup mux))
        slot <- usually submitCommandAsync mux (tokenRequest 1)
        within 5 (awaitGone mux)
        (outcomeText <$> waitSlotResult slot) >>= (`shouldBe` Left (ConnectionError (ConnectionFailure "" NotSent (muxEndpoint mux) ClosedLocally)))

    it "is closed at once when it is idle, whatever the grace" . within 10 $
      withoutWatchdog plainSettings goodManners $ \_ mux -> do
        sleeps mux
        within 5 (closeMultiplexer 1000 mux)

    it "is closed at once although nothing but its own threads would wake its reader" . within 10 $
      withoutWatchdog plainSettings {muxPolling = PollUpTo (microseconds 1000000)} goodManners $ \_ mux -> do
        eventually ((== AsleepUnwatched) . wakeupReader <$> withLock mux (wakeup mux))
        within 5 (abortMultiplexer mux)

  describe "a handshake" $ do
    let shakesHands settings meanwhile = do
          fake <- newFake goodManners 1
          mux <- openMux settings fake
          end <- newEmptyMVar
          void (forkIO (handshake (standaloneConfig "fake" 1) Nothing (SharedFor ForPrimary) Usual mux >>= putMVar end))
          eventually ((> 0) . gaugeInFlight <$> muxGauges mux)
          asked <- gaugeInFlight <$> muxGauges mux
          () <- meanwhile mux
          say fake (ByteString.concat (replicate asked "+OK\r\n"))
          takeMVar end >>= (`shouldBe` Right ())
          abortMultiplexer mux
        brief = Just (nanosFromSeconds 0.05)
    it "has the time to connect, and not that of a command" . within 10 $
      shakesHands plainSettings {muxCommandTimeout = brief} $ \mux ->
        -- When the time of this command is over, that of a command before it would be, too.
        (outcomeText <$> usually submitCommand mux (tokenRequest 1)) >>= (`shouldBe` Left (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 0.05) Nothing)))

    it "has that time also if the peer is silent for longer than its limit" . within 10 $
      shakesHands plainSettings {muxCommandTimeout = brief, muxSilenceLimit = brief} $ \_ -> threadDelay 300000

  describe "a caller that finds no memory" $
    it "is told, and leaves the connection to the others" . within 10 $
      withMux plainSettings goodManners echoing $ \_ mux -> do
        huge <- hugeText
        try (usually submitCommand mux (request ["ECHO", huge])) >>= \case
          Left HeapOverflow -> pure ()
          Left other -> throwIO other
          Right _ -> expectationFailure "there was memory enough"
        (outcomeText <$> usually submitCommand mux (tokenRequest 1)) >>= (`shouldBe` Right (BulkString (token 1)))

  describe "a slot whose action throws" $ do
    let submitThrowing mux = do
          slot <- newTellingSlot (const (throwIO (userError "an action")))
          limitedTo 0.03 (\on terms given -> submitTo on terms given slot) mux (tokenRequest 1)
    it "keeps no other command from being told that its time is over" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings fake
      submitThrowing mux
      (outcomeText <$> limitedTo 0.1 submitCommand mux (tokenRequest 2)) `shouldReturn` Left (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 0.1) Nothing))
      abortMultiplexer mux

    it "keeps no connection from ending" . within 10 $
      withoutWatchdog plainSettings goodManners $ \_ mux -> do
        submitThrowing mux
        other <- usually submitCommandAsync mux (tokenRequest 2)
        abortMultiplexer mux
        waitSlotResult other >>= (`shouldSatisfy` isLeft) . outcomeText

  describe "a caller whose time limit throws" $
    forM_ [("a command", \mux terms -> void (submitCommandAsync mux terms (tokenRequest 0))), ("a run", \mux terms -> void (submitRun mux terms [tokenRequest 0]))] $ \(what, submit) ->
      it ("is told, and leaves the connection to the others (" <> what <> ")") . within 10 $
        withMux plainSettings goodManners echoing $ \_ mux -> do
          submit mux (termsUntil (deadlineAfter (error "the caller's") 1)) `shouldThrow` errorCall "the caller's"
          (outcomeText <$> usually submitCommand mux (tokenRequest 1)) >>= (`shouldBe` Right (BulkString (token 1)))

  describe "a run of commands" $ do
    it "enters in one piece, whoever waits for the lock behind it" . within 10 $ do
      heard <- newIORef []
      let answer fake parts = modifyIORef' heard (parts :) *> echoing fake parts
      withMux plainSettings goodManners answer $ \_ mux -> do
        ends <- withLock mux $ do
          run <- blockedOnLock (usually submitRun mux (map tokenRequest [1, 2]) >>= mapM_ waitSlotResult)
          other <- blockedOnLock (void (usually submitCommand mux (tokenRequest 3)))
          pure [run, other]
        mapM_ takeMVar ends
      reverse <$> readIORef heard >>= (`shouldBe` [["ECHO", token n] | n <- [1, 2, 3]])

    it "lets those behind it in when it is cancelled while it waits for more room than there is" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxMaxInFlight = 4} fake
      mapM_ (usually submitCommandAsync mux . tokenRequest) [1, 2]
      run <- forkIO (void (usually submitRun mux (map tokenRequest [10 .. 13])))
      eventually ((== 1) . gaugeWaiting <$> muxGauges mux)
      void (forkIO (void (usually submitCommand mux (tokenRequest 3))))
      eventually ((== 2) . gaugeWaiting <$> muxGauges mux)
      killThread run
      eventually ((== 3) . gaugeInFlight <$> muxGauges mux)
      (gaugeWaiting <$> muxGauges mux) >>= (`shouldBe` 0)
      abortMultiplexer mux

    it "lets those behind it in when its time is over before there is room for it" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxMaxInFlight = 4} fake
      mapM_ (usually submitCommandAsync mux . tokenRequest) [1, 2]
      late <- newEmptyMVar
      void (forkIO (limitedTo 1 submitRun mux (map tokenRequest [10 .. 13]) >>= mapM waitSlotResult >>= putMVar late . map outcomeText))
      eventually ((== 1) . gaugeWaiting <$> muxGauges mux)
      void (forkIO (void (usually submitCommand mux (tokenRequest 3))))
      takeMVar late >>= (`shouldBe` replicate 4 (Left (TimeoutError (TimeoutFailure "" NotSent (seconds 1) Nothing))))
      -- The peer has answered nothing.
      eventually ((== 3) . gaugeInFlight <$> muxGauges mux)
      (gaugeWaiting <$> muxGauges mux) >>= (`shouldBe` 0)
      abortMultiplexer mux
  where
    sleeps mux = eventually (asleep . wakeupReader <$> withLock mux (wakeup mux))

-- | A connection with only a reader.
withoutWatchdog :: MuxSettings -> Manners -> (Fake -> Multiplexer -> IO ()) -> IO ()
withoutWatchdog = withoutWatchdogOver id

-- | Submits commands together, and answers them once they were sent: a reply that comes before its
-- command would end the connection.
answered :: Fake -> Multiplexer -> [Int] -> IO ()
answered fake mux numbers = do
  slots <- mapM (usually submitCommandAsync mux . tokenRequest) numbers
  eventually ((== sum (map (ByteString.length . requestBytes . tokenRequest) numbers)) <$> heardBytes fake)
  mapM_ (say fake . bulk . token) numbers
  mapM_ waitSlotResult slots

-- | Like 'withoutWatchdog', over another transport that is made from the fake one.
withoutWatchdogOver :: (Transport -> Transport) -> MuxSettings -> Manners -> (Fake -> Multiplexer -> IO ()) -> IO ()
withoutWatchdogOver change settings manners action = do
  fake <- newFake manners 1
  mux <- newOrderCounts >>= newMuxState settings (change (fakeTransport fake))
  void (mask_ (forkIO (readerLoop mux)))
  action fake mux
  within 5 (abortMultiplexer mux)
  breaches fake >>= (`shouldBe` [])

-- | Starts a thread, and returns when the thread waits for an 'MVar', which is the lock.
blockedOnLock :: IO () -> IO (MVar ())
blockedOnLock action = do
  end <- newEmptyMVar
  thread <- forkIO (action *> putMVar end ())
  end <$ eventually ((== ThreadBlocked BlockedOnMVar) <$> threadStatus thread)

-- | A text whose length is larger than any memory.
hugeText :: IO ByteString
hugeText = do
  nothing <- newForeignPtr_ nullPtr
  pure (ByteString.Internal.fromForeignPtr nothing 0 (2 ^ (44 :: Int)) <> Char8.empty)
