-- | The contract's rules for faults: Redis away, a locked database, slow clients, and readers
-- beside writers.
module FaultSpec (spec, clusterSpec) where

import Compare.HttpClient
import Compare.Service (Options (..), Running (..))
import Control.Concurrent.Async (concurrently_, forConcurrently, withAsync)
import Control.Concurrent.Async qualified as Async
import Control.Exception (bracket)
import Control.Monad (forM, forM_, replicateM_)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (newIORef, readIORef, writeIORef)
import Data.List (sort)
import Data.Maybe (listToMaybe)
import Redis.TestKit.Cluster (ClusterOptions (..), Node (..), clusterDefaults, clusterNodes, withCluster)
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Server (command, kill9, restart, serverPort)
import Redis.TestKit.Wait (eventually, failure, within)
import Rest.Sqlite (OpenMode (..), close, open, runScript)
import Support
import Test.Hspec

spec :: Case -> Spec
spec service = describe (caseName service) $ do
  around (withWorld service) $ do
    it "serves without Redis, and uses it again when it is back" $ \world -> do
      original <- responseBody <$> get world "/users/1"
      kill9 (worldRedis world)
      response <- get world "/users/1"
      (responseStatus response, responseBody response) `shouldBe` (200, original)
      changed <- put world "/users/1" (userText "One" "one@test.example")
      responseStatus changed `shouldBe` 200
      responseStatus <$> posted world "New" "new@test.example" `shouldReturn` 201
      responseBody <$> get world "/users/1" `shouldReturn` responseBody changed
      restart (worldRedis world)
      -- The service notices by itself that Redis is back, and stores users again.
      eventually 20 "the user is in the cache again" $ do
        _ <- get world "/users/1"
        (== Just (responseBody changed)) <$> cached world 1
      eventually 20 "the cache is read again" $ do
        _ <- redisTells world ["SET", "user:2", "\"from the cache\""]
        (== "\"from the cache\"") . responseBody <$> get world "/users/2"
    it "never answers from the cache what it could not delete there" $ \world -> do
      old <- responseBody <$> get world "/users/9"
      eventually 5 "the user is in the cache" ((== Just old) <$> cached world 9)
      _ <- redisTells world ["ACL", "SETUSER", "default", "-del", "-unlink"]
      changed <- put world "/users/9" (userText "Nine" "nine@test.example")
      responseStatus changed `shouldBe` 200
      cached world 9 `shouldReturn` Just old
      replicateM_ 20 (responseBody <$> get world "/users/9" `shouldReturn` responseBody changed)
      cached world 9 `shouldReturn` Just old
      _ <- redisTells world ["ACL", "SETUSER", "default", "+del", "+unlink"]
      eventually 10 "the old user is deleted" ((/= Just old) <$> cached world 9)
      eventually 10 "the user is cached again" $ do
        responseBody <$> get world "/users/9" `shouldReturn` responseBody changed
        (== Just (responseBody changed)) <$> cached world 9
    it "answers who writes with what was written, whoever reads meanwhile" readYourWrites
    it "fails a duplicate of a group alone" $ \world -> do
      statuses <- forConcurrently [1 .. 60 :: Int] $ \number -> do
        let email = if number `rem` 3 == 0 then "same@test.example" else "own" <> Char8.pack (show number) <> "@test.example"
        response <- posted world "Crowd" email
        pure (number `rem` 3 == 0, responseStatus response)
      sort [status | (True, status) <- statuses] `shouldBe` 201 : replicate 19 409
      [status | (False, status) <- statuses] `shouldBe` replicate 40 201
    it "reads while another process holds the write lock, and writes afterwards" $ \world ->
      locking world $ \unlock -> do
        responseStatus <$> get world "/users/1" `shouldReturn` 200
        responseStatus <$> get world "/users?limit=5" `shouldReturn` 200
        withAsync (posted world "Late" "late@test.example") $ \writing -> do
          -- A read that follows the pending write is answered first.
          responseStatus <$> get world "/users/2" `shouldReturn` 200
          Async.poll writing >>= maybe (pure ()) (const (expectationFailure "written through a lock"))
          unlock
          responseStatus <$> Async.wait writing `shouldReturn` 201
    it "gives up on a database that stays locked, and recovers" $ \world -> do
      locking world $ \_ -> do
        response <- posted world "Never" "never@test.example"
        (responseStatus response, responseBody response) `shouldBe` (503, "{\"error\":\"Database unavailable\"}")
        responseStatus <$> get world "/users/1" `shouldReturn` 200
      responseStatus <$> posted world "Now" "never@test.example" `shouldReturn` 201
  around (withWorldOf (\options -> options {serviceClientTimeout = 2}) service) $
    it "cuts slow clients off, and serves the others" $ \world -> do
      let port = runningPort (worldRunning world)
          beginnings =
            [ "GET /users/1 HTTP/1.1\r\nHost: loc",
              "POST /users HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{\"name\":"
            ]
      slow <- forM (concat (replicate 50 beginnings)) $ \bytes -> do
        connection <- connect port
        connection <$ sendBytes connection bytes
      within 2 . withConnection port $ \connection ->
        forM_ [1 .. 50 :: Int] $ \number ->
          responseStatus <$> exchange connection (requestBytes "GET" ("/users/" <> Char8.pack (show number)) Nothing) `shouldReturn` 200
      -- ASP.NET allows a second for each byte of a body that has arrived, and a busy machine adds
      -- to that.
      within 40 (forM_ slow receiveEnd)
      forM_ slow disconnect
      responseStatus <$> get world "/users/1" `shouldReturn` 200

-- | Holds the write lock of the service's database until the action releases it.
locking :: World -> (IO () -> IO a) -> IO a
locking world action =
  bracket (open ReadWrite (runningDatabase (worldRunning world))) close $ \connection -> do
    runScript connection "BEGIN IMMEDIATE; UPDATE users SET name = name WHERE id = 1;"
    action (runScript connection "ROLLBACK")

-- | One writer changes a user again and again, and others read it. After the response to a change,
-- no reader may see an older version, nor may one stay in the cache.
readYourWrites :: World -> IO ()
readYourWrites world = do
  answered <- newIORef (0 :: Int)
  finished <- newIORef False
  let port = runningPort (worldRunning world)
      changes = withConnection port $ \connection -> do
        forM_ [1 .. 400] $ \version -> do
          let text = Char8.pack (show version)
          response <- exchange connection (requestBytes "PUT" "/users/5" (Just (userText text "five@test.example")))
          responseStatus response `shouldBe` 200
          writeIORef answered version
        writeIORef finished True
      reads' = withConnection port loop
      loop connection = do
        least <- readIORef answered
        done <- readIORef finished
        response <- exchange connection (requestBytes "GET" "/users/5" Nothing)
        versionOf (responseBody response) `shouldSatisfy` (>= least)
        if done then pure () else loop connection
  concurrently_ changes (concurrently_ reads' (concurrently_ reads' reads'))
  body <- responseBody <$> get world "/users/5"
  versionOf body `shouldBe` 400
  cached world 5 >>= maybe (pure ()) (`shouldBe` body)

-- | The version number in the user's name; the seeded user has none.
versionOf :: ByteString -> Int
versionOf body =
  maybe 0 fst (Char8.readInt (ByteString.drop 8 (snd (ByteString.breakSubstring "\"name\":\"" body))))

-- | The cache in a cluster.
clusterSpec :: Case -> Spec
clusterSpec service =
  it (caseName service <> ": reads, writes and deletes in a cluster") . within 60 $
    withCluster clusterDefaults {clusterPrimaryCount = 3} $ \cluster -> do
      nodes <- clusterNodes cluster
      port <- maybe (failure "a cluster without nodes") (pure . serverPort . nodeServer) (listToMaybe nodes)
      withWorldOf (\options -> options {serviceInCluster = True, serviceRedisPort = port}) service $ \world -> do
        forM_ [1 .. 30 :: Int] $ \number -> do
          let path = "/users/" <> Char8.pack (show number)
              email = "c" <> Char8.pack (show number) <> "@test.example"
          old <- get world path
          responseBody <$> get world path `shouldReturn` responseBody old
          changed <- put world path (userText "Cluster" email)
          responseStatus changed `shouldBe` 200
          responseBody <$> get world path `shouldReturn` responseBody changed
        eventually 5 "the users are in the cache, on all nodes" $ do
          sizes <- forM nodes $ \node -> command (nodeServer node) ["DBSIZE"]
          pure (all (`notElem` [Number 0, Nil]) sizes)
