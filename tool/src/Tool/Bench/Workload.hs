-- | What is sent: which command, which key, which value, from a seed.
--
-- A generator must cost next to nothing beside what it measures. So a draw is
-- one step of a 64-bit generator whose lower half chooses the kind of operation
-- and whose upper half is the kind's own, both without a division; keys and
-- values are slices. The choices of a thread depend on the seed and its number
-- only: the same run sends the same commands again.
--
-- What comes back is checked against what the key must hold, in the decoder of
-- the command or by 'verdict': see 'Outcome'.
module Tool.Bench.Workload
  ( Workload,
    makeWorkload,
    emptyWorkload,
    workloadShape,
    workloadKeys,
    workloadKey,
    workloadValue,

    -- * In words
    workloadName,
    workloadText,
    workloadKeySize,
    workloadNotes,

    -- * Kinds of operation
    kinds,
    expectedStats,
    countsComparable,

    -- * Before and beside
    workloadSteps,
    workloadSubscribers,
    missesWanted,

    -- * Drawing
    Stream,
    newStream,
    next,
    verdict,
    Drawn (..),
    Outcome (..),
  )
where

import Data.ByteString (ByteString)
import Data.Foldable (toList)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust)
import Data.Primitive.PrimArray (PrimArray, indexPrimArray, primArrayFromList)
import Data.Primitive.SmallArray (SmallArray, indexSmallArray, sizeofSmallArray, smallArrayFromList)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Word (Word64)
import Tool.Bench.Workload.Custom (NotACommand (..), custom)
import Tool.Bench.Workload.Drawn
import Tool.Bench.Workload.Ground
import Tool.Bench.Workload.Keys
import Tool.Bench.Workload.Named (allKeys, named, namedTests)
import Tool.Bench.Workload.Random (Stream, lower, step)
import Tool.Bench.Workload.Random qualified as Random
import Tool.Bench.Workload.Task
import Tool.Bench.Workload.Values

-- | All that the threads of a run share; immutable.
data Workload = Workload
  { workloadKinds :: SmallArray Kind,
    -- | What makes operations of each kind.
    workloadMakes :: SmallArray Make,
    -- | A draw below the first of these, of 2^32, is of the first kind, and so
    -- on; none for the last.
    workloadMarks :: PrimArray Word64,
    workloadGround :: Ground,
    -- | Short, such as @get@ or @mixed@.
    workloadName :: Text,
    -- | All of it, such as @70:get,30:set@.
    workloadText :: Text
  }

-- | A workload by its tasks, with a name if they are not name enough. 'Left' is
-- one line. \(O(n)\) in the number of keys.
makeWorkload :: Maybe Text -> Shape -> Mix -> Either String Workload
makeWorkload name shape tasks =
  assembled ground (fromMaybe text name) text . toList <$> traverse kind tasks
  where
    ground = newGround shape
    text = Text.pack (describeMix tasks)
    kind (weight, task) =
      (,) weight <$> case task of
        TaskNamed test -> maybe (Left ("there is no test " <> show test)) Right (named ground test)
        TaskCommand _ template ->
          either
            (\(NotACommand problem) -> Left problem)
            Right
            (custom ground (allKeys ground) (taskName task) template)

-- | A workload that sends PING.
emptyWorkload :: Shape -> Workload
emptyWorkload shape =
  assembled ground "ping_mbulk" "ping_mbulk" [(1, kind) | Just kind <- [named ground "ping_mbulk"]]
  where
    ground = newGround shape

assembled :: Ground -> Text -> Text -> [(Int, Kind)] -> Workload
assembled ground name text shares =
  Workload
    { workloadKinds = smallArrayFromList (map snd shares),
      workloadMakes =
        smallArrayFromList (zipWith (\number (_, kind) -> kindMake kind number) [0 ..] shares),
      workloadMarks = primArrayFromList (marks (map fst shares)),
      workloadGround = ground,
      workloadName = name,
      workloadText = text
    }

-- The sums of all weights but the last, as shares of 2^32.
marks :: [Int] -> [Word64]
marks weights =
  zipWith (\done _ -> fromIntegral (done * 0x100000000 `div` total)) (drop 1 sums) (drop 1 weights)
  where
    sums = scanl (+) 0 (map toInteger weights)
    total = max 1 (sum (map toInteger weights))

-- | As it was asked for.
workloadShape :: Workload -> Shape
workloadShape = groundShape . workloadGround

-- | How many keys there are.
workloadKeys :: Workload -> Int
workloadKeys = shapeKeys . workloadShape

-- | The key of a number below 'workloadKeys'. \(O(1)\).
workloadKey :: Workload -> Int -> ByteString
workloadKey = keyOf . groundKeys . workloadGround

-- | What that key holds. \(O(1)\), copies nothing.
workloadValue :: Workload -> Int -> ByteString
workloadValue = valueOf . groundValues . workloadGround

-- | Bytes of the longest key.
workloadKeySize :: Workload -> Int
workloadKeySize = longestKey . groundKeys . workloadGround

-- | What a reader of the results should know of it.
workloadNotes :: Workload -> [Text]
workloadNotes workload =
  [ "there is one key only: no server is ever used like that"
    | workloadKeys workload == 1
  ]
    <> [ "misses are wanted: a share of "
           <> Text.pack (show ratio)
           <> " of the GETs finds something"
         | Just ratio <- [shapeHitRatio (workloadShape workload)]
       ]

-- | The names of the kinds, in the order of their numbers.
kinds :: Workload -> [Text]
kinds = map kindName . toList . workloadKinds

-- | What one operation of a kind adds to the server's count of calls: names as
-- in @INFO commandstats@, and how many of each. Empty for a number that is no
-- kind's.
expectedStats :: Workload -> Int -> [(Text, Int)]
expectedStats workload kind
  | kind >= 0 && kind < sizeofSmallArray all' = fromMaybe [] (kindStats (indexSmallArray all' kind))
  | otherwise = []
  where
    all' = workloadKinds workload

-- | Whether the server's counts can be compared: not if it runs programs whose
-- commands nobody here knows.
countsComparable :: Workload -> Bool
countsComparable = all (isJust . kindStats) . workloadKinds

-- | What to do before the clock starts.
workloadSteps :: Workload -> [Step]
workloadSteps = mergeSteps . concatMap kindSteps . workloadKinds

-- | How many must listen while it runs.
workloadSubscribers :: Workload -> Int
workloadSubscribers workload
  | "publish" `elem` kinds workload = shapeSubscribers (workloadShape workload)
  | otherwise = 0

-- | What is to be said of look-ups that find nothing, for the description of a
-- run: @hit_ratio@ and the share that was asked for, or @misses@ and why they
-- are no fault. Empty: there must be none.
missesWanted :: Workload -> Map Text Text
missesWanted workload
  | Just ratio <- shapeHitRatio shape = Map.singleton "hit_ratio" (Text.pack (show ratio))
  | isJust (shapeExpiry shape) = Map.singleton "misses" "keys expire"
  | any (`elem` ["lpop", "rpop", "spop", "zpopmin"]) found =
    Map.singleton "misses" "what is taken is gone"
  | any (`elem` ["setex", "getex"]) found = Map.singleton "misses" "keys expire"
  | any (`notElem` map (Text.pack . fst) namedTests) found =
    Map.singleton "misses" "the commands are not ours"
  | otherwise = Map.empty
  where
    shape = workloadShape workload
    found = kinds workload

-- | The stream of the thread with this number.
newStream :: Workload -> Int -> IO Stream
newStream = Random.newStream . shapeSeed . workloadShape

-- | Draws an operation. \(O(k)\) in the number of kinds; only for the thread
-- that the stream belongs to.
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

-- | What an outcome comes to, for the number of the key that was drawn with the
-- command. \(O(n)\) in the size of the value.
verdict :: Workload -> Int -> Outcome -> Outcome
verdict = compared . workloadGround
{-# INLINE verdict #-}
