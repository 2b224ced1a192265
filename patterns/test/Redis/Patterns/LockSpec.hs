module Redis.Patterns.LockSpec (spec) where

import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Exception (try)
import Control.Monad (forM_, void)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis
import Redis.Commands qualified as Redis
import Redis.Patterns.Contention
import Redis.Patterns.Lock
import Redis.Patterns.Surroundings
import Redis.TestKit.Command (Reply (List, Number))
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Scripted (anyNumber, awaitMet, inOrder, onAny, replies, scriptedPort, withScripted)
import Redis.TestKit.Server (freeze, restart, thaw)
import Redis.TestKit.Wait
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "many contenders" $ do
    it "hold it one at a time, with fencing tokens in the order in which they hold it" $
      withRedis $ \server ->
        withClient (addressed server) $ \one -> withClient (addressed server) $ \other ->
          contended 20 [one, other]

    it "do so in a cluster" $ inCluster $ \client -> contended 10 [client]

    it "do so while holders are cancelled and connections are cut" $
      behindProxy $ \_ proxy client -> do
        guarded <- newGuarded
        forM_ [1 .. 8 :: Int] $ \turn -> do
          done <- newTVarIO (0 :: Int)
          -- The first holder stays inside until it is cancelled.
          stuck <- async (withLock client patient (\hold -> enter guarded hold (atomically retry)))
          _ <- eventuallyJust 10 "it is held" (run client (lockHolder "many"))
          withAsync (forConcurrently_ [1 .. 6 :: Int] $ \_ -> void (withLock client patient (\hold -> enter guarded hold (atomically (modifyTVar' done (+ 1)))))) $ \others -> do
            Proxy.cutAfter proxy Proxy.ToClient (turn * 7) Proxy.Reset
            cancel stuck
            wait others
          readTVarIO done `shouldReturn` 6
        verifyGuarded guarded

  describe "a lease" $ do
    it "is renewed while the body runs" $
      withRedisAndClient $ \server client -> do
        kept <- withLock client (brief "kept") $ \hold -> do
          before <- evaluations server
          -- Each renewal is a script; six renewals take as long as two leases.
          eventually 10 "six renewals" ((>= before + 6) <$> evaluations server)
          taken <- withLock client (brief "kept") {lockTimeout = Just mempty} (const (pure ()))
          taken `shouldBe` Nothing
          isHeld (grantLease hold)
        kept `shouldBe` Just True

    it "counts from before the request was sent" $
      behindProxy $ \_ proxy client -> do
        run client Redis.ping
        Proxy.delay proxy Proxy.ToClient 0.3
        left <- withLock client (lock "slow") {lockLease = seconds 5} (leaseRemaining . grantLease)
        left `shouldSatisfy` maybe False (\for -> for > seconds 1 && for <= seconds 4.7)

    it "ends for its holder before it ends on a server that is frozen, and the next one has a greater token" $
      withRedisAndClient $ \server client -> do
        resource <- newTVarIO 0
        holding . withLock client (brief "frozen") $ \hold -> do
          write resource (lockFence hold) `shouldReturn` True
          freeze server
          atomically (awaitLeaseLost (grantLease hold))
          isHeld (grantLease hold) `shouldReturn` False
          leaseRemaining (grantLease hold) `shouldReturn` mempty
          thaw server
          after <- withLock client (brief "frozen") (\next -> (,) (lockFence next > lockFence hold) <$> write resource (lockFence next))
          after `shouldBe` Just (True, True)
          -- The resource refuses a write by a former holder that does not check its lease.
          write resource (lockFence hold) `shouldReturn` False

    it "that was lost stays so, and giving it back leaves the next holder's alone" $
      withRedisAndClient $ \server client -> do
        taken <- newEmptyTMVarIO
        lost <- newEmptyTMVarIO
        go <- newEmptyTMVarIO
        let next = withLock client (brief "lost") {lockTimeout = Nothing} $ \hold -> do
              atomically (putTMVar taken (lockFence hold))
              atomically (awaitLeaseLost (grantLease hold) *> putTMVar lost ())
              atomically (takeTMVar go)
              isHeld (grantLease hold)
        withAsync next $ \other -> do
          first <- atomically (takeTMVar taken)
          void (run client (Redis.del (pure "{lock:lost}")))
          holding . withLock client (lock "lost") $ \hold -> do
            lockFence hold `shouldSatisfy` (> first)
            atomically (takeTMVar lost)
            before <- evaluations server
            atomically (putTMVar go ())
            -- The first holder gives back a lock that is no longer its own.
            wait other `shouldReturn` Just False
            eventually 5 "it was given back" ((> before) <$> evaluations server)
            fmap holderFence <$> run client (lockHolder "lost") `shouldReturn` Just (lockFence hold)
            isHeld (grantLease hold) `shouldReturn` True
        run client (Redis.exists (pure "{lock:lost}")) `shouldReturn` 0

    it "is over when the body is" $
      withRedisAndClient $ \_ client -> do
        kept <- withLock client (brief "over") (pure . grantLease)
        forM_ kept $ \held -> isHeld held `shouldReturn` False
        run client (lockHolder "over") `shouldReturn` Nothing

    it "of a server that forgot everything is lost, and the next token is greater" $
      withRedisAndClient $ \server client -> do
        fences <- withLock client (brief "forgotten") $ \hold -> do
          restart server
          atomically (awaitLeaseLost (grantLease hold))
          next <- withLock client (brief "forgotten") (pure . lockFence)
          pure (lockFence hold, next)
        fences `shouldSatisfy` maybe False (\(first, next) -> maybe False (> first) next)

  describe "a reply that is lost" $ do
    forM_ [("request", Proxy.ToServer), ("reply", Proxy.ToClient)] $ \(what, direction) ->
      it ("in the " <> what <> " of taking is asked for again, and it is held once") $
        behindProxy $ \server proxy client -> do
          -- Makes the server know the script, so that the connection is cut at EVALSHA.
          _ <- withLock client (lock "other") (const (pure ()))
          before <- evaluations server
          Proxy.cutAfter proxy direction 0 Proxy.Reset
          fences <- withLock client (lock "cut") $ \hold -> do
            holder <- run client (lockHolder "cut")
            pure (Just (lockFence hold), holderFence <$> holder)
          fences `shouldSatisfy` maybe False (uncurry (==))
          -- The lock is taken once or twice, and given back once.
          ran <- subtract before <$> evaluations server
          ran `shouldBe` (if direction == Proxy.ToClient then 3 else 2)
          run client (lockHolder "cut") `shouldReturn` Nothing

    it "of giving it back gives it back, and nobody else's" $
      behindProxy $ \_ proxy client -> do
        _ <- withLock client (lock "back") (const (pure ()))
        withLock client (lock "back") (\_ -> Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Reset) `shouldReturn` Just ()
        run client (lockHolder "back") `shouldReturn` Nothing

    it "for longer than there is to wait is an error in doubt, and what was taken is taken back" $
      behindProxy $ \server _ client -> do
        _ <- withLock client (lock "doubt") (const (pure ()))
        freeze server
        failed <- try (withLock client (lock "doubt") {lockLease = seconds 60, lockTimeout = Just mempty} (const (pure ())))
        either errorDelivery (const NotSent) failed `shouldBe` MaybeExecuted
        thaw server
        -- Long before the lease is over.
        eventuallyReturns 10 Nothing (run client (lockHolder "doubt"))

    it "before the server is gone is an error in doubt" $
      behindProxy $ \server proxy client -> do
        _ <- withLock client (lock "doubt") (const (pure ()))
        before <- evaluations server
        Proxy.freeze proxy Proxy.ToClient
        withAsync (try (withLock client (brief "doubt") {lockTimeout = Just (seconds 1)} (const (pure ())))) $ \taking -> do
          eventually 10 "it is taken" ((> before) <$> evaluations server)
          Proxy.refuse proxy
          Proxy.cut proxy Proxy.Reset
          failed <- wait taking
          either errorDelivery (const NotSent) failed `shouldBe` MaybeExecuted

    it "to a request that may still take it, before others hold it, has it given back" $ do
      let taking = evaluation "2"
          refused = replies (List [Number 0, Number 60000])
          -- The answer to the first request comes with that to the second, when its time is over.
          expected =
            inOrder
              [ onAny "taking" taking [],
                onAny "taking again" taking [refused, refused],
                anyNumber (onAny "taking once more" taking [refused]),
                onAny "giving back" (evaluation "1") [replies (Number 0)]
              ]
      withScripted expected $ \server ->
        withClient (setMuxCount (Just 1) (standaloneConfig "127.0.0.1" (fromIntegral (scriptedPort server)))) $ \client -> do
          withLock client (lock "late") {lockLease = milliseconds 300, lockTimeout = Just (seconds 2)} (const (pure ())) `shouldReturn` Nothing
          awaitMet server 10

  it "is not taken by a server that refuses, which is told at once" $
    withRedisAndClient $ \_ client -> do
      void (run client (Redis.lpush "{lock:list}" (pure "no lock")))
      failed <- try (withLock client (lock "list") {lockTimeout = Nothing} (const (pure ())))
      either errorDelivery (const NotSent) failed `shouldBe` MaybeExecuted

  it "names its holder" $
    withRedisAndClient $ \_ client -> do
      named <- withLock client (lock "named") {lockOwner = "a:1 b"} $ \hold ->
        (== Just (LockHolder "a:1 b" (lockFence hold))) <$> run client (lockHolder "named")
      named `shouldBe` Just True
  where
    brief :: ByteString -> Lock
    brief name = (lock name) {lockLease = milliseconds 400}
    holding taken = taken >>= maybe (failure "not held") pure

-- | Writes to a resource that refuses every token smaller than one it has seen.
write :: TVar Int64 -> Int64 -> IO Bool
write resource fence = atomically $ do
  greatest <- readTVar resource
  if fence < greatest then pure False else True <$ writeTVar resource fence

-- | Whether a command runs a script with this many keys.
evaluation :: ByteString -> [ByteString] -> Bool
evaluation keys = \case
  name : _ : count : _ -> name `elem` ["EVAL", "EVALSHA"] && count == keys
  _ -> False
