-- | Which commands replicas may answer, and which never go to one.
module ReplicaReadsSpec (spec) where

import Control.Concurrent.STM
import Control.Monad (forM_, replicateM_)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait (eventually)
import Redis.Value (Value (..))
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = describe "a client that prefers replicas" $ do
  forM_
    [ ["XREAD", "STREAMS", key, "0"],
      ["EVAL_RO", "return 1", "1", key],
      ["EVALSHA_RO", "digest", "1", key],
      ["FCALL_RO", "function", "1", key]
    ]
    $ \commandArguments -> it ("sends " <> named commandArguments <> " to one") $ goesTo Replica commandArguments (raw commandArguments)

  forM_
    [ ["XREAD", "BLOCK", "50", "STREAMS", key, "0"],
      ["XREAD", "BLOCK", "0", "STREAMS", key, "0"],
      ["EVAL", "return 1", "1", key],
      ["EVALSHA", "digest", "1", key],
      ["FCALL", "function", "1", key],
      ["HSCAN", key, "17"],
      ["SSCAN", key, "17"],
      ["ZSCAN", key, "17"],
      ["TOUCH", key]
    ]
    $ \commandArguments -> it ("never sends " <> named commandArguments <> " to one") $ goesTo Primary commandArguments (raw commandArguments)

  forM_
    [ ("EVAL_RO", Replica, Redis.evalRo "return 1" [key] []),
      ("EVALSHA_RO", Replica, Redis.evalshaRo "digest" [key] []),
      ("FCALL_RO", Replica, Redis.fcallRo "function" [key] []),
      ("EVAL", Primary, Redis.eval "return 1" [key] []),
      ("EVALSHA", Primary, Redis.evalsha "digest" [key] []),
      ("FCALL", Primary, Redis.fcall "function" [key] [])
    ]
    $ \(name, place, typed) ->
      it ("sends the typed " <> Char8.unpack name <> " to " <> (if place == Replica then "one" else "the primary")) $
        goesTo place [name] typed

  forM_ ["ASK", "MOVED"] $ \code ->
    it ("reads a slot at its primary after " <> Char8.unpack code <> " for it, which its replica knows nothing of") $
      limited . settled . withTwoNodes $ \a b -> withTwoNodes $ \target other -> do
        let withReplica node replica = node {shardReplicasAt = [(Text "127.0.0.1", fakePort replica)]}
        mapM_ (`setView` shardsView [shard [(8192, 16383)] a `withReplica` b, shard [(0, 8191)] target `withReplica` other]) [a, b, target, other]
        withClient (preferringReplicas [fakeEndpoint a]) $ \client -> do
          let at node = Just (Char8.pack (show (fakePort node)))
              redirect = Char8.unwords [code, Char8.pack (show (slotNumberOf key)), fakeAddress target]
          run client (Redis.get key) `shouldReturn` at b
          setScript a $ \_ words' -> pure (if take 1 words' `elem` [["SET"], ["GET"]] then Just (Say (Failed redirect)) else Nothing)
          setScript target $ \_ words' -> pure (if take 1 words' == ["SET"] then Just (Say (Status "OK")) else Nothing)
          run client (Redis.set key "value")
          -- As the primary knows, the key has left.
          run client (Redis.get key) `shouldReturn` at target
          -- Other slots are read as before.
          forM_ (take 1 (keysIn "other:" (\slot -> slot > 8191 && slot /= slotNumberOf key))) $ \name ->
            run client (Redis.get name) `shouldReturn` at b

  it "knows that a replica is up by a reply that nobody waits for" $
    limited . settled . withTwoNodes $ \a b -> do
      mapM_ (`setView` replicated a b) [a, b]
      hangs <- newTVarIO False
      withClient (setCommandTimeout (Just (seconds 1)) (preferringReplicas [fakeEndpoint a])) $ \client -> do
        let servedBy node = Just (Char8.pack (show (fakePort node)))
            answered = sum . map (roundTripCount . roundTripsReplica) . snapshotNodes <$> clientSnapshot client
            -- Three failures in a row mean that it is down.
            misses = do
              before <- answered
              atomically (writeTVar hangs True)
              run client (Redis.get key) `shouldReturn` servedBy a
              atomically (writeTVar hangs False)
              eventually 10 "the late reply has come" ((> before) <$> answered)
        run client (Redis.get key) `shouldReturn` servedBy b
        setScript b $ \_ -> \case
          "GET" : _ -> Nothing <$ atomically (readTVar hangs >>= check . not)
          "CLUSTER" : _ -> pure (Just (Say (Failed "ERR not now")))
          _ -> pure Nothing
        replicateM_ 2 misses
        before <- answered
        _ <- submit client (Redis.get key)
        eventually 10 "the reply has come" ((> before) <$> answered)
        misses
        run client (Redis.get key) `shouldReturn` servedBy b

data Destination = Primary | Replica
  deriving stock (Eq)

key :: ByteString
key = "key"

named :: [ByteString] -> String
named = Char8.unpack . Char8.unwords . takeWhile (/= "STREAMS") . take 3

-- Expects the command at such a node when it is run alone, submitted, and in a pipeline: each of
-- these finds its node in its own way.
goesTo :: Destination -> [ByteString] -> Command Value -> Expectation
goesTo place beginning typed =
  limited . settled . withTwoNodes $ \a b -> do
    mapM_ (`setView` replicated a b) [a, b]
    withClient (preferringReplicas [fakeEndpoint a]) $ \client -> do
      -- The client knows the replica, and the replica answers.
      run client (Redis.get key) `shouldReturn` Just (Char8.pack (show (fakePort b)))
      answers <- sequence [run client typed, submit client typed >>= awaitReply, runPipeline client (pipelined typed)]
      answers `shouldBe` replicate 3 (SimpleString "OK")
      let (here, there) = case place of
            Primary -> (a, b)
            Replica -> (b, a)
      mapM (`countHeard` beginning) [here, there] `shouldReturn` [3, 0]
