-- | The knee of a curve of latencies over rates: beyond it commands queue up. The rate at the knee is
-- the load that a server can take.
module Tool.Bench.Knee
  ( Step (..),
    stepOf,
    kept,
    knee,
    limitOf,
  )
where

import Data.List (sort)
import Data.Maybe (fromMaybe, listToMaybe)
import Tool.Bench.Document
import Tool.Bench.Document.Totals (runRate, runResponse)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Time (Nanos)

-- | The result at one rate.
data Step = Step
  { stepRate :: Double,
    -- | Commands per second that were answered.
    stepReached :: Double,
    -- | The 99th percentile of the response time.
    stepP99 :: Nanos
  }
  deriving stock (Eq, Show)

-- | Whether the server answered what was sent, in time.
kept :: Step -> Bool
kept step = stepReached step >= 0.98 * stepRate step

-- | The last step that keeps its rate and whose 99th percentile is at most five times the median of
-- the slower half of the steps, or at most a millisecond; in the faster half, one up to which all
-- steps do. So a single bad measurement at a low rate neither makes the knee nor hides it. 'Nothing'
-- if there is no such step, or no step of the slower half keeps its rate.
knee :: [Step] -> Maybe Step
knee steps = do
  limit <- limitOf steps
  let good step = kept step && stepP99 step <= limit
      (slower, faster) = splitAt (slowerHalf steps) steps
  listToMaybe (reverse (filter good slower <> takeWhile good faster))

-- | The largest 99th percentile that is not beyond the knee, if the slower half tells one.
limitOf :: [Step] -> Maybe Nanos
limitOf steps = case sort [stepP99 step | step <- take (slowerHalf steps) steps, kept step] of
  [] -> Nothing
  held -> max 1000000 . (5 *) <$> listToMaybe (drop ((length held - 1) `div` 2) held)

slowerHalf :: [Step] -> Int
slowerHalf steps = (length steps + 1) `div` 2

-- | The step of a run in an open loop.
stepOf :: Run -> Step
stepOf run =
  Step
    { stepRate = case specLoop (runSpec run) of
        OpenConstant rate -> rate
        OpenPoisson rate -> rate
        OpenRamp _ to -> to
        Closed -> runRate run,
      stepReached = runRate run,
      stepP99 = Histogram.percentile 99 (fromMaybe mempty (runResponse run))
    }
