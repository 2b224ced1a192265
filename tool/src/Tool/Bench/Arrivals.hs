-- | The times at which commands are due in an open loop. A closed loop sends fewer commands to a
-- server that stalls; a plan goes on, so that the latency of a command shows how long it waited.
-- Several threads share a plan: at a constant rate each takes every n-th arrival, and Poisson
-- processes add up to one.
module Tool.Bench.Arrivals
  ( Arrivals (..),
    arrivals,
    rateAt,
    expected,
    expectedAtLeast,
    secondsFor,
    describeArrivals,
    describeRate,
  )
where

import Data.Bits (shiftR)
import Data.Word (Word64)
import Tool.Bench.Time (Nanos)
import Tool.Bench.Workload.Random (gamma, mix)
import Tool.Text (fixed)

-- | How commands arrive. Rates are per second, of all threads together.
data Arrivals
  = -- | At equal distances.
    Constant Double
  | -- | Independently of each other, as the commands of many users arrive.
    Poisson Double
  | -- | At equal distances, at a rate that changes from the first to the second over this number of
    -- seconds and then stays.
    Ramp Double Double Double
  deriving stock (Eq, Show)

-- | The times at which a thread has to send: nanoseconds since the start, ascending, without end.
-- Takes the seed, the number of threads, and the number of this thread (from 0).
arrivals :: Arrivals -> Word64 -> Int -> Int -> [Nanos]
arrivals plan seed threads thread = case plan of
  Constant rate -> map (\place -> round (fromIntegral place * 1e9 / rate)) places
  Ramp from to seconds -> map (round . (* 1e9) . reached from to seconds . fromIntegral) places
  Poisson rate ->
    -- Mixed once more than the seed of the thread's commands: otherwise each gap would follow from
    -- the key that was drawn before it.
    let drawn = mix (mix (seed + mix (fromIntegral thread + 1)))
     in poisson (fromIntegral threads / rate * 1e9) drawn 0
  where
    places = [thread, thread + threads ..] :: [Int]

-- Exponential gaps with this mean. A sum of Doubles is exact to a nanosecond for a hundred days.
poisson :: Double -> Word64 -> Double -> [Nanos]
poisson gap state now = round next : poisson gap (state + gamma) next
  where
    next = now - gap * log uniform
    -- Above 0 and at most 1, so that its logarithm is a number.
    uniform = (fromIntegral (mix state `shiftR` 11) + 1) / 9007199254740992

-- The time of this arrival: the inverse of @from * t + (to - from) * t² / 2 s@, also for equal rates.
reached :: Double -> Double -> Double -> Double -> Double
reached from to seconds count
  | count <= during = 2 * count / (from + sqrt (max 0 (from * from + 2 * slope * count)))
  | otherwise = seconds + (count - during) / to
  where
    during = (from + to) / 2 * seconds
    slope = (to - from) / seconds

-- | The rate at a time, which is in seconds since the start. \(O(1)\).
rateAt :: Arrivals -> Double -> Double
rateAt plan time = case plan of
  Constant rate -> rate
  Poisson rate -> rate
  Ramp from to seconds
    | time >= seconds -> to
    | otherwise -> from + (to - from) * time / seconds

-- | How many commands arrive in this number of seconds; of a Poisson process the mean. \(O(1)\).
expected :: Arrivals -> Double -> Double
expected plan time = case plan of
  Ramp first second seconds
    | time > seconds -> (first + second) / 2 * seconds + second * (time - seconds)
    | otherwise -> first * time + (second - first) * time * time / (2 * seconds)
  _ -> rateAt plan 0 * time

-- | How many arrive at least; of a Poisson process five standard deviations fewer than the mean.
expectedAtLeast :: Arrivals -> Double -> Double
expectedAtLeast plan time = case plan of
  Poisson _ -> max 0 (mean - 5 * sqrt mean)
  _ -> mean - 1
  where
    mean = expected plan time

-- | Seconds over which this number of commands is due; of a Poisson process the mean. \(O(1)\).
secondsFor :: Arrivals -> Int -> Double
secondsFor plan count = case plan of
  Ramp from to seconds -> reached from to seconds (fromIntegral count)
  _ -> fromIntegral count / rateAt plan 0

describeArrivals :: Arrivals -> String
describeArrivals = \case
  Constant rate -> describeRate rate <> " at equal distances"
  Poisson rate -> describeRate rate <> " as a Poisson process"
  Ramp from to seconds ->
    describeRate from <> " rising to " <> describeRate to <> " over " <> fixed 1 seconds <> " s"

-- | A rate in words: whole, unless it is so low that its fraction matters.
describeRate :: Double -> String
describeRate rate
  | rate < 100 && rate /= fromIntegral (round rate :: Int) = fixed 3 rate <> "/s"
  | otherwise = fixed 0 rate <> "/s"
