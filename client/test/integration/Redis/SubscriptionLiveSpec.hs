-- | Subscriptions on a real server.
module Redis.SubscriptionLiveSpec (spec) where

import Control.Concurrent.Async (concurrently_, replicateConcurrently_, withAsync)
import Control.Concurrent.STM
import Control.Monad (forM_, replicateM)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (sort)
import Redis
import Redis.Commands qualified as Redis
import Redis.Subscription
import Redis.Surroundings (addressed)
import Redis.TestKit.Server (Server, connectedClients, serverDefaults, withServer)
import Redis.TestKit.Wait (eventually, within)
import Test.Hspec hiding (after, before)

spec :: Spec
spec = around_ (within 60) . describe "subscriptions" $ do
  forM_ [OnlyResp2, PreferResp3] $ \protocol -> describe ("with " <> show protocol) $ do
    it "hear what is published from the moment that they begin, and the server counts them" $
      withClientOf protocol $ \_ client ->
        withSubscription client (channel "news" <> matching "user:*" <> shardChannel "orders") $ \subscription -> do
          run client (Redis.publish "news" "a") `shouldReturn` 1
          run client (Redis.publish "user:1" "b") `shouldReturn` 1
          run client (Redis.spublish "orders" "c") `shouldReturn` 1
          run client (Redis.publish "other" "d") `shouldReturn` 0
          heard <- replicateM 3 (nextEvent subscription)
          heard
            `shouldBe` [ Message (MessageOf (Channel "news") "news" "a"),
                         Message (MessageOf (Pattern "user:*") "user:1" "b"),
                         Message (MessageOf (ShardChannel "orders") "orders" "c")
                       ]

    it "change what they listen to while they live" $
      withClientOf protocol $ \_ client ->
        withSubscription client (channel "a") $ \subscription -> do
          subscribe subscription (channel "b")
          unsubscribe subscription (channel "a")
          atomically (subscriptionTopics subscription) `shouldReturn` channel "b"
          eventually 5 "nobody listens to a" $ (== 0) <$> run client (Redis.publish "a" "1")
          subscribe subscription (channel "a")
          run client (Redis.publish "a" "2") `shouldReturn` 1
          run client (Redis.publish "b" "3") `shouldReturn` 1
          payloads 2 subscription `shouldReturn` ["2", "3"]

    it "hear what happens to keys" $
      withClientOf protocol $ \_ client -> do
        _ <- run client (Redis.configSet (("notify-keyspace-events", "KEA") :| []))
        withSubscription client (keyspace 0 "user:*" <> keyevent 0 "del") $ \subscription -> do
          run client (Redis.set "user:1" "x")
          run client (Redis.set "other" "x")
          _ <- run client (Redis.del ("other" :| ["user:1"]))
          heard <- replicateM 4 (nextEvent subscription)
          [keyEventOf message | Message message <- heard]
            `shouldBe` map Just [KeyEvent 0 "user:1" "set", KeyEvent 0 "other" "del", KeyEvent 0 "user:1" "del", KeyEvent 0 "user:1" "del"]

  it "of one client share a connection, and what two want is asked for once and kept until both have left" $
    withClientOf PreferResp3 $ \server client -> do
      run client Redis.ping
      before <- connectedClients server
      withSubscription client (channel "a") $ \first -> do
        withSubscription client (channel "a" <> channel "b") $ \second -> do
          after <- connectedClients server
          (after - before) `shouldBe` 1
          run client (Redis.publish "a" "1") `shouldReturn` 1
          payloads 1 first `shouldReturn` ["1"]
          payloads 1 second `shouldReturn` ["1"]
        eventually 5 "nobody listens to b" $ (== 0) <$> run client (Redis.publish "b" "x")
        run client (Redis.publish "a" "2") `shouldReturn` 1
        payloads 1 first `shouldReturn` ["2"]
      eventually 5 "its connection is closed" $ (== before) <$> connectedClients server

  it "are a part of transactions of one's own" $
    withClientOf PreferResp3 $ \_ client ->
      withSubscription client (channel "a") $ \subscription -> do
        stop <- newTVarIO False
        let either' = atomically ((Right <$> nextEventSTM subscription) `orElse` (Left () <$ (readTVar stop >>= check)))
        _ <- run client (Redis.publish "a" "1")
        either' `shouldReturn` Right (Message (MessageOf (Channel "a") "a" "1"))
        atomically (writeTVar stop True)
        either' `shouldReturn` Left ()

  it "come and go by hundreds at the same time, and hear what is theirs" $
    withClientOf PreferResp3 $ \_ client ->
      concurrently_
        (replicateConcurrently_ 50 (forM_ [1 .. 10 :: Int] $ \_ -> withSubscription client (channel "shared") (\_ -> pure ())))
        ( forM_ [1 .. 20 :: Int] $ \number -> do
            let mine = "mine:" <> Char8.pack (show number)
            withSubscription client (channel mine <> channel "shared") $ \subscription -> do
              _ <- run client (Redis.publish mine "x")
              payloads 1 subscription `shouldReturn` ["x"]
        )

  it "of ten thousand channels begin when all of them are confirmed" $
    withClientOf PreferResp3 $ \_ client -> do
      let names = ["channel:" <> Char8.pack (show n) | n <- [1 .. 10000 :: Int]]
      withSubscription client (foldMap channel names <> foldMap matching (take 10 names) <> foldMap shardChannel (take 100 names)) $ \_ ->
        sort <$> run client Redis.pubsubChannels `shouldReturn` sort names

  it "that a server refuses say so, and hear the others" $
    withClientOf PreferResp3 $ \server client -> do
      _ <- run client (raw ["ACL", "SETUSER", "limited", "on", ">secret", "~*", "+@all", "resetchannels", "&allowed:*"])
      let config = setCredentials (Just Credentials {credentialsUser = Just "limited", credentialsPassword = toSecret "secret"}) (addressed server)
      withClient config $ \limited -> do
        let refused (ReplyError problem) = serverErrorCode problem == "NOPERM"
            refused _ = False
        withSubscription limited (channel "denied") (\_ -> pure ()) `shouldThrow` refused
        withSubscription limited (channel "allowed:a") $ \subscription -> do
          -- One of many topics is denied, and the server does not say which.
          subscribe subscription (foldMap (\n -> channel ("allowed:" <> Char8.pack (show n))) [1 .. 100 :: Int] <> channel "denied") `shouldThrow` refused
          atomically (subscriptionTopics subscription) `shouldReturn` channel "allowed:a"
          run client (Redis.publish "allowed:a" "1") `shouldReturn` 1
          payloads 1 subscription `shouldReturn` ["1"]
          -- The right is revoked: the server hangs up, and refuses from then on.
          _ <- run client (raw ["ACL", "SETUSER", "limited", "resetchannels"])
          nextEvent subscription `shouldThrow` refused

  it "end when the client is closed, and cannot be had afterwards" $
    withServer serverDefaults $ \server -> do
      client <- newClient (addressed server)
      let closed problem = problem == ClientClosed
      withSubscription client (channel "a") $ \subscription ->
        withAsync (closeClient client) $ \_ -> nextEvent subscription `shouldThrow` closed
      withSubscription client (channel "a") (\_ -> pure ()) `shouldThrow` closed

payloads :: Int -> Subscription -> IO [ByteString]
payloads count subscription = do
  events <- replicateM count (nextEvent subscription)
  pure [messagePayload message | Message message <- events]

withClientOf :: ProtocolVersion -> (Server -> Client -> IO a) -> IO a
withClientOf protocol action =
  withServer serverDefaults $ \server -> withClient (setProtocol protocol (addressed server)) (action server)
