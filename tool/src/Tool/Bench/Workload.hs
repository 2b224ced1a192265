-- | What a run sends: which command, which key, which value, from a seed. A draw is one step of a
-- 64-bit generator: the lower half chooses the kind of operation, the upper half is for the use
-- of that kind. The choices of a thread depend only on the seed and its number.
module Tool.Bench.Workload
  ( Workload,
    makeWorkload,
    newWorkload,
    chosenWorkloads,
    workloadRefusal,
    workloadShape,
    workloadKeys,
    workloadKey,
    workloadValue,
    workloadName,
    workloadText,
    workloadKeySize,
    workloadNotes,
    kinds,
    expectedStats,
    countsComparable,
    workloadSteps,
    workloadSubscribers,
    missesWanted,
    Stream,
    newStream,
    next,
    verdict,
    Drawn (..),
    Outcome (..),
  )
where

import Data.ByteString (ByteString)
import Data.Either (fromRight)
import Data.Foldable (fold, toList, traverse_)
import Data.List.NonEmpty (NonEmpty)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust)
import Data.Primitive.PrimArray (PrimArray, indexPrimArray, primArrayFromList)
import Data.Primitive.SmallArray (SmallArray, indexSmallArray, sizeofSmallArray, smallArrayFromList)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Word (Word64)
import Tool.Bench.Workload.Custom (custom)
import Tool.Bench.Workload.Dataset
import Tool.Bench.Workload.Keys
import Tool.Bench.Workload.Named (allKeys, named)
import Tool.Bench.Workload.Random (Stream, lower, step)
import Tool.Bench.Workload.Random qualified as Random
import Tool.Bench.Workload.Template
import Tool.Bench.Workload.Values
import Tool.Options.Bench (LoadOptions (..))
import Tool.Options.Workload hiding (workloadSubscribers)
import Tool.Options.Workload qualified as Options (workloadSubscribers)
import Tool.Text (shown)

-- | Immutable data that all threads of a run share.
data Workload = Workload
  { workloadKinds :: SmallArray Kind,
    -- | The function that makes operations of each kind.
    workloadMakes :: SmallArray Make,
    -- | A draw of 2^32 below the first mark is of the first kind, and so on.
    workloadMarks :: PrimArray Word64,
    workloadDataset :: Dataset,
    -- | A short name, such as @get@ or @mixed@.
    workloadName :: Text,
    -- | The whole workload, such as @70:get,30:set@.
    workloadText :: Text
  }

-- | A workload of these tasks, with a name if the text of the tasks is not to be the name. 'Left'
-- is a message of one line. \(O(n)\) in the number of keys.
makeWorkload :: Maybe Text -> Shape -> Mix -> Either String Workload
makeWorkload name shape tasks =
  assembled dataset (fromMaybe text name) text . toList <$> traverse kind tasks
  where
    dataset = newDataset shape
    text = Text.pack (describeMix tasks)
    kind (weight, task) =
      (,) weight <$> case task of
        TaskNamed test -> maybe (Left ("there is no test " <> show test)) Right (named dataset test)
        TaskCommand _ template -> custom dataset (allKeys dataset) (taskName task) template

-- A workload that sends PING.
emptyWorkload :: Shape -> Workload
emptyWorkload shape =
  assembled dataset "ping_mbulk" "ping_mbulk" [(1, kind) | Just kind <- [named dataset "ping_mbulk"]]
  where
    dataset = newDataset shape

assembled :: Dataset -> Text -> Text -> [(Int, Kind)] -> Workload
assembled dataset name text shares =
  Workload
    { workloadKinds = smallArrayFromList allKinds,
      workloadMakes = smallArrayFromList (zipWith kindMake allKinds [0 ..]),
      workloadMarks = primArrayFromList (sharesUpTo weights),
      workloadDataset = dataset,
      workloadName = name,
      workloadText = text
    }
  where
    (weights, allKinds) = unzip shares

-- | A standard workload for a server. \(O(n)\) in the number of keys.
newWorkload :: Operation -> LoadOptions -> Workload
newWorkload operation load =
  -- The operations have tests of the same names.
  fromRight (emptyWorkload shape) (makeWorkload (Just name) shape (operationMix operation))
  where
    name = Text.pack (operationName operation)
    shape = shapeOf False (loadThreads load) options load
    options = defaultWorkload {workloadSizes = SizeFixed (loadValueSize load)}

-- | The workloads of the options, one per run. Takes whether the target is a cluster, the number of
-- threads that draw, the options, and the load. 'Left' is a message of one line.
chosenWorkloads :: Bool -> Int -> WorkloadOptions -> LoadOptions -> Either String (NonEmpty Workload)
chosenWorkloads clustered threads options load =
  traverse chosen (selectedMixes (workloadSelection options))
  where
    chosen (name, tasks) = makeWorkload name (shapeOf clustered threads options load) tasks

-- | Why these workloads are impossible, in one line.
workloadRefusal :: WorkloadOptions -> Maybe String
workloadRefusal options =
  either Just (const Nothing) (traverse_ attempt (selectedMixes (workloadSelection options)))
  where
    -- With one key, so that it costs nothing.
    attempt (name, tasks) = makeWorkload name defaultShape {shapeKeys = 1} tasks

shapeOf :: Bool -> Int -> WorkloadOptions -> LoadOptions -> Shape
shapeOf clustered threads options load =
  Shape
    { shapeTemplate = fromMaybe (sizedTemplate (loadKeys load) (loadKeySize load)) (workloadTemplate options),
      shapeKeys = loadKeys load,
      shapeDistribution = workloadDistribution options,
      shapeSizes = workloadSizes options,
      shapeCompressible = workloadCompressible options,
      shapeExpiry = workloadExpiry options,
      shapeHitRatio = workloadHitRatio options,
      shapeSeed = loadSeed load,
      shapeThreads = threads,
      shapeClustered = clustered,
      shapeSubscribers = Options.workloadSubscribers options
    }

-- | The keys and values that the user requested.
workloadShape :: Workload -> Shape
workloadShape = datasetShape . workloadDataset

workloadKeys :: Workload -> Int
workloadKeys = shapeKeys . workloadShape

-- | The key with a number below 'workloadKeys'. \(O(1)\).
workloadKey :: Workload -> Int -> ByteString
workloadKey = keyOf . datasetKeys . workloadDataset

-- | The value of that key. \(O(1)\), copies nothing.
workloadValue :: Workload -> Int -> ByteString
workloadValue = valueOf . datasetValues . workloadDataset

-- | Bytes of the longest key.
workloadKeySize :: Workload -> Int
workloadKeySize = longestKey . datasetKeys . workloadDataset

-- | Notes for the readers of the results.
workloadNotes :: Workload -> [Text]
workloadNotes workload =
  ["there is one key only: no server is ever used like that" | workloadKeys workload == 1]
    <> [ "misses are wanted: a share of " <> shown ratio <> " of the GETs finds something"
         | Just ratio <- [shapeHitRatio (workloadShape workload)]
       ]

-- | The names of the kinds, in the order of their numbers.
kinds :: Workload -> [Text]
kinds = map kindName . toList . workloadKinds

-- | How much one operation of a kind adds to the server's counts of calls, by command as in
-- the answer to @INFO commandstats@. Empty for a number that belongs to no kind.
expectedStats :: Workload -> Int -> [(Text, Int)]
expectedStats workload kind =
  fold (lookup kind (zip [0 ..] (toList (workloadKinds workload))) >>= kindStats)

-- | Whether the server's counts can be compared: not if it runs programs with commands of their own.
countsComparable :: Workload -> Bool
countsComparable = all (isJust . kindStats) . workloadKinds

-- | The steps before the clock starts.
workloadSteps :: Workload -> [Step]
workloadSteps = mergeSteps . concatMap kindSteps . workloadKinds

-- | The number of subscribers that must listen during the run.
workloadSubscribers :: Workload -> Int
workloadSubscribers workload
  | "publish" `elem` kinds workload = shapeSubscribers (workloadShape workload)
  | otherwise = 0

-- | Expected look-ups of preloaded keys without a result, for the description of a run: @hit_ratio@
-- and the requested share of those of @get@, and @misses@ and why any are no fault.
missesWanted :: Workload -> Map Text Text
missesWanted workload =
  Map.fromList $
    [("hit_ratio", shown ratio) | Just ratio <- [shapeHitRatio shape]]
      <> [("misses", "the commands are not ours") | any kindDeletes (workloadKinds workload)]
      <> [ ("misses", "keys expire")
           | isJust (shapeExpiry shape) || any (`elem` ["setex", "getex"]) (kinds workload)
         ]
  where
    shape = workloadShape workload

-- | The stream of the thread with this number.
newStream :: Workload -> Int -> IO Stream
newStream = Random.newStream . shapeSeed . workloadShape

-- | Draws an operation; for the thread that owns the stream. \(O(k)\) in the number of kinds.
next :: Workload -> Stream -> IO Drawn
next Workload {workloadMakes, workloadMarks} stream = do
  word <- step stream
  let choice = lower word
      last' = sizeofSmallArray workloadMakes - 1
      pick kind
        | kind >= last' || choice < indexPrimArray workloadMarks kind = kind
        | otherwise = pick (kind + 1)
  indexSmallArray workloadMakes (pick 0) stream
{-# INLINE next #-}

-- | The final outcome, given the number of the command's key. \(O(n)\) in the size of the value.
verdict :: Workload -> Int -> Outcome -> Outcome
verdict = compared . workloadDataset
{-# INLINE verdict #-}
