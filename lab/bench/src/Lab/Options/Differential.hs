-- | The options of @differential@.
module Lab.Options.Differential
  ( DifferentialOptions (..),
    differentialOptions,
    differentialProblem,
  )
where

import Control.Applicative (optional, (<|>))
import Data.List (intercalate, nub)
import Lab.Differential.Table (Judged (..))
import Options.Applicative (Parser, ReadM, auto, eitherReader, flag, help, long, metavar, option, showDefault, showDefaultWith, strOption, value)
import Tool.Options.Common (between, wholeNumber)

-- | What is compared with @redis-benchmark@, and how.
data DifferentialOptions = DifferentialOptions
  { -- | Names of tests that both programs have.
    differentialTests :: [String],
    differentialClients :: Int,
    -- | Commands that each client has on their way.
    differentialPipeline :: Int,
    differentialKeys :: Int,
    -- | Bytes of a value.
    differentialValueSize :: Int,
    -- | Seconds of a run.
    differentialDuration :: Double,
    differentialIterations :: Int,
    differentialJudged :: Judged,
    differentialJson :: Maybe FilePath
  }
  deriving stock (Eq, Show)

-- | Parses the options.
differentialOptions :: Parser DifferentialOptions
differentialOptions =
  DifferentialOptions
    <$> option tests (long "test" <> metavar "NAME,…" <> value known <> showDefaultWith (const (intercalate "," known)) <> help "Tests, by the names that both have")
    <*> number "clients" 16 "Clients, and connections, of either"
    <*> number "pipeline" 64 "Commands of a client on their way"
    <*> number "keys" 100000 "Different keys"
    <*> number "value-size" 64 "Bytes of a value"
    <*> option auto (long "duration" <> metavar "SECONDS" <> value 2 <> showDefault <> help "Seconds of a run")
    <*> number "iterations" 3 "Runs of either per test, in turns"
    <*> flag ByEachOther ByTheServer (long "counts-only" <> help "Judge either by what the server counted, and not one by the other: on a machine that is busy")
    <*> optional (strOption (long "json" <> metavar "FILE" <> help "Write the results as JSON (-: to the standard output)"))
  where
    number name standard text = option wholeNumber (long name <> metavar "N" <> value standard <> showDefault <> help text)

-- The default tests, and other tests of redis-benchmark that may be named.
known, others' :: [String]
known = ["ping_mbulk", "set", "get", "incr", "lpush", "mset"]
others' = ["ping_inline", "rpush", "sadd", "hset", "zadd"]

tests :: ReadM [String]
tests = eitherReader $ \text -> traverse named (split text)
  where
    named name
      | name `elem` known <> others' = Right name
      | otherwise = Left ("there is no such test to compare: " <> show name <> " (there are " <> unwords (known <> others') <> ")")
    split text = case break (== ',') text of
      (first, ',' : rest) -> first : split rest
      (first, _) -> [first]

-- | The problem of a combination of options, in one line.
differentialProblem :: DifferentialOptions -> Maybe String
differentialProblem options =
  between "--clients" 1 10000 (differentialClients options)
    <|> between "--pipeline" 1 10000 (differentialPipeline options)
    <|> between "--keys" 1 10000000 (differentialKeys options)
    <|> between "--value-size" 1 (1024 * 1024) (differentialValueSize options)
    <|> between "--iterations" 1 1000 (differentialIterations options)
    -- What is no number is not within, either.
    <|> (if differentialDuration options >= 0.5 && differentialDuration options <= 3600 then Nothing else Just "--duration must be from 0.5 to 3600")
    <|> (if nub (differentialTests options) /= differentialTests options then Just "--test names a test twice" else Nothing)
