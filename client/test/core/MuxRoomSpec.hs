-- | A full queue makes callers wait, in order, and lets them go on.
module MuxRoomSpec (spec) where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Fake
import Peer
import Redis.Duration
import Redis.Error
import Redis.Internal.Network.Connection (muxRing)
import Redis.Internal.Network.InFlight (RingEntry (entryDeadline), ringPeek, ringTail)
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Runtime (coarseNanos, nanosFromSeconds)
import Redis.Internal.Protocol.Encode (request)
import Redis.Value
import Test.Hspec

-- | A caller that waits for room: its thread and its outcome.
data Caller = Caller ThreadId (MVar (Either SomeException (Either Error Value)))

-- | Starts callers one after the other, each when the one before it is in the queue.
queueUp :: Multiplexer -> [Int] -> IO [Caller]
queueUp mux numbers = do
  already <- gaugeWaiting <$> muxGauges mux
  forM (zip [1 ..] numbers) $ \(position, n) -> do
    end <- newEmptyMVar
    thread <- forkFinally (outcomeText <$> usually submitCommand mux (tokenRequest n)) (putMVar end)
    eventually ((== already + position) . gaugeWaiting <$> muxGauges mux)
    pure (Caller thread end)

result :: Caller -> IO (Either SomeException (Either Error Value))
result (Caller _ end) = readMVar end

answeredWith :: Int -> Either SomeException (Either Error Value) -> Bool
answeredWith n = \case
  Right (Right (BulkString text)) -> text == token n
  _ -> False

-- | A peer that records the commands it receives and answers them when the gate is open.
gated :: MVar () -> IORef [Int] -> Fake -> [Char8.ByteString] -> IO ()
gated gate heard fake parts = do
  forM_ (drop 1 parts) $ \text -> forM_ (Char8.readInt (Char8.drop 6 text)) $ \(n, _) -> modifyIORef' heard (n :)
  readMVar gate
  echoing fake parts

spec :: Spec
spec = describe "a multiplexer that is full" $ do
  it "makes callers wait and lets them in, first come first served" . within 10 $ do
    (gate, heard) <- (,) <$> newEmptyMVar <*> newIORef []
    withMux plainSettings {muxMaxInFlight = 1} goodManners (gated gate heard) $ \_ mux -> do
      first <- usually submitCommandAsync mux (tokenRequest 0)
      callers <- queueUp mux [1 .. 20]
      gauges <- muxGauges mux
      gaugeInFlight gauges `shouldBe` 1
      putMVar gate ()
      void (waitSlotResult first)
      results <- mapM result callers
      zipWith answeredWith [1 ..] results `shouldBe` replicate 20 True
    readIORef heard >>= (`shouldBe` [0 .. 20]) . reverse

  it "loses nobody's place when somebody in the queue is cancelled" . within 10 $ do
    (gate, heard) <- (,) <$> newEmptyMVar <*> newIORef []
    withMux plainSettings {muxMaxInFlight = 1} goodManners (gated gate heard) $ \_ mux -> do
      void (usually submitCommandAsync mux (tokenRequest 0))
      callers <- queueUp mux [1 .. 12]
      let cancelled = [n | n <- [1 .. 12], n `rem` 3 == 1] :: [Int]
      forM_ (zip [1 ..] callers) $ \(n, Caller thread _) -> when (n `elem` cancelled) (killThread thread)
      eventually ((== 8) . gaugeWaiting <$> muxGauges mux)
      putMVar gate ()
      results <- mapM result callers
      zipWith answeredWith [1 ..] results `shouldBe` [n `notElem` cancelled | n <- [1 .. 12]]
    readIORef heard >>= (`shouldBe` [0] <> [n | n <- [1 .. 12], n `rem` 3 /= 1]) . reverse

  it "passes a call on when the one called is cancelled at that moment" . within 20 $
    forM_ [1 .. 60 :: Int] $ \round' -> do
      (gate, heard) <- (,) <$> newEmptyMVar <*> newIORef []
      withMux plainSettings {muxMaxInFlight = 1} goodManners (gated gate heard) $ \_ mux -> do
        void (usually submitCommandAsync mux (tokenRequest 0))
        callers <- queueUp mux [1 .. 4]
        putMVar gate ()
        replicateM_ round' yield
        forM_ (take 2 callers) $ \(Caller thread _) -> killThread thread
        results <- mapM result (drop 2 callers)
        zipWith answeredWith [3 ..] results `shouldBe` [True, True]

  it "ends the wait for room when the command's time is over, and says that nothing was sent" . within 10 $ do
    fake <- newFake goodManners 1
    mux <- openMux plainSettings {muxMaxInFlight = 2, muxCommandTimeout = Just (nanosFromSeconds 0.05)} fake
    outcomes <- forM [1 .. 6] $ \n -> do
      end <- newEmptyMVar
      void (forkIO (usually submitCommand mux (tokenRequest n) >>= putMVar end . outcomeText))
      eventually ((== n) . (\gauges -> gaugeInFlight gauges + gaugeWaiting gauges) <$> muxGauges mux)
      pure end
    mapM takeMVar outcomes
      >>= (`shouldBe` map (\delivery -> Left (TimeoutError (TimeoutFailure "" delivery (seconds 0.05) Nothing))) [MaybeExecuted, MaybeExecuted, NotSent, NotSent, NotSent, NotSent])
    -- The two that timed out in flight still take their own replies, so no other command's reply is
    -- lost.
    (gaugeWaiting <$> muxGauges mux) >>= (`shouldBe` 0)
    mapM_ (say fake . bulk . token) [1, 2]
    eventually ((== 0) . gaugeInFlight <$> muxGauges mux)
    abortMultiplexer mux

  it "counts the wait for room as part of the command's time" . within 20 $ do
    fake <- newFake goodManners 1
    let limit = nanosFromSeconds 1000
    mux <- openMux plainSettings {muxMaxInFlight = 1, muxCommandTimeout = Just limit} fake
    void (usually submitCommandAsync mux (tokenRequest 0))
    callers <- queueUp mux [1]
    queued <- coarseNanos
    -- Waits for the next tick: a command that found room at once would begin later than 'queued'.
    eventually ((> queued) <$> coarseNanos)
    say fake (bulk (token 0))
    eventually ((== 2) <$> ringTail (muxRing mux))
    -- The deadline by which the watchdog acts.
    deadline <- entryDeadline <$> ringPeek (muxRing mux) 1
    deadline `shouldSatisfy` (<= queued + limit)
    say fake (bulk (token 1))
    results <- mapM result callers
    zipWith answeredWith [1 ..] results `shouldBe` [True]
    abortMultiplexer mux

  it "keeps no more bytes than it may while the peer does not read, then sends them all" . within 10 $
    fillsUp payloadsOf (mapM . usually submitCommand)

  it "counts all the bytes of a run" . within 10 $
    fillsUp (\n -> "first" : payloadsOf n) (\mux -> usually submitRun mux >=> mapM waitSlotResult)

  it "gives a long run its turn although short commands keep coming" . within 20 $ do
    fake <- newFake goodManners 1
    mux <- openMux plainSettings {muxMaxInFlight = 4} fake
    stop <- newIORef False
    ends <- forM [1 .. 12 :: Int] $ \n -> do
      end <- newEmptyMVar
      let loop = do
            void (usually submitCommand mux (tokenRequest n))
            stopped <- readIORef stop
            if stopped then putMVar end () else loop
      end <$ forkIO loop
    eventually ((>= 8) . gaugeWaiting <$> muxGauges mux)
    run <- newEmptyMVar
    void (forkIO (usually submitRun mux (map tokenRequest [1000 .. 1003]) >>= mapM waitSlotResult >>= putMVar run . map outcomeText))
    -- Answers one command at a time, and waits until the next is in.
    let answerOne = \case
          [_, text] -> do
            say fake (bulk text)
            replicateM_ 20 yield
          _ -> pure ()
    withPeer fake answerOne $ do
      takeMVar run >>= (`shouldBe` [Right (BulkString (token n)) | n <- [1000 .. 1003]])
      writeIORef stop True
      mapM_ takeMVar ends
      abortMultiplexer mux
    breaches fake >>= (`shouldBe` [])

  it "refuses those who wait for room as soon as it is being closed" . within 10 $ do
    (gate, heard) <- (,) <$> newEmptyMVar <*> newIORef []
    withMux plainSettings {muxMaxInFlight = 1} goodManners (gated gate heard) $ \_ mux -> do
      first <- usually submitCommandAsync mux (tokenRequest 0)
      callers <- queueUp mux [1 .. 5]
      closed <- newEmptyMVar
      void (forkIO (closeMultiplexer 20 mux *> putMVar closed ()))
      results <- mapM result callers
      [outcome | Right outcome <- results] `shouldBe` replicate 5 (Left (ConnectionError (ConnectionFailure "" NotSent (muxEndpoint mux) ClosedLocally)))
      putMVar gate ()
      takeMVar closed
      (outcomeText <$> waitSlotResult first) >>= (`shouldBe` Right (BulkString (token 0)))

  it "tells those who wait for room when it dies, that nothing was sent" . within 10 $ do
    fake <- newFake goodManners 1
    mux <- openMux plainSettings {muxMaxInFlight = 1} fake
    void (usually submitCommandAsync mux (tokenRequest 0))
    callers <- queueUp mux [1 .. 5]
    hangUp fake
    results <- mapM result callers
    [outcome | Right outcome <- results] `shouldBe` replicate 5 (Left (ConnectionError (ConnectionFailure "" NotSent (muxEndpoint mux) ClosedByPeer)))
  where
    payloadsOf n = [Char8.pack (show (n :: Int)) <> Char8.replicate 400 'z']

    -- A hundred callers, each of whom asks for these texts to be echoed.
    fillsUp textsOf ask = do
      fake <- newFake goodManners {mannersWindow = 64} 1
      mux <- openMux plainSettings {muxMaxQueued = 8192} fake
      ends <- forM [1 .. 100] $ \n -> do
        end <- newEmptyMVar
        end <$ forkIO (ask mux [request ["ECHO", text] | text <- textsOf n] >>= putMVar end . map outcomeText)
      eventually $ do
        gauges <- muxGauges mux
        -- The limit holds at any time.
        gaugeQueuedBytes gauges `shouldSatisfy` (<= 8192)
        -- About 8 KiB are queued, and as much is with the writer.
        pure (gaugeWaiting gauges > 60 && gaugeWaiting gauges + gaugeInFlight gauges `quot` length (textsOf 0) == 100)
      withPeer fake (echoing fake) $ do
        outcomes <- mapM takeMVar ends
        outcomes `shouldBe` [[Right (BulkString text) | text <- textsOf n] | n <- [1 .. 100]]
        abortMultiplexer mux
      breaches fake >>= (`shouldBe` [])
