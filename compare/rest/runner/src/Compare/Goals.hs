-- | The goals, and whether the results reach them.
module Compare.Goals
  ( Verdict (..),
    verdicts,
    Summed (..),
    summedCells,
    uncounted,
    disqualifying,
    coldRows,
  )
where

import Compare.Cell
import Compare.Load (LoadResult (..), Scenario (..))
import Compare.OpenLoop (OpenLoop (..), openLoopOf)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Read qualified as Text
import Tool.Statistics (Summary (..), summarise)
import Tool.Text (fixed)

-- | The iterations of a cell, taken together. Those with problems are left out.
data Summed = Summed
  { summedRate :: Summary,
    summedCpu :: Summary,
    summedOpen :: Maybe OpenLoop,
    summedServiceBusy :: Double,
    summedGeneratorBusy :: Double,
    summedCoreBusy :: [Double],
    summedHits :: Maybe Double,
    summedMemory :: Int,
    -- | The rate divided by the rate in the last seconds of the warm-up; 1 for a service that was
    -- warm.
    summedWarm :: Maybe Double,
    summedLeftOut :: Int,
    -- | The part of all rounds' requests that failed and are not in the rate.
    summedFailed :: Double
  }

-- | All cells, by group and row.
summedCells :: [Result] -> Map (Topology, Layout, Scenario, Int) (Map Text Summed)
summedCells results =
  Map.mapMaybe (nonEmpty . Map.mapMaybe summed) . Map.fromListWith (Map.unionWith (<>)) $
    [(cellGroup (cell result), Map.singleton (row (cell result)) [result]) | result <- results]
  where
    nonEmpty rows = if Map.null rows then Nothing else Just rows

-- | The rows that were measured in a group and have no number there, because all of their
-- measurements are disqualified.
uncounted :: [Result] -> Map (Topology, Layout, Scenario, Int) [Text]
uncounted results =
  Map.map Map.keys . Map.filter (not . Map.null) . Map.map (Map.filter not) . Map.fromListWith (Map.unionWith (||)) $
    [(cellGroup (cell result), Map.singleton (row (cell result)) (null (disqualifying result))) | result <- results]

summed :: [Result] -> Maybe Summed
summed results = do
  rate <- summarise (map requestsPerSecond good)
  cpu <- summarise (map cpuPerRequest good)
  pure
    Summed
      { summedRate = rate,
        summedCpu = cpu,
        summedOpen = openLoopOf (mapMaybe openLoop good),
        summedServiceBusy = mean (map serviceBusy good),
        summedGeneratorBusy = mean (map generatorBusy good),
        summedCoreBusy = map mean (List.transpose (map coresBusy good)),
        summedHits = case mapMaybe hitRatio good of
          [] -> Nothing
          ratios -> Just (mean ratios),
        summedMemory = maximum (0 : map memory good),
        summedWarm = case [requestsPerSecond seen / rate' | seen <- good, Just rate' <- [warmRate seen], rate' > 0] of
          [] -> Nothing
          ratios -> Just (mean ratios),
        summedLeftOut = length results - length good,
        summedFailed =
          fromIntegral (sum [statusErrors (outcome result) | result <- results])
            / fromIntegral (max 1 (sum [served (outcome result) | result <- results]))
      }
  where
    good = map outcome (filter (null . disqualifying) results)
    mean values = sum values / fromIntegral (max 1 (length values))

-- | The reasons why a result is not used. The naive design waits at most 5 s for a lock that SQLite
-- gives to whichever connection asks at the right moment. So a few requests may fail on a slow
-- disk, as the original's did: up to one in twenty is reported, is not in the rate, and does not
-- disqualify the result. For every other row one failure is too many.
disqualifying :: Result -> [Text]
disqualifying result
  | isNaive (row (cell result)),
    20 * statusErrors (outcome result) < served (outcome result) =
    filter (\problem -> not (any (`Text.isPrefixOf` problem) ["answers with a wrong status", "503"])) (problems (outcome result))
  | otherwise = problems (outcome result)

-- Whether the row has the original's design, in either language.
isNaive :: Text -> Bool
isNaive = Text.isSuffixOf "-naive"

-- | The rows in C# whose warm-up was too short to judge them: .NET compiles while it runs, on the
-- core that serves, until its tenth second. A ratio to it before that flatters us. Two similar
-- rates over two seconds do not prove the opposite: on a shared machine they may be similar by
-- chance.
coldRows :: [Result] -> [Text]
coldRows results = List.nub [row (cell result) | result <- results, "dotnet" `Text.isPrefixOf` row (cell result), any (< 10) (warmedUp result)]
  where
    warmedUp result = [seconds | Just text <- [Map.lookup "warm-up" (facts result)], Right (seconds, _) <- [Text.double text]] :: [Double]

-- | A goal and its result.
data Verdict = Verdict
  { verdictName :: Text,
    -- | Whether the bound is a minimum; otherwise it is a maximum.
    verdictAtLeast :: Bool,
    verdictBound :: Double,
    -- | 'Nothing': not measured, or no valid cell.
    verdictRatio :: Maybe Double,
    verdictMet :: Bool,
    -- | Anything else that a reader of the ratio must know.
    verdictNote :: Text
  }
  deriving stock (Eq, Show)

-- | The goals of all groups that were measured: the median over the rounds of our figure divided by
-- that of the peer which was best at it in the same round. Ratios of means, or to the peer that is
-- best on average, would flatter us: the best of a round is often another one. Only the standalone
-- server has goals, in both layouts; the report shows a cluster's results without a goal. There are
-- no goals for a study, which compares the Haskell service with itself, nor for results whose C#
-- services were not warm.
verdicts :: [Result] -> [Verdict]
verdicts results
  | null (coldRows results) = concatMap ofLayout [Pinned, Free]
  | otherwise = []
  where
    cells = summedCells results
    ofLayout layout'
      | null rows || (any isStudied rows && not (any isPeer rows)) = []
      | otherwise =
        concat
          [ throughput layout' Single 100 1.5,
            throughput layout' Single 10 1.3,
            throughput layout' Listing 100 1.3,
            throughput layout' Post 10 1.0,
            throughput layout' Post 100 1.0,
            naive layout',
            throughput layout' Mixed 20 1.2,
            tail' layout',
            concat [cpu layout' scenario' count | (scenario', count) <- [(Single, 100), (Single, 10), (Listing, 100), (Post, 10), (Post, 100), (Mixed, 20)]]
          ]
      where
        rows = concat [Map.keys group | ((Standalone, layout'', _, _), group) <- Map.toList cells, layout'' == layout']
    isPeer name = "dotnet" `Text.isPrefixOf` name && not (isNaive name)
    isStudied name = "haskell-" `Text.isPrefixOf` name && not (isNaive name)
    at layout' scenario' count = Map.findWithDefault Map.empty (Standalone, layout', scenario', count) cells
    ours layout' scenario' count = Map.lookup "haskell" (at layout' scenario' count)
    -- The rows that count, by round.
    rounds layout' scenario' count =
      Map.elems . Map.fromListWith Map.union $
        [ (iteration (cell result), Map.singleton (row (cell result)) (outcome result))
          | result <- results,
            cellGroup (cell result) == (Standalone, layout', scenario', count),
            null (disqualifying result)
        ]
    -- Ours beside the best of the rivals in each round; rounds without one of them have no ratio.
    beside isRival best part found =
      summaryMedian
        <$> summarise
          [ own / best others
            | outcomes <- found,
              let others = filter (> 0) (mapMaybe part (Map.elems (Map.filterWithKey (const . isRival) outcomes))),
              not (null others),
              Just own <- [Map.lookup "haskell" outcomes >>= part]
          ]
    rate = Just . requestsPerSecond
    named :: Layout -> Scenario -> Int -> Text -> Text
    named layout' scenario' count what =
      Text.unwords [scenarioText scenario', Text.pack (show count), "connections,", layoutText layout' <> ":", what]
    throughput layout' scenario' count bound =
      [atLeast (named layout' scenario' count "requests/s beside ASP.NET") bound (Just (notes [maybe "" (limitNote layout') (ours layout' scenario' count), naiveNote])) ratio]
      where
        there = rounds layout' scenario' count
        ratio = beside isPeer maximum rate there
        notes = Text.intercalate "; " . filter (not . Text.null)
        -- The tuned row is meant to be the best that C# can do; where it is not, our ratio to it
        -- flatters us.
        naiveNote = case beside (\name -> "dotnet" `Text.isPrefixOf` name && isNaive name) maximum rate there of
          Just found | maybe False (> found) ratio -> "beside the naive design in C#, which is faster here, " <> Text.pack (fixed 2 found)
          _ -> ""
    naive layout' =
      [ atLeast (named layout' Post count "requests/s beside the naive design") 5 Nothing (beside (== "haskell-naive") maximum rate (rounds layout' Post count))
        | layout' == Pinned,
          count <- [10, 100],
          Map.member "haskell-naive" (at layout' Post count)
      ]
    tail' layout' =
      [ atMost (named layout' Mixed 20 "99.9 % of answers within, beside ASP.NET") 1.0 (rateNote <$> (ours layout' Mixed 20 >>= summedOpen)) $
          beside isPeer minimum (fmap p99_9 . openLoop) (rounds layout' Mixed 20)
      ]
    cpu layout' scenario' count =
      [ atMost (named layout' scenario' count "processor time per request beside ASP.NET") 0.8 Nothing $
          beside isPeer minimum (Just . cpuPerRequest) (rounds layout' scenario' count)
      ]
    rateNote loop = "both at " <> Text.pack (fixed 0 (openRate loop)) <> " requests/s"
    -- Without pinning, Redis and the generator have no core of their own.
    limitNote layout' sum'
      | layout' == Pinned,
        any (> 0.95) (take 1 (summedCoreBusy sum')),
        summedServiceBusy sum' < 0.95 =
        "the core of Redis and the generator was the limit: at least this"
      | otherwise = ""
    atLeast name bound note ratio = Verdict name True bound ratio (maybe False (>= bound) ratio) (fromMaybe "" note)
    atMost name bound note ratio = Verdict name False bound ratio (maybe False (<= bound) ratio) (fromMaybe "" note)

scenarioText :: Scenario -> Text
scenarioText = \case
  Single -> "GET one,"
  Listing -> "GET list,"
  Post -> "POST,"
  Mixed -> "mixed,"

layoutText :: Layout -> Text
layoutText = \case
  Pinned -> "a core each"
  Free -> "both cores for all"
