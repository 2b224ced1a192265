-- | Commands that are sent again: when, in which order, and what the client keeps of them
-- afterwards.
module ResendSpec (spec) where

import Control.Concurrent.STM
import Control.Monad (forM, forM_, replicateM, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.IORef
import FakeNode
import Foreign.Concurrent qualified
import Foreign.Marshal.Alloc (free, mallocBytes)
import Foreign.Marshal.Utils (fillBytes)
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait (eventually)
import Redis.Value (Value (..))
import Support
import System.Mem (performMajorGC)
import Test.Hspec

spec :: Spec
spec = describe "a command that is sent again" $ do
  -- The delays are 50 to 100 ms. A busy machine makes some of them longer, but not all.
  forM_
    [ (what <> often, rounds, attempts, ask)
      | (what, ask) <- [("a command", void . (`tryRun` Redis.get key)), ("a command that waits on the server", void . (`tryRun` Redis.blpop (pure key) (Just (seconds 1))))],
        (often, rounds, attempts) <- [(", once", 12, 2), (", again and again", 1, 13)]
    ]
    $ \(what, rounds, attempts, ask) -> it ("waits for a time that is drawn anew each time: " <> what) $
      limited . withFakeNode $ \a -> do
        arrivals <- newTVarIO []
        setScript a $ \_ -> \case
          name : _ | name `elem` ["GET", "BLPOP"] -> do
            now <- getMonotonicTime
            Just (Say (Failed "TRYAGAIN Multiple keys request during rehashing of slot")) <$ atomically (modifyTVar' arrivals (now :))
          _ -> pure Nothing
        let evenly = setMaxAttempts attempts . setBackoff backoffDefaults {backoffFirst = seconds 0.1, backoffCap = seconds 0.1}
        delays <- withClient (evenly (clusterOf [fakeEndpoint a])) $ \client -> do
          -- Before the map is known, a command takes another path.
          run client (Redis.set key "value")
          fmap concat . replicateM rounds $ do
            ask client
            times <- reverse <$> atomically (swapTVar arrivals [])
            pure (zipWith (-) (drop 1 times) times)
        length delays `shouldBe` 12
        minimum delays `shouldSatisfy` (\shortest -> shortest >= 0.05 && shortest < 0.095)
        maximum delays `shouldSatisfy` (> 0.06)

  it "is not, and ends with what it was told, if the time that is left is shorter than the delay" $
    limited . withFakeNode $ \a -> do
      setScript a (saying ["INCR"] (Failed "CLUSTERDOWN The cluster is down"))
      let patiently = setBackoff backoffDefaults {backoffFirst = seconds 20, backoffCap = seconds 20} . setCommandTimeout (Just (seconds 5))
      withClient (patiently (clusterOf [fakeEndpoint a])) $ \client -> do
        -- The first command has to wait for the map; the second finds its node at once.
        problems <- replicateM 2 (tryRun client (Redis.incr key) >>= expectError)
        problems `shouldBe` replicate 2 (ReplyError (serverErrorFromText "CLUSTERDOWN The cluster is down") {serverErrorCommand = "INCR " <> key})
        countHeard a ["INCR"] `shouldReturn` 2

  it "is not when its time is over before its node can be connected to, and says what was tried" . limited . withTwoNodes $ \a b -> do
    letsIn <- newTVarIO False
    setScript a $ \_ -> \case
      name : _ | name `elem` ["INCR", "GET"] -> pure (Just (Say (sentOn "ASK" b)))
      _ -> pure Nothing
    setScript b $ \_ words' -> Nothing <$ when (take 1 words' == ["CLIENT"]) (atomically (readTVar letsIn >>= check))
    withClient (setRefreshThrottle (seconds 60) . setConnectTimeout (seconds 20) . setCommandTimeout (Just (seconds 20)) $ clusterOf [fakeEndpoint a]) $ \client -> do
      -- The time of the next command is for the node that it is sent to, not for the map.
      run client (Redis.set key "value")
      short <- submit client (timeLimit (seconds 0.2) (Redis.incr key))
      problem <- tryAwaitReply short >>= expectError
      case problem of
        RoutingError (RoutingFailure _ NotSent (AttemptsExhausted [(node, _)])) -> node `shouldBe` fakeEndpoint a
        other -> expectationFailure (show other)
      -- The first command would be sent before this one.
      behind <- submit client (Redis.get key)
      eventually 5 "it has been redirected" $ (== 1) <$> countHeard a ["GET"]
      atomically (writeTVar letsIn True)
      awaitReply behind `shouldReturn` Just (Char8.pack (show (fakePort b)))
      countHeard b ["INCR"] `shouldReturn` 0

  it "follows ASK in the order of the commands, also that of those that come while the target is being connected to" $
    limited . settled . withTwoNodes $ \a b -> do
      letsIn <- newTVarIO False
      setScript a $ \_ words' -> pure (if take 1 words' == ["SET"] then Just (Say (sentOn "ASK" b)) else Nothing)
      setScript b $ \_ words' -> Nothing <$ when (take 1 words' == ["CLIENT"]) (atomically (readTVar letsIn >>= check))
      withClient (setRefreshThrottle (seconds 60) . setConnectTimeout (seconds 20) . setCommandTimeout (Just (seconds 20)) $ clusterOf [fakeEndpoint a]) $ \client -> do
        started <- forM [1 .. 10 :: Int] $ \n -> do
          one <- submit client (Redis.set key (Char8.pack (show n)))
          eventually 5 "it has been redirected" $ (== n) <$> countHeard a ["SET"]
          one <$ eventually 5 "its redirect has come" ((== [0]) . map gaugeInFlight . concatMap gaugeConnections . snapshotNodes <$> clientSnapshot client)
        atomically (writeTVar letsIn True)
        mapM_ awaitReply started
        written <- filter ((== ["SET"]) . take 1) <$> heard b
        map (drop 2) written `shouldBe` [[Char8.pack (show n)] | n <- [1 .. 10 :: Int]]

  it "leaves nothing behind when it was answered, though that may take any time" $
    limited . withTwoNodes $ \a b -> do
      setScript a (saying ["GET"] (sentOn "MOVED" b))
      withClient (setCommandTimeout Nothing (clusterOf [fakeEndpoint a])) $ \client -> do
        freed <- newIORef False
        withMortal freed $ \value -> run client (raw ["GET", key, value]) >>= (`shouldBe` BulkString (Char8.pack (show (fakePort b))))
        eventually 10 "its words are gone" $ performMajorGC *> readIORef freed
  where
    key = "key" :: ByteString
    sentOn text node = Failed (Char8.unwords [text, Char8.pack (show (slotNumberOf key)), fakeAddress node])
    -- Sends this reply to every command of these names.
    saying names reply _ = \case
      name : _ | name `elem` names -> pure (Just (Say reply))
      _ -> pure Nothing

-- | A text that reports when the garbage collector has freed it.
withMortal :: IORef Bool -> (ByteString -> IO a) -> IO a
withMortal freed action = do
  memory <- mallocBytes 10
  fillBytes memory 120 10
  mortal <- Foreign.Concurrent.newForeignPtr memory (free memory *> writeIORef freed True)
  action (ByteString.Internal.fromForeignPtr mortal 0 10)
{-# NOINLINE withMortal #-}
