-- | The flags of @compare/PROTOCOL.md@, as our own peer reads them.
module Compare.Ours.Options
  ( Options (..),
    OperationKind (..),
    parseOptions,
    optionsCallers,
  )
where

import Compare.Stream (Word64)
import Text.Read (readMaybe)

-- | The options of a run.
data Options = Options
  { optionsHost :: String,
    optionsPort :: Int,
    optionsPassword :: Maybe String,
    optionsTls :: Bool,
    optionsCluster :: Bool,
    optionsOperation :: OperationKind,
    optionsMisses :: Bool,
    optionsInFlight :: Int,
    -- | Commands in a batch; 1: each caller waits for each reply.
    optionsBatch :: Int,
    optionsKeys :: Int,
    optionsKeySize :: Int,
    optionsValueSize :: Int,
    -- | Seconds.
    optionsWarmup :: Double,
    -- | Seconds.
    optionsDuration :: Double,
    optionsSeed :: Word64,
    -- | Connections per server.
    optionsConnections :: Int
  }
  deriving stock (Eq, Show)

-- | The commands of a run.
data OperationKind
  = OnlyGet
  | OnlySet
  | FifthSet
  deriving stock (Eq, Show)

-- | The number of callers. \(O(1)\).
optionsCallers :: Options -> Int
optionsCallers options = optionsInFlight options `div` optionsBatch options

-- | Reads the command line; 'Left' says what is wrong with it.
parseOptions :: [String] -> Either String Options
parseOptions arguments = go (Draft defaults False 64) arguments >>= finish
  where
    defaults =
      Options
        { optionsHost = "127.0.0.1",
          optionsPort = 6379,
          optionsPassword = Nothing,
          optionsTls = False,
          optionsCluster = False,
          optionsOperation = OnlyGet,
          optionsMisses = False,
          optionsInFlight = 16,
          optionsBatch = 1,
          optionsKeys = 100000,
          optionsKeySize = 16,
          optionsValueSize = 512,
          optionsWarmup = 1,
          optionsDuration = 5,
          optionsSeed = 1,
          optionsConnections = 1
        }
    finish (Draft options inBatches batch)
      | size < 1 || optionsInFlight options < 1 || optionsInFlight options `mod` size /= 0 =
        Left "--in-flight must be a positive multiple of --batch"
      | otherwise = Right options {optionsBatch = size}
      where
        size = if inBatches then batch else 1

-- The state while reading: the style and the size of batches may come in any order.
data Draft = Draft Options Bool Int

go :: Draft -> [String] -> Either String Draft
go draft@(Draft options inBatches batch) = \case
  [] -> Right draft
  "--cluster" : rest -> with options {optionsCluster = True} rest
  "--misses" : rest -> with options {optionsMisses = True} rest
  "--tls" : rest -> with options {optionsTls = True} rest
  [flag] -> Left (flag <> " is unknown or needs a value")
  flag : value : rest -> case flag of
    "--host" -> with options {optionsHost = value} rest
    "--port" -> number flag value >>= \found -> with options {optionsPort = found} rest
    "--password" -> with options {optionsPassword = Just value} rest
    "--operation" -> operation value >>= \found -> with options {optionsOperation = found} rest
    "--in-flight" -> number flag value >>= \found -> with options {optionsInFlight = found} rest
    "--style" -> case value of
      "wait" -> go (Draft options False batch) rest
      "batch" -> go (Draft options True batch) rest
      _ -> Left ("--style " <> value <> ": wait or batch")
    "--batch" -> number flag value >>= \found -> go (Draft options inBatches found) rest
    "--keys" -> number flag value >>= \found -> with options {optionsKeys = found} rest
    "--key-size" -> number flag value >>= \found -> with options {optionsKeySize = found} rest
    "--value-size" -> number flag value >>= \found -> with options {optionsValueSize = found} rest
    "--warmup" -> number flag value >>= \found -> with options {optionsWarmup = found} rest
    "--duration" -> number flag value >>= \found -> with options {optionsDuration = found} rest
    "--seed" -> number flag value >>= \found -> with options {optionsSeed = found} rest
    "--connections" -> number flag value >>= \found -> with options {optionsConnections = found} rest
    "--json" | value == "-" -> with options rest
    "--json" -> Left "--json: only - is known"
    _ -> Left ("unknown flag " <> flag)
  where
    with changed = go (Draft changed inBatches batch)
    operation = \case
      "get" -> Right OnlyGet
      "set" -> Right OnlySet
      "mixed" -> Right FifthSet
      other -> Left ("--operation " <> other <> ": get, set or mixed")

number :: Read a => String -> String -> Either String a
number flag value = maybe (Left (flag <> " " <> value <> ": not a number")) Right (readMaybe value)
