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

import Control.Applicative (optional, (<|>))
import Data.Char (isDigit)
import Data.Function ((&))
import Data.Time.Clock.POSIX (utcTimeToPOSIXSeconds)
import Data.Time.Format (defaultTimeLocale, parseTimeM)
import Options.Applicative
  ( Parser,
    ReadM,
    eitherReader,
    flag,
    flag',
    help,
    long,
    many,
    metavar,
    option,
    showDefault,
    showDefaultWith,
    switch,
    value,
  )
import Text.Read (readMaybe)
import Tool.Bench.Arrivals (Arrivals (..))
import Tool.Options.Help (described)
import Tool.Options.Number (wholeNumber)
import Tool.Span (nanosIn, sinceEpoch)
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

-- | The rates of a sweep.
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
checkName = \case
  Saturation -> "saturation"
  Little -> "little"
  Rate -> "rate"

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

-- | Parses the options. Options that exclude each other are alternatives, so that no command line
-- has both.
planOptions :: Parser Plan
planOptions =
  together
    <$> (sweeping <|> measuring)
    <*> option
      readWarmup
      ( long "warmup" <> metavar "SECONDS|auto" <> value (planWarmup defaultPlan)
          <> showDefaultWith warmupText
          <> help "Load before that, not measured; auto: until the rate is steady, 30 s at most"
      )
    <*> option
      (positive "a number of seconds")
      ( long "slice" <> metavar "SECONDS" <> value 1 <> showDefault
          <> help "Length of a slice of the time series"
      )
    <*> samplingOptions
    <*> allowOptions
    <*> switch
      ( long "brief"
          <> help
            "Leave out what takes time beside the run: \
            \fsync probe, the server's defaults and hash"
      )
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
      WarmupFor seconds -> fixed 0 seconds
      WarmupUntilSteady _ -> "auto"

-- A sweep: one rate after the other, each measured once and for a duration.
sweeping :: Parser (Plan -> Plan)
sweeping = (\wanted plan -> plan {planSending = Sweeping wanted}) <$> sweepOptions

-- One load, measured several times or from a given moment.
measuring :: Parser (Plan -> Plan)
measuring =
  ( \sending requests repeated plan ->
      repeated
        plan
          { planSending = sending,
            planRequests = requests
          }
  )
    <$> (maybe WhenAnswered AtTimes <$> optional arrivalOptions)
    <*> optional
      ( option
          readCount
          (long "requests" <> metavar "N" <> help "Measure so many commands instead of a time")
      )
    <*> ((atMoment <$> startAt) <|> (times <$> iterations))
  where
    atMoment moment plan = plan {planStartAt = Just moment}
    times count plan = plan {planIterations = count}
    startAt =
      option
        readMoment
        ( long "start-at" <> metavar "TIME"
            <> help
              "Begin the load at that time (2026-01-31T12:00:00Z, or seconds since 1970): \
              \for runs on several machines, to be merged"
        )
    iterations =
      option
        wholeNumber
        ( long "iterations" <> metavar "N" <> value 1 <> showDefault
            <> help "Measure so often; the report has mean, deviation and confidence interval"
        )

samplingOptions :: Parser (Maybe Double)
samplingOptions =
  flag' Nothing (long "no-sampling" <> help "Ask the server nothing while it is measured")
    <|> option
      (Just <$> positive "a number of seconds")
      ( long "sample" <> metavar "SECONDS" <> value (planSample defaultPlan)
          <> showDefaultWith (maybe "" show)
          <> help "How often to ask the server for INFO"
      )

-- | Parses the checks that may fail.
allowOptions :: Parser [Check]
allowOptions =
  (<>)
    <$> (concat <$> many (option readChecks allow))
    <*> flag
      []
      [Saturation]
      ( long "allow-saturation"
          <> help "The client itself is what is measured: --allow saturation"
      )
  where
    allow =
      described "allow" "CHECK,…" $
        "Only say it, and call no run invalid, if this check of the generator fails: " <> checks
    checks =
      "saturation (it used more than 80 % of its cores), \
      \little (Little's law: on a busy machine threads are kept from running), \
      \rate (an open loop fell behind)"

readChecks :: ReadM [Check]
readChecks = eitherReader $ \text -> traverse named (split ',' text)
  where
    named name = case lookup name [(checkName check, check) | check <- [minBound .. maxBound]] of
      Just check -> Right check
      Nothing -> Left ("a check is saturation, little or rate, not " <> show name)

arrivalOptions :: Parser Arrivals
arrivalOptions =
  (&)
    <$> option
      (positive "a rate")
      ( long "rate" <> metavar "PER-SECOND"
          <> help "Open loop: send so many commands a second, whatever became of those before"
      )
    <*> (poisson <|> (rising <$> ramp) <|> pure Constant)
  where
    poisson =
      flag'
        Poisson
        ( long "poisson"
            <> help
              "With --rate: independent of each other, as those of many users, \
              \and not at equal distances"
        )
    ramp =
      option
        readRamp
        ( long "ramp-to" <> metavar "PER-SECOND/SECONDS"
            <> help "With --rate: rise or fall to this rate over so many seconds"
        )
    rising (to, seconds) from = Ramp from to seconds

sweepOptions :: Parser Sweep
sweepOptions =
  option
    readRates
    ( long "sweep" <> metavar "STEPS|RATE,RATE,…"
        <> help
          "Open loop at one rate after the other: \
          \these, or so many steps up to what a closed loop reaches; finds the knee"
    )

readWarmup :: ReadM Warmup
readWarmup = eitherReader $ \case
  "auto" -> Right (WarmupUntilSteady 30)
  text -> case readMaybe text of
    Just seconds | seconds >= 0 && seconds <= 1e7 -> Right (WarmupFor seconds)
    _ -> Left ("the warm-up is a number of seconds or auto, not " <> show text)

readCount :: ReadM Int
readCount = eitherReader $ \text -> case readNumber text of
  Just number | number >= 1 && number <= 1e15 -> Right (round number)
  _ -> Left ("not a number of commands: " <> show text)

positive :: String -> ReadM Double
positive what = eitherReader $ \text -> case readNumber text of
  Just number | number > 0 && number <= highestRate -> Right number
  _ -> Left ("not " <> what <> " above 0 and at most 1000000000: " <> show text)

-- Commands per second: one per nanosecond, the resolution of the times.
highestRate :: Double
highestRate = 1e9

-- Reads a number with an optional k or M.
readNumber :: String -> Maybe Double
readNumber text = case span (\letter -> isDigit letter || letter `elem` ("." :: String)) text of
  (digits, "") -> readMaybe (padded digits)
  (digits, "k") -> (* 1e3) <$> readMaybe (padded digits)
  (digits, "M") -> (* 1e6) <$> readMaybe (padded digits)
  _ -> Nothing
  where
    padded digits = case digits of
      '.' : _ -> '0' : digits
      _ -> digits

readRamp :: ReadM (Double, Double)
readRamp = eitherReader $ \text -> case break (== '/') text of
  (rate, '/' : seconds)
    | Just to <- readNumber rate,
      Just span' <- readNumber seconds,
      to > 0,
      to <= highestRate,
      span' > 0 ->
      Right (to, span')
  _ -> Left ("a ramp is RATE/SECONDS, not " <> show text)

readRates :: ReadM Sweep
readRates = eitherReader $ \text -> case traverse readNumber (split ',' text) of
  Just [steps]
    | steps >= 2, steps <= 100, Just whole <- readMaybe text -> Right (SweepSteps whole)
  Just rates@(_ : _ : _)
    | and (zipWith (<) rates (drop 1 rates)),
      all
        ( \rate ->
            rate > 0
              && rate <= highestRate
        )
        rates ->
      Right (SweepRates rates)
  _ -> Left ("a sweep is a number of steps (2 to 100) or ascending rates, not " <> show text)

split :: Char -> String -> [String]
split separator text = case break (== separator) text of
  (first, _ : rest) -> first : split separator rest
  (first, []) -> [first]

readMoment :: ReadM Int
readMoment = eitherReader $ \text -> case readMaybe text of
  -- Times after the year 2250 have no number of nanoseconds.
  Just seconds | seconds > (0 :: Double) && seconds < 9e9 -> Right (nanosIn seconds)
  _ -> case parseTimeM False defaultTimeLocale "%Y-%m-%dT%H:%M:%S%QZ" text of
    Just time
      | seconds <- utcTimeToPOSIXSeconds time,
        seconds > 0 && seconds < 9e9 ->
        Right (sinceEpoch seconds)
    _ -> Left ("a time is 2026-01-31T12:00:00Z or seconds since 1970, not " <> show text)

-- | The problem of a combination of options, in one line.
planProblem :: Plan -> Maybe String
planProblem plan
  | Just (Ramp _ _ seconds) <- planArrivals plan, seconds > 1e6 = Just "--ramp-to takes too long"
  | Just (Ramp {}) <- planArrivals plan,
    WarmupUntilSteady _ <- planWarmup plan =
    Just "--ramp-to is never steady: no --warmup auto"
  | planIterations plan < 1 || planIterations plan > 1000 =
    Just "--iterations must be from 1 to 1000"
  -- A steady warm-up ends with a slice.
  | WarmupUntilSteady _ <- planWarmup plan,
    planSlice plan > 1 =
    Just "--warmup auto waits for the end of a slice: --slice can be 1 at most"
  | planSlice plan < 0.01 = Just "--slice must be 0.01 or more"
  | Just interval <- planSample plan, interval < 0.01 = Just "--sample must be 0.01 or more"
  | otherwise = Nothing
