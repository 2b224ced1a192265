-- | The options of the modes beside one run and a campaign: @bench record@ and @bench replay@, and
-- those that work on results, @bench report@, @bench compare@ and @bench merge@.
module Tool.Options.Modes
  ( RecordOptions (..),
    recordOptions,
    recordProblem,
    ReplayOptions (..),
    Pace (..),
    replayOptions,
    replayProblem,
    ReportOptions (..),
    reportOptions,
    reportProblem,
    CompareOptions (..),
    compareOptions,
    compareProblem,
    MergeOptions (..),
    mergeOptions,
    mergeProblem,
  )
where

import Control.Monad (mfilter)
import Data.Foldable (asum)
import Data.Maybe (catMaybes)
import Options.Applicative
import Text.Read (readMaybe)
import Tool.Compare.Rule (Bound (Relative), Rule (..), parseRule)
import Tool.Options.Common
import Tool.Options.Connection
import Tool.Options.Output
import Tool.Span (parseSpan)

data RecordOptions = RecordOptions
  { recordConnection :: ConnectionOptions,
    -- | Seconds. 'Nothing': until the number is reached or Ctrl-C.
    recordSeconds :: Maybe Double,
    recordCount :: Maybe Int,
    recordOut :: FilePath
  }
  deriving stock (Eq, Show)

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
    <*> optionalOption (eitherReader parseSpan) "for" "SPAN" span'
    <*> optionalOption wholeNumber "count" "N" "Record this number of commands"
    <*> strOption (described "out" "FILE" out)
  where
    span' = "Record for this time, such as 30s (default: until --count, or Ctrl-C)"
    out = "File to write the lines of MONITOR to (-: the standard output)"

replayOptions :: Parser ReplayOptions
replayOptions =
  ReplayOptions
    <$> strArgument (metavar "FILE" <> help "A recording: lines of MONITOR")
    <*> connectionOptions
    <*> (flag' PaceUnpaced (long "unpaced" <> help unpaced) <|> option pace speed)
    <*> outputOptions
  where
    unpaced = "Send as fast as replies allow, without regard to the recorded times"
    speed =
      described "speed" "TIMES" "Send this many times as fast as recorded"
        <> usually (const "1") (PaceTimes 1)
    pace =
      readWith ("--speed is a number above 0, not " <>) $
        fmap PaceTimes . mfilter (\times -> times > 0 && times <= 1e6) . readMaybe

recordProblem :: RecordOptions -> Maybe String
recordProblem options =
  asum
    [ elsewhere "record needs --host: it records what others do to a server" (recordConnection options),
      refused (any (< 1) (recordCount options)) "--count must be 1 or more",
      refused (any (<= 0) (recordSeconds options)) "--for must be more than 0",
      refused (null (recordOut options)) "--out needs a file"
    ]

replayProblem :: ReplayOptions -> Maybe String
replayProblem options =
  elsewhere needsHost (replayConnection options) <|> outputProblem (replayOutputs options)
  where
    needsHost = "replay needs --host: it writes what was written when it was recorded"

-- The problem of a mode that starts no server of its own.
elsewhere :: String -> ConnectionOptions -> Maybe String
elsewhere needsHost connection =
  refused (not (namesServer connection)) needsHost <|> connectionProblem False connection

data ReportOptions = ReportOptions
  { reportFile :: FilePath,
    reportOutputs :: Outputs
  }
  deriving stock (Eq, Show)

reportOptions :: Parser ReportOptions
reportOptions =
  ReportOptions
    <$> strArgument (metavar "FILE" <> help "Results as JSON")
    <*> outputOptions

reportProblem :: ReportOptions -> Maybe String
reportProblem = outputProblem . reportOutputs

data CompareOptions = CompareOptions
  { compareBefore :: FilePath,
    compareAfter :: FilePath,
    -- | The rules as the user wrote them.
    compareRules :: [String],
    -- | Whether a relative rule fails only for a significant difference.
    compareSignificant :: Bool,
    compareHtml :: Maybe FilePath,
    compareJson :: Maybe FilePath
  }
  deriving stock (Eq, Show)

compareOptions :: Parser CompareOptions
compareOptions =
  CompareOptions
    <$> strArgument (metavar "BEFORE" <> help "Results as JSON")
    <*> strArgument (metavar "AFTER" <> help "Results as JSON, to compare with")
    <*> many
      ( strOption . described "fail-if" "RULE" $
          "Exit with 1 if this holds for any run, \
          \such as throughput<-5% (against BEFORE), p99>10%, p99>5ms or errors>0"
      )
    <*> switch (long "significant" <> help significant)
    <*> optionalOption str "html" "FILE" "Write both, side by side, as a page of HTML"
    <*> optionalOption str "json" "FILE" "Write the comparison as JSON (-: to the standard output)"
  where
    significant = "Rules with % fail only for a difference beyond chance"

compareProblem :: CompareOptions -> Maybe String
compareProblem options =
  asum
    [ either Just (const Nothing) (sequence_ rules),
      refused (compareSignificant options && null [() | Right (Rule _ _ (Relative _)) <- rules]) unruled,
      refused ("" `elem` files) "--html and --json need a file",
      sharedPath files
    ]
  where
    rules = map parseRule (compareRules options)
    unruled = "--significant is for rules with %: no --fail-if has one"
    files = catMaybes [compareHtml options, compareJson options]

data MergeOptions = MergeOptions
  { mergeFiles :: [FilePath],
    mergeOutputs :: Outputs
  }
  deriving stock (Eq, Show)

mergeOptions :: Parser MergeOptions
mergeOptions =
  MergeOptions
    <$> some (strArgument (metavar "FILE..." <> help parts))
    <*> outputOptions
  where
    parts = "Results as JSON of generators that were started together (--start-at)"

mergeProblem :: MergeOptions -> Maybe String
mergeProblem options =
  asum
    [ refused (length (mergeFiles options) < 2) "bench merge needs at least two files",
      (<> " is named twice") <$> namedTwice (mergeFiles options),
      outputProblem (mergeOutputs options)
    ]
