-- | The open loop in a comparison: its rate, the services that it measures, and its rounds taken
-- together.
module Compare.OpenLoop
  ( OpenLoop (..),
    openLoopOf,
    rateFor,
    generatorLimit,
  )
where

import Compare.Load (LoadResult (..))
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (mapMaybe)
import Data.Text (Text)
import Tool.Statistics (Summary (..), summarise)

-- | The rounds of a row, taken together: the median of each figure (times in µs), and the sums of
-- the answers by status.
data OpenLoop = OpenLoop
  { openRounds :: Int,
    -- | Requests per second.
    openRate :: Double,
    openKept :: Maybe Double,
    openP50 :: Double,
    openP95 :: Maybe Double,
    openP99 :: Double,
    openP99_9 :: Double,
    -- | The highest of all rounds.
    openHighest :: Double,
    openStatuses :: Map Text Int,
    openSentLate :: Maybe Double,
    openBusy :: Maybe Double
  }
  deriving stock (Eq, Show)

-- | Combines the rounds; 'Nothing' for no rounds.
openLoopOf :: [LoadResult] -> Maybe OpenLoop
openLoopOf [] = Nothing
openLoopOf loops =
  Just
    OpenLoop
      { openRounds = length loops,
        openRate = always offered,
        openKept = sometimes kept,
        openP50 = always p50,
        openP95 = sometimes p95,
        openP99 = always p99,
        openP99_9 = always p99_9,
        openHighest = maximum (map highest loops),
        openStatuses = Map.unionsWith (+) (mapMaybe statuses loops),
        openSentLate = sometimes sentLate,
        openBusy = sometimes senderBusy
      }
  where
    always part = maybe 0 summaryMedian (summarise (map part loops))
    sometimes part = summaryMedian <$> summarise (mapMaybe part loops)

-- | The requests per second above which the generator, which shares a core with Redis, measures
-- itself.
generatorLimit :: Double
generatorLimit = 10000

-- | The rate for a row: half of the slowest compared service's rate in the closed loop of the first
-- round, and at most 'generatorLimit'. 'Nothing' for a row that did not reach one and a half times
-- that rate, and would only show how its queue grows. Takes the rates of the compared services, and
-- that of the row.
rateFor :: [Double] -> Double -> Maybe Double
rateFor [] _ = Nothing
rateFor compared own
  | own < 1.5 * rate = Nothing
  | otherwise = Just rate
  where
    rate = min generatorLimit (fromIntegral (round (minimum compared / 2) :: Int))
