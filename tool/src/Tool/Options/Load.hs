-- | How a load is applied: in a closed or an open loop, for how long, how often, and what is
-- sampled meanwhile.
module Tool.Options.Load
  ( Plan (..),
    Sending (..),
    planArrivals,
    planSweep,
    Warmup (..),
    Sweep (..),
    Check (..),
    checkName,
    allowOptions,
    defaultPlan,
    planOptions,
    planProblem,
    planIsOpen,
  )
where

import Control.Monad (mfilter)
import Data.Char (toLower)
import Data.Foldable (asum)
import Data.Function ((&))
import Data.Time.Clock.POSIX (utcTimeToPOSIXSeconds)
import Data.Time.Format (defaultTimeLocale, parseTimeM)
import Options.Applicative
import Text.Read (readMaybe)
import Tool.Bench.Arrivals (Arrivals (..), describeRate)
import Tool.Options.Common
import Tool.Span (nanosIn, numberAndUnit, sinceEpoch)
import Tool.Text (fixed)

-- | Everything about the load except its commands.
data Plan = Plan
  { planSending :: Sending,
    -- | The number of commands of all threads together, if that ends the run and not a duration.
    planRequests :: Maybe Int,
    planWarmup :: Warmup,
    -- | The number of measured windows.
    planIterations :: Int,
    -- | Seconds of a slice of the time series.
    planSlice :: Double,
    -- | Seconds between two samples of the server. 'Nothing' means no samples.
    planSample :: Maybe Double,
    -- | Nanoseconds since 1970 at which the load begins.
    planStartAt :: Maybe Int,
    -- | Checks whose failure is only noted, and makes no run invalid.
    planAllowed :: [Check],
    -- | Whether to leave out what takes time beside the run.
    planBrief :: Bool
  }
  deriving stock (Eq, Show)

-- | When commands are sent.
data Sending
  = -- | When the earlier ones are answered: a closed loop.
    WhenAnswered
  | -- | At planned times: an open loop.
    AtTimes Arrivals
  | -- | In an open loop, at one rate after the other.
    Sweeping Sweep
  deriving stock (Eq, Show)

-- | The arrivals of an open loop at one rate, if there is one.
planArrivals :: Plan -> Maybe Arrivals
planArrivals plan = case planSending plan of
  AtTimes arriving -> Just arriving
  _ -> Nothing

-- | The rates of a sweep, if there is one.
planSweep :: Plan -> Maybe Sweep
planSweep plan = case planSending plan of
  Sweeping wanted -> Just wanted
  _ -> Nothing

-- | The load before the window.
data Warmup
  = -- | For this number of seconds.
    WarmupFor Double
  | -- | Until the rate is steady, but at most for this number of seconds.
    WarmupUntilSteady Double
  deriving stock (Eq, Show)

data Sweep
  = -- | These rates, ascending.
    SweepRates [Double]
  | -- | This number of equal steps up to the rate of a closed loop.
    SweepSteps Int
  deriving stock (Eq, Show)

-- | A check of whether the generator is reliable. The user may allow it to fail, unlike wrong
-- replies, errors, misses and counts.
data Check
  = -- | The generator used at most 80 % of its cores.
    Saturation
  | -- | Little's law: throughput times mean latency is the number of commands on their way.
    Little
  | -- | An open loop sent the commands that were due.
    Rate
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The name on the command line.
checkName :: Check -> String
checkName = map toLower . show

-- | A closed loop, a second of warm-up, one window.
defaultPlan :: Plan
defaultPlan =
  Plan
    { planSending = WhenAnswered,
      planRequests = Nothing,
      planWarmup = WarmupFor 1,
      planIterations = 1,
      planSlice = 1,
      planSample = Just 1,
      planStartAt = Nothing,
      planAllowed = [],
      planBrief = False
    }

-- | Whether commands are sent at planned times.
planIsOpen :: Plan -> Bool
planIsOpen plan = planSending plan /= WhenAnswered

-- | Options that exclude each other are alternatives, so that no command line
-- has both.
planOptions :: Parser Plan
planOptions =
  together
    <$> (sweeping <|> measuring)
    <*> option
      readWarmup
      (described "warmup" "SECONDS|auto" before <> usually warmupText (planWarmup defaultPlan))
    <*> option
      (positive "a number of seconds")
      (described "slice" "SECONDS" "Length of a slice of the time series" <> value 1 <> showDefault)
    <*> samplingOptions
    <*> allowOptions
    <*> switch (long "brief" <> help briefly)
  where
    together course warmup slice sample allowed brief =
      course
        defaultPlan
          { planWarmup = warmup,
            planSlice = slice,
            planSample = sample,
            planAllowed = allowed,
            planBrief = brief
          }
    warmupText = \case
      WarmupFor length' -> fixed 0 length'
      WarmupUntilSteady _ -> "auto"
    before = "Load before the window, not measured; auto: until the rate is steady, 30 s at most"
    briefly =
      "Skip the slow facts about the machine: fsync probe, the server's defaults and hash"

-- A sweep: one rate after the other, each measured once and for a duration.
sweeping :: Parser (Plan -> Plan)
sweeping = (\wanted plan -> plan {planSending = Sweeping wanted}) <$> sweepOptions

-- One load, measured several times or from a given moment.
measuring :: Parser (Plan -> Plan)
measuring =
  (\sending requests repeated plan -> repeated plan {planSending = sending, planRequests = requests})
    <$> (maybe WhenAnswered AtTimes <$> optional arrivalOptions)
    <*> optionalOption readCount "requests" "N" "Measure this number of commands instead of a time"
    <*> ((atMoment <$> startAt) <|> (times <$> iterations))
  where
    atMoment moment plan = plan {planStartAt = Just moment}
    times count plan = plan {planIterations = count}
    startAt =
      option readMoment . described "start-at" "TIME" $
        "Begin the load at that time (2026-01-31T12:00:00Z, or seconds since 1970): \
        \for runs on several machines, to be merged"
    iterations = numberOption "iterations" 1 windows
    windows = "Number of measured windows; the report has mean, deviation and confidence interval"

samplingOptions :: Parser (Maybe Double)
samplingOptions =
  flag' Nothing (long "no-sampling" <> help "Do not ask the server for INFO during the run")
    <|> option
      (Just <$> positive "a number of seconds")
      (described "sample" "SECONDS" interval <> usually (maybe "" show) (planSample defaultPlan))
  where
    interval = "Interval of the samples of the server's INFO"

allowOptions :: Parser [Check]
allowOptions =
  (<>)
    <$> (concat <$> many (option readChecks allow))
    <*> flag [] [Saturation] (long "allow-saturation" <> help saturation)
  where
    saturation = "The same as --allow saturation, for measuring the client itself"
    allow =
      described
        "allow"
        "CHECK,…"
        "Keep the run valid, with a note, if this check of the generator fails: \
        \saturation (it used more than 80 % of its cores), \
        \little (Little's law, which fails if threads wait for a busy core), \
        \rate (an open loop fell behind)"

readChecks :: ReadM [Check]
readChecks =
  eitherReader $
    traverse (choice "a check is saturation, little or rate" checkName [minBound ..]) . splitAll ','

arrivalOptions :: Parser Arrivals
arrivalOptions =
  (&)
    <$> option
      (positive "a rate")
      (described "rate" "PER-SECOND" "Open loop: send this many commands a second, without waiting")
    <*> (poisson <|> (rising <$> ramp) <|> pure Constant)
  where
    poisson = flag' Poisson (long "poisson" <> help "With --rate: at random times, like the commands of many independent users")
    ramp =
      option readRamp . described "ramp-to" "PER-SECOND/SECONDS" $
        "With --rate: rise or fall to this rate over this time"
    rising (to, duration) from = Ramp from to duration

sweepOptions :: Parser Sweep
sweepOptions =
  option readRates . described "sweep" "STEPS|RATE,RATE,…" $
    "Open loop at one rate after the other, to find the knee: \
    \these rates, or this number of steps up to the rate of a closed loop"

readWarmup :: ReadM Warmup
readWarmup = eitherReader $ \case
  "auto" -> Right (WarmupUntilSteady 30)
  text -> case readMaybe text of
    Just length' | length' >= 0 && length' <= 1e7 -> Right (WarmupFor length')
    _ -> Left ("the warm-up is a number of seconds or auto, not " <> show text)

readCount :: ReadM Int
readCount =
  readWith ("not a number of commands: " <>) $
    fmap round . mfilter (\number -> number >= 1 && number <= 1e15 && whole number) . readNumber
  where
    -- 1.001k is not quite.
    whole number = abs (number - fromIntegral (round number :: Int)) < 1e-6 * number

positive :: String -> ReadM Double
positive what =
  readWith (("not " <> what <> " from 0.001 to 1000000000: ") <>) readRate

-- At most one command per nanosecond, the resolution of the times, which have room for some thousand
-- million seconds.
readRate :: String -> Maybe Double
readRate = mfilter (\number -> number >= 0.001 && number <= 1e9) . readNumber

-- Reads a number with an optional k or M.
readNumber :: String -> Maybe Double
readNumber text = (*) <$> lookup unit [("", 1), ("k", 1e3), ("M", 1e6)] <*> number
  where
    (number, unit) = numberAndUnit text

readRamp :: ReadM (Double, Double)
readRamp = eitherReader $ \text -> case break (== '/') text of
  (rate, '/' : rest)
    | Just to <- readRate rate, Just span' <- readNumber rest, span' > 0 -> Right (to, span')
  _ -> Left ("a ramp is RATE/SECONDS, not " <> show text)

readRates :: ReadM Sweep
readRates = eitherReader $ \text -> case traverse readRate (splitAll ',' text) of
  Just [steps]
    | steps >= 2, steps <= 100, Just whole <- readMaybe text -> Right (SweepSteps whole)
  Just rates@(_ : _ : _)
    | and (zipWith (<) rates (drop 1 rates)) ->
      case [name | (name, again) <- zip names (drop 1 names), name == again] of
        name : _ -> Left ("a sweep has two runs at " <> name)
        [] -> Right (SweepRates rates)
    where
      names = map describeRate rates
  _ -> Left ("a sweep is a number of steps (2 to 100) or ascending rates, not " <> show text)

readMoment :: ReadM Int
readMoment = eitherReader $ \text -> case readMaybe text of
  -- Times after the year 2250 have no number of nanoseconds.
  Just since | since > (0 :: Double) && since < 9e9 -> Right (nanosIn since)
  _ -> case parseTimeM False defaultTimeLocale "%Y-%m-%dT%H:%M:%S%QZ" text of
    Just time
      | since <- utcTimeToPOSIXSeconds time, since > 0 && since < 9e9 -> Right (sinceEpoch since)
    _ -> Left ("a time is 2026-01-31T12:00:00Z or seconds since 1970, not " <> show text)

-- | The problem of a combination of options, in one line.
planProblem :: Plan -> Maybe String
planProblem plan =
  asum
    [ or [long' > 1e6 | Just (Ramp _ _ long') <- [planArrivals plan]]
        `refused` "--ramp-to takes too long",
      (waits && or [True | Just Ramp {} <- [planArrivals plan]])
        `refused` "--ramp-to is never steady: no --warmup auto",
      between "--iterations" 1 1000 (planIterations plan),
      -- A steady warm-up ends with a slice.
      (waits && planSlice plan > 1)
        `refused` "--warmup auto waits for the end of a slice: --slice can be 1 at most",
      refused (planSlice plan < 0.01) "--slice must be 0.01 or more",
      refused (any (< 0.01) (planSample plan)) "--sample must be 0.01 or more"
    ]
  where
    waits = case planWarmup plan of WarmupUntilSteady _ -> True; WarmupFor _ -> False
