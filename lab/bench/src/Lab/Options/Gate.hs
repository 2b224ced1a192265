-- | The options of @gate@.
module Lab.Options.Gate
  ( GateOptions (..),
    defaultGate,
    gateOptions,
    gateProblem,
  )
where

import Control.Applicative (optional, (<|>))
import Options.Applicative (Parser, help, long, metavar, option, showDefault, strOption, value)
import Tool.Options.Common (between, seconds, wholeNumber)

-- | The options of the speed gate.
data GateOptions = GateOptions
  { -- | Seconds per measured run.
    gateDuration :: Double,
    -- | Runs per row.
    gateIterations :: Int,
    -- | Seconds of the short and of the long run whose memory is compared.
    gateMemorySeconds :: (Double, Double),
    -- | The folder where the programs that use hiredis are built.
    gateHiredis :: FilePath,
    -- | The file for the raw data. 'Nothing': in a folder with the time in its name.
    gateJson :: Maybe FilePath
  }
  deriving stock (Eq, Show)

-- | The defaults. Many short runs rather than few long ones: on a shared machine it is the turns,
-- not their length, that keep a slow minute from affecting one side only.
defaultGate :: GateOptions
defaultGate =
  GateOptions
    { gateDuration = 1,
      gateIterations = 15,
      gateMemorySeconds = (10, 60),
      gateHiredis = "compare/peers/hiredis",
      gateJson = Nothing
    }

-- | Parses the options.
gateOptions :: Parser GateOptions
gateOptions =
  GateOptions
    <$> seconds "duration" (gateDuration defaultGate) "Seconds per run"
    <*> option wholeNumber (long "iterations" <> metavar "N" <> value (gateIterations defaultGate) <> showDefault <> help "Runs per row, taken in turns")
    <*> ( (,)
            <$> seconds "memory-short" (fst (gateMemorySeconds defaultGate)) "Seconds of the short run whose memory is compared"
            <*> seconds "memory-long" (snd (gateMemorySeconds defaultGate)) "Seconds of the long one"
        )
    <*> strOption (long "hiredis" <> metavar "FOLDER" <> value (gateHiredis defaultGate) <> showDefault <> help "The programs around hiredis, and their build.sh")
    <*> optional (strOption (long "json" <> metavar "FILE" <> help "Write the raw data there (-: to the standard output), and not to results/gate/TIME/gate.json"))

-- | The problem of a combination of options, in one line.
gateProblem :: GateOptions -> Maybe String
gateProblem options
  | gateDuration options <= 0 = Just "--duration must be more than 0"
  | fst (gateMemorySeconds options) <= 0 = Just "--memory-short must be more than 0"
  | snd (gateMemorySeconds options) <= fst (gateMemorySeconds options) =
    Just "--memory-long must be more than --memory-short"
  | null (gateHiredis options) = Just "--hiredis needs a folder"
  | otherwise = between "--iterations" 1 1000 (gateIterations options) <|> noFile
  where
    noFile = if gateJson options == Just "" then Just "--json needs a file" else Nothing
