-- | What wakes a connection's reader; and that it sleeps through nothing.
module MuxSleepSpec (spec) where

import Control.Concurrent (forkIO, threadDelay, yield)
import Control.Concurrent.MVar (isEmptyMVar)
import Control.Concurrent.STM
import Control.Monad
import Data.IORef
import Fake
import Peer
import Redis.Duration
import Redis.Internal.Config (Polling (..))
import Redis.Internal.Network.Connection
import Redis.Internal.Network.InFlight (newOrderCounts)
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Reader (readerLoop)
import Redis.Internal.Network.Wakeup hiding (without)
import Redis.Value
import Test.Hspec

spec :: Spec
spec = describe "a sleeping connection" $ do
  it "that polls asks to be woken when it stays idle, not after every command" . within 20 $
    withMux polling goodManners echoing $ \fake mux -> do
      without <- forM [1 .. 500] $ \n -> do
        ask mux n
        sleeps mux
        readerOf mux
      -- Not quite all of them: ticks of the watchdog fall in between.
      length (filter (== AsleepUnwatched) without) `shouldSatisfy` (> 250)
      eventually ((== 1) <$> readTVarIO (fakeWatches fake))

  it "that does not poll asks at once" . within 20 $
    withMux plainSettings goodManners echoing $ \fake mux ->
      forM_ [1 .. 50] $ \n -> do
        ask mux n
        sleepsWatched fake mux

  it "sees a push right after a reply, and then asks at once" . within 20 $ do
    pushes <- newIORef (0 :: Int)
    let settings = polling {muxOnPush = const (modifyIORef' pushes (+ 1))}
    withMux settings goodManners echoing $ \fake mux -> do
      -- Repeated if a tick of the watchdog came in between.
      eventually (ask mux 0 *> sleeps mux *> ((== AsleepUnwatched) <$> readerOf mux))
      say fake ">1\r\n+news\r\n"
      eventually ((== 1) <$> readIORef pushes)
      forM_ [1 .. 50] $ \n -> do
        ask mux n
        sleepsWatched fake mux
      say fake ">1\r\n+news\r\n"
      eventually ((== 2) <$> readIORef pushes)

  it "on which pushes are expected asks at once, before the first" . within 20 $
    withMux polling {muxOnLastWord = Just (pure ())} goodManners echoing $ \fake mux ->
      forM_ [1 .. 50] $ \n -> do
        ask mux n
        sleepsWatched fake mux

  it "sees the parts of a push that come one by one after a long rest" . within 20 $ do
    pushes <- newIORef (0 :: Int)
    let settings = polling {muxCommandTimeout = Just 20000000, muxOnPush = const (modifyIORef' pushes (+ 1))}
    withMux settings goodManners echoing $ \fake mux -> do
      -- The timeout is there to shorten the ticks; a reply does not take so long even on a busy
      -- machine.
      (outcomeText <$> limitedTo 15 submitCommand mux (tokenRequest 0)) >>= (`shouldBe` Right (BulkString (token 0)))
      eventually ((== Resting) . wakeupWatchdog <$> withLock mux (wakeup mux))
      forM_ [">1\r\n", "+ne", "ws\r\n"] $ \part -> do
        reads' <- readWord mux WordReads
        say fake part
        eventually ((/= reads') <$> readWord mux WordReads)
        sleeps mux
      eventually ((== 1) <$> readIORef pushes)

  it "sees the peer hang up right after a reply" . within 20 $ do
    fake <- newFake goodManners 1
    withPeer fake (echoing fake) $ do
      mux <- openMux polling fake
      ask mux 0
      hangUp fake
      awaitGone mux

  it "sees the peer hang up before anything was sent" . within 20 $ do
    fake <- newFake goodManners 1
    mux <- openMux polling fake
    hangUp fake
    awaitGone mux

  it "asks at once when the watchdog sleeps already, which would have it ask later" . within 20 $ do
    (fake, mux) <- withoutThreads polling
    void (withLock mux (transition mux (WouldRest False)))
    void (forkIO (readerLoop mux))
    eventually ((== 1) <$> readTVarIO (fakeWatches fake))
    abortMultiplexer mux

  it "that has not asked does so at the next tick, and not at a later one" . within 20 $ do
    (_, mux) <- tickedWhileUnwatched
    abortMultiplexer mux

  it "polls for a reply after the socket has once woken it, too, and asks for nothing" . within 20 $ do
    (fake, mux) <- tickedWhileUnwatched
    polled <- forM [1 .. 20] $ \n -> do
      attempts <- readTVarIO (fakeAttempts fake)
      slot <- usually submitCommandAsync mux (tokenRequest n)
      let polls = do
            many <- subtract attempts <$> readTVarIO (fakeAttempts fake)
            watches <- readTVarIO (fakeWatches fake)
            if many > 100 || watches > 0 then pure (watches == 0) else yield *> polls
      polls <* do
        say fake (bulk (token n))
        (outcomeText <$> waitSlotResult slot) `shouldReturn` Right (BulkString (token n))
        -- The first reply answers the request.
        eventually ((&&) . (== 0) <$> readTVarIO (fakeWatches fake) <*> ((== AsleepUnwatched) <$> readerOf mux))
    -- Not quite all: the answer to a request may come late.
    length (filter id polled) `shouldSatisfy` (> 10)
    abortMultiplexer mux

  it "that has stopped polling for slow replies polls again for a lone caller when they are quick" . within 20 $ do
    slow <- newIORef True
    let answer fake parts = readIORef slow >>= (`when` threadDelay 10000) >> echoing fake parts
    withMux plainSettings {muxPolling = PollUpTo (milliseconds 1)} goodManners answer $ \_ mux -> do
      let stateAfter n = ask mux n *> sleeps mux *> (wakeupPolls <$> wakeup mux)
      eventually (not <$> stateAfter 0)
      writeIORef slow False
      eventually (stateAfter 1)

  it "that has not asked is woken by a submitter that sends its command itself" . within 20 $ do
    (fake, mux) <- withoutThreads polling
    -- The state that a reader leaves if it decided about polling the other way a moment before.
    void (withLock mux (transition mux (WouldSleep False False)))
    void (usually submitCommandAsync mux (tokenRequest 0))
    heardBytes fake >>= (`shouldSatisfy` (> 0))
    isEmptyMVar (muxReaderWake mux) >>= (`shouldBe` False)

  it "that a caller wakes to send does not ask the socket for replies" . within 20 $ do
    (fake, mux) <- withoutThreads plainSettings
    void (forkIO (readerLoop mux))
    -- So many are in flight that a caller leaves sending to the reader.
    first <- usually submitCommandAsync mux (tokenRequest 1)
    mapM_ (usually submitCommandAsync mux . tokenRequest) [2 .. 64]
    sleepsWatched fake mux
    attempts <- readTVarIO (fakeAttempts fake)
    forM_ [65 .. 74] $ \n -> do
      heard <- heardBytes fake
      void (usually submitCommandAsync mux (tokenRequest n))
      sleepsWatched fake mux
      heardBytes fake >>= (`shouldSatisfy` (> heard))
    readTVarIO (fakeAttempts fake) `shouldReturn` attempts
    say fake (bulk (token 1))
    (outcomeText <$> waitSlotResult first) `shouldReturn` Right (BulkString (token 1))
    abortMultiplexer mux

  it "beside others of its node polls for many callers, too" . within 20 $
    withMux polling {muxNeighbours = OfSameNode} goodManners echoing $ \_ mux -> do
      slots <- mapM (usually submitCommandAsync mux . tokenRequest) [1 .. 64]
      mapM_ waitSlotResult slots
      ask mux 65
      sleeps mux
      wakeupPolls <$> wakeup mux `shouldReturn` True

  it "polls for more than 64 replies beside others of its node, and not alone" . within 20 $
    forM_ [NoNeighbours, OfSameNode] $ \neighbours -> do
      (fake, mux) <- withoutThreads polling {muxNeighbours = neighbours}
      mapM_ (usually submitCommandAsync mux . tokenRequest) [1 .. 100]
      void (forkIO (readerLoop mux))
      if neighbours == OfSameNode
        then eventually ((> 1000) <$> readTVarIO (fakeAttempts fake))
        else sleeps mux *> readTVarIO (fakeAttempts fake) >>= (`shouldSatisfy` (< 1000))
      abortMultiplexer mux

  it "beside those of other nodes polls only for few callers" . within 20 $
    withMux polling {muxNeighbours = OfOtherNodes} goodManners echoing $ \_ mux -> do
      ask mux 0
      eventually (wakeupPolls <$> wakeup mux)
      slots <- mapM (usually submitCommandAsync mux . tokenRequest) [1 .. 64]
      mapM_ waitSlotResult slots
      ask mux 65
      eventually (not . wakeupPolls <$> wakeup mux)
      -- A peak is half forgotten after 180 commands.
      forM_ [66 .. 2000] (ask mux)
      eventually (wakeupPolls <$> wakeup mux)
  where
    -- A connection without threads; the test starts those that it needs.
    withoutThreads settings = do
      fake <- newFake goodManners 1
      mux <- newOrderCounts >>= newMuxState settings (fakeTransport fake)
      pure (fake, mux)
    -- A reader that slept unwatched, and has asked to be woken since a tick.
    tickedWhileUnwatched = do
      (fake, mux) <- withoutThreads polling
      void (forkIO (readerLoop mux))
      eventually ((== AsleepUnwatched) <$> readerOf mux)
      withLock mux (transition mux Ticked) >>= wake mux
      eventually ((== 1) <$> readTVarIO (fakeWatches fake))
      pure (fake, mux)
    -- So long that no machine is too slow for it.
    polling = plainSettings {muxPolling = PollUpTo (microseconds 1000000)}
    ask mux n = (outcomeText <$> usually submitCommand mux (tokenRequest n)) >>= (`shouldBe` Right (BulkString (token n)))
    sleeps mux = eventually (asleep <$> withLock mux (readerOf mux))
    -- A request that was answered late wakes the reader once more, and it makes another.
    sleepsWatched fake mux = do
      sleeps mux
      readerOf mux >>= (`shouldNotBe` AsleepUnwatched)
      eventually ((== 1) <$> readTVarIO (fakeWatches fake))
    readerOf mux = wakeupReader <$> wakeup mux
