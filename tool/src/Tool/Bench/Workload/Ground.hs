-- | What all kinds of operation of a workload stand on: its keys, its values,
-- how keys are drawn; and what a kind is.
module Tool.Bench.Workload.Ground
  ( -- * What is wanted
    Shape (..),
    defaultShape,

    -- * What is made of it
    Ground (..),
    newGround,
    drawKey,
    foundOrMissing,
    compared,
    valueOfKey,

    -- * Kinds of operation
    Kind (..),
    plainKind,
    sharedKind,
    Make,

    -- * Before the clock starts
    Step (..),
    StepPlace (..),
    mergeSteps,
  )
where

import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Word (Word64)
import Redis.Command (Command)
import Redis.Decode (Decoder, mismatch)
import Redis.Value (Value (..))
import Tool.Bench.Workload.Distribution
import Tool.Bench.Workload.Drawn
import Tool.Bench.Workload.Keys
import Tool.Bench.Workload.Random
import Tool.Bench.Workload.Values

-- | Keys and values as they were asked for.
data Shape = Shape
  { shapeTemplate :: KeyTemplate,
    -- | Different keys.
    shapeKeys :: Int,
    shapeDistribution :: Distribution,
    shapeSizes :: ValueSizes,
    -- | The share of each value that compresses to nothing.
    shapeCompressible :: Maybe Double,
    -- | Seconds that a key lives once it was set, from and to.
    shapeExpiry :: Maybe (Int, Int),
    -- | The share of look-ups that find something; 'Nothing': all.
    shapeHitRatio :: Maybe Double,
    shapeSeed :: Word64,
    -- | Threads that draw.
    shapeThreads :: Int,
    -- | Whether keys of one command must be made to share a slot.
    shapeClustered :: Bool,
    -- | Who listens to what is published.
    shapeSubscribers :: Int
  }
  deriving stock (Eq, Show)

-- | A hundred thousand keys as redis-benchmark names them, drawn evenly, of 512
-- bytes.
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

-- | Tables that all threads share; immutable. Lazy fields are made when a kind
-- needs them.
data Ground = Ground
  { groundShape :: Shape,
    -- | The keys, and as many again that are never written if some look-ups
    -- are to find nothing.
    groundKeys :: Keys,
    groundChooser :: Chooser,
    groundValues :: Values,
    -- | Every number of a key, in twelve digits.
    groundDigits :: ~Keys,
    -- | The same after @element:@.
    groundElements :: ~Keys,
    -- | The same after @counter:@.
    groundCounters :: ~Keys,
    -- | A draw below this, of 2^32, finds nothing.
    groundMisses :: Word64
  }

-- | Makes the tables. \(O(n)\) in the keys.
newGround :: Shape -> Ground
newGround shape =
  Ground
    { groundShape = shape,
      groundKeys = newKeys seed (shapeTemplate shape) (if misses > 0 then 2 * count else count),
      groundChooser = newChooser (shapeDistribution shape) count (shapeThreads shape),
      groundValues = newValues seed (shapeSizes shape) (shapeCompressible shape),
      groundDigits = numbered [],
      groundElements = numbered [KeyText "element:"],
      groundCounters = numbered [KeyText "counter:"],
      groundMisses = misses
    }
  where
    seed = shapeSeed shape
    count = shapeKeys shape
    misses = maybe 0 (\ratio -> round ((1 - ratio) * 4294967296)) (shapeHitRatio shape)
    numbered before = newKeys seed (KeyTemplate (before <> [KeyNumber 12])) count

-- | Draws the number of a key that is there. \(O(1)\).
drawKey :: Ground -> Stream -> IO Int
drawKey ground = choose (groundChooser ground)
{-# INLINE drawKey #-}

-- | Reads the value of a key, if it has any.
foundOrMissing :: Decoder Outcome
foundOrMissing = \case
  BulkString found -> Right (Found found)
  Null -> Right Miss
  other -> mismatch "the value of a key" other

-- | What is to be said of a reply when the number of the key is known. \(O(n)\) in
-- the size of the value.
compared :: Ground -> Int -> Outcome -> Outcome
compared ground number = \case
  Found found
    | holds (groundValues ground) number found -> Hit
    | otherwise -> Wrong found
  outcome -> outcome

-- | Reads the value that a key must have, if it has any. \(O(n)\) in its size.
--
-- NOINLINE: what a command in flight keeps of this is two words, and not the
-- parts of all values.
valueOfKey :: Ground -> Int -> Decoder Outcome
valueOfKey ground number reply = compared ground number <$> foundOrMissing reply
{-# NOINLINE valueOfKey #-}

-- | Makes one operation; the upper half of the stream's current number is its
-- own.
type Make = Stream -> IO Drawn

-- | One kind of operation.
data Kind = Kind
  { kindName :: Text,
    -- | What one operation adds to the server's count of calls, by command as
    -- @INFO commandstats@ names it; 'Nothing' if that cannot be known.
    kindStats :: Maybe [(Text, Int)],
    -- | Given the kind's number.
    kindMake :: Int -> Make,
    kindSteps :: [Step]
  }

-- | A kind of one shared command, with its name in the statistics.
plainKind :: Text -> Text -> [Step] -> (Stream -> IO (Command Outcome)) -> Kind
plainKind name command steps make = sharedKind name command steps $ \ !kind stream -> do
  made <- make stream
  pure $! Drawn kind (-1) made
{-# INLINE plainKind #-}

-- | The same, for one that says which key it looks up.
sharedKind :: Text -> Text -> [Step] -> (Int -> Make) -> Kind
sharedKind name command steps make =
  Kind
    { kindName = name,
      kindStats = Just [(command, 1)],
      kindMake = make,
      kindSteps = steps
    }
{-# INLINE sharedKind #-}

-- | Something to do before the clock starts.
data Step = Step
  { -- | Steps of the same name are one: that with the most commands.
    stepName :: Text,
    stepCount :: Int,
    stepCommand :: Int -> Command Outcome,
    -- | What all of it adds to the count of calls; once per master where it is
    -- done on every one.
    stepStats :: [(Text, Int)],
    -- | How many keys there must be when all is done, for this step.
    stepKeys :: Int,
    stepPlace :: StepPlace
  }

-- | Where and how a step is done.
data StepPlace
  = -- | By key, many at a time.
    StepByKey
  | -- | By key, one after the other.
    StepInTurn
  | -- | On every master, one after the other.
    StepEverywhere
  deriving stock (Eq, Show)

-- | Each step once, in the order in which they first occur.
mergeSteps :: [Step] -> [Step]
mergeSteps steps =
  [found | name <- List.nub (map stepName steps), Just found <- [Map.lookup name greatest]]
  where
    greatest = Map.fromListWith greater [(stepName step', step') | step' <- steps]
    greater new old = if stepCount new > stepCount old then new else old
