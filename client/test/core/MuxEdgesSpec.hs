-- | What a connection keeps, releases and remembers, where only a look inside can show it: the
-- words of its state, memory, promises of room.
module MuxEdgesSpec (spec) where

import Control.Concurrent
import Control.Concurrent.STM (readTVarIO)
import Control.Exception
import Control.Monad
import Data.ByteString qualified as ByteString
import Data.IORef
import Fake
import GHC.Conc (BlockReason (BlockedOnSTM), ThreadStatus (ThreadBlocked), threadStatus)
import Peer
import Redis.Duration (seconds)
import Redis.Error
import Redis.Internal.Network.Connection
import Redis.Internal.Network.InFlight (InFlight (..), inFlightOf, newOrderCounts, orderKeyOf, ringCapacity, ringReady)
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Outgoing
import Redis.Internal.Network.Reader (readerLoop)
import Redis.Internal.Network.Runtime (coarseNanos, nanosFromSeconds, noDeadline)
import Redis.Internal.Network.Stream (Wire (..), closeWire, receiveReply, sendBytes)
import Redis.Internal.Network.Stream qualified as Listener
import Redis.Internal.Network.Transport (Transport (..))
import Redis.Internal.Network.Wakeup (Watchdog (Resting), asleep, wakeupReader, wakeupWatchdog)
import Redis.Internal.Protocol.Encode (request, requestBytes)
import Redis.Value
import Test.Hspec

spec :: Spec
spec = do
  describe "a reader" $ do
    it "calls who queued for room while it was about to sleep" . within 10 $ do
      arrived <- newEmptyMVar
      goOn <- newEmptyMVar
      stops <- newIORef False
      let stopping transport =
            transport
              { transportWatchReadable = \whenReadable -> do
                  now <- readIORef stops
                  when now (putMVar arrived () *> takeMVar goOn)
                  transportWatchReadable transport whenReadable
              }
      over stopping plainSettings {muxMaxInFlight = 1} $ \fake mux -> do
        slot <- usually submitCommandAsync mux (tokenRequest 1)
        eventually ((> 0) <$> heardBytes fake)
        eventually (asleep . wakeupReader <$> wakeup mux)
        writeIORef stops True
        say fake (bulk (token 1))
        void (waitSlotResult slot)
        takeMVar arrived
        -- Queues like a caller that found no room before the reply had come.
        waiter <- withLock mux (joinQueue (muxAdmission mux) 1 1 maxBound)
        writeIORef stops False
        putMVar goOn ()
        within 5 (awaitAdmission waiter) >>= (`shouldBe` Admitted)

    it "lets callers in however many pushes come" . within 20 $ do
      feed <- newIORef (pure ())
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxMaxInFlight = 1, muxOnPush = const (join (readIORef feed))} fake
      first <- usually submitCommandAsync mux (tokenRequest 1)
      second <- newEmptyMVar
      void (forkIO (usually submitCommand mux (tokenRequest 2) >>= putMVar second . outcomeText))
      eventually ((== 1) . gaugeWaiting <$> muxGauges mux)
      -- Every push is followed by another one, so there is always something to read.
      writeIORef feed (say fake ">1\r\n+again\r\n")
      say fake (bulk (token 1) <> ">1\r\n+again\r\n")
      void (waitSlotResult first)
      eventually ((== (0, 1)) . (\gauges -> (gaugeWaiting gauges, gaugeInFlight gauges)) <$> muxGauges mux)
      writeIORef feed (pure ())
      say fake (bulk (token 2))
      takeMVar second >>= (`shouldBe` Right (BulkString (token 2)))
      abortMultiplexer mux

    it "reads a large reply straight to its place, then as little at once as before" . within 20 $ do
      sizes <- newIORef []
      let noting transport = transport {transportTryRead = \memory size -> modifyIORef' sizes (size :) *> transportTryRead transport memory size}
      over noting plainSettings $ \fake mux -> do
        let largest = maximum . (0 :) <$> atomicModifyIORef' sizes ((,) [])
            asks text = do
              slot <- usually submitCommandAsync mux (request ["GET", "key"])
              say fake (bulk text)
              (outcomeText <$> waitSlotResult slot) >>= (`shouldBe` Right (BulkString text))
        asks "small"
        atRest <- largest
        asks (ByteString.replicate (8 * 1024 * 1024) 120)
        largest >>= (`shouldBe` 1024 * 1024)
        asks "small"
        eventually (asleep . wakeupReader <$> wakeup mux)
        void largest
        asks "small"
        largest >>= (`shouldBe` atRest)

    it "lets the place of each answered command be used again" . within 10 $
      withMux plainSettings {muxMaxInFlight = 4} goodManners echoing $ \_ mux -> do
        void (usually submitCommand mux (tokenRequest 1))
        eventually (asleep . wakeupReader <$> wakeup mux)
        withLock mux (ringReady (muxRing mux) (ringCapacity (muxRing mux))) >>= (`shouldBe` True)

    it "withdraws its request to be woken when it ends" . within 10 $ do
      withdrawn <- newIORef (0 :: Int)
      let noting transport = transport {transportWatchReadable = fmap (modifyIORef' withdrawn (+ 1) *>) . transportWatchReadable transport}
      over noting plainSettings $ \_ mux -> do
        eventually (asleep . wakeupReader <$> wakeup mux)
        abortMultiplexer mux
        readIORef withdrawn >>= (`shouldBe` 1)

    it "takes bytes like those of TLS for that at the beginning only" . within 10 $
      forM_ [False, True] $ \answered -> do
        ends <- newEmptyMVar
        fake <- newFake goodManners 1
        mux <- openMux plainSettings {muxOnDeath = putMVar ends} fake
        when answered $ do
          slot <- usually submitCommandAsync mux (tokenRequest 1)
          say fake (bulk (token 1))
          void (waitSlotResult slot)
        say fake "\x15\x03\x01\x00\x02\x02\x46"
        takeMVar ends >>= \end ->
          (answered, end) `shouldSatisfy` \case
            (False, TlsFailed _) -> True
            (True, ProtocolViolation _) -> True
            _ -> False
        awaitGone mux

    it "counts commands as answered that fail with their connection" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings fake
      key <- orderKeyOf <$> myThreadId
      slot <- submitCommandAsync mux (termsUntil noDeadline) {termsOrderKey = key} (tokenRequest 1)
      inFlightOf (muxOrder mux) key >>= (`shouldBe` Some)
      hangUp fake
      void (waitSlotResult slot)
      awaitGone mux
      inFlightOf (muxOrder mux) key >>= (`shouldBe` None)

  describe "who waits for room" $ do
    it "gives up what was promised when it is interrupted before it has come in" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxMaxInFlight = 1} fake
      void (usually submitCommandAsync mux (tokenRequest 1))
      leaver <- forkIO (void (usually submitCommand mux (tokenRequest 2)))
      eventually ((== 1) . gaugeWaiting <$> muxGauges mux)
      -- While the test holds the lock, the waiter has been called but cannot come in.
      withLock mux $ do
        admitWhile (muxAdmission mux) (\_ _ _ _ -> True)
        replicateM_ 2000 yield
        killThread leaver
      eventually ((== 0) . gaugeWaiting <$> muxGauges mux)
      other <- newEmptyMVar
      void (forkIO (usually submitCommand mux (tokenRequest 3) >>= putMVar other . outcomeText))
      eventually ((== 1) . gaugeWaiting <$> muxGauges mux)
      say fake (bulk (token 1))
      eventually ((== 0) . gaugeWaiting <$> muxGauges mux)
      say fake (bulk (token 3))
      takeMVar other >>= (`shouldBe` Right (BulkString (token 3)))
      abortMultiplexer mux

    it "is not sent away because the time of commands is over that were answered" . within 10 $
      withMux plainSettings {muxMaxInFlight = 1, muxCommandTimeout = Just (nanosFromSeconds 0.3)} goodManners echoing $ \_ mux -> do
        void (usually submitCommand mux (tokenRequest 1))
        -- Was called in, and has not come in yet when the watchdog looks.
        waiter <- withLock mux $ do
          waiter <- joinQueue (muxAdmission mux) 1 1 maxBound
          waiter <$ admitWaiting mux
        wakeWatchdog mux
        eventually (withLock mux ((==) <$> readWord mux WordOverdueFrom <*> readWord mux WordOverdue))
        end <- newEmptyMVar
        void (forkIO (limitedTo 1000 submitCommand mux (tokenRequest 2) >>= putMVar end . outcomeText))
        eventually ((== 2) . gaugeWaiting <$> muxGauges mux)
        withLock mux (leaveQueue (muxAdmission mux) waiter *> admitWaiting mux)
        takeMVar end >>= (`shouldBe` Right (BulkString (token 2)))

    it "has the watchdog look as often as its own time wants it" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxMaxInFlight = 1} fake
      void (usually submitCommandAsync mux (tokenRequest 1))
      readWord mux WordShortest >>= (`shouldBe` maxBound)
      waits <- forkIO (void (limitedTo 1000 submitCommand mux (tokenRequest 2)))
      eventually ((== 1) . gaugeWaiting <$> muxGauges mux)
      readWord mux WordShortest >>= (`shouldBe` fromIntegral (nanosFromSeconds 1000))
      killThread waits
      abortMultiplexer mux

  describe "a watchdog" $ do
    it "forgets whose time is over, and lets others wait for room while anybody has time left" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxMaxInFlight = 2} fake
      short <- limitedTo 0.03 submitCommandAsync mux (tokenRequest 1)
      long <- limitedTo 1000 submitCommandAsync mux (tokenRequest 2)
      (outcomeText <$> waitSlotResult short) >>= (`shouldBe` Left (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 0.03) Nothing)))
      -- The earliest deadline is now that of the other command.
      eventually $ do
        now <- coarseNanos
        (> fromIntegral now) <$> readWord mux WordEarliest
      end <- newEmptyMVar
      void (forkIO (limitedTo 1000 submitCommand mux (tokenRequest 3) >>= putMVar end . outcomeText))
      eventually ((== 1) . gaugeWaiting <$> muxGauges mux)
      mapM_ (say fake . bulk . token) [1, 2]
      (outcomeText <$> waitSlotResult long) >>= (`shouldBe` Right (BulkString (token 2)))
      -- Now the caller that waits for room is let in. A reply before that would belong to no
      -- command.
      eventually ((== 1) . gaugeInFlight <$> muxGauges mux)
      say fake (bulk (token 3))
      takeMVar end >>= (`shouldBe` Right (BulkString (token 3)))
      abortMultiplexer mux

    it "goes by the longest time of those in flight, and not by that of one that was answered" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxSilenceLimit = Just (nanosFromSeconds 0.05)} fake
      long <- limitedTo 1000 submitCommandAsync mux (tokenRequest 1)
      short <- limitedTo 500 submitCommandAsync mux (tokenRequest 2)
      readWord mux WordLongest >>= (`shouldBe` fromIntegral (nanosFromSeconds 1000))
      mapM_ (say fake . bulk . token) [1, 2]
      mapM_ waitSlotResult [long, short]
      (outcomeText <$> usually submitCommand mux (tokenRequest 3)) >>= \outcome ->
        outcome `shouldSatisfy` \case
          Left (ConnectionError (ConnectionFailure _ MaybeExecuted _ (SilentPeer _))) -> True
          _ -> False
      awaitGone mux

    it "asks nothing of a peer that there is no room to ask" . within 10 $ do
      fake <- newFake goodManners 1
      mux <- openMux plainSettings {muxSilenceLimit = Just (nanosFromSeconds 0.05), muxMaxInFlight = 2} fake
      mapM (usually submitCommandAsync mux . tokenRequest) [1, 2] >>= mapM_ waitSlotResult
      awaitGone mux
      heardBytes fake >>= (`shouldBe` sum (map (ByteString.length . requestBytes . tokenRequest) [1, 2]))

    it "that has rested looks no more often than those want who come then" . within 10 $
      withMux plainSettings goodManners echoing $ \_ mux -> do
        void (limitedTo 0.1 submitCommand mux (tokenRequest 1))
        eventually ((== Resting) . wakeupWatchdog <$> withLock mux (wakeup mux))
        withLock mux (readWord mux WordShortest) >>= (`shouldBe` maxBound)

  describe "a connection for messages" $
    it "takes no larger buffer for a large message" . within 20 $ do
      sizes <- newIORef []
      heard <- newIORef (0 :: Int)
      fake <- newFake goodManners 1
      let transport = fakeTransport fake
          largest = maximum . (0 :) <$> atomicModifyIORef' sizes ((,) [])
          hears text = do
            count <- readIORef heard
            say fake (bulk text)
            eventually ((> count) <$> readIORef heard)
      wire <- wireOver transport {transportTryRead = \memory size -> atomicModifyIORef' sizes (\known -> (size : known, ())) *> transportTryRead transport memory size}
      listener <- Listener.newListener wire
      ended <- newEmptyMVar
      void . mask_ . forkIO $ Listener.listen listener (\came -> modifyIORef' heard (+ length came)) >>= putMVar ended
      hears "small"
      atRest <- largest
      hears (ByteString.replicate (8 * 1024 * 1024) 120)
      largest >>= (`shouldBe` atRest)
      hears "small"
      largest >>= (`shouldBe` atRest)
      Listener.hangUp listener ClosedLocally
      takeMVar ended >>= (`shouldBe` ClosedLocally)
      breaches fake >>= (`shouldBe` [])

  describe "a connection as a stream of bytes" $ do
    -- With TLS, a shutdown tells the peer that the end was meant.
    it "is shut down before it is closed" . within 10 $ do
      fake <- newFake goodManners 1
      wireOver (fakeTransport fake) >>= closeWire
      readTVarIO (fakeShutDown fake) >>= (`shouldBe` True)
      closes fake >>= (`shouldBe` 1)
      breaches fake >>= (`shouldBe` [])

    it "that ends before a reply has come does not say that nothing was sent" . within 10 $
      forM_ [hangUp, (`say` "what?\r\n")] $ \fault -> do
        fake <- newFake goodManners 1
        wire <- wireOver (fakeTransport fake)
        sendBytes wire (requestBytes (tokenRequest 1))
        fault fake
        outcome <- try (receiveReply wire)
        either (Left . errorDelivery) (Right . fst) outcome `shouldBe` Left MaybeExecuted
        closeWire wire

    it "loses no byte of a reply when the wait for the rest is interrupted" . within 10 $ do
      fake <- newFake goodManners 1
      wire <- wireOver (fakeTransport fake)
      say fake "+one\r\n*2\r\n$5\r\nfirst\r\n$6\r\nsec"
      receiveReply wire >>= (`shouldBe` (SimpleString "one", "+one\r\n"))
      forM_ ["o", "nd"] $ \more -> do
        end <- newEmptyMVar
        thread <- forkFinally (receiveReply wire) (putMVar end)
        -- It has taken all that has come.
        eventually ((== ThreadBlocked BlockedOnSTM) <$> threadStatus thread)
        killThread thread
        void (takeMVar end)
        say fake more
      say fake "\r\n+three\r\n"
      receiveReply wire >>= (`shouldBe` (Array [BulkString "first", BulkString "second"], "*2\r\n$5\r\nfirst\r\n$6\r\nsecond\r\n"))
      receiveReply wire >>= (`shouldBe` (SimpleString "three", "+three\r\n"))
      closeWire wire

-- | A connection as a stream of bytes, over this transport.
wireOver :: Transport -> IO Wire
wireOver transport = Wire transport (muxDecodeLimits plainSettings) <$> newIORef ByteString.empty

-- | A connection with only a reader, over a transport made from the fake one.
over :: (Transport -> Transport) -> MuxSettings -> (Fake -> Multiplexer -> IO ()) -> IO ()
over change settings action = do
  fake <- newFake goodManners 1
  mux <- newOrderCounts >>= newMuxState settings (change (fakeTransport fake))
  void (mask_ (forkIO (readerLoop mux)))
  action fake mux
  within 5 (abortMultiplexer mux)
