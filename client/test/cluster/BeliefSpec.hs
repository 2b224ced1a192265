-- | What the client believes when sentinels and servers send answers that real ones do not send on
-- demand.
module BeliefSpec (spec) where

import Control.Concurrent.STM
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isRight)
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = describe "whom sentinels name" $ do
  it "gets no command before it says itself that it is the primary" $
    limited . settled . withFakeNode $ \sentinel -> withFakeNode $ \server -> do
      setScript sentinel (naming server 1)
      setScript server (serverSaying server "role:slave\r\nmaster_host:10.0.0.9\r\nmaster_port:1\r\n")
      withClient (sentinelsAt [sentinel]) $ \client -> do
        write <- submit client (Redis.set "key" "value")
        eventually 5 "it was asked more than once" $ (>= 3) <$> countHeard server ["INFO", "replication"]
        countHeard server ["SET"] `shouldReturn` 0
        setScript server (serverSaying server "role:master\r\n")
        tryAwaitReply write `shouldReturn` Right ()
        countHeard server ["SET"] `shouldReturn` 1

  it "and never says that it is the primary is told with the error" $
    limited . settled . withFakeNode $ \sentinel -> withFakeNode $ \server -> do
      setScript sentinel (naming server 1)
      setScript server (serverSaying server "role:slave\r\nmaster_host:10.0.0.9\r\nmaster_port:1\r\n")
      withClient (setCommandTimeout (Just (seconds 1)) (sentinelsAt [sentinel])) $ \client -> do
        -- On a busy machine the first second may pass before anybody is asked.
        _ <- submit client (Redis.set "key" "value")
        eventually 10 "it was asked" $ (>= 2) <$> countHeard server ["INFO", "replication"]
        failed <- tryRun client (Redis.set "key" "value") >>= expectError
        errorDelivery failed `shouldBe` NotSent
        show failed `shouldContain` "a replica of 10.0.0.9:1"

  it "is the one of the highest epoch, also if most sentinels name another" $
    limited . settled . withFakeNode $ \a -> withFakeNode $ \b -> withFakeNode $ \c ->
      withFakeNode $ \old -> withFakeNode $ \new -> do
        mapM_ (\(sentinel, server, epoch) -> setScript sentinel (naming server epoch)) [(a, old, 4), (b, new, 5), (c, old, 4)]
        mapM_ (\server -> setScript server (serverSaying server "role:master\r\n")) [old, new]
        withClient (sentinelsAt [a, b, c]) $ \client -> do
          run client (Redis.set "key" "value")
          countHeard new ["SET"] `shouldReturn` 1
          countHeard old ["SET"] `shouldReturn` 0

  it "is asked for at once when one announces that it has switched, and the old one gets nothing more" $
    limited . settled . withFakeNode $ \sentinel -> withFakeNode $ \old -> withFakeNode $ \new -> do
      announcement <- newEmptyTMVarIO
      setScript sentinel (announcing announcement (naming old 1))
      mapM_ (\server -> setScript server (serverSaying server "role:master\r\n")) [old, new]
      -- With so long a throttle, only the announcement can make the client ask again so soon.
      withClient (setRefreshThrottle (seconds 20) (sentinelsAt [sentinel])) $ \client -> do
        run client (Redis.set "key" "value")
        eventually 5 "it is listened to" $ (> 0) <$> countHeard sentinel ["SUBSCRIBE"]
        before <- countHeard old ["SET"]
        setScript sentinel (naming new 2)
        atomically (putTMVar announcement (message "+switch-master" (Char8.unwords ["mymaster", "127.0.0.1", "1", "127.0.0.1", "2"])))
        eventually 2 "the new one is written to" $ do
          _ <- tryRun client (Redis.set "key" "later")
          (> 0) <$> countHeard new ["SET"]
        reached <- countHeard old ["SET"]
        reached `shouldSatisfy` (>= before)
        mapM_ (\_ -> run client (Redis.set "key" "latest")) [1 .. 20 :: Int]
        countHeard old ["SET"] `shouldReturn` reached
        -- The client also closes its earlier connections to the old primary.
        eventually 5 "its connections are closed" $ (== 0) <$> connectionsNow old

  it "is found at once when a switch is announced while the inquiry under way waits for the old one, which hangs" $
    limited . settled . withFakeNode $ \sentinel -> withFakeNode $ \old -> withFakeNode $ \new -> do
      announcement <- newEmptyTMVarIO
      let ofNode node = ["127.0.0.1", Char8.pack (show (fakePort node))]
      setScript sentinel (announcing announcement (naming old 1))
      mapM_ (\server -> setScript server (serverSaying server "role:master\r\n")) [old, new]
      -- An inquiry waits for 2 s. The write is not sent again, behind the inquiry, before the switch.
      let rarely = setBackoff backoffDefaults {backoffFirst = seconds 0.8, backoffCap = seconds 0.8}
      withClient (rarely (setConnectTimeout (seconds 5) (sentinelsAt [sentinel]))) $ \client -> do
        run client (Redis.set "key" "value")
        eventually 5 "it is listened to" $ (> 0) <$> countHeard sentinel ["SUBSCRIBE"]
        asked <- countHeard old ["INFO", "server"]
        setScript old $ \_ words' -> pure $ case words' of
          "SET" : _ -> Just (Say (Failed "READONLY You can't write against a read only replica."))
          _ -> Just Silence
        write <- submit client (Redis.set "key" "later")
        eventually 5 "it is asked" $ (> asked) <$> countHeard old ["INFO", "server"]
        setScript sentinel (naming new 2)
        atomically (putTMVar announcement (message "+switch-master" (Char8.unwords ("mymaster" : ofNode old <> ofNode new))))
        within 1.5 (tryAwaitReply write) `shouldReturn` Right ()
        countHeard new ["SET"] `shouldReturn` 1

  it "is not asked for again when a switch of another name is announced" $
    limited . settled . withFakeNode $ \sentinel -> withFakeNode $ \server -> do
      announcement <- newEmptyTMVarIO
      setScript sentinel (announcing announcement (naming server 1))
      setScript server (serverSaying server "role:master\r\n")
      withClient (setRefreshThrottle (seconds 20) (sentinelsAt [sentinel])) $ \client -> do
        run client (Redis.set "key" "value")
        eventually 5 "it is listened to" $ (> 0) <$> countHeard sentinel ["SUBSCRIBE"]
        before <- countHeard sentinel ["SENTINEL", "MASTER"]
        atomically (putTMVar announcement (message "+switch-master" (Char8.unwords ["another", "127.0.0.1", "1", "127.0.0.1", "2"])))
        eventually 5 "it has been said" $ atomically (isEmptyTMVar announcement)
        _ <- tryRun client (Redis.set "key" "value") >>= \outcome -> outcome `shouldSatisfy` isRight
        countHeard sentinel ["SENTINEL", "MASTER"] `shouldReturn` before

sentinelsAt :: [FakeNode] -> Config
sentinelsAt sentinels = case map fakeEndpoint sentinels of
  first : rest -> setProtocol OnlyResp2 (impatient (sentinelConfig "mymaster" (first :| rest)))
  [] -> clusterOf []

-- | A sentinel that knows no other sentinel and names the given server as the primary, with the
-- given epoch.
naming :: FakeNode -> Int -> Script
naming server epoch _ words' = pure $ case words' of
  "SENTINEL" : "GET-MASTER-ADDR-BY-NAME" : _ -> say (List [Text "127.0.0.1", Text (Char8.pack (show (fakePort server)))])
  "SENTINEL" : "MASTER" : _ -> say (List [Text "name", Text "mymaster", Text "config-epoch", Text (Char8.pack (show epoch))])
  "SENTINEL" : "SENTINELS" : _ -> say (List [])
  "SUBSCRIBE" : _ -> Just Silence
  _ -> Nothing
  where
    say = Just . Say

-- | Like the given script, but a subscriber gets the announcement as soon as there is one.
announcing :: TMVar Reply -> Script -> Script
announcing announcement otherwise' connection words' = case words' of
  "SUBSCRIBE" : _ -> Just . Say <$> atomically (takeTMVar announcement)
  _ -> otherwise' connection words'

message :: ByteString -> ByteString -> Reply
message name text = List [Text "message", Text name, Text text]

-- | A server that gives the text as its replication state.
serverSaying :: FakeNode -> ByteString -> Script
serverSaying server role _ words' = pure $ case words' of
  "INFO" : "server" : _ -> say ("run_id:" <> Char8.pack (show (fakePort server)) <> "\r\n")
  "INFO" : "replication" : _ -> say role
  _ -> Nothing
  where
    say = Just . Say . Text
