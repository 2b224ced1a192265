-- | The options of the modes that work on results: @bench report@, @bench
-- compare@ and @bench merge@.
module Tool.Options.Results
  ( ReportOptions (..),
    reportOptions,
    reportProblem,
  )
where

import Options.Applicative (Parser, help, metavar, strArgument)
import Tool.Options.Output

-- | Showing a document again.
data ReportOptions = ReportOptions
  { reportFile :: FilePath,
    reportOutputs :: Outputs
  }
  deriving stock (Eq, Show)

-- | A document, and the forms to write it in.
reportOptions :: Parser ReportOptions
reportOptions =
  ReportOptions
    <$> strArgument (metavar "FILE" <> help "Results as JSON")
    <*> outputOptions

-- | What is wrong with them.
reportProblem :: ReportOptions -> Maybe String
reportProblem = outputProblem . reportOutputs
