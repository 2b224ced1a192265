module Redis.Patterns.CacheAsideSpec (spec) where

import Control.Concurrent (yield)
import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Exception (ErrorCall (..), evaluate, getMaskingState, throwIO, try)
import Control.Monad (forM_, replicateM, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Commands qualified as Redis
import Redis.Patterns.CacheAside
import Redis.Patterns.CacheAudit
import Redis.Patterns.Surroundings
import Redis.TestKit.Command (Reply (List, Number, Text))
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Scripted (awaitMet, heardBy, inOrder, onAny, replies, scriptedPort, withScripted)
import Redis.TestKit.Server (freeze, kill9, serverAddress, thaw)
import Redis.TestKit.Wait
import System.IO.Unsafe (unsafePerformIO)
import Test.Hspec

spec :: Spec
spec = do
  it "computes once, and once more when it is invalidated or has expired" $
    withRedisAndClient $ \_ client -> do
      cache <- newCache client plain
      (computed, compute) <- counting (pure (Just "value"))
      replicateM 3 (cached cache "k" compute) `shouldReturn` replicate 3 (Just "value")
      readIORef computed `shouldReturn` 1
      invalidate cache "k"
      cached cache "k" compute `shouldReturn` Just "value"
      readIORef computed `shouldReturn` 2
      -- Between 90 and 100 % of the configured time.
      left <- run client (Redis.pttl "cache:k")
      left `shouldSatisfy` \case
        Redis.KeyExpires time -> time > seconds 265 && time <= seconds 300
        _ -> False
      expire client "k"
      cached cache "k" compute `shouldReturn` Just "value"
      readIORef computed `shouldReturn` 3

  it "remembers that there is none, unless it is told not to" $
    withRedisAndClient $ \_ client -> do
      forM_ [(Just (seconds 30), 1), (Nothing, 3)] $ \(absent, times) -> do
        cache <- newCache client plain {keepingAbsentTime = absent}
        (computed, compute) <- counting (pure Nothing)
        replicateM 3 (cached cache "none" compute) `shouldReturn` replicate 3 Nothing
        readIORef computed `shouldReturn` times
        invalidate cache "none"

  it "computes anew, and replaces, what it cannot read" $
    withRedisAndClient $ \_ client -> do
      old <- newCache client plain
      new <- newCache client changed
      (computed, compute) <- counting (pure (Just "value"))
      cached old "k" compute `shouldReturn` Just "value"
      replicateM 2 (cached new "k" compute) `shouldReturn` replicate 2 (Just "value")
      readIORef computed `shouldReturn` 2

  describe "of those who miss together, one computes" $ do
    it "in one process" $
      withRedisAndClient $ \_ client -> do
        cache <- newCache client plain
        together [cache]
    it "in several" $
      withRedis $ \server ->
        withClient (addressed server) $ \one -> withClient (addressed server) $ \other ->
          traverse (`newCache` plain) [one, other] >>= together
    it "of a value that they cannot read" $
      withRedisAndClient $ \_ client -> do
        old <- newCache client plain
        void (cached old "k" (pure (Just "old")))
        traverse (`newCache` changed) [client, client] >>= together
    it "in a cluster" $ inCluster $ \client -> traverse (`newCache` plain) [client, client] >>= together

  it "each process computes for itself when it is not to wait, and one stores" $
    withRedisAndClient $ \_ client -> do
      one <- newCache client plain
      other <- newCache client plain {keepingWait = mempty}
      (entered, release, compute) <- gated (pure (Just "first"))
      withAsync (cached one "k" compute) $ \first -> do
        atomically (takeTMVar entered)
        cached other "k" (pure (Just "second")) `shouldReturn` Just "second"
        atomically (putTMVar release ())
        wait first `shouldReturn` Just "first"
      cached other "k" (pure (Just "third")) `shouldReturn` Just "first"

  it "what is computed while its key is invalidated is not kept, and later callers do not wait for it" $
    withRedisAndClient $ \_ client -> do
      cache <- newCache client plain
      (entered, release, compute) <- gated (pure (Just "old"))
      withAsync (cached cache "k" compute) $ \early -> do
        atomically (takeTMVar entered)
        invalidate cache "k"
        cached cache "k" (pure (Just "new")) `shouldReturn` Just "new"
        atomically (putTMVar release ())
        wait early `shouldReturn` Just "old"
      cached cache "k" (pure (Just "newer")) `shouldReturn` Just "new"

  describe "early" $ do
    it "one computes while the others get what is there" $
      withRedisAndClient $ \_ client -> do
        cache <- newCache client plain {keepingEarly = 1e9}
        void (cached cache "k" slowly)
        (entered, release, compute) <- gated (pure (Just "new"))
        withAsync (cached cache "k" compute) $ \refreshing -> do
          atomically (takeTMVar entered)
          replicateM 5 (cached cache "k" (pure (Just "never"))) `shouldReturn` replicate 5 (Just "old")
          atomically (putTMVar release ())
          wait refreshing `shouldReturn` Just "new"
        later <- newCache client plain {keepingEarly = 0}
        cached later "k" (pure Nothing) `shouldReturn` Just "new"

    it "who fails gets what is there" $
      withRedisAndClient $ \_ client -> do
        cache <- newCache client plain {keepingEarly = 1e9}
        void (cached cache "k" slowly)
        cached cache "k" (throwIO (ErrorCall "broken")) `shouldReturn` Just "old"
        eventuallyReturns 5 (Just "new") (cached cache "k" (pure (Just "new")))

  describe "a computation" $ do
    it "that throws does so to all who wait, and the next one computes" $
      withRedisAndClient $ \_ client -> do
        cache <- newCache client plain
        (entered, release, compute) <- gated (throwIO (ErrorCall "broken"))
        withAsync (try (cached cache "k" compute)) $ \first -> do
          atomically (takeTMVar entered)
          withAsync (try (cached cache "k" compute)) $ \second -> do
            atomically (putTMVar release ())
            wait first `shouldReturn` Left (ErrorCall "broken")
            -- The second caller waited, or it came when all was over and computed itself.
            answered <- atomically ((Left <$> waitSTM second) `orElse` (Right <$> takeTMVar entered))
            case answered of
              Left result -> result `shouldBe` Left (ErrorCall "broken")
              Right () -> atomically (putTMVar release ()) *> wait second `shouldReturn` Left (ErrorCall "broken")
        cached cache "k" (pure (Just "whole")) `shouldReturn` Just "whole"

    it "that returns an error for a result gives the lease back" $
      withRedisAndClient $ \_ client -> do
        cache <- newCache client plain
        (cached cache "k" (pure (error "broken")) >>= evaluate) `shouldThrow` errorCall "broken"
        within 5 (cached cache "k" (pure (Just "whole"))) `shouldReturn` Just "whole"

    it "can be interrupted while its result is worked out, encoded or decoded" $
      withRedisAndClient $ \_ client -> do
        let stateNow = Char8.pack . show <$> getMaskingState
            encoding = (keeping "encoded" Codec {encodeWith = const (unsafePerformIO stateNow), decodeWith = Just}) {keepingEarly = 0}
        cache <- newCache client plain
        cached cache "k" (pure (unsafePerformIO (Just <$> stateNow))) `shouldReturn` Just "Unmasked"
        encoded <- newCache client encoding
        void (cached encoded "k" (pure (Just "value")))
        cached encoded "k" (pure Nothing) `shouldReturn` Just "Unmasked"
        forM_ [0, 1e9] $ \early -> do
          decoded <- newCache client (keeping "encoded" plainBytes {decodeWith = const (unsafePerformIO (Just <$> stateNow))}) {keepingEarly = early}
          cached decoded "k" (throwIO (ErrorCall "broken")) `shouldReturn` Just "Unmasked"

    it "that takes longer than its lease is waited for by who began to wait in its process" $
      withRedisAndClient $ \_ client -> do
        cache <- newCache client plain {keepingLease = seconds 1, keepingWait = seconds 1}
        (entered, release, compute) <- gated (pure (Just "first"))
        (computed, another) <- counting (pure (Just "another"))
        withAsync (cached cache "k" compute) $ \first -> do
          atomically (takeTMVar entered)
          withAsync (replicateConcurrently 20 (cached cache "k" another)) $ \others -> do
            pause 2
            atomically (putTMVar release ())
            within 5 (wait others) `shouldReturn` replicate 20 (Just "first")
            wait first `shouldReturn` Just "first"
        readIORef computed `shouldReturn` 0

    it "that is interrupted leaves it to those who wait" $
      withRedisAndClient $ \_ client -> do
        cache <- newCache client plain
        (entered, _, compute) <- gated (pure (Just "never"))
        withAsync (cached cache "k" compute) $ \first -> do
          atomically (takeTMVar entered)
          withAsync (cached cache "k" (pure (Just "mine"))) $ \second -> do
            cancel first
            within 5 (wait second) `shouldReturn` Just "mine"

    it "that is interrupted while its value is stored gives the lease back" $ do
      let expected =
            inOrder
              [ onAny "looking" isScript [replies (List [Number 3, Text "", Text "lease"])],
                onAny "storing" isScript [],
                -- The first of these answers is that to the store.
                onAny "giving back" isScript [replies (Number 1), replies (Number 1)]
              ]
      withScripted expected $ \server ->
        withClient (setMuxCount (Just 1) (standaloneConfig "127.0.0.1" (fromIntegral (scriptedPort server)))) $ \client -> do
          cache <- newCache client plain {keepingTimeout = seconds 60}
          withAsync (cached cache "k" (pure (Just "value"))) $ \storing -> do
            eventually 10 "the store has arrived" ((== 2) . length . filter (isScript . snd) <$> heardBy server)
            cancel storing
          awaitMet server 10

  describe "a reply that is lost" $ do
    it "to the look is asked for again, and the lease is its own" $
      behindProxy $ \_ proxy client -> do
        cache <- newCache client plain
        void (cached cache "other" (pure (Just "known")))
        (computed, compute) <- counting (pure (Just "value"))
        Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Reset
        -- The lease is 10 s: a caller that took its own lease for another's would wait that long.
        within 5 (cached cache "k" compute) `shouldReturn` Just "value"
        cached cache "k" compute `shouldReturn` Just "value"
        readIORef computed `shouldReturn` 1

    forM_ [("the store", Proxy.ToServer), ("the reply to the store", Proxy.ToClient)] $ \(what, direction) ->
      it ("of " <> what <> " costs nothing: it is stored once") $
        behindProxy $ \_ proxy client -> do
          cache <- newCache client plain
          void (cached cache "other" (pure (Just "known")))
          (computed, compute) <- counting (Just "value" <$ Proxy.cutAfter proxy direction 0 Proxy.Reset)
          within 5 (replicateM 2 (cached cache "k" compute)) `shouldReturn` replicate 2 (Just "value")
          readIORef computed `shouldReturn` 1

    it "to an invalidation has it done again" $
      behindProxy $ \_ proxy client -> do
        cache <- newCache client plain
        void (cached cache "k" (pure (Just "old")))
        forM_ [Proxy.ToServer, Proxy.ToClient] $ \direction -> do
          Proxy.cutAfter proxy direction 0 Proxy.Reset
          invalidate cache "k"
          cached cache "k" (pure (Just "new")) `shouldReturn` Just "new"

    it "for ever is an error that says whether the old value may still be there" $
      behindProxy $ \server _ client -> do
        cache <- newCache client plain
        strict <- newCache client plain {keepingWithoutServer = False}
        void (cached cache "k" (pure (Just "old")))
        freeze server
        (done, failed) <- concurrently (try (cached strict "k" (pure (Just "new")))) (try (invalidate cache "k"))
        either errorDelivery (const NotSent) done `shouldBe` MaybeExecuted
        either errorDelivery (const NotSent) failed `shouldBe` MaybeExecuted
        -- Without the server, the value comes from its source.
        cached cache "k" (pure (Just "new")) `shouldReturn` Just "new"

    it "for ever, or of a server that is gone, delays a caller by the time that is set" $
      withRedisAndClient $ \server client -> do
        cache <- newCache client plain {keepingTimeout = seconds 0.2}
        void (cached cache "k" (pure (Just "old")))
        forM_ [freeze, \frozen -> thaw frozen *> kill9 frozen] $ \lose -> do
          lose server
          began <- getMonotonicTime
          cached cache "other" (pure (Just "new")) `shouldReturn` Just "new"
          took <- subtract began <$> getMonotonicTime
          took `shouldSatisfy` (< 0.6)

  it "never returns what is older than an invalidation that was answered, while connections break" $
    withRedis $ \server ->
      Proxy.withProxy (serverAddress server) $ \proxy ->
        withClient (addressed server) $ \steady -> withClient (through proxy) $ \shaken ->
          audited [steady, shaken] . forM_ [1 .. 40 :: Int] $ \turn -> do
            traffic <- atomically (Proxy.proxyTraffic proxy)
            let further (now :: Proxy.Traffic) = Proxy.trafficToServer now > Proxy.trafficToServer traffic + 10000
            atomically (Proxy.proxyTraffic proxy >>= check . further)
            if even turn then Proxy.cut proxy Proxy.Reset else Proxy.cutAfter proxy Proxy.ToClient (turn * 13) Proxy.Close
  where
    slowly = Just "old" <$ awhile
    isScript words' = take 1 words' `elem` [["EVAL"], ["EVALSHA"]]

-- | Works for 10 ms.
awhile :: IO ()
awhile = do
  began <- getMonotonicTime
  let go = getMonotonicTime >>= \now -> unless (now - began > 0.01) (yield *> go)
  go

plain :: Keeping ByteString
plain = (keeping "cache" plainBytes) {keepingEarly = 0}

-- | Another format, which cannot read that of 'plain'.
changed :: Keeping ByteString
changed = (keeping "cache" Codec {encodeWith = ("new " <>), decodeWith = Char8.stripPrefix "new "}) {keepingEarly = 0}

expire :: Client -> ByteString -> IO ()
expire client key = void (run client (raw ["PEXPIRE", "cache:" <> key, "0"]))

counting :: IO a -> IO (IORef Int, IO a)
counting compute = do
  count <- newIORef 0
  pure (count, atomicModifyIORef' count (\n -> (n + 1, ())) *> compute)

-- | A computation that signals when it has begun, and then waits for permission to go on.
gated :: IO a -> IO (TMVar (), TMVar (), IO a)
gated compute = do
  entered <- newEmptyTMVarIO
  release <- newEmptyTMVarIO
  pure (entered, release, atomically (putTMVar entered ()) *> atomically (takeTMVar release) *> compute)

together :: [Cache ByteString] -> IO ()
together caches = do
  (computed, compute) <- counting (Just "value" <$ awhile)
  values <- forConcurrently (concat (replicate 25 caches)) $ \cache -> cached cache "k" compute
  values `shouldBe` replicate (25 * length caches) (Just "value")
  readIORef computed `shouldReturn` 1
