-- | What servers report about subscribers while there are some.
module Redis.ListeningLiveSpec (spec) where

import Control.Monad (forM_)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List (sort)
import Redis
import Redis.Commands qualified as Redis
import Redis.Surroundings (addressed)
import Redis.TestKit.Server (Server, serverDefaults, serverHost, serverPort, withServer)
import Redis.TestKit.Wait (within)
import Redis.Wire
import Test.Hspec

spec :: Spec
spec = describe "commands about channels" $
  forM_ [OnlyResp2, PreferResp3] $ \protocol ->
    it ("tell who listens, and reach them, with " <> show protocol) . within 30 $
      withServer serverDefaults $ \server -> do
        let config = setProtocol protocol (addressed server)
        withClient config $ \client ->
          -- RESP3 lets a subscriber send other commands. Four replies are for subscriptions, one is
          -- for PING.
          withWire (setProtocol PreferResp3 config) (endpoint server) $ \wire -> do
            sendBytes wire "SUBSCRIBE news weather\r\nPSUBSCRIBE n*\r\nSSUBSCRIBE shard\r\nPING\r\n"
            awaitPong wire ""
            found <- run client Redis.pubsubChannels
            sort found `shouldBe` ["news", "weather"]
            run client (Redis.pubsubChannelsOf "w*") `shouldReturn` ["weather"]
            run client Redis.pubsubNumpat `shouldReturn` 1
            run client (Redis.pubsubNumsub ("news" :| ["none"])) `shouldReturn` [("news", 1), ("none", 0)]
            run client Redis.pubsubShardchannels `shouldReturn` ["shard"]
            run client (Redis.pubsubShardchannelsOf "x*") `shouldReturn` []
            run client (Redis.pubsubShardnumsub ("shard" :| [])) `shouldReturn` [("shard", 1)]
            -- Once by its channel and once by the pattern.
            run client (Redis.publish "news" "m") `shouldReturn` 2
            run client (Redis.spublish "shard" "m") `shouldReturn` 1
            listening <- run client (Redis.clientListOf (Redis.ClientWith (Redis.HasType Redis.PubsubClient) :| []))
            [(Redis.clientInfoChannels one, Redis.clientInfoPatterns one) | one <- listening] `shouldBe` [(2, 1)]
  where
    awaitPong wire got
      | "PONG" `ByteString.isInfixOf` got = pure ()
      | otherwise = receiveBytes wire 4096 >>= awaitPong wire . (got <>)

endpoint :: Server -> Endpoint
endpoint server = TcpEndpoint (Char8.pack (serverHost server)) (fromIntegral (serverPort server))
