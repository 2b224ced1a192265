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
import Data.IORef (modifyIORef', newIORef, readIORef, writeIORef)
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Word (Word64)
import GHC.Generics (Generic)
import Rest.Seed (below, splitMix)
import Tool.Bench.Arrivals (Arrivals (..), arrivals)
import Tool.Bench.Cpu (Nanos, monotonic, ownCpu)
import Tool.Bench.Histogram (Histogram, count, maximumValue, percentile)
import Tool.Bench.Histogram.Recorder (drain, newRecorder, record)
import Tool.Bench.Sleep (sleepUntilExactly)
import Tool.Span (inMicros, nanosIn, secondsIn)

-- | What is asked. The scripts for wrk of the same names ask the same.
data Scenario
  = -- | One user, of a random id.
    Single
  | -- | The first twenty.
    Listing
  | -- | A new user.
    Post
  | -- | 70 % one user, 10 % a list, 10 % a new user, 5 % a change, 5 % a
    -- deletion of the oldest new one, each request drawn for itself.
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
    loadRun :: ByteString,
    -- | The number of the first user that the load will create.
    loadNextId :: Int
  }

-- | Response times in microseconds, from when a request was due. What reports up
-- to 2026-11-23 have not in their raw results is 'Nothing' there.
data LoadResult = LoadResult
  { requests :: Int,
    wrong :: Int,
    offered :: Double,
    p50 :: Double,
    p90 :: Double,
    p95 :: Maybe Double,
    p99 :: Double,
    p99_9 :: Double,
    highest :: Double,
    -- | How many answers had which status.
    statuses :: Maybe (Map Text Int),
    -- | The part of the rate that was answered: the seconds of the plan over
    -- those until the last answer, 1 of a service that keeps the rate.
    kept :: Maybe Double,
    -- | How late requests were sent on connections that waited for nothing, the
    -- 99 % point: what of the response times is the generator's. 'Nothing' if all
    -- waited.
    sentLate :: Maybe Double,
    -- | How much of one core the generator needed.
    senderBusy :: Maybe Double
  }
  deriving stock (Eq, Show, Generic)

instance ToJSON LoadResult

instance FromJSON LoadResult

-- | What one connection has seen, or several.
data Part = Part
  { partAnswers :: Histogram,
    partLate :: Histogram,
    partWrong :: Int,
    partStatuses :: IntMap Int,
    partLast :: Nanos
  }

instance Semigroup Part where
  one <> other =
    Part
      { partAnswers = partAnswers one <> partAnswers other,
        partLate = partLate one <> partLate other,
        partWrong = partWrong one + partWrong other,
        partStatuses = IntMap.unionWith (+) (partStatuses one) (partStatuses other),
        partLast = max (partLast one) (partLast other)
      }

instance Monoid Part where
  mempty = Part mempty mempty 0 IntMap.empty 0

-- | Sends the plan and waits for the last answer. Throws 'IOError' when a
-- connection ends.
runLoad :: LoadOptions -> IO LoadResult
runLoad options = do
  begin <- (+ 50000000) <$> monotonic
  usedBefore <- ownCpu
  part <- mconcat <$> forConcurrently [0 .. loadConnections options - 1] (connectionLoad options begin)
  used <- subtract usedBefore <$> ownCpu
  let whole = partAnswers part
      micros share = inMicros (fromIntegral (percentile share whole))
      until' = secondsIn (partLast part - begin)
  pure
    LoadResult
      { requests = count whole,
        wrong = partWrong part,
        offered = loadRate options,
        p50 = micros 50,
        p90 = micros 90,
        p95 = Just (micros 95),
        p99 = micros 99,
        p99_9 = micros 99.9,
        highest = inMicros (fromIntegral (maximumValue whole)),
        statuses = Just (Map.fromList [(Text.pack (show status), times) | (status, times) <- IntMap.toList (partStatuses part)]),
        kept = Just (min 1 (loadSeconds options / max 1e-9 (until' - loadWarmup options))),
        sentLate = if count (partLate part) == 0 then Nothing else Just (inMicros (fromIntegral (percentile 99 (partLate part)))),
        senderBusy = Just (secondsIn used / max 1e-9 until')
      }

connectionLoad :: LoadOptions -> Nanos -> Int -> IO Part
connectionLoad options begin number =
  withConnection (loadPort options) $ \connection -> do
    answers <- newRecorder
    late <- newRecorder
    failures <- newIORef (0 :: Int)
    seen <- newIORef IntMap.empty
    lastAnswer <- newIORef 0
    let go _ [] = pure ()
        go stream (due : later)
          | due > end = pure ()
          | otherwise = do
            let (bytes, acceptable, stream') = request options number stream
            before <- readIORef lastAnswer
            sleepUntilExactly (begin + due)
            sent <- monotonic
            response <- exchange connection bytes
            now <- monotonic
            writeIORef lastAnswer now
            when (due > warmUp) $ do
              record answers (now - begin - due)
              -- One that waited for an answer is late by the service's fault.
              when (before < begin + due) $ record late (sent - begin - due)
              modifyIORef' seen (IntMap.insertWith (+) (responseStatus response) 1)
              unless (acceptable response) $ modifyIORef' failures (+ 1)
            go stream' later
    go Stream {streamState = loadSeed options * 1000 + fromIntegral number, streamMade = 0, streamDeleted = 0} plan
    Part <$> drain answers <*> drain late <*> readIORef failures <*> readIORef seen <*> readIORef lastAnswer
  where
    plan = arrivals (Poisson (loadRate options)) (loadSeed options) (loadConnections options) number
    warmUp = nanosIn (loadWarmup options)
    end = warmUp + nanosIn (loadSeconds options)

-- | Where a connection is in its stream of requests.
data Stream = Stream
  { streamState :: Word64,
    streamMade :: Int,
    streamDeleted :: Int
  }

-- | The next request of a connection, what may answer it, and the stream behind
-- it.
request :: LoadOptions -> Int -> Stream -> (ByteString, Response -> Bool, Stream)
request options connection stream = (bytes, acceptable, stream')
  where
    (choice, state1) = splitMix (streamState stream)
    (draw, state2) = splitMix state1
    stream' =
      Stream
        { streamState = state2,
          streamMade = streamMade stream + 1,
          streamDeleted = streamDeleted stream + fromEnum (percent >= 95)
        }
    identifier = Char8.pack (show (1 + below 10000 draw))
    path = "/users/" <> identifier
    -- Each connection takes its part of the numbers, the oldest first.
    oldest = loadNextId options + streamDeleted stream * loadConnections options + connection
    percent :: Word64
    percent = case loadScenario options of
      Single -> 0
      Listing -> 70
      Post -> 80
      Mixed -> below 100 choice
    page = if loadScenario options == Mixed then 1 + (draw `shiftR` 8) .&. 1 else 1
    body =
      "{\"name\":\"Bench User\",\"email\":\"open_" <> loadRun options <> "_" <> Char8.pack (show connection) <> "_" <> Char8.pack (show (streamMade stream))
        <> "@test.example\",\"bio\":\"Written by the load generator\"}"
    status allowed response = responseStatus response `elem` allowed
    (bytes, acceptable)
      | percent < 70 =
        ( requestBytes "GET" path Nothing,
          \response -> responseStatus response == 200 && ("{\"id\":" <> identifier <> ",") `Char8.isPrefixOf` responseBody response
        )
      | percent < 80 = (requestBytes "GET" ("/users?page=" <> Char8.pack (show page) <> "&limit=20") Nothing, status [200])
      | percent < 90 = (requestBytes "POST" "/users" (Just body), status [201])
      | percent < 95 = (requestBytes "PUT" path (Just body), status [200])
      -- The first few may come before the user that they are about.
      | otherwise = (requestBytes "DELETE" ("/users/" <> Char8.pack (show oldest)) Nothing, status [200, 404])
