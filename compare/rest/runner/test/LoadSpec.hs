-- | The open loop, against a service of the test's own that stalls on demand.
module LoadSpec (spec) where

import Compare.Load
import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (withAsync)
import Control.Exception (bracket)
import Control.Monad (forever, unless, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (atomicModifyIORef', newIORef)
import Data.Map.Strict qualified as Map
import Network.Socket
import Network.Socket.ByteString (recv, sendAll)
import Redis.TestKit.Wait (within)
import Test.Hspec

spec :: Spec
spec = around_ (within 30) . describe "open loop" $ do
  it "counts what waited behind a stall from when it was due, and blames the service" $ do
    -- The tenth answer takes 3 s, and most of the plan of one connection is due during that time.
    -- Counted from when they were sent, all requests but one took no time.
    result <- withAnswers (\number -> (when (number == 10) (threadDelay 3000000), "201 Created")) (load Post)
    p50 result `shouldSatisfy` (> 2000000)
    p95 result `shouldSatisfy` maybe False (> 2000000)
    -- The generator's part is smaller, however busy the machine is.
    sentLate result `shouldSatisfy` maybe False (< 1500000)

  it "counts answers by status, and those that a request cannot have as wrong" $ do
    result <- withAnswers (\number -> (pure (), if even number then "201 Created" else "503 Service Unavailable")) (load Post)
    let seen status = maybe 0 (Map.findWithDefault 0 status) (statuses result)
    seen "201" + seen "503" `shouldBe` requests result
    seen "503" `shouldBe` wrong result
    seen "503" `shouldSatisfy` (> 20)

  it "says which part of its rate a service keeps" $ do
    good <- withAnswers (const (pure (), "201 Created")) (load Post)
    kept good `shouldSatisfy` maybe False (> 0.9)
    -- 20 ms for each answer on one connection: 50 of 200 a second.
    slow <- withAnswers (const (threadDelay 20000, "201 Created")) (load Post)
    kept slow `shouldSatisfy` maybe False (< 0.5)

load :: Scenario -> Int -> IO LoadResult
load scenario' port' =
  runLoad
    LoadOptions
      { loadPort = port',
        loadScenario = scenario',
        loadConnections = 1,
        loadRate = 200,
        loadSeconds = 1,
        loadWarmup = 0,
        loadSeed = 1,
        loadRun = "r",
        loadNextId = 1
      }

-- A service with one connection at a time. The function gives, for each answer's number, an action
-- to run before it, and its status.
withAnswers :: (Int -> (IO (), ByteString)) -> (Int -> IO a) -> IO a
withAnswers answer action =
  bracket (socket AF_INET Stream defaultProtocol) close $ \listening -> do
    bind listening (SockAddrInet 0 (tupleToHostAddress (127, 0, 0, 1)))
    listen listening 8
    port' <- socketPort listening
    count' <- newIORef (0 :: Int)
    let serve peer left = do
          chunk <- recv peer 65536
          unless (ByteString.null chunk) $ answerAll peer (left <> chunk) >>= serve peer
        -- A POST request: its head gives the length of the body.
        answerAll peer bytes = case ByteString.breakSubstring "\r\n\r\n" bytes of
          (begin, rest)
            | not (ByteString.null rest),
              size <- maybe 0 fst (Char8.readInt (Char8.drop 16 (snd (ByteString.breakSubstring "Content-Length: " begin)))),
              ByteString.length rest >= 4 + size -> do
              number <- atomicModifyIORef' count' (\seen -> (seen + 1, seen + 1))
              let (wait, status) = answer number
              wait
              sendAll peer ("HTTP/1.1 " <> status <> "\r\nContent-Length: 0\r\n\r\n")
              answerAll peer (ByteString.drop (4 + size) rest)
          _ -> pure bytes
        serving = forever (bracket (fst <$> accept listening) close (`serve` ByteString.empty))
    withAsync serving (const (action (fromIntegral port')))
