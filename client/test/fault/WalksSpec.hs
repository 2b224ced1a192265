-- | Walks over a server that is cut off, killed or frozen meanwhile.
module WalksSpec (spec) where

import Control.Concurrent.Async (async, wait)
import Control.Exception (try)
import Control.Monad (replicateM)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Maybe (catMaybes)
import Data.Set (Set)
import Data.Set qualified as Set
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.Scan
import Redis.TestKit.Proxy
import Redis.TestKit.Server (withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (within)
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  it "see everything, and go on where they were, though each connection is cut after so many bytes" $
    behindProxy $ \server proxy -> do
      keys <- withClient (addressed server) (`filled` 3000)
      withClient (single (through proxy)) $ \client -> do
        walk <- walkScan walkDefaults client small
        told <- fmap (concat . catMaybes) . replicateM 20 $ do
          cutAfter proxy ToClient 700 Reset
          page <- nextPage walk
          page <$ heal proxy
        rest <- remaining walk
        Set.fromList (told <> rest) `shouldBe` keys
        length (told <> rest) `shouldSatisfy` (< 2 * Set.size keys)

  it "see everything of a server that is killed and starts again, whose cursors are others then" $
    withServer durable $ \server ->
      withClient (addressed server) $ \client -> do
        keys <- filled client 3000
        walk <- walkScan walkDefaults client small
        before <- concat . catMaybes <$> replicateM 20 (nextPage walk)
        Server.kill9 server
        Server.restart server
        after <- remaining walk
        Set.fromList (before <> after) `shouldBe` keys

  it "see all of a set whose server is killed and starts again" $
    withServer durable $ \server ->
      withClient (addressed server) $ \client -> do
        let members = Set.fromList (names 3000)
        _ <- inPipeline client [raw ["SADD", "set", member] | member <- Set.toList members] (pure ())
        walk <- walkSscan walkDefaults client Commands.sscanDefaults {Commands.sscanCount = Just 50} "set"
        before <- concat . catMaybes <$> replicateM 20 (nextPage walk)
        Server.kill9 server
        Server.restart server
        after <- remaining walk
        Set.fromList (before <> after) `shouldBe` members

  it "wait for a server that is frozen, and are not begun again" $
    withServer durable $ \server ->
      withClient (setCommandTimeout (Just (seconds 0.2)) (addressed server)) $ \client -> do
        keys <- filled client 3000
        walk <- walkScan walkDefaults client small
        before <- concat . catMaybes <$> replicateM 20 (nextPage walk)
        Server.freeze server
        waiting <- async (remaining walk)
        -- By then, commands have failed.
        within 10 (untilItFails client)
        Server.thaw server
        after <- wait waiting
        Set.fromList (before <> after) `shouldBe` keys
        length (before <> after) `shouldSatisfy` (< Set.size keys + 500)

  it "throw what was wrong when their time limit is at its end, and can be pulled then" $
    withServer durable $ \server ->
      withClient (addressed server) $ \client -> do
        keys <- filled client 500
        walk <- walkScan walkDefaults {walkTimeout = seconds 1} client small
        before <- concat . catMaybes <$> replicateM 3 (nextPage walk)
        Server.kill9 server
        result <- try (remaining walk)
        case result of
          Left problem -> problem `shouldSatisfy` isLoss
          Right told -> expectationFailure ("nothing was wrong, and it told " <> show (length told))
        Server.restart server
        after <- remaining walk
        Set.fromList (before <> after) `shouldBe` keys

  it "throw at once what will not pass" $
    withServer durable $ \server ->
      withClient (addressed server) $ \client -> do
        run client (Commands.set "text" "value")
        walk <- walkHscan walkDefaults client Commands.hscanDefaults "text"
        result <- within 5 (try (nextPage walk))
        either serverCode (const "none") result `shouldBe` "WRONGTYPE"
  where
    small = Commands.scanDefaults {Commands.scanCount = Just 50}
    serverCode = \case
      ReplyError problem -> serverErrorCode problem
      _ -> "another"
    isLoss = \case
      ConnectionError _ -> True
      RoutingError _ -> True
      _ -> False
    untilItFails client = tryRun client (Commands.get "x") >>= either (const (pure ())) (const (untilItFails client))

names :: Int -> [ByteString]
names count = ["name:" <> Char8.pack (show n) | n <- [1 .. count]]

filled :: Client -> Int -> IO (Set ByteString)
filled client count = do
  _ <- inPipeline client [raw ["SET", name, "value"] | name <- names count] (pure ())
  pure (Set.fromList (names count))

remaining :: Walk item -> IO [item]
remaining walk = reverse <$> foldWalk walk (\told item -> pure (item : told)) []
