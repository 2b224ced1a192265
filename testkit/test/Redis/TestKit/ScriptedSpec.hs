module Redis.TestKit.ScriptedSpec (spec) where

import Control.Concurrent.Async (concurrently, wait, withAsync)
import Control.Concurrent.STM
import Control.Exception (ErrorCall (..), IOException, bracket, throwIO, try)
import Control.Monad (replicateM_)
import Data.ByteString (ByteString)
import Data.Either (rights)
import Data.List (isInfixOf)
import Network.Socket qualified as Socket
import Redis.TestKit.Address (Address (TcpAddress), listenOn)
import Redis.TestKit.Command
import Redis.TestKit.Scripted
import Redis.TestKit.Wait
import Test.Hspec

spec :: Spec
spec = do
  it "answers what is expected, in order, and how often it was said" $
    withScripted (inOrder [on ["GET", "k"] [replies Nil], 2 `times` on ["INCR", "n"] [replies (Number 1)], on ["GET", "k"] [replies (Text "v")]]) $ \server ->
      asked server [["get", "k"], ["INCR", "n"], ["INCR", "n"], ["GET", "k"]] `shouldReturn` [Nil, Number 1, Number 1, Text "v"]

  it "answers in any order, and as often as it is asked" $
    withScripted (inAnyOrder [on ["GET", "a"] [replies (Text "1")], on ["GET", "b"] [replies (Text "2")], anyNumber (onAny "any SET" ((== ["SET"]) . take 1) [replies (Status "OK")])]) $ \server ->
      asked server [["SET", "x", "y"], ["GET", "b"], ["SET", "x", "z"], ["GET", "a"]] `shouldReturn` [Status "OK", Text "2", Status "OK", Text "1"]

  it "answers those that introduce themselves, unless they are expected" $
    withScripted (inOrder [on ["PING"] [fails "LOADING not yet"], on ["GET", "k"] [replies Nil]]) $ \server ->
      asked server [["CLIENT", "SETNAME", "me"], ["SELECT", "3"], ["PING"], ["PING"], ["GET", "k"]]
        `shouldReturn` [Status "OK", Status "OK", Failed "LOADING not yet", Status "PONG", Nil]

  it "speaks the protocol that was agreed on" $
    withScripted (inOrder [2 `times` on ["HGETALL", "h"] [replies (Mapping [(Text "f", Truth True)])]]) $ \server ->
      withConnection (scriptedAddress server) $ \connection -> do
        request connection ["HGETALL", "h"] `shouldReturn` List [Text "f", Number 1]
        sendRaw connection (encodeRequest ["HELLO", "3"] <> encodeRequest ["HGETALL", "h"])
        -- The testkit's own client speaks RESP2 only.
        try (receiveReply connection) >>= either (\problem -> show (problem :: TestKitFailure) `shouldContain` "%7") (expectationFailure . show)

  it "is an old server, where that is wanted" $
    withScriptedOf scriptedDefaults {scriptedProtocol = Resp2} nothingMore $ \server ->
      asked server [["HELLO", "3"]] `shouldReturn` [Failed "ERR unknown command 'HELLO'"]

  it "listens on another port when one that was free has been taken" $
    -- Ports count as free by 127.0.0.1. Among these, some of three hundred are taken, nearly always.
    bracket (rights <$> mapM (try @IOException . listenOn . TcpAddress "127.0.0.2") [11000 .. 11600]) (mapM_ Socket.close) $ \_ ->
      replicateM_ 300 (withScriptedOf scriptedDefaults {scriptedHost = "127.0.0.2"} nothingMore (\server -> asked server [["PING"]] `shouldReturn` [Status "PONG"]))

  it "waits for what the test says" $ do
    gate <- newTVarIO False
    withScripted (inOrder [on ["GET", "k"] [waitsFor (readTVar gate >>= check), replies (Text "v")]]) $ \server ->
      withAsync (asked server [["GET", "k"]]) $ \asking -> do
        eventually 5 "it has heard the command" ((== 1) . length <$> heardBy server)
        atomically (writeTVar gate True)
        wait asking `shouldReturn` [Text "v"]

  it "cuts an answer, hangs up, and holds" $ do
    let script = inOrder [on ["GET", "a"] [cutsAfter 3 (Text "value")], on ["GET", "b"] [hangsUp], on ["GET", "c"] [holds]]
    withScripted script $ \server -> do
      withConnection (scriptedAddress server) $ \connection -> do
        sendRaw connection (encodeRequest ["GET", "a"])
        expectLoss (receiveReply connection)
      expectLoss (asked server [["GET", "b"]])
      withConnection (scriptedAddress server) $ \connection -> do
        sendRaw connection (encodeRequest ["GET", "c"])
        awaitMet server 5

  it "pushes" $
    withScripted (inOrder [on ["SUBSCRIBE", "c"] [pushes [Text "subscribe", Text "c", Number 1]]]) $ \server ->
      withConnection (scriptedAddress server) $ \connection -> do
        request connection ["SUBSCRIBE", "c"] `shouldReturn` List [Text "subscribe", Text "c", Number 1]
        pushToAll server [Text "message", Text "c", Text "hello"]
        receiveReply connection `shouldReturn` List [Text "message", Text "c", Text "hello"]

  it "tells what did not come" $ do
    told <- complaintOf (inOrder [2 `times` on ["GET", "k"] [replies Nil], on ["DEL", "k"] [replies (Number 1)]]) [["GET", "k"]]
    told `shouldSatisfy` \text -> all (`isInfixOf` text) ["still expects:\n    GET k (2 times; came 1 times)\n    DEL k\n", "has heard:\n    connection 1: GET k"]

  it "tells what was not expected, and answers it with an error" $ do
    told <- complaintOf nothingMore [["SET", "k", "two words"]]
    told `shouldContain` "did not expect:\n    connection 1: SET k \"two words\""

  it "tells of order that was not kept" $ do
    told <- complaintOf (inOrder [on ["GET", "a"] [replies Nil], on ["GET", "b"] [replies Nil]]) [["GET", "b"], ["GET", "a"]]
    told `shouldSatisfy` \text -> all (`isInfixOf` text) ["did not expect:\n    connection 1: GET b\n", "still expects:\n    GET b\n"]

  it "tells what was not expected beside what the test threw" $ do
    told <- try (withScripted nothingMore (\server -> asked server [["GET", "k"]] *> throwIO (ErrorCall "the service gave up")))
    either (\problem -> show (problem :: TestKitFailure)) (const "nothing") told
      `shouldSatisfy` \text -> all (`isInfixOf` text) ["the service gave up", "connection 1: GET k"]

  it "serves several connections, one strand of expectations for each" $
    withScripted (inOrder [on ["GET", "a"] [replies (Text "1")], on ["GET", "b"] [replies (Text "2")]] <> inOrder [on ["GET", "c"] [replies (Text "3")]]) $ \server ->
      concurrently (asked server [["GET", "a"], ["GET", "b"]]) (asked server [["GET", "c"]]) `shouldReturn` ([Text "1", Text "2"], [Text "3"])

asked :: Scripted -> [[ByteString]] -> IO [Reply]
asked server commands = withConnection (scriptedAddress server) (\connection -> mapM (request connection) commands)

complaintOf :: Script -> [[ByteString]] -> IO String
complaintOf script commands = either (\problem -> show (problem :: TestKitFailure)) (const "nothing") <$> try (withScripted script (`asked` commands))

expectLoss :: Show a => IO a -> IO ()
expectLoss action = try action >>= either (\(_ :: IOException) -> pure ()) (\got -> expectationFailure ("not cut: " <> show got))
