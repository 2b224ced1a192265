-- | The cache while something breaks.
module CacheSpec (spec) where

import Control.Concurrent.Async (async, cancel, forConcurrently, mapConcurrently, replicateConcurrently, wait, withAsync)
import Control.Monad (forM, forM_, forever, replicateM_, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isLeft)
import Data.Map.Strict qualified as Map
import Harness
import Redis
import Redis.Cache
import Redis.CacheAudit
import Redis.Commands qualified as Commands
import Redis.TestKit.Command (CommandCalls (..))
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (serverDefaults)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, eventuallyReturns, pause, within)
import Test.Hspec

spec :: Spec
spec = do
  describe "what was read to be kept" $ do
    it "is not used when its connection has ended" $
      behindProxy $ \server proxy -> leavingNothing . withClient (caching (setMaxAttempts 1 (through proxy))) $ \client -> do
        _ <- Server.command server ["SET", "k", "1"]
        kept client "k" `shouldReturn` Right (Just "1")
        Proxy.refuse proxy
        Proxy.cut proxy Proxy.Reset
        _ <- Server.command server ["SET", "k", "2"]
        eventually 5 "the end is noticed" ((>= 1) . cacheFlushes <$> cacheGauges client)
        kept client "k" >>= (`shouldSatisfy` isLeft)
        Proxy.accept proxy
        eventuallyReturns 5 (Right (Just "2")) (kept client "k")

    it "is not used by who knows of the end from a command of his own" $
      behindProxy $ \server proxy -> leavingNothing . withClient (caching (single (through proxy))) $ \client ->
        forM_ [1 .. 50 :: Int] $ \turn -> do
          let value = decimal turn
          _ <- Server.command server ["SET", "k", value]
          eventuallyReturns 5 (Right (Just value)) (kept client "k")
          Proxy.freeze proxy Proxy.ToServer
          -- This command is in flight when the connection ends, so it gets its error as early as
          -- any caller learns of the end.
          doubtful <- submit client (Commands.incr "n")
          eventually 5 "it is sent" ((>= 1) <$> inFlightOf client)
          _ <- Server.command server ["SET", "k", value <> "x"]
          Proxy.cut proxy Proxy.Reset
          Proxy.thaw proxy Proxy.ToServer
          _ <- within 5 (tryAwaitReply doubtful)
          kept client "k" `shouldReturn` Right (Just (value <> "x"))

    it "is asked for once, whoever leaves: those that wait get the reply though who asked first is gone" $
      behindProxy $ \server proxy -> leavingNothing . withClient (caching (single (through proxy))) $ \client ->
        forM_ [False, True] $ \connected -> do
          _ <- Server.command server ["SET", "k", "1"]
          if connected then run client Commands.ping else Proxy.freeze proxy Proxy.ToClient
          Proxy.freeze proxy Proxy.ToClient
          placed <- cacheGauges client
          asked <- calls server "get"
          first <- async (kept client "k")
          eventually 5 "it is placed" ((> cacheMisses placed) . cacheMisses <$> cacheGauges client)
          others <- forM [1 .. 20 :: Int] (\_ -> async (kept client "k"))
          eventually 5 "they wait" ((>= cacheWaits placed + 20) . cacheWaits <$> cacheGauges client)
          cancel first
          Proxy.thaw proxy Proxy.ToClient
          within 5 (mapM wait others) `shouldReturn` replicate 20 (Right (Just "1"))
          calls server "get" >>= (`shouldSatisfy` (<= asked + 1))
          _ <- Server.command server ["DEL", "k"]
          eventuallyReturns 5 (Right Nothing) (kept client "k")

    it "is read again for all who wait when its connection breaks" $
      behindProxy $ \server proxy -> leavingNothing . withClient (caching (single (through proxy))) $ \client -> do
        _ <- Server.command server ["SET", "k", "1"]
        run client Commands.ping
        Proxy.freeze proxy Proxy.ToClient
        waiting <- async (replicateConcurrently 50 (kept client "k"))
        eventually 5 "they wait" ((>= 49) . cacheWaits <$> cacheGauges client)
        Proxy.cut proxy Proxy.Reset
        Proxy.thaw proxy Proxy.ToClient
        within 5 (wait waiting) `shouldReturn` replicate 50 (Right (Just "1"))
        calls server "get" >>= (`shouldSatisfy` (<= 3))

    it "is no older than allowed, though nobody hears of changes" $
      behindProxy $ \server proxy -> leavingNothing . withClient (caching (setCommandTimeout (Just (seconds 0.3)) (setSilenceLimit (Just (seconds 0.2)) (through proxy)))) $ \client -> do
        audit <- watching server $ \watch -> auditedReads client watch {watchAge = 0.25} $
          replicateM_ 4 $ do
            Proxy.freeze proxy Proxy.ToClient
            pause 0.5
            Proxy.thaw proxy Proxy.ToClient
            eventually 10 "it is read again" (either (const False) (const True) <$> kept client "k1")
        auditWrong audit `shouldBe` []
        auditFailedReads audit `shouldSatisfy` (> 0)

    forM_ faults $ \(name, fault) ->
      it ("is soon the last version, and never an earlier one again, when " <> name) $
        behindProxyOf (if name == "the server is killed" then durable else serverDefaults) $ \server proxy -> leavingNothing . withClient (caching (through proxy)) $ \client -> do
          audit <- watching server $ \watch -> auditedReads client watch (fault server proxy client)
          auditWrong audit `shouldBe` []
          auditWrites audit `shouldSatisfy` (> 20)
          gauges <- cacheGauges client
          cacheHits gauges `shouldSatisfy` (> 100)
          cacheInvalidated gauges `shouldSatisfy` (> 20)

    it "keeps its bounds while keys come and go" $
      behindProxy $ \server proxy -> leavingNothing . withClient (cachingOf cachingDefaults {cachingBytes = 20000} (through proxy)) $ \client -> do
        let write number = Server.command server ["SET", "k" <> decimal (number `mod` 300), decimal number]
        withAsync (forM_ (cycle [1 ..]) write) $ \_ -> do
          void . forConcurrently [1 .. 4 :: Int] $ \part -> forM_ [1 .. 1500 :: Int] $ \number -> do
            void (kept client ("k" <> decimal ((number * part) `mod` 300)))
            gauges <- cacheGauges client
            cacheKeptBytes gauges `shouldSatisfy` (\bytes -> bytes >= 0 && bytes <= 20000)
        gauges <- cacheGauges client
        cacheEvicted gauges `shouldSatisfy` (> 100)

  describe "commands beside it" $
    it "have their own replies, while connections break" $
      behindProxyOf durable $ \server proxy -> do
        let reading client = withAsync (forever (mapConcurrently (kept client . ("k" <>) . decimal) [1 .. 8 :: Int]))
        tally <- underLoad server (caching (through proxy)) $ \client load ->
          reading client $ \_ -> replicateM_ 10 (Proxy.cut proxy Proxy.Reset *> workersProgress load 20)
        tallyWrong tally `shouldBe` []
        tallyRight tally `shouldSatisfy` (> 500)
  where
    faults =
      [ ("nothing does", \_ _ _ -> pause 1),
        ("connections are cut", \_ proxy _ -> replicateM_ 20 (Proxy.cut proxy Proxy.Reset *> pause 0.05)),
        ("bytes come late and in pieces", \_ proxy _ -> Proxy.delay proxy Proxy.ToClient 0.02 *> Proxy.slice proxy Proxy.ToClient 3 *> pause 1 *> Proxy.heal proxy),
        ("the server is frozen", \server _ _ -> replicateM_ 3 (Server.freeze server *> pause 0.3 *> Server.thaw server *> pause 0.2)),
        ( "the server is killed",
          \server _ client -> replicateM_ 3 $ do
            Server.kill9 server
            Server.restart server
            eventually 10 "it is back" (either (const False) (const True) <$> kept client "k1")
        ),
        ("all data are deleted", \server _ _ -> replicateM_ 20 (Server.command server ["FLUSHALL"] *> pause 0.05)),
        ("keys expire", \server _ _ -> forM_ [1 .. 100 :: Int] $ \turn -> Server.command server ["PEXPIRE", "k" <> decimal (1 + turn `mod` 4), "1"] *> pause 0.01)
      ]

    -- Writes go straight to the server.
    watching server action = withClient (addressed server) $ \writer ->
      action
        Watch
          { watchKeys = ["k1", "k2", "k3", "k4"],
            watchReaders = 3,
            -- So long that only invalidations can remove a reply.
            watchAge = 3600,
            watchPace = 0.005,
            watchWrite = \key version -> either (const False) (const True) <$> tryRun writer (Commands.set key (decimal version)),
            watchForgets = False
          }

    kept :: Client -> ByteString -> IO (Either Error (Maybe ByteString))
    kept client key = tryRunCached client (seconds 3600) (Commands.get key)

    caching = cachingOf cachingDefaults
    cachingOf settings = setCaching (Just settings)

    calls server name = maybe 0 callsRun . Map.lookup name <$> Server.commandStatistics server

    decimal :: Int -> ByteString
    decimal = Char8.pack . show
