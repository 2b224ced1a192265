-- | The base of all kinds of operation: keys, values, and how keys are drawn; and a kind's type.
module Tool.Bench.Workload.Dataset
  ( Shape (..),
    defaultShape,
    Dataset (..),
    newDataset,
    drawKey,
    foundOrMissing,
    compared,
    valueOfKey,
    Drawn (..),
    Outcome (..),
    Kind (..),
    plainKind,
    sharedKind,
    Make,
    Step (..),
    StepPlace (..),
    mergeSteps,
  )
where

import Data.ByteString (ByteString)
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Word (Word64)
import Redis.Client (Client)
import Redis.Command (Command)
import Redis.Decode (Decoder, mismatch)
import Redis.Error (Error)
import Redis.Value (Value (..))
import Tool.Bench.Workload.Distribution
import Tool.Bench.Workload.Keys
import Tool.Bench.Workload.Random
import Tool.Bench.Workload.Values

-- | The keys and values that the user requested.
data Shape = Shape
  { shapeTemplate :: KeyTemplate,
    -- | The number of different keys.
    shapeKeys :: Int,
    shapeDistribution :: Distribution,
    shapeSizes :: ValueSizes,
    -- | The share of each value that compresses to nothing. 'Nothing': values are letters.
    shapeCompressible :: Maybe Double,
    -- | Seconds that a key lives after it is set: the least and the most.
    shapeExpiry :: Maybe (Int, Int),
    -- | The share of look-ups that find something. 'Nothing' means all.
    shapeHitRatio :: Maybe Double,
    shapeSeed :: Word64,
    -- | The number of threads that draw.
    shapeThreads :: Int,
    -- | Whether the keys of one command must share a slot.
    shapeClustered :: Bool,
    -- | The number of subscribers to published messages.
    shapeSubscribers :: Int
  }

-- | A hundred thousand keys, named as by redis-benchmark, drawn evenly, with values of 512 bytes.
defaultShape :: Shape
defaultShape =
  Shape
    { shapeTemplate = sizedTemplate 100000 16,
      shapeKeys = 100000,
      shapeDistribution = Uniform,
      shapeSizes = SizeFixed 512,
      shapeCompressible = Nothing,
      shapeExpiry = Nothing,
      shapeHitRatio = Nothing,
      shapeSeed = 1,
      shapeThreads = 16,
      shapeClustered = False,
      shapeSubscribers = 10
    }

-- | Immutable tables that all threads share. The lazy fields are made when a kind needs them.
data Dataset = Dataset
  { datasetShape :: Shape,
    -- | The keys and, if some look-ups shall find nothing, as many again that are never written.
    datasetKeys :: Keys,
    datasetChooser :: Chooser,
    datasetValues :: Values,
    -- | The number of each key, in twelve digits.
    datasetDigits :: ~Keys,
    -- | The number of each key, after @element:@.
    datasetElements :: ~Keys,
    -- | The number of each key, after @counter:@.
    datasetCounters :: ~Keys,
    -- | A draw of 2^32 that is below this number finds nothing.
    datasetMisses :: Word64
  }

-- | Makes the tables. \(O(n)\) in the keys.
newDataset :: Shape -> Dataset
newDataset shape =
  Dataset
    { datasetShape = shape,
      datasetKeys = newKeys seed (shapeTemplate shape) (if misses > 0 then 2 * count else count),
      datasetChooser = newChooser (shapeDistribution shape) count (shapeThreads shape),
      datasetValues = newValues seed (shapeSizes shape) (shapeCompressible shape),
      datasetDigits = numbered [],
      datasetElements = numbered [KeyText "element:"],
      datasetCounters = numbered [KeyText "counter:"],
      datasetMisses = misses
    }
  where
    seed = shapeSeed shape
    count = shapeKeys shape
    misses = maybe 0 (\ratio -> round ((1 - ratio) * 4294967296)) (shapeHitRatio shape)
    numbered before = newKeys seed (KeyTemplate (before <> [KeyNumber 12])) count

-- | Draws the number of a key that exists. \(O(1)\).
drawKey :: Dataset -> Stream -> IO Int
drawKey dataset = choose (datasetChooser dataset)
{-# INLINE drawKey #-}

-- | Reads the value of a key, or nothing.
foundOrMissing :: Decoder Outcome
foundOrMissing = \case
  BulkString found -> Right (Found found)
  Null -> Right Miss
  other -> mismatch "the value of a key" other

-- | The outcome of a reply once the number of the key is known. \(O(n)\) in the size of the value.
compared :: Dataset -> Int -> Outcome -> Outcome
compared dataset number = \case
  Found found
    | holds (datasetValues dataset) number found -> Hit
    | otherwise -> Wrong found
  outcome -> outcome

-- | Reads the value of this key, or nothing, and compares it. \(O(n)\) in its size.
--
-- NOINLINE: so a command in flight keeps two words of this, and not the parts of all values.
valueOfKey :: Dataset -> Int -> Decoder Outcome
valueOfKey dataset number reply = compared dataset number <$> foundOrMissing reply
{-# NOINLINE valueOfKey #-}

-- | One operation. The first number is that of its kind: an index into the workload's kinds.
data Drawn
  = -- | A command that may share a connection with others. The second number is that of the key
    -- whose value it returns, if its outcome is 'Found'.
    Drawn !Int !Int !(Command Outcome)
  | -- | An operation that is more than one command, or needs a connection of its own. Blocks until
    -- it is done.
    DrawnAlone !Int !(Client -> IO (Either Error Outcome))

-- | The result of an operation.
data Outcome
  = -- | The reply is right.
    Done
  | -- | The read found something.
    Hit
  | -- | The read found nothing.
    Miss
  | -- | A value that still has to be compared with the value of the key. A decoder that compares
    -- would be a closure for every command in flight, which the collector would copy.
    Found ByteString
  | -- | The reply is wrong. The text is the reply instead.
    Wrong ByteString
  deriving stock (Eq, Show)

-- | Makes one operation. The upper half of the stream's current number is for its use.
type Make = Stream -> IO Drawn

data Kind = Kind
  { kindName :: Text,
    -- | How much one operation adds to the server's counts of calls, by command as
    -- @INFO commandstats@ names it; 'Nothing' if that cannot be known.
    kindStats :: Maybe [(Text, Int)],
    -- | Makes operations. Takes the kind's number.
    kindMake :: Int -> Make,
    kindSteps :: [Step],
    -- | Whether it may delete keys that were written before the clock starts.
    kindDeletes :: Bool
  }

-- | A kind of one shared command. Takes its name and its name in the server's statistics.
plainKind :: Text -> Text -> [Step] -> (Stream -> IO (Command Outcome)) -> Kind
plainKind name command steps make = sharedKind name command steps $ \ !kind stream -> do
  made <- make stream
  pure $! Drawn kind (-1) made
{-# INLINE plainKind #-}

-- | Like 'plainKind', for a command that tells which key it looks up.
sharedKind :: Text -> Text -> [Step] -> (Int -> Make) -> Kind
sharedKind name command steps make = Kind name (Just [(command, 1)]) make steps False
{-# INLINE sharedKind #-}

-- | A step before the clock starts.
data Step = Step
  { -- | The name. Of several steps with the same name only the one with the most commands is done.
    stepName :: Text,
    stepCount :: Int,
    stepCommand :: Int -> Command Outcome,
    -- | How much the whole step adds to the counts of calls; of each primary if done on each.
    stepStats :: [(Text, Int)],
    -- | The number of keys that must exist after the step.
    stepKeys :: Int,
    stepPlace :: StepPlace
  }

-- | Where and how a step is done.
data StepPlace
  = -- | By key, many at a time.
    StepByKey
  | -- | By key, one after the other.
    StepInTurn
  | -- | On every primary, one after the other.
    StepEverywhere

-- | Each step once, in the order in which they first occur.
mergeSteps :: [Step] -> [Step]
mergeSteps steps =
  [found | name <- List.nub (map stepName steps), Just found <- [Map.lookup name greatest]]
  where
    greatest = Map.fromListWith greater [(stepName step', step') | step' <- steps]
    greater new old = if stepCount new > stepCount old then new else old
