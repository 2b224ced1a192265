{-# LANGUAGE DeriveGeneric #-}

-- | An open-loop HTTP load: each request has a time at which it is due, whether or not earlier ones
-- have been answered, and its latency counts from that time.
--
-- Each connection has its own plan (independent Poisson processes add up to one) and its own stream
-- of requests, both functions of the seed: so two services get the same requests at the same times.
-- The answers are checked: one with a status that the request cannot have, or with another user
-- than the requested one, counts as wrong.
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
import Tool.Bench.Histogram (Histogram, count, maximumValue, percentile)
import Tool.Bench.Histogram.Recorder (drain, newRecorder, record)
import Tool.Bench.Time (Nanos, monotonic, ownCpu, sleepUntilExactly)
import Tool.Span (inMicros, nanosIn, secondsIn)

-- | The kind of requests. The wrk scripts with the same names send the same requests.
data Scenario
  = -- | One user, by a random id.
    Single
  | -- | The first twenty users.
    Listing
  | -- | A new user.
    Post
  | -- | 70 % one user, 10 % a list, 10 % a new user, 5 % a change, 5 % a deletion of the oldest new
    -- user. Each request is drawn independently.
    Mixed
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The name in file names and on command lines.
scenarioName :: Scenario -> String
scenarioName = \case
  Single -> "single"
  Listing -> "list"
  Post -> "post"
  Mixed -> "mixed"

-- | The scenario with this name.
scenarioNamed :: String -> Maybe Scenario
scenarioNamed name = lookup name [(scenarioName scenario, scenario) | scenario <- [minBound .. maxBound]]

instance ToJSON Scenario where
  toJSON = String . Text.pack . scenarioName

instance FromJSON Scenario where
  parseJSON value = parseJSON value >>= maybe (fail "no such scenario") pure . scenarioNamed . Text.unpack

-- | The requests to send, and their rate.
data LoadOptions = LoadOptions
  { loadPort :: Int,
    loadScenario :: Scenario,
    loadConnections :: Int,
    -- | Requests per second, of all connections together.
    loadRate :: Double,
    -- | The seconds that are measured.
    loadSeconds :: Double,
    -- | The seconds of warm-up before that, at the same rate.
    loadWarmup :: Double,
    loadSeed :: Word64,
    -- | Makes the e-mail addresses of one run differ from those of another.
    loadRun :: ByteString,
    -- | The number of the first user that the load will create.
    loadNextId :: Int
  }

-- | Response times in microseconds, counted from when a request was due. Fields that reports up to
-- 2026-11-23 lack in their raw results are 'Nothing' there.
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
    -- | The number of answers by status.
    statuses :: Maybe (Map Text Int),
    -- | The part of the rate that was answered: the seconds of the plan divided by the seconds
    -- until the last answer; 1 for a service that keeps the rate.
    kept :: Maybe Double,
    -- | How late requests were sent on connections that were not waiting for an answer, at the 99 %
    -- point: the generator's part of the response times. 'Nothing' if all connections were waiting.
    sentLate :: Maybe Double,
    -- | How much of one core the generator needed.
    senderBusy :: Maybe Double
  }
  deriving stock (Eq, Show, Generic)

instance ToJSON LoadResult

instance FromJSON LoadResult

-- | The results of one connection, or of several.
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
              -- A connection that waited for an answer is late because of the service.
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

-- | The position of a connection in its stream of requests.
data Stream = Stream
  { streamState :: Word64,
    streamMade :: Int,
    streamDeleted :: Int
  }

-- | The next request of a connection, a test for its answer, and the stream after it.
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
    -- Each connection deletes its share of the numbers, the oldest first.
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
      -- The first few deletions may come before their user exists.
      | otherwise = (requestBytes "DELETE" ("/users/" <> Char8.pack (show oldest)) Nothing, status [200, 404])
