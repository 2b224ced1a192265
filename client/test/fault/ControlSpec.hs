-- | Commands that end other commands: they must not wait behind them.
module ControlSpec (spec) where

import Control.Concurrent.Async
import Control.Exception (finally)
import Control.Monad (void)
import Data.ByteString qualified as ByteString
import Data.Either (isLeft, isRight)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Command (Reply (Failed), request, withConnection)
import Redis.TestKit.Group
import Redis.TestKit.Server (ServerOptions (optionsConfig), serverAddress, serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, within)
import Test.Hspec

spec :: Spec
spec = describe "that end what others do" $ do
  it "kill a script at once, and lose no command that waits behind it" $
    withServer impatient $ \server ->
      withClient (patient (addressed server)) $ \client -> do
        run client (Commands.set "key" "value")
        withAsync (tryRun client (Commands.eval "while true do end" [] [])) $ \script -> do
          busy server
          behind <- async (tryRun client (Commands.get "key"))
          within 1 . eventually 1 "it is killed" $ isRight <$> tryRun client Commands.scriptKill
          problem <- within 1 (wait script)
          either errorDelivery (const NotSent) problem `shouldBe` MaybeExecuted
          within 1 (wait behind) `shouldReturn` Right (Just "value")

  it "say at once that there is nothing to kill" $
    withServer impatient $ \server ->
      withClient (patient (addressed server)) $ \client -> do
        problem <- tryRun client Commands.scriptKill
        either (Just . errorDelivery) (const Nothing) problem `shouldBe` Just RefusedBeforeRun

  it "kill a script whoever set a database, a name and a protocol for the client" $
    withServer impatient $ \server -> do
      let named = setDatabase 3 . setClientName (Just "named") . patient
      mapM_
        ( \config -> withClient (config (addressed server)) $ \client ->
            withAsync (tryRun client (Commands.eval "while true do end" [] [])) $ \script -> do
              busy server
              within 1 . eventually 1 "it is killed" $ isRight <$> tryRun client Commands.scriptKill
              void (within 1 (wait script))
        )
        [named, setProtocol OnlyResp2 . named]

  it "end a pause of writes at once, beside a write that waits for it" $
    withServer serverDefaults $ \server ->
      withClient (patient (addressed server)) $ \client -> do
        void (Server.command server ["CLIENT", "PAUSE", "20000", "WRITE"])
        withAsync (tryRun client (Commands.set "key" "value")) $ \write -> do
          eventually 2 "the write waits" ((== 1) <$> inFlightOf client)
          within 1 (run client Commands.clientUnpause)
          within 1 (wait write) `shouldReturn` Right ()

  it "abort a shutdown that waits for a replica" $
    withGroup groupDefaults {groupReplicaCount = 1, groupServer = serverDefaults {optionsConfig = ["shutdown-timeout 30"]}} $ \group -> do
      primary <- primaryOf group
      replicas <- replicasOf group
      withClient (patient (addressed primary)) $ \client -> do
        mapM_ Server.freeze replicas
        ( do
            -- The replica lacks this write.
            run client (Commands.set "key" "value")
            withAsync (tryRun client (Commands.shutdownWith Commands.shutdownDefaults {Commands.shutdownSave = Commands.SaveNothing})) $ \ending -> do
              eventually 5 "it is aborted" $ isRight <$> within 1 (tryRun client Commands.shutdownAbort)
              within 1 (wait ending) >>= (`shouldSatisfy` isLeft)
              run client (Commands.get "key") `shouldReturn` Just "value"
          )
          `finally` mapM_ Server.thaw replicas
  where
    -- All callers share one connection, and a script may take its time.
    patient = setSilenceLimit Nothing . setCommandTimeout (Just (seconds 20)) . single
    impatient = serverDefaults {optionsConfig = ["busy-reply-threshold 50"]}
    busy server =
      eventually 5 "the script runs" . withConnection (serverAddress server) $ \connection ->
        (\case Failed text -> "BUSY" `ByteString.isPrefixOf` text; _ -> False) <$> request connection ["GET", "key"]
