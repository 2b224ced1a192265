-- | The library in a program that is linked without @-threaded@, with a real server: every time
-- limit holds there, too.
module Main (main) where

import Control.Concurrent.Async (async, cancel, wait)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Command (Reply (Text))
import Redis.TestKit.Server (Server, command, freeze, serverDefaults, serverHost, serverPort, thaw, withServer)
import Redis.TestKit.Wait (eventually, within)
import System.IO (BufferMode (LineBuffering), hSetBuffering, stdout)
import Test.Hspec

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  hspec . around_ (within 45) . describe "without -threaded" $ do
    it "commands are answered, alone and in a pipeline, also by a server that keeps them waiting" $
      withServer serverDefaults $ \server -> withClient (addressed server) $ \client -> do
        run client (Commands.set "key" "value")
        runPipeline client (traverse (pipelined . Commands.get) ["key", "none"]) `shouldReturn` [Just "value", Nothing]
        run client (Commands.blpop (pure "list") (Just (milliseconds 10))) `shouldReturn` Nothing
        withDedicated client AnyPrimary (`runOn` Commands.get "key") `shouldReturn` Just "value"

    it "a command ends when its time is over, on a shared connection and on its own" $
      withServer serverDefaults $ \server -> withClient (setMaxDedicated 1 (addressed server)) $ \client -> do
        run client (Commands.set "key" "value")
        freeze server
        late <- tryRun client (timeLimit (seconds 0.2) (Commands.get "key"))
        late `shouldSatisfy` isLate
        thaw server
        eventually 10 "the server answers again" (either (const False) (== Just "value") <$> tryRun client (Commands.get "key"))
        tryRun client (timeLimit (seconds 0.2) (Commands.blpop (pure "list") Nothing)) >>= (`shouldSatisfy` isLate)
        waiter <- async (run client (Commands.blpop (pure "list") Nothing))
        eventually 10 "the server keeps it waiting" (isWaiting <$> command server ["CLIENT", "LIST"])
        tryRun client (timeLimit (seconds 0.2) (Commands.blpop (pure "other") Nothing)) >>= (`shouldSatisfy` isLate)
        run client (Commands.rpush "list" (pure "element")) `shouldReturn` 1
        wait waiter `shouldReturn` Just ("list", "element")

    it "a client connects again, and closes" $
      withServer serverDefaults $ \server -> do
        client <- newClient (addressed server)
        run client (Commands.set "key" "value")
        _ <- command server ["CLIENT", "KILL", "TYPE", "normal"]
        eventually 10 "it is connected again" (either (const False) (== Just "value") <$> tryRun client (Commands.get "key"))
        waiter <- async (tryRun client (Commands.blpop (pure "list") Nothing))
        within 10 (closeClient client)
        either (const True) (const False) <$> wait waiter `shouldReturn` True
        cancel waiter
  where
    isLate :: Either Error a -> Bool
    isLate = \case
      Left (TimeoutError _) -> True
      _ -> False
    isWaiting = \case
      Text list -> " flags=b " `Char8.isInfixOf` list
      _ -> False

addressed :: Server -> Config
addressed server = setCommandTimeout (Just (seconds 3)) (standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server)))
