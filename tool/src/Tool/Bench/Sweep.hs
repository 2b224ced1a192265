-- | Measures one rate after the other, to show where latency begins to grow without bound.
module Tool.Bench.Sweep
  ( sweep,
  )
where

import Control.Monad (when)
import Data.Bifunctor (first)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Arrivals (Arrivals (..), describeRate)
import Tool.Bench.Assemble (Leniency (..), leniencyOf)
import Tool.Bench.Document
import Tool.Bench.Document.Totals
import Tool.Bench.Progress (Progress, announce)
import Tool.Failure (invalidRun)
import Tool.Options.Bench (LoadOptions (..))
import Tool.Options.Load (Check (..), Plan (..), Sending (..), Sweep (..))
import Tool.Text (duration, thousands)

-- | Measures at each rate, by the given action, until a rate is more than the server or the
-- generator can do. If that is the first rate, it tries half of it, and so on, so that there is a
-- curve. Returns the runs in order of their rates, and a note that says where the knee is. If the
-- run at the first rate is not valid, returns only that run, and a note that says why. Throws
-- 'Tool.Failure.Failure' if there is no rate to begin with.
sweep :: Progress -> (Leniency -> LoadOptions -> IO Run) -> Sweep -> LoadOptions -> IO ([Run], [Text])
sweep progress measured wanted load = do
  rates <- case wanted of
    SweepRates rates -> pure rates
    SweepSteps steps -> do
      announce progress "sweep: what does a closed loop reach?"
      closed <-
        measured
          lenient {lenientChecks = Saturation : lenientChecks lenient}
          load
            { loadPlan = plan {planSending = WhenAnswered},
              loadDuration = min 3 (loadDuration load)
            }
      -- At a rate of zero no command is ever due, so such a run would never end.
      when (runRate closed <= 0) $
        invalidRun ("--sweep: a closed loop reached nothing: " <> Text.unpack (problemsOf closed))
      pure [runRate closed * fromIntegral step / fromIntegral steps | step <- [1 .. steps]]
  go rates >>= \case
    -- Without a knee. The run stays, so that the program ends as after any invalid run.
    ([], Just (invalid, reason)) -> pure ([invalid], [reason])
    (above, ended) -> do
      below <- case above of
        -- Down to a thirty-second of it.
        [only] | not (kept (stepOf only)) -> halves 5 (stepRate (stepOf only) / 2)
        _ -> pure []
      let runs = below <> above
      pure (runs, [noteOn (map stepOf runs) (snd <$> ended)])
  where
    plan = loadPlan load
    lenient = leniencyOf plan
    measuredAt rate =
      measured
        lenient {lenientBehind = True}
        load {loadPlan = plan {planSending = AtTimes (Constant rate)}}
    problemsOf = Text.intercalate "; " . runProblems
    noteOn steps ended = case knee steps of
      Just step
        | Just reason <- ended -> found step <> "; " <> reason
        | [step] == drop (length steps - 1) steps ->
          found step <> "; no rate of the sweep was beyond it, so it may lie higher"
        | otherwise -> found step
      Nothing -> "the knee is below the lowest rate of the sweep" <> maybe "" ("; " <>) ended
      where
        found step =
          "the knee is at " <> Text.pack (thousands (round (stepRate step)))
            <> " commands a second: \
               \up to there the 99th percentile of the response time stays within "
            <> Text.pack (maybe "nothing" duration (limitOf steps))
            <> " (five times the median of the slower half of the rates, or a millisecond)"
    -- A first rate that is too high is halved this often at most.
    halves :: Int -> Double -> IO [Run]
    halves left rate
      | left <= 0 = pure []
      | otherwise = measuredAt rate >>= halved left rate
    halved left rate run
      | not (runValid run) = pure []
      | kept (stepOf run) = pure [run]
      | otherwise = (<> [run]) <$> halves (left - 1) (rate / 2)
    -- Returns the valid runs and, if a run ended the sweep, that run and why.
    go = \case
      [] -> pure ([], Nothing)
      rate : later -> measuredAt rate >>= goOn (Text.pack (describeRate rate)) later
    goOn at later run
      | not (runValid run) =
        ended [] ("the sweep ended at " <> at <> ", which was not measured: " <> problemsOf run)
      | not (kept (stepOf run)) = ended [run] (at <> " was more than could be answered")
      | otherwise = first (run :) <$> go later
      where
        ended found why = pure (found, Just (run, why))
