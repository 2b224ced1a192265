-- | The options of the modes that work on results: @bench report@, @bench
-- compare@ and @bench merge@.
module Tool.Options.Results
  ( ReportOptions (..),
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

import Data.Maybe (catMaybes)
import Options.Applicative
import Tool.Compare.Rule (Bound (Relative), Rule (..), parseRule)
import Tool.Options.Common
import Tool.Options.Output

-- | The options for showing a document again.
data ReportOptions = ReportOptions
  { reportFile :: FilePath,
    reportOutputs :: Outputs
  }
  deriving stock (Eq, Show)

-- | Parses a document, and the formats in which to write it.
reportOptions :: Parser ReportOptions
reportOptions =
  ReportOptions
    <$> strArgument (metavar "FILE" <> help "Results as JSON")
    <*> outputOptions

-- | The problem of the options, in one line.
reportProblem :: ReportOptions -> Maybe String
reportProblem = outputProblem . reportOutputs

-- | The options for comparing two documents.
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

-- | Parses two files, and the rules.
compareOptions :: Parser CompareOptions
compareOptions =
  CompareOptions
    <$> strArgument (metavar "BEFORE" <> help "Results as JSON")
    <*> strArgument (metavar "AFTER" <> help "Results as JSON, to hold against them")
    <*> many
      ( strOption . described "fail-if" "RULE" $
          "Exit with 1 if this holds for any run, \
          \such as throughput<-5% (against BEFORE), p99>10%, p99>5ms or errors>0"
      )
    <*> switch
      ( long "significant"
          <> help "Rules with % fail only where the difference is more than chance"
      )
    <*> optionalOption str "html" "FILE" "Write both, side by side, as a page of HTML"
    <*> optionalOption str "json" "FILE" "Write the comparison as JSON (-: to the standard output)"

-- | The problem of the options, in one line.
compareProblem :: CompareOptions -> Maybe String
compareProblem options = case [problem | Left problem <- map parseRule (compareRules options)] of
  problem : _ -> Just problem
  []
    | compareSignificant options,
      null relative ->
      Just "--significant is for rules with %: no --fail-if has one"
    | Just "" `elem` [compareHtml options, compareJson options] ->
      Just "--html and --json need a file"
    | otherwise -> sharedPath (catMaybes [compareHtml options, compareJson options])
  where
    relative = [() | Right Rule {ruleBound = Relative _} <- map parseRule (compareRules options)]

-- | The options for merging documents of runs that were started together.
data MergeOptions = MergeOptions
  { mergeFiles :: [FilePath],
    mergeOutputs :: Outputs
  }
  deriving stock (Eq, Show)

-- | Parses the files, and the outputs of the result.
mergeOptions :: Parser MergeOptions
mergeOptions =
  MergeOptions
    <$> some
      ( strArgument
          ( metavar "FILE..."
              <> help "Results as JSON of generators that were started together (--start-at)"
          )
      )
    <*> outputOptions

-- | The problem of the options, in one line.
mergeProblem :: MergeOptions -> Maybe String
mergeProblem options
  | length (mergeFiles options) < 2 = Just "bench merge needs at least two files"
  | Just file <- namedTwice (mergeFiles options) = Just (file <> " is named twice")
  | otherwise = outputProblem (mergeOutputs options)
