-- | The options of @bench record@ and @bench replay@.
module Tool.Options.Replay
  ( RecordOptions (..),
    ReplayOptions (..),
    Pace (..),
    recordOptions,
    replayOptions,
    recordProblem,
    replayProblem,
  )
where

import Control.Monad (mfilter)
import Options.Applicative
import Text.Read (readMaybe)
import Tool.Options.Common
import Tool.Options.Connection
import Tool.Options.Output (Outputs, outputOptions, outputProblem)
import Tool.Span (parseSpan)

-- | What to record, for how long, and into which file.
data RecordOptions = RecordOptions
  { recordConnection :: ConnectionOptions,
    -- | Seconds. 'Nothing': until the number is reached or Ctrl-C.
    recordSeconds :: Maybe Double,
    recordCount :: Maybe Int,
    recordOut :: FilePath
  }
  deriving stock (Eq, Show)

-- | What to replay, where, and how fast.
data ReplayOptions = ReplayOptions
  { replayFile :: FilePath,
    replayConnection :: ConnectionOptions,
    replayPace :: Pace,
    replayOutputs :: Outputs
  }
  deriving stock (Eq, Show)

-- | The speed of a replay.
data Pace
  = -- | This many times as fast as it was recorded.
    PaceTimes Double
  | -- | As fast as possible, without regard to the recorded times.
    PaceUnpaced
  deriving stock (Eq, Show)

recordOptions :: Parser RecordOptions
recordOptions =
  RecordOptions
    <$> connectionOptions
    <*> optionalOption
      (eitherReader parseSpan)
      "for"
      "SPAN"
      "Record for so long, such as 30s (default: until --count, or Ctrl-C)"
    <*> optionalOption wholeNumber "count" "N" "Record so many commands"
    <*> strOption
      ( described
          "out"
          "FILE"
          "Where the recording goes: the lines of MONITOR (-: to the standard output)"
      )

replayOptions :: Parser ReplayOptions
replayOptions =
  ReplayOptions
    <$> strArgument (metavar "FILE" <> help "A recording: lines of MONITOR")
    <*> connectionOptions
    <*> (flag' PaceUnpaced unpaced <|> option pace speed)
    <*> outputOptions
  where
    unpaced =
      long "unpaced"
        <> help "Send as fast as replies allow, without regard to the recorded times"
    speed =
      described "speed" "TIMES" "So many times as fast as it was recorded"
        <> value (PaceTimes 1)
        <> showDefaultWith (const "1")
    pace =
      readWith ("--speed is a number above 0, not " <>) $
        fmap PaceTimes . mfilter (\times -> times > 0 && times <= 1e6) . readMaybe

-- | The problem of a combination of options, in one line.
recordProblem :: RecordOptions -> Maybe String
recordProblem options
  | not (namesServer (recordConnection options)) =
    Just "record needs --host: it records what others do to a server"
  | Just problem <- connectionProblem False (recordConnection options) = Just problem
  | Just count <- recordCount options, count < 1 = Just "--count must be 1 or more"
  | Just time <- recordSeconds options, time <= 0 = Just "--for must be more than 0"
  | null (recordOut options) = Just "--out needs a file"
  | otherwise = Nothing

-- | The problem of a combination of options, in one line.
replayProblem :: ReplayOptions -> Maybe String
replayProblem options
  | not (namesServer (replayConnection options)) =
    Just "replay needs --host: it writes what was written when it was recorded"
  | Just problem <- connectionProblem False (replayConnection options) = Just problem
  | otherwise = outputProblem (replayOutputs options)
