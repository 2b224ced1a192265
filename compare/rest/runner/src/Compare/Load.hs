{-# LANGUAGE DeriveGeneric #-}

-- | An open-loop HTTP load: requests are due at times of their own, whether or
-- not earlier ones have been answered, and latency counts from when a request
-- was due.
--
-- Each connection has its own plan (independent Poisson processes add up to
-- one) and its own stream of requests, both functions of the seed: two services
-- get the same requests at the same times. Answers are looked at: a status that
-- the request cannot have, or a user other than the one asked for, is wrong.
module Compare.Load
  ( Scenario (..),
    scenarioName,
    scenarioNamed,
    LoadOptions (..),
    LoadResult (..),
    runLoad,
  )
where

import Compare.HttpClient
import Control.Concurrent.Async (forConcurrently)
import Control.Monad (unless, when)
import Data.Aeson (FromJSON (..), ToJSON (..), Value (..))
import Data.Bits (shiftR, (.&.))
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (modifyIORef', newIORef, readIORef)
import Data.Text qualified as Text
import Data.Word (Word64)
import GHC.Generics (Generic)
import Rest.Seed (below, splitMix)
import Tool.Bench.Arrivals (Arrivals (..), arrivals)
import Tool.Bench.Cpu (monotonic)
import Tool.Bench.Histogram (Histogram, count, maximumValue, percentile)
import Tool.Bench.Histogram.Recorder (drain, newRecorder, record)
import Tool.Bench.Sleep (sleepUntilExactly)

-- | What is asked. The scripts for wrk of the same names ask the same.
data Scenario
  = -- | One user, of a random id.
    Single
  | -- | The first twenty.
    Listing
  | -- | A new user.
    Post
  | -- | 70 % one user, 10 % a list, 10 % a new user, 5 % a change, 5 % a
    -- deletion, each request drawn for itself.
    Mixed
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | As in file names and on command lines.
scenarioName :: Scenario -> String
scenarioName = \case
  Single -> "single"
  Listing -> "list"
  Post -> "post"
  Mixed -> "mixed"

-- | The scenario of that name.
scenarioNamed :: String -> Maybe Scenario
scenarioNamed name = lookup name [(scenarioName scenario, scenario) | scenario <- [minBound .. maxBound]]

instance ToJSON Scenario where
  toJSON = String . Text.pack . scenarioName

instance FromJSON Scenario where
  parseJSON value = parseJSON value >>= maybe (fail "no such scenario") pure . scenarioNamed . Text.unpack

-- | What to send, and how fast.
data LoadOptions = LoadOptions
  { loadPort :: Int,
    loadScenario :: Scenario,
    loadConnections :: Int,
    -- | Requests per second, of all connections together.
    loadRate :: Double,
    -- | Seconds that are measured.
    loadSeconds :: Double,
    -- | Seconds at the same rate before that.
    loadWarmup :: Double,
    loadSeed :: Word64,
    -- | Makes the e-mail addresses of one run differ from those of another.
    loadRun :: ByteString
  }

-- | Response times in microseconds, from when a request was due.
data LoadResult = LoadResult
  { requests :: Int,
    wrong :: Int,
    offered :: Double,
    p50 :: Double,
    p90 :: Double,
    p99 :: Double,
    p99_9 :: Double,
    highest :: Double
  }
  deriving stock (Eq, Show, Generic)

instance ToJSON LoadResult

instance FromJSON LoadResult

-- | Sends the plan and waits for the last answer. Throws 'IOError' when a
-- connection ends.
runLoad :: LoadOptions -> IO LoadResult
runLoad options = do
  begin <- (+ 50000000) <$> monotonic
  parts <- forConcurrently [0 .. loadConnections options - 1] (connectionLoad options begin)
  let whole = foldMap fst parts :: Histogram
      micros share = fromIntegral (percentile share whole) / 1000
  pure
    LoadResult
      { requests = count whole,
        wrong = sum (map snd parts),
        offered = loadRate options,
        p50 = micros 50,
        p90 = micros 90,
        p99 = micros 99,
        p99_9 = micros 99.9,
        highest = fromIntegral (maximumValue whole) / 1000
      }

connectionLoad :: LoadOptions -> Int -> Int -> IO (Histogram, Int)
connectionLoad options begin number =
  withConnection (loadPort options) $ \connection -> do
    recorder <- newRecorder
    failures <- newIORef (0 :: Int)
    let go _ _ [] = pure ()
        go state made (due : later)
          | due > end = pure ()
          | otherwise = do
            let (bytes, acceptable, state') = request options number made state
            sleepUntilExactly (begin + due)
            response <- exchange connection bytes
            now <- monotonic
            when (due > warmUp) $ do
              record recorder (now - begin - due)
              unless (acceptable response) $ modifyIORef' failures (+ 1)
            go state' (made + 1) later
    go (loadSeed options * 1000 + fromIntegral number) 0 plan
    (,) <$> drain recorder <*> readIORef failures
  where
    plan = arrivals (Poisson (loadRate options)) (loadSeed options) (loadConnections options) number
    warmUp = truncate (loadWarmup options * 1e9)
    end = warmUp + truncate (loadSeconds options * 1e9)

-- | The next request of a connection, what may answer it, and the state behind
-- it.
request :: LoadOptions -> Int -> Int -> Word64 -> (ByteString, Response -> Bool, Word64)
request options connection made state = (bytes, acceptable, state2)
  where
    (choice, state1) = splitMix state
    (draw, state2) = splitMix state1
    identifier = Char8.pack (show (1 + below 10000 draw))
    path = "/users/" <> identifier
    percent = case loadScenario options of
      Single -> 0
      Listing -> 70
      Post -> 80
      Mixed -> below 100 choice
    page = if loadScenario options == Mixed then 1 + (draw `shiftR` 8) .&. 1 else 1
    body =
      "{\"name\":\"Bench User\",\"email\":\"open_" <> loadRun options <> "_" <> Char8.pack (show connection) <> "_" <> Char8.pack (show made)
        <> "@test.example\",\"bio\":\"Written by the load generator\"}"
    status allowed response = responseStatus response `elem` allowed
    gone = [404 | loadScenario options == Mixed]
    (bytes, acceptable)
      | percent < 70 =
        ( requestBytes "GET" path Nothing,
          \response ->
            (responseStatus response == 200 && ("{\"id\":" <> identifier <> ",") `Char8.isPrefixOf` responseBody response) || status gone response
        )
      | percent < 80 = (requestBytes "GET" ("/users?page=" <> Char8.pack (show page) <> "&limit=20") Nothing, status [200])
      | percent < 90 = (requestBytes "POST" "/users" (Just body), status [201])
      | percent < 95 = (requestBytes "PUT" path (Just body), status (200 : gone))
      | otherwise = (requestBytes "DELETE" path Nothing, status (200 : gone))
