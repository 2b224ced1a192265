-- | Decides whether the generator was fast enough for its numbers to be about the server. A
-- generator without spare processor time reports its own delay as latency, so a run in which it
-- used more than four fifths of its cores is invalid, unless the generator itself is to be
-- measured. Also decides whether a rate is the same from second to second: caches that fill and
-- connections that open make the first seconds differ from the rest.
module Tool.Bench.Trust
  ( Evidence (..),
    trustOf,
    forgiven,
    cpuLimit,
    waitedEachSecond,
    settled,
    untilSteady,
    startedSteady,
  )
where

import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Document (Trust (..))
import Tool.Bench.Environment (Usage (..))
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Time (Nanos)
import Tool.Options.Load (Check (..))
import Tool.Span (secondsIn)
import Tool.Statistics (deviation, mean)
import Tool.Text (duration, fixed, percent)

-- | The facts about a window that the checks need.
data Evidence = Evidence
  { -- | The usage between its begin and its end.
    evidenceUsage :: Usage,
    -- | Cores that this process could use.
    evidenceCores :: Double,
    -- | The checks that may fail.
    evidenceAllowed :: [Check],
    -- | The length of the window in seconds.
    evidenceSeconds :: Double,
    -- | Service times of all answered commands.
    evidenceService :: Histogram,
    -- | In a closed loop: the number of threads, and the most commands of one thread on their way.
    evidenceClosed :: Maybe (Int, Int),
    -- | In an open loop: the schedule errors of the commands that were sent, and the least number
    -- of commands that should have been sent.
    evidenceOpen :: Maybe (Histogram, Double),
    evidenceSteady :: Maybe Bool
  }

-- | The share of its cores that a generator may use: 0.8.
cpuLimit :: Double
cpuLimit = 0.8

-- | Judges the generator.
trustOf :: Evidence -> Trust
trustOf evidence =
  Trust
    { trustCpuShare = Just share,
      trustGcShare =
        (\gc -> ratio (fromIntegral gc) (fromIntegral (usageCpu used))) <$> usageGc used,
      trustRunQueue = (\queued -> ratio (fromIntegral queued) wall) <$> usageQueued used,
      trustLittle = littleRatio evidence,
      trustSteady = evidenceSteady evidence,
      trustSchedule = fst <$> evidenceOpen evidence,
      trustProblems =
        [text | (check, text) <- findings evidence, check `notElem` evidenceAllowed evidence]
    }
  where
    used = evidenceUsage evidence
    wall = fromIntegral (usageTime used) :: Double
    share = cpuShare evidence

-- | How long threads waited for a core, in words. The figure is a share of the time, summed over
-- all threads; as a percentage above 100 it would be hard to understand.
waitedEachSecond :: Double -> Text
waitedEachSecond share = Text.pack (fixed 2 share) <> " s in each second"

-- | The findings that are allowed, in words. Leaves out saturation, because reports always show the
-- share of the cores that was used.
forgiven :: Evidence -> [Text]
forgiven evidence =
  [ text
    | (check, text) <- findings evidence,
      check `elem` filter (/= Saturation) (evidenceAllowed evidence)
  ]

cpuShare :: Evidence -> Double
cpuShare evidence =
  ratio (fromIntegral (usageCpu used)) (fromIntegral (usageTime used) * evidenceCores evidence)
  where
    used = evidenceUsage evidence

-- Throughput times mean latency is the mean number of commands on their way.
onTheirWay :: Evidence -> Double
onTheirWay evidence =
  ratio (fromIntegral (Histogram.count service) * Histogram.mean service / 1e9) seconds
  where
    seconds = evidenceSeconds evidence
    service = evidenceService evidence

littleRatio :: Evidence -> Maybe Double
littleRatio evidence =
  (\(threads, batch) -> ratio (onTheirWay evidence) (fromIntegral (threads * batch)))
    <$> evidenceClosed evidence

-- The checks that fail, and why.
findings :: Evidence -> [(Check, Text)]
findings evidence = map (fmap Text.pack) (saturated <> impossible <> behind)
  where
    service = evidenceService evidence
    share = cpuShare evidence
    saturated =
      [ ( Saturation,
          "the generator used " <> percent share <> " of its " <> cores (evidenceCores evidence)
            <> (", more than " <> percent cpuLimit)
            <> ": it measured itself. \
               \Give it more (+RTS -N), ask for less (--rate, --threads), \
               \or say --allow-saturation if it is the client that you measure"
        )
        | share > cpuLimit
      ]
    -- The bound is a little more than all commands: those on their way when the window began ended
    -- inside it, after waiting for at most the longest latency. With one command at a time there
    -- can hardly be fewer, either, except for those on their way at the end.
    impossible =
      [ ( Little,
          "throughput times mean latency makes " <> fixed 1 (onTheirWay evidence)
            <> (" commands on their way, but there were " <> show (threads * batch))
            <> ": a clock or a count is wrong, or threads were kept from running"
        )
        | Just (threads, batch) <- [evidenceClosed evidence],
          Histogram.count service > 100 * threads * batch,
          Just held <- [littleRatio evidence],
          held > 1.1 + edge || (batch == 1 && held < 0.9 - edge)
      ]
    edge = ratio (secondsIn (Histogram.maximumValue service)) (evidenceSeconds evidence)
    behind =
      [ ( Rate,
          "of at least " <> fixed 0 wanted <> " commands that were due only " <> fixed 0 sent
            <> " were sent in time: server or client cannot keep up with the rate (lateness p99 "
            <> (duration (Histogram.percentile 99 lateness) <> ")")
        )
        | Just (lateness, wanted) <- [evidenceOpen evidence],
          let sent = fromIntegral (Histogram.count lateness),
          sent < 0.99 * wanted
      ]

cores :: Double -> String
cores count
  | count == 1 = "one core"
  | otherwise = fixed (if count == fromIntegral whole then 0 else 2) count <> " cores"
  where
    whole = round count :: Int

ratio :: Double -> Double -> Double
ratio part whole
  | whole <= 0 = 0
  | otherwise = part / whole

-- | Whether the last four of these rates are close to each other: each within 8 % of their mean.
-- 'False' for fewer than four rates. Decides whether a warm-up may end.
settled :: [Double] -> Bool
settled rates =
  length rates >= 4 && middle > 0 && all (\rate -> abs (rate - middle) <= 0.08 * middle) lastOnes
  where
    lastOnes = drop (length rates - 4) rates
    middle = mean lastOnes

-- | Reads the count at intervals until the rate has been steady over four intervals, or until the
-- latest moment. Returns the moment at which it stopped, and whether the rate was steady. Takes an
-- action that waits for a moment and returns the time and the count at that time; the interval; the
-- moment at which counting began, from zero; and the latest moment.
untilSteady :: (Nanos -> IO (Nanos, Int)) -> Nanos -> Nanos -> Nanos -> IO (Nanos, Bool)
untilSteady look apart begin latest = go [] begin 0
  where
    go rates before counted = do
      (now, count) <- look (min latest (before + apart))
      let rates' = rates <> [fromIntegral (count - counted) / fromIntegral (max 1 (now - before))]
          steady = settled rates'
      if now >= latest || steady
        then pure (now, steady)
        else go (drop (length rates' - 4) rates') now count

-- | Whether a measured window began as it went on: the mean rate of its first quarter differs from
-- that of the rest by at most 5 %, or by at most three standard errors where rates scatter by more.
-- 'Nothing' for fewer than four rates.
startedSteady :: [Double] -> Maybe Bool
startedSteady rates
  | length rates < 4 = Nothing
  | otherwise = Just (abs (mean early - mean late) <= max (0.05 * mean late) (3 * uncertainty))
  where
    (early, late) = splitAt (max 1 (length rates `div` 4)) rates
    uncertainty = deviation late * sqrt (1 / size early + 1 / size late)
    size = fromIntegral . length
