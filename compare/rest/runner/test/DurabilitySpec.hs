-- | What was acknowledged is on the disk, however the service ends.
module DurabilitySpec (spec) where

import Compare.HttpClient
import Compare.Service (Running (..), terminate)
import Control.Concurrent.Async (forConcurrently, mapConcurrently_, withAsync)
import Control.Concurrent.Async qualified as Async
import Control.Exception (IOException, bracket, try)
import Control.Monad (filterM, forM_)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (atomicModifyIORef', newIORef, readIORef)
import Redis.TestKit.Process qualified as Process
import Redis.TestKit.Wait (eventually)
import Rest.Sqlite (OpenMode (..), Step (..), bindText, close, finalize, open, prepare, reset, step)
import Support
import System.Exit (ExitCode (..))
import Test.Hspec

spec :: Case -> Spec
spec service = around (withWorld service) . describe (caseName service) $ do
  it "loses nothing that it acknowledged when it is killed" $ \world -> do
    acknowledged <- newIORef []
    count <- newIORef (0 :: Int)
    let writing worker = untilBroken . withConnection (runningPort (worldRunning world)) $ \connection ->
          forM_ [1 :: Int ..] $ \number -> do
            let email = "k" <> Char8.pack (show worker) <> "." <> Char8.pack (show number) <> "@test.example"
            response <- exchange connection (requestBytes "POST" "/users" (Just (userText "Kept" email)))
            responseStatus response `shouldBe` 201
            atomicModifyIORef' acknowledged (\known -> ((email, responseBody response) : known, ()))
            atomicModifyIORef' count (\old -> (old + 1, ()))
    withAsync (mapConcurrently_ writing [1 .. 20 :: Int]) $ \writers -> do
      eventually 20 "there are a thousand users" ((>= 1000) <$> readIORef count)
      -- In the middle of it: the writers are still at work.
      Process.kill9 (runningProcess (worldRunning world))
      Async.wait writers
    known <- readIORef acknowledged
    length known `shouldSatisfy` (>= 1000)
    lost <- missingFrom (runningDatabase (worldRunning world)) (map fst known)
    lost `shouldBe` []
  it "ends by itself when it is asked to, and has kept everything" $ \world -> do
    emails <- forConcurrently [1 .. 50 :: Int] $ \number -> do
      let email = "t" <> Char8.pack (show number) <> "@test.example"
      email <$ posted world "Kept" email
    terminate (worldRunning world) `shouldReturn` ExitSuccess
    missingFrom (runningDatabase (worldRunning world)) emails `shouldReturn` []

-- | Until the service is no longer there.
untilBroken :: IO () -> IO ()
untilBroken action = try action >>= \(_ :: Either IOException ()) -> pure ()

-- | Which of the addresses the database does not have.
missingFrom :: FilePath -> [ByteString] -> IO [ByteString]
missingFrom path emails =
  bracket (open ReadWrite path) close $ \connection ->
    bracket (prepare connection "SELECT 1 FROM users WHERE email = ?1") finalize $ \query ->
      flip filterM emails $ \email -> do
        bindText query 1 email
        found <- step query
        reset query
        pure (found == Done)
