-- | The events and gauges by which a client shows what it does.
module ObservationSpec (spec) where

import Control.Concurrent.Async (withAsync)
import Control.Concurrent.Async qualified as Async
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (AsyncException (ThreadKilled), ErrorCall (ErrorCall), throwIO)
import Control.Monad (replicateM)
import Data.Maybe (mapMaybe)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.Internal.Client.EventDispatcher (maxWaitingEvents)
import Redis.Metrics
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventuallyReturns, within)
import Test.Hspec

spec :: Spec
spec = do
  describe "connection events" $ do
    it "come in the order of what happens" $
      behindProxy $ \_ proxy -> leavingNothing $ do
        (journal, config) <- journalled (single (through proxy))
        withClient config $ \client -> do
          run client Commands.ping
          Proxy.cut proxy Proxy.Close
          run client Commands.ping
          Proxy.refuse proxy
          Proxy.cut proxy Proxy.Close
          eventuallyReturns 5 2 (length . filter (== Disconnected (endpointOf proxy) ClosedByPeer) <$> journalEntries journal)
          _ <- tryRun client (Commands.incr "hits")
          Proxy.accept proxy
          eventuallyReturns 5 (Right ()) (tryRun client Commands.ping)
        events <- journalEntries journal
        collapse (mapMaybe named events)
          `shouldBe` ["added", "connected", "ClosedByPeer", "connected", "ClosedByPeer", "failed", "connected", "ClosedLocally"]

    it "tell of no end without a beginning" $
      withServer serverDefaults {Server.optionsPassword = Just "right"} $ \server -> leavingNothing $ do
        (journal, config) <- journalled (single (addressed server))
        withClient config $ \client -> do
          _ <- tryRun client Commands.ping
          pure ()
        events <- journalEntries journal
        mapMaybe named events `shouldBe` ["added", "failed"]

    it "pair up, those of dedicated connections too" $
      behindProxy $ \server proxy -> do
        (journal, config) <- journalled (through proxy)
        _ <- underLoad server config $ \client load -> do
          _ <- run client (Commands.rpush "list" (pure "element"))
          _ <- run client (Commands.blpop (pure "list") (Just (seconds 1)))
          Proxy.cut proxy Proxy.Reset
          workersProgress load 8
        events <- journalEntries journal
        length [() | Connected _ _ <- events] `shouldBe` length [() | Disconnected _ _ <- events]

  describe "hooks that throw" $ do
    it "disturb nobody" $
      behindProxy $ \server proxy -> do
        let thrower = throwIO (ErrorCall "hook")
            hooks = noHooks {hookConnection = Just (const thrower), hookCommand = Just (const thrower), hookPush = Just (\_ _ -> thrower)}
        tally <- underLoad server (setHooks hooks (through proxy)) $ \client load -> do
          _ <- run client (raw ["DEBUG", "PROTOCOL", "push"])
          Proxy.cut proxy Proxy.Reset
          workersProgress load 8
        tallyRight tally `shouldSatisfy` (> 0)

    it "as if their thread were killed disturb nobody either" $
      withServer serverDefaults $ \server -> leavingNothing $ do
        let hooks = noHooks {hookConnection = Just (const (throwIO ThreadKilled))}
        withClient (setHooks hooks (addressed server)) $ \client ->
          run client Commands.ping
        eventuallyReturns 5 0 (Server.connectedClients server)

  describe "hooks that never return" $ do
    it "stop neither commands nor connections, nor keep the client from closing" $
      behindProxy $ \_ proxy -> leavingNothing . within 30 $ do
        called <- newTVarIO (0 :: Int)
        never <- newEmptyMVar
        let stuck = atomically (modifyTVar' called (+ 1)) >> takeMVar never
            hooks = noHooks {hookConnection = Just (const stuck), hookPush = Just (\_ _ -> stuck)}
        client <- newClient (single (setHooks hooks (through proxy)))
        run client Commands.ping
        _ <- run client (raw ["DEBUG", "PROTOCOL", "push"])
        run client Commands.ping
        Proxy.cut proxy Proxy.Reset
        eventuallyReturns 5 (Right ()) (tryRun client Commands.ping)
        closeClient client
        -- The hook is still in its first call.
        readTVarIO called `shouldReturn` 1
        putMVar never ()

    it "are told how much they have missed" $
      withServer serverDefaults $ \server -> leavingNothing $ do
        events <- newTVarIO []
        gate <- newEmptyMVar
        let heard event = atomically (modifyTVar' events (event :))
            hooks = noHooks {hookConnection = Just heard, hookPush = Just (\_ _ -> readMVar gate)}
        withClient (single (setHooks hooks (addressed server))) $ \client -> do
          _ <- runPipeline client (traverse (const (pipelined (raw ["DEBUG", "PROTOCOL", "push"]))) [1 .. maxWaitingEvents + 100])
          run client Commands.ping
          putMVar gate ()
        missed <- (\told -> [count | EventsDropped count <- told]) <$> readTVarIO events
        -- The first event has left the queue already, unless it was slow to leave.
        sum missed `shouldSatisfy` (\count -> count >= 99 && count <= 102)

  describe "gauges" $ do
    it "show connections lent out, kept, and waited for" $
      withServer serverDefaults $ \server -> leavingNothing . withClient (setMaxDedicated 1 (single (addressed server))) $ \client -> do
        let dedicated = map gaugeDedicated . snapshotNodes <$> clientSnapshot client
            shown lent idle waiting =
              [DedicatedGauges {gaugeLent = lent, gaugeIdle = idle, gaugeOpening = 0, gaugeLeasesWaiting = waiting}]
        over <- newEmptyMVar
        let borrow = withDedicated client AnyPrimary (\_ -> takeMVar over)
        withAsync borrow $ \first -> do
          eventuallyReturns 5 (shown 1 0 0) dedicated
          withAsync borrow $ \second -> do
            eventuallyReturns 5 (shown 1 0 1) dedicated
            putMVar over ()
            Async.wait first
            eventuallyReturns 5 (shown 1 0 0) dedicated
            -- A caller that gives up no longer waits.
            withAsync borrow $ \_ -> eventuallyReturns 5 (shown 1 0 1) dedicated
            dedicated `shouldReturn` shown 1 0 0
            putMVar over ()
            Async.wait second
            eventuallyReturns 5 (shown 0 1 0) dedicated

    it "show what is open, in flight and waiting" $
      behindProxy $ \_ proxy -> leavingNothing . withClient (single . setSilenceLimit Nothing . setLimits limitsDefaults {limitInFlight = 8} $ through proxy) $ \client -> do
        fmap (map gaugeConnections) (snapshotNodes <$> clientSnapshot client) `shouldReturn` [[]]
        run client Commands.ping
        map gaugeEndpoint . snapshotNodes <$> clientSnapshot client `shouldReturn` [endpointOf proxy]
        Proxy.freeze proxy Proxy.ToClient
        started <- replicateM 8 (submit client (Commands.incr "hits"))
        inFlightOf client `shouldReturn` 8
        Proxy.thaw proxy Proxy.ToClient
        mapM_ awaitReply started
        eventuallyReturns 5 0 (inFlightOf client)
        waitingOf client `shouldReturn` 0
        Proxy.cut proxy Proxy.Reset
        eventuallyReturns 5 [[]] (map gaugeConnections . snapshotNodes <$> clientSnapshot client)

endpointOf :: Proxy.Proxy -> Endpoint
endpointOf proxy = TcpEndpoint "127.0.0.1" (fromIntegral (Proxy.proxyPort proxy))

named :: ConnectionEvent -> Maybe String
named = \case
  Connected _ _ -> Just "connected"
  ConnectAttemptFailed {} -> Just "failed"
  Disconnected _ cause -> Just (show cause)
  NodeAdded _ -> Just "added"
  _ -> Nothing

-- | Drops elements that equal the one before.
collapse :: Eq a => [a] -> [a]
collapse = \case
  first : second : rest
    | first == second -> collapse (second : rest)
    | otherwise -> first : collapse (second : rest)
  short -> short
