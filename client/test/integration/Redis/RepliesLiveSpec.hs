-- | The replies of servers, compared with the recorded bytes of one server's replies.
module Redis.RepliesLiveSpec (spec) where

import Control.Concurrent.Async (forConcurrently_)
import Control.Monad (forM, forM_, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isRight)
import Data.Foldable (for_)
import Data.Map.Strict qualified as Map
import GHC.Stats (RTSStats (allocated_bytes), getRTSStats)
import Network.Socket qualified as Socket
import Network.Socket.ByteString qualified as Socket.ByteString
import Redis
import Redis.Commands qualified as Commands
import Redis.Internal.Protocol.Decode
import Redis.ReplyShapes
import Redis.Surroundings (addressed)
import Redis.TestKit.Address (connectTo)
import Redis.TestKit.Command (CommandCalls (callsRun), Connection, encodeRequest, infoFields, replyText, request)
import Redis.TestKit.Server (Server, callsOf, serverAddress, serverDefaults, withServer, withServerConnection)
import Redis.TestKit.Wait (within)
import Redis.Value (Value (..))
import System.Mem (performMajorGC)
import Test.Hspec

spec :: Spec
spec = do
  it "a reply of any length and depth that a script can make is a reply like any other" $
    within 60 . withServer serverDefaults $ \server ->
      withClient (setMuxCount (Just 1) (addressed server)) $ \client -> do
        number <- run client Commands.clientId
        let says script = tryRun client (Commands.eval script [] [])
            line = Char8.replicate 3000000 'x'
        says "return redis.status_reply(string.rep('x', 3000000))" >>= \case
          Right (SimpleString text) -> (text == line) `shouldBe` True
          other -> expectationFailure ("not a status: " <> take 100 (show other))
        says "return redis.error_reply('LONG ' .. string.rep('x', 3000000))" >>= \case
          Left (ReplyError failed) -> (serverErrorMessage failed == line) `shouldBe` True
          other -> expectationFailure ("not an error reply: " <> take 100 (show other))
        says "local deep = {} for n = 1, 7900 do deep = {deep} end return deep" >>= (`shouldSatisfy` isRight)
        -- The connection that others share is still the same.
        run client Commands.clientId `shouldReturn` number

  it "a large value takes little more memory than it has bytes" $
    within 60 . withServer serverDefaults $ \server ->
      withClient (setMuxCount (Just 1) (addressed server)) $ \client -> do
        let size = 64 * 1024 * 1024
            allocated = performMajorGC >> allocated_bytes <$> getRTSStats
        void (run client (Commands.setrange "large" (fromIntegral size - 1) "x"))
        forM_ [run client, \command -> withDedicated client AnyPrimary (`runOn` command)] $ \gets -> do
          first <- allocated
          value <- gets (Commands.get "large")
          last' <- allocated
          fmap ByteString.length value `shouldBe` Just size
          (last' - first) `shouldSatisfy` (< fromIntegral (size + size `quot` 5))

  it "replies are checked with one ECHO for each block, and are what they are without" $
    within 60 . withServer serverDefaults $ \server ->
      withClient (setReplyChecks True (setMuxCount (Just 1) (addressed server))) $ \client -> do
        let names = [Char8.pack ("key:" <> show number) | number <- [1 .. 300 :: Int]]
        forConcurrently_ names $ \name -> do
          run client (Commands.set name name)
          run client (Commands.get name) `shouldReturn` Just name
        mapM (submit client . Commands.get) names >>= mapM awaitReply >>= (`shouldBe` map Just names)
        echoes <- callsOf callsRun "echo" server
        -- Commands of one caller that does not wait share their blocks.
        echoes `shouldSatisfy` (\count -> count > 0 && count < 900)

  it "replies mean the same with both protocols, and what they meant when they were noted" $
    within 60 . withServer serverDefaults $ \server ->
      withServerConnection server $ \connection -> do
        complete <- knowsAll connection
        compared <- forM shapes $ \shape -> do
          with2 <- answer server connection 2 shape
          with3 <- answer server connection 3 shape
          case (with2, with3) of
            -- An older server lacks some of the commands.
            (ErrorReply _, ErrorReply _) | not complete -> pure False
            _ -> True <$ for_ [with2, with3] (`shouldMean` shape)
        length (filter id compared) `shouldSatisfy` (> 20)

-- | Whether the server has all the commands; servers have since 7.0.
knowsAll :: Connection -> IO Bool
knowsAll connection = do
  info <- request connection ["INFO", "server"]
  let version = replyText info >>= Map.lookup "redis_version" . infoFields
  pure ((version >>= fmap fst . Char8.readInt) >= Just 7)

shouldMean :: Value -> Shape -> Expectation
shouldMean reply Shape {shapeName, shapeMeaning = Meaning decoder expected} =
  (shapeName, decoder reply) `shouldBe` (shapeName, Right expected)

-- | The reply on a fresh connection with this protocol, after the preparing commands.
answer :: Server -> Connection -> Int -> Shape -> IO Value
answer server connection protocol Shape {shapeGiven, shapeCommand} = do
  for_ (["FLUSHALL"] : shapeGiven) (request connection)
  socket <- connectTo (serverAddress server)
  unless (protocol == 2) (void (asked socket ["HELLO", Char8.pack (show protocol)]))
  reply <- asked socket shapeCommand
  reply <$ Socket.close socket

asked :: Socket.Socket -> [ByteString] -> IO Value
asked socket commandArguments = do
  Socket.ByteString.sendAll socket (encodeRequest commandArguments)
  whole ByteString.empty
  where
    whole received = do
      more <- Socket.ByteString.recv socket 65536
      if ByteString.null more
        then fail "the server has closed the connection"
        else do
          let bytes = received <> more
          case decodeBytes limits bytes of
            Right (reply, "") -> pure reply
            _ -> whole bytes

limits :: Limits
limits = limitsDefaults {limitBulkBytes = 1024 * 1024, limitElements = 1024 * 1024, limitDepth = 16}
