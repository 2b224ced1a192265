-- | The options of @suite@.
module Lab.Options.Suite
  ( SuiteOptions (..),
    suiteOptions,
    suiteProblem,
  )
where

import Options.Applicative (Parser)
import Tool.Options.Common (seconds)
import Tool.Options.Output (Outputs, outputOptions, outputProblem)

-- | The options of the standard set of runs.
data SuiteOptions = SuiteOptions
  { suiteDuration :: Double,
    suiteOutputs :: Outputs
  }
  deriving stock (Eq, Show)

-- | Parses the options.
suiteOptions :: Parser SuiteOptions
suiteOptions = SuiteOptions <$> seconds "duration" 5 "Seconds per run" <*> outputOptions

-- | The problem of the options, in one line.
suiteProblem :: SuiteOptions -> Maybe String
suiteProblem options
  | suiteDuration options <= 0 = Just "--duration must be more than 0"
  | otherwise = outputProblem (suiteOutputs options)
