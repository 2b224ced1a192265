-- | The store of a client's credentials, by itself: how often credentials are issued, and how long
-- they are used.
module CredentialStoreSpec (spec) where

import Control.Concurrent
import Control.Exception (throwIO)
import Control.Monad (forM, replicateM, when)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isLeft)
import Data.IORef
import Fake (goodManners, newFake, say)
import GHC.Conc (BlockReason (BlockedOnMVar), ThreadStatus (ThreadBlocked), threadStatus)
import Peer
import Redis.Config
import Redis.Duration (Duration, seconds)
import Redis.Error
import Redis.Internal.Network.Credentials
import Redis.Internal.Network.Multiplexer (abortMultiplexer)
import Redis.Internal.Network.Runtime (Nanos, preciseNanos)
import Test.Hspec hiding (before)

spec :: Spec
spec = describe "the store of credentials" $ do
  it "has them issued for each connection if nobody says how long they are good for" . within 10 $ do
    (store, issued) <- counting Nothing
    origins <- replicateM 3 (obtain store)
    map (fmap fst) origins `shouldBe` replicate 3 (Right IssuedNow)
    readIORef issued `shouldReturn` 3

  it "has them issued once for as long as they are good" . within 10 $ do
    (store, issued) <- counting (Just (seconds 1000))
    origins <- replicateM 3 (obtain store)
    map (fmap fst) origins `shouldBe` [Right IssuedNow, Right IssuedBefore, Right IssuedBefore]
    readIORef issued `shouldReturn` 1

  it "takes them for good until four fifths of their time are over" . within 20 $ do
    -- A check that began in time and ended too late proves nothing, and is repeated.
    early <- looking 0.79
    late <- looking 0.81
    (early, late) `shouldBe` (True, False)

  it "does not use again what was issued before somebody asked for newer ones, though they are the same" . within 10 $ do
    issued <- newIORef (0 :: Int)
    store <- storeOf ((issuedCredentials (named 0)) {issuedFor = Just (seconds 1000)} <$ modifyIORef' issued (+ 1))
    issue <- had store
    isCurrent store issue `shouldReturn` True
    -- No connection follows the store.
    renewAll store `shouldReturn` []
    isCurrent store issue `shouldReturn` False
    again <- had store
    readIORef issued `shouldReturn` 2
    isCurrent store again `shouldReturn` True
    (issueNumber issue, issueNumber again) `shouldBe` (1, 2)

  it "gives a failure to those who asked before it began, and to nobody who asks later" . within 10 $ do
    begun <- newIORef (0 :: Int)
    gate <- newEmptyMVar
    store <- storeOf $ do
      number <- atomicModifyIORef' begun (\count -> (count + 1, count + 1))
      when (number == 1) (takeMVar gate)
      when (number <= 2) (throwIO (userError "the issuer is away"))
      pure (issuedCredentials (named number))
    ends <- forM [1 .. 6 :: Int] $ \number -> do
      end <- newEmptyMVar
      thread <- forkIO (obtain store >>= putMVar end . fmap fst)
      -- The first thread runs the action, and the others wait for their turn.
      if number == 1 then eventually ((== 1) <$> readIORef begun) else eventually ((== ThreadBlocked BlockedOnMVar) <$> threadStatus thread)
      pure end
    putMVar gate ()
    results <- mapM takeMVar ends
    map isLeft results `shouldBe` replicate 6 True
    -- The second run of the action serves all threads that waited.
    readIORef begun `shouldReturn` 2
    fmap fst <$> obtain store `shouldReturn` Right IssuedNow
    readIORef begun `shouldReturn` 3
  describe "is followed by a connection" $ do
    it "until that ends" . within 10 $ do
      (store, issued) <- counting Nothing
      following store $ \_ _ -> renewAll store >>= (`shouldBe` [])
      -- The connection had newer credentials, and now no connection is left to get more.
      readIORef issued >>= (`shouldSatisfy` (>= 2))
      eventually $ do
        before <- readIORef issued
        renewAll store >>= (`shouldBe` [])
        (== before) <$> readIORef issued

    it "for whom an action that hangs is given up, because others wait for it" . within 10 $ do
      count <- newIORef (0 :: Int)
      never <- newEmptyMVar
      store <- newCredentialStore . setConnectTimeout (seconds 0.1) . withAction $ do
        number <- atomicModifyIORef' count (\before -> (before, before))
        modifyIORef' count (+ 1)
        if number == 0 then pure (issuedCredentials (named 0)) else takeMVar never
      following store $ \_ _ ->
        renewAll store >>= \failed -> [why | (_, CredentialsFailed why) <- failed] `shouldBe` ["the action issued none within 0.1 s"]

    it "that tries again less and less often while it gets none" . within 20 $ do
      times <- newIORef []
      store <- newCredentialStore . setBackoff backoffDefaults {backoffFirst = seconds 0.02, backoffCap = seconds 1} . withAction $ do
        now <- preciseNanos
        before <- atomicModifyIORef' times (\known -> (now : known, known))
        -- A twentieth of this time is longer than all pauses in the test.
        if null before then pure (issuedCredentials (named 0)) {issuedFor = Just (seconds 100)} else throwIO (userError "the issuer is away")
      following store $ \_ _ -> do
        _ <- renewAll store
        eventually ((>= 7) . length <$> readIORef times)
        attempts <- drop 1 . reverse <$> readIORef times
        let pauses = zipWith (-) (drop 1 attempts) attempts
            least = [10000000 * 2 ^ doubled | doubled <- [0 :: Int ..]]
        take 5 (zipWith (>=) pauses least) `shouldBe` replicate 5 True
  where
    -- Runs the action with a connection that uses the store's credentials.
    following store action = do
      issue <- had store
      fake <- newFake goodManners 1
      withPeer fake (\_ -> say fake "+OK\r\n") $ do
        mux <- openMux plainSettings fake
        followCredentials store (TcpEndpoint "fake" 1) mux issue
        () <- action fake mux
        abortMultiplexer mux

    withAction action = setCredentialsFrom action (standaloneConfig "127.0.0.1" 1)

    counting good = do
      issued <- newIORef (0 :: Int)
      store <- storeOf $ do
        number <- atomicModifyIORef' issued (\count -> (count + 1, count + 1))
        pure (issuedCredentials (named number)) {issuedFor = good}
      pure (store, issued)

    storeOf action = newCredentialStore (withAction action)
    named number = Credentials {credentialsUser = Just (Char8.pack ("user-" <> show (number :: Int))), credentialsPassword = toSecret "secret"}
    had store = obtain store >>= either (throwIO . userError . show) (pure . snd)

    -- Whether credentials with a life of half a second are still current when this part of it has
    -- passed.
    looking part = do
      (store, _) <- counting (Just lifetime)
      before <- preciseNanos
      issue <- had store
      after' <- preciseNanos
      eventually ((>= after' + ofTime part) <$> preciseNanos)
      good <- isCurrent store issue
      now <- preciseNanos
      -- The credentials' life began between the two readings of the clock.
      if part > 0.8 || now < before + ofTime 0.8 then pure good else looking part
    ofTime :: Double -> Nanos
    ofTime part = round (part * 0.5e9)
    lifetime = seconds 0.5 :: Duration
