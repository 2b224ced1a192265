-- | Commands that the table lacks, on a real server: commands to which the server gives other
-- names.
module Redis.UnknownLiveSpec (spec) where

import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict qualified as Map
import Redis
import Redis.Commands qualified as Redis
import Redis.TestKit.Server (Server, ServerOptions (..), commandStatistics, serverDefaults, serverHost, serverPort, withServer)
import Redis.TestKit.Wait (within)
import Redis.Value (Value (..))
import Test.Hspec

spec :: Spec
spec = around_ (within 60) . describe "a command that is not in the table" $ do
  it "is what a server says of it, or of its subcommand" $
    withRenamed [("object", "x.thing"), ("client", "x.caller"), ("get", "x.fetch")] $ \server client -> do
      run client (Redis.set "number" "1")
      forM_ [1 :: Int .. 3] $ \_ -> do
        run client (raw ["X.FETCH", "number"]) `shouldReturn` BulkString "1"
        run client (raw ["X.THING", "ENCODING", "number"]) `shouldReturn` BulkString "int"
      -- It would leave the commands of all other callers without replies.
      tryRun client (raw ["X.CALLER", "REPLY", "OFF"]) `shouldReturn` Left (RefusedError (NeedsWire "CLIENT REPLY"))
      Map.member "client|reply" <$> commandStatistics server `shouldReturn` False
      Map.member "object|encoding" <$> commandStatistics server `shouldReturn` True
      run client (Redis.echo "still there") `shouldReturn` "still there"

  it "nor known to a server, is not run where others are served" $
    withRenamed [] $ \_ client -> do
      own <- run client Redis.clientId
      had <- connections client
      forM_ [["CLIENT", "NOTYETINVENTED"], ["X.NEVER"]] $ \words' ->
        tryRun client (raw words') >>= (`shouldSatisfy` either isUnknown (const False))
      -- One connection for both: the server has done nothing to it.
      connections client `shouldReturn` had + 1
      run client Redis.clientId `shouldReturn` own
  where
    isUnknown = \case
      ReplyError failed -> "unknown" `Char8.isPrefixOf` serverErrorMessage failed && serverErrorDelivery failed == RefusedBeforeRun
      _ -> False

-- | How many connections the server has ever had.
connections :: Client -> IO Int
connections client = do
  told <- Map.fromList <$> run client (Redis.infoOf ("stats" :| []))
  pure (maybe 0 fst (Map.lookup "total_connections_received" told >>= Char8.readInt))

withRenamed :: [(String, String)] -> (Server -> Client -> IO a) -> IO a
withRenamed names action =
  withServer serverDefaults {optionsConfig = ["rename-command " <> old <> " " <> new | (old, new) <- names]} $ \server ->
    withClient (setMuxCount (Just 1) (standaloneConfig (host server) (fromIntegral (serverPort server)))) (action server)
  where
    host :: Server -> ByteString
    host = Char8.pack . serverHost
