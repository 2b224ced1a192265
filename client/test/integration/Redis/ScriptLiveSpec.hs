-- | Scripts that are named by their digests, and functions that are running.
module Redis.ScriptLiveSpec (spec) where

import Control.Concurrent.Async (withAsync)
import Control.Monad (forM_, void)
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict qualified as Map
import Redis
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.Script
import Redis.TestKit.Command (CommandCalls (..))
import Redis.TestKit.Server (Server, commandStatistics, serverDefaults, serverHost, serverPort, withServer)
import Redis.TestKit.Wait (eventually, within)
import Redis.Transaction
import Redis.Value (Value (..))
import Test.Hspec

spec :: Spec
spec = around_ (within 60) . forM_ [OnlyResp2, PreferResp3] $ \protocol -> do
  describe ("a script that is named by its digest, with " <> show protocol) . around (withBoth protocol) $ do
    it "has the server's digest" $ \(_, client) ->
      forM_ ["return 1", "return '" <> Char8.replicate 5000 'x' <> "'", "return '\233'\n"] $ \text ->
        run client (Redis.scriptLoad text) `shouldReturn` scriptDigest (script text)

    it "is sent with its text once, and again when the server has forgotten it" $ \(server, client) -> do
      run client (add "k" "1") `shouldReturn` 1
      run client (add "k" "2") `shouldReturn` 3
      callsOf server `shouldReturn` (2, 1)
      run client Redis.scriptFlush
      run client (add "k" "3") `shouldReturn` 6
      callsOf server `shouldReturn` (3, 2)
      run client (evalScriptRo reading ["k"] []) `shouldReturn` BulkString "6"

    it "is one of several in a pipeline, none of which the server knows" $ \(_, client) -> do
      results <-
        runPipeline client $
          (,,,)
            <$> pipelined (add "a" "1")
            <*> pipelined (Redis.incr "c")
            <*> tryPipelined (evalScript failing [] [])
            <*> traverse (\name -> pipelined (add name "2")) ["b", "c", "d"]
      case results of
        (1, 1, Left (ReplyError ServerError {serverErrorCode}), [2, 3, 2]) -> serverErrorCode `shouldBe` "SORRY"
        other -> expectationFailure (show other)

    it "runs though nobody waits for it" $ \(_, client) -> do
      void (submit client (add "k" "1"))
      eventually 10 "it has run" ((== Just "1") <$> run client (Redis.get "k"))

    it "has its text on a connection of its caller's own, within MULTI too" $ \(_, client) -> do
      replies <- withDedicated client AnyPrimary $ \own -> do
        first <- runOn own (evalScript adding ["k"] ["1"])
        mapM_ (runOn own) [raw ["MULTI"], evalScript adding ["k"] ["2"], evalScript adding ["k"] ["3"]]
        (,) first <$> runOn own (raw ["EXEC"])
      replies `shouldBe` (Integer 1, Array [Integer 3, Integer 6])

    it "has its text in a transaction" $ \(_, client) -> do
      run client Redis.ping
      runTransaction client ((,) <$> queued (add "k" "2") <*> queued (add "k" "3")) `shouldReturn` (2, 5)

    it "is not run twice when it says itself that there is no script" $ \(_, client) ->
      forM_ [run client (Redis.scriptLoad (scriptText lying)), pure ""] $ \prepared -> do
        _ <- prepared
        said <- tryRun client (evalScript lying ["k"] [])
        either errorDelivery (const NotSent) said `shouldBe` MaybeExecuted
        run client (Redis.getdel "k") `shouldReturn` Just "1"
        run client Redis.scriptFlush

  describe ("a function that runs, with " <> show protocol) . around (withBoth protocol) $
    it "is told by FUNCTION STATS, and ended by FUNCTION KILL" $ \(_, client) -> do
      run client (Redis.configSet (("busy-reply-threshold", "1") :| []))
      _ <- run client (Redis.functionLoad "#!lua name=lib\nredis.register_function('f', function(keys, args) while true do end end)")
      withAsync (tryRun client (Redis.fcall "f" ["k"] ["x"])) $ \_ -> do
        eventually 10 "it runs" $
          either (const False) (maybe False isOurs . Redis.functionRunning) <$> tryRun client Redis.functionStats
        run client Redis.functionKill
        eventually 10 "it does not run" ((== Nothing) . Redis.functionRunning <$> run client Redis.functionStats)
  where
    adding = script "return redis.call('INCRBY', KEYS[1], ARGV[1])"
    reading = script "return redis.call('GET', KEYS[1])"
    failing = script "return redis.error_reply('SORRY no')"
    lying = script "redis.call('INCR', KEYS[1]) return redis.error_reply('NOSCRIPT says the script')"
    add name by = evalScript adding [name] [by] `decodedBy` Decode.integer
    isOurs Redis.RunningFunction {Redis.runningName, Redis.runningCommand} =
      runningName == "f" && runningCommand == ["FCALL", "f", "1", "k", "x"]

-- | How often EVALSHA and EVAL were called.
callsOf :: Server -> IO (Int, Int)
callsOf server = do
  statistics <- commandStatistics server
  let called name = maybe 0 callsRun (Map.lookup name statistics)
  pure (called "evalsha", called "eval")

withBoth :: ProtocolVersion -> ((Server, Client) -> IO a) -> IO a
withBoth protocol action =
  withServer serverDefaults $ \server ->
    withClient (setProtocol protocol (standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server)))) $ \client ->
      action (server, client)
