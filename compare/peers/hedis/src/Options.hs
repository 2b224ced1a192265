-- | The command line: @compare/PROTOCOL.md@.
module Options
  ( Options (..),
    parseOptions,
  )
where

import Control.Monad (when)
import Data.Word (Word64)
import Text.Read (readMaybe)

-- | The options of a run.
data Options = Options
  { optionsHost :: String,
    optionsPort :: Int,
    optionsOperation :: String,
    -- | A word whose lower half is below this is a SET.
    optionsSetBelow :: Word64,
    optionsMisses :: Bool,
    optionsInFlight :: Int,
    -- | Commands in a batch; 1 if callers wait for each reply.
    optionsBatch :: Int,
    optionsWaits :: Bool,
    optionsKeys :: Int,
    optionsKeySize :: Int,
    optionsValueSize :: Int,
    -- | Seconds.
    optionsWarmup :: Double,
    -- | Seconds.
    optionsDuration :: Double,
    optionsSeed :: Word64
  }

-- | Reads the flags, in any order. 'Left' says what is wrong with them.
parseOptions :: [String] -> Either String Options
parseOptions = go (Options "127.0.0.1" 6379 "get" 0 False 1 64 True 100000 16 512 1 2 1)
  where
    go options = \case
      [] -> do
        when (optionsInFlight options < 1 || optionsBatch options < 1 || optionsKeys options < 1) $
          Left "in-flight, batch and keys are at least 1"
        if optionsWaits options
          then pure options {optionsBatch = 1}
          else do
            when (optionsInFlight options `mod` optionsBatch options /= 0) $
              Left "--in-flight: not a multiple of the batch"
            pure options
      "--cluster" : _ -> Left "--cluster: this version does not understand Redis 7"
      "--misses" : rest -> go options {optionsMisses = True} rest
      flag : value : rest -> do
        next <- set options flag value
        go next rest
      [flag] -> Left (flag <> ": unknown, or has no value")
    set options flag value = case flag of
      "--host" -> pure options {optionsHost = value}
      "--port" -> (\port -> options {optionsPort = port}) <$> number
      "--operation" -> do
        below <- case value of
          "get" -> pure 0
          "set" -> pure 0x100000000
          "mixed" -> pure 858993459
          _ -> Left "--operation: get, set or mixed"
        pure options {optionsOperation = value, optionsSetBelow = below}
      "--in-flight" -> (\count -> options {optionsInFlight = count}) <$> number
      "--style" -> case value of
        "wait" -> pure options {optionsWaits = True}
        "batch" -> pure options {optionsWaits = False}
        _ -> Left "--style: wait or batch"
      "--batch" -> (\count -> options {optionsBatch = count}) <$> number
      "--keys" -> (\count -> options {optionsKeys = count}) <$> number
      "--key-size" -> (\size -> options {optionsKeySize = size}) <$> number
      "--value-size" -> (\size -> options {optionsValueSize = size}) <$> number
      "--warmup" -> (\seconds -> options {optionsWarmup = seconds}) <$> number
      "--duration" -> (\seconds -> options {optionsDuration = seconds}) <$> number
      "--seed" -> (\seed -> options {optionsSeed = seed}) <$> number
      -- A connection of hedis serves one caller at a time, so there must be as many connections as
      -- commands in flight, whatever this flag requests.
      "--connections" -> options <$ (number :: Either String Int)
      "--json" | value == "-" -> pure options
      _ -> Left (flag <> " " <> value <> ": unknown")
      where
        number :: (Read a) => Either String a
        number = maybe (Left (flag <> " " <> value <> ": not a number")) Right (readMaybe value)
