-- | The cache with a real server.
module Redis.CacheLiveSpec (spec) where

import Control.Concurrent.Async (forConcurrently_, replicateConcurrently, replicateConcurrently_)
import Control.Monad (forM, forM_, replicateM_, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Redis
import Redis.Cache
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.Duration (minutes)
import Redis.ScriptedPeer
import Redis.TestKit.Command (CommandCalls (..))
import Redis.TestKit.Server (AclUser (..), Server, ServerOptions (..), commandStatistics, serverDefaults, serverHost, serverPort, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, eventuallyReturns, within)
import Test.Hspec

spec :: Spec
spec = around_ (within 60) . describe "what is kept" $ do
  forM_ [("when reads are tracked", TrackReads), ("when prefixes are", TrackPrefixes ("k" :| ["other"]))] $ \(when', tracking) -> describe when' $ do
    let with = withCachingClient cachingDefaults {cachingTracking = tracking}

    it "answers without asking again, typed as what was read" $
      with $ \server client -> do
        run client (Redis.set "k" "v")
        replicateM_ 10 (cached client (Redis.get "k") `shouldReturn` Just "v")
        replicateM_ 10 (cached client (raw ["GET", "k"] `decodedBy` Decode.nullable Decode.bytes) `shouldReturn` Just "v")
        replicateM_ 10 (cached client (Redis.strlen "k") `shouldReturn` 1)
        replicateM_ 10 (cached client (Redis.get "k2") `shouldReturn` Nothing)
        calls server "get" `shouldReturn` 2
        calls server "strlen" `shouldReturn` 1
        gauges <- cacheGauges client
        (cacheHits gauges, cacheMisses gauges, cacheKept gauges) `shouldBe` (37, 3, 3)
        cacheKeptBytes gauges `shouldSatisfy` (> 0)

    it "goes when anybody changes the key, this client too" $
      with $ \server client -> do
        let writes = [\value -> void (Server.command server ["SET", "k", value]), run client . Redis.set "k"]
        forM_ (zip [1 ..] (concat (replicate 20 writes))) $ \(number, write) -> do
          let value = decimal number
          write value
          eventuallyReturns 5 (Just value) (cached client (Redis.get "k"))
        calls server "get" >>= (`shouldSatisfy` (<= 45))

    it "goes when the key expires, or all data do" $
      with $ \server client -> do
        run client (Redis.set "k" "v")
        run client (Redis.set "other" "w")
        cached client (Redis.get "k") `shouldReturn` Just "v"
        cached client (Redis.get "other") `shouldReturn` Just "w"
        _ <- Server.command server ["PEXPIRE", "k", "1"]
        eventuallyReturns 5 Nothing (cached client (Redis.get "k"))
        _ <- Server.command server ["FLUSHALL"]
        eventuallyReturns 5 Nothing (cached client (Redis.get "other"))
        cacheFlushes <$> cacheGauges client `shouldReturn` 1

    it "is asked for once by all who miss it at the same time" $
      with $ \server client -> do
        run client (Redis.set "k" "v")
        -- No read is answered before all have arrived.
        _ <- Server.command server ["CLIENT", "PAUSE", "300", "ALL"]
        answers <- replicateConcurrently 200 (cached client (Redis.get "k"))
        answers `shouldBe` replicate 200 (Just "v")
        calls server "get" `shouldReturn` 1
        gauges <- cacheGauges client
        (cacheMisses gauges, cacheWaits gauges + cacheHits gauges) `shouldBe` (1, 199)

    it "is no error: those are asked for again" $
      with $ \server client -> do
        _ <- run client (Redis.rpush "k" (pure "element"))
        replicateM_ 3 $ do
          failed <- tryRunCached client age (Redis.get "k")
          failed `shouldSatisfy` \case
            Left (ReplyError ServerError {serverErrorCode = "WRONGTYPE"}) -> True
            _ -> False
        calls server "get" `shouldReturn` 3
        cacheKept <$> cacheGauges client `shouldReturn` 0
        -- All callers that wait share the reply, too.
        _ <- Server.command server ["CLIENT", "PAUSE", "300", "ALL"]
        replicateConcurrently_ 50 (tryRunCached client age (Redis.get "k"))
        calls server "get" >>= (`shouldSatisfy` (< 50))

    it "holds the keys of an MGET or EXISTS one by one" $
      with $ \server client -> do
        run client (Redis.mset (("k1", "1") :| [("k2", "2"), ("k3", "3")]))
        replicateM_ 5 (cached client (Redis.mget ("k1" :| ["k4", "k2", "k1"])) `shouldReturn` [Just "1", Nothing, Just "2", Just "1"])
        calls server "mget" `shouldReturn` 3
        cached client (Redis.mget ("k3" :| ["k2", "k1"])) `shouldReturn` [Just "3", Just "2", Just "1"]
        calls server "mget" `shouldReturn` 4
        replicateM_ 5 (cached client (Redis.exists ("k1" :| ["k4", "k2"])) `shouldReturn` 2)
        calls server "exists" `shouldReturn` 3

    it "may be had without waiting" $
      with $ \server client -> do
        run client (Redis.set "k" "v")
        -- The message about this write comes before the reply to a later command.
        void (run client Redis.ping)
        forM_ [1 .. 3 :: Int] $ \_ -> do
          begun <- forM [1 .. 100 :: Int] (\_ -> submitCached client age (Redis.get "k"))
          mapM awaitReply begun `shouldReturn` replicate 100 (Just "v")
        calls server "get" `shouldReturn` 1

    it "is one result for whoever awaits it again, though the read that it waited for was too old" $
      with $ \server client -> do
        run client (Redis.set "k" "old")
        -- No read is answered before both have begun.
        _ <- Server.command server ["CLIENT", "PAUSE", "300", "ALL"]
        first <- submitCached client age (Redis.get "k")
        joined <- submitCached client (milliseconds 1) (Redis.get "k")
        awaitReply first `shouldReturn` Just "old"
        awaitReply joined `shouldReturn` Just "old"
        run client (Redis.set "k" "new")
        asked <- calls server "get"
        awaitReply joined `shouldReturn` Just "old"
        calls server "get" `shouldReturn` asked

  it "is not used when it is older than the caller allows" $
    withCachingClient cachingDefaults $ \server client -> do
      run client (Redis.set "k" "v")
      cached client (Redis.get "k") `shouldReturn` Just "v"
      eventually 5 "a reply is too old" $ do
        _ <- runCached client (milliseconds 20) (Redis.get "k")
        (>= 3) <$> calls server "get"
      asked <- calls server "get"
      cached client (Redis.get "k") `shouldReturn` Just "v"
      runCached client mempty (Redis.get "k") `shouldReturn` Just "v"
      calls server "get" `shouldReturn` asked + 1

  it "takes no more bytes than it may, and keeps what is used" $
    withCachingClient cachingDefaults {cachingBytes = 100000} $ \server client -> do
      let keys = ["k" <> decimal number | number <- [1 .. 1000]]
      forM_ keys $ \key -> run client (Redis.set key (Char8.replicate 100 'x'))
      run client (Redis.set "hot" "hot")
      forConcurrently_ keys $ \key -> do
        _ <- cached client (Redis.get key)
        _ <- cached client (Redis.get "hot")
        gauges <- cacheGauges client
        cacheKeptBytes gauges `shouldSatisfy` (<= 100000)
      gauges <- cacheGauges client
      cacheKept gauges `shouldSatisfy` (> 100)
      cacheEvicted gauges `shouldSatisfy` (> 500)
      -- All reads of the hot key are hits, except those before it was kept.
      asked <- calls server "get"
      asked `shouldSatisfy` (<= 1000 + 20)

  it "is no reply that is larger than all the room, and nothing goes for its sake" $
    withCachingClient cachingDefaults {cachingBytes = 10000} $ \server client -> do
      let large = Char8.replicate 20000 'x'
      run client (Redis.set "small" "s")
      run client (Redis.set "large" large)
      replicateM_ 3 $ do
        cached client (Redis.get "small") `shouldReturn` Just "s"
        cached client (Redis.get "large") `shouldReturn` Just large
      gauges <- cacheGauges client
      (cacheKept gauges, cacheEvicted gauges) `shouldBe` (1, 0)
      calls server "get" `shouldReturn` 4

  it "is never what reads otherwise than by its key, nor a write" $
    withCachingClient cachingDefaults $ \server client -> do
      _ <- run client (Redis.sadd "s" ("a" :| ["b"]))
      run client (Redis.set "k" "1")
      replicateM_ 3 (cached client (Redis.sinter ("s" :| ["s"])))
      replicateM_ 3 (cached client (Redis.incr "n"))
      replicateM_ 3 (cached client (Redis.srandmember "s"))
      replicateM_ 3 (cached client (Redis.ttl "k"))
      replicateM_ 3 (cached client (raw ["EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "k"]))
      replicateM_ 3 (cached client Redis.ping)
      forM_ ["sinter", "incr", "srandmember", "ttl", "eval_ro", "ping"] $ \name -> calls server name `shouldReturn` 3
      gauges <- cacheGauges client
      (cacheUncached gauges, cacheKept gauges) `shouldBe` (18, 0)

  it "is none of keys without a tracked prefix" $
    withCachingClient cachingDefaults {cachingTracking = TrackPrefixes (pure "user:")} $ \server client -> do
      replicateM_ 3 (cached client (Redis.get "user:1"))
      replicateM_ 3 (cached client (Redis.get "order:1"))
      calls server "get" `shouldReturn` 4
      replicateM_ 3 (cached client (Redis.mget ("user:1" :| ["order:1"])))
      calls server "mget" `shouldReturn` 3

  it "is nothing without the setting" $
    withServer serverDefaults $ \server -> withClient (addressOf server) $ \client -> do
      replicateM_ 3 (cached client (Redis.get "k"))
      calls server "get" `shouldReturn` 3
      cacheGauges client >>= (`shouldBe` 0) . cacheUncached

  it "needs a user who may have reads tracked; the error says so" $
    withServer serverDefaults {optionsUsers = [AclUser {aclName = "limited", aclPassword = "pw", aclRules = "~* +@all -client|tracking"}]} $ \server -> do
      let config = setCredentials (Just (Credentials (Just "limited") (toSecret "pw"))) (setMaxAttempts 1 (addressOf server))
      withClient (setCaching (Just cachingDefaults) config) $ \client -> do
        failed <- tryRun client Redis.ping
        show failed `shouldSatisfy` ("NOPERM" `isInfixOf`)
      withClient config (`run` Redis.ping)

  it "is not had of a server that speaks RESP2 only: there is no connection, and the error says why" $
    withPeer (\case "HELLO" : _ -> "-ERR unknown command 'HELLO'\r\n"; _ -> "+OK\r\n") $ \peer ->
      withClient (setCaching (Just cachingDefaults) (peerConfig peer)) $ \client -> do
        failed <- tryRun client Redis.ping
        show failed `shouldSatisfy` ("caching needs RESP3" `isInfixOf`)

  it "is had by a user who may not say what to keep, and is never kept then" $
    withServer serverDefaults {optionsUsers = [AclUser {aclName = "limited", aclPassword = "pw", aclRules = "~* +@all -client|caching"}]} $ \server -> do
      let config = setCredentials (Just (Credentials (Just "limited") (toSecret "pw"))) (setCaching (Just cachingDefaults) (addressOf server))
      withClient config $ \client -> do
        run client (Redis.set "k" "v")
        -- Commands of other callers run beside it, and get their own replies all the same.
        forConcurrently_ [1 .. 16 :: Int] $ \number -> forM_ [1 .. 50 :: Int] $ \turn -> do
          let token = decimal (number * 1000 + turn)
          run client (Redis.echo token) `shouldReturn` token
          cached client (Redis.get "k") `shouldReturn` Just "v"
        cacheKept <$> cacheGauges client `shouldReturn` 0
  where
    age = minutes 10

    cached :: Client -> Command a -> IO a
    cached client = runCached client age

    decimal :: Int -> ByteString
    decimal = Char8.pack . show

    calls :: Server -> ByteString -> IO Int
    calls server name = maybe 0 callsRun . Map.lookup name <$> commandStatistics server

    addressOf server = standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server))

    withCachingClient caching action =
      withServer serverDefaults $ \server ->
        withClient (setCaching (Just caching) (addressOf server)) (action server)
