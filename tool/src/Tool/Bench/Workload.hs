-- | What is sent: which command, which key, which value, from a seed.
--
-- A generator must cost next to nothing beside what it measures. So a draw is
-- one step of a 64-bit generator whose lower half chooses the kind of operation
-- and whose upper half is the kind's own, both without a division; keys and
-- values are slices. The choices of a thread depend on the seed and its number
-- only: the same run sends the same commands again.
--
-- What comes back is checked against what the key must hold, in the decoder of
-- the command itself: see 'Outcome'.
module Tool.Bench.Workload
  ( Workload,
    newWorkload,
    workloadKeys,
    workloadKey,
    workloadValue,

    -- * Kinds of operation
    kinds,
    expectedStats,

    -- * Drawing
    Stream,
    newStream,
    next,
    Drawn (..),
    Outcome (..),
  )
where

import Data.ByteString (ByteString)
import Data.Foldable (toList)
import Data.Primitive.PrimArray (PrimArray, indexPrimArray, primArrayFromList)
import Data.Primitive.SmallArray (SmallArray, indexSmallArray, sizeofSmallArray, smallArrayFromList)
import Data.Text (Text)
import Data.Word (Word64)
import Redis.Commands qualified as Commands
import Redis.Decode (mismatch)
import Redis.Value (Value (..))
import Tool.Bench.Workload.Drawn
import Tool.Bench.Workload.Keys
import Tool.Bench.Workload.Random (Stream, ahead, below, current, lower, step, upper)
import Tool.Bench.Workload.Random qualified as Random
import Tool.Bench.Workload.Values
import Tool.Options.Bench (LoadOptions (..), Operation (..))

-- | All that the threads of a run share; immutable.
data Workload = Workload
  { workloadKinds :: SmallArray Kind,
    -- | A draw below the first of these, of 2^32, is of the first kind, and so
    -- on; none for the last.
    workloadMarks :: PrimArray Word64,
    workloadNames :: Keys,
    workloadValues :: Values,
    workloadSeed :: Word64
  }

-- | One kind of operation.
data Kind = Kind
  { kindName :: Text,
    -- | What one operation adds to the server's count of calls, by command.
    kindStats :: [(Text, Int)],
    -- | Makes one; the upper half of the stream's current number is its own.
    kindMake :: Stream -> IO Drawn
  }

-- | Makes the keys. \(O(n)\) in the number of keys.
newWorkload :: Operation -> LoadOptions -> Workload
newWorkload operation load =
  Workload
    { workloadKinds = smallArrayFromList (zipWith (\number (_, kind) -> kind number) [0 ..] shares),
      workloadMarks = primArrayFromList (marks (map fst shares)),
      workloadNames = keys,
      workloadValues = values,
      workloadSeed = loadSeed load
    }
  where
    keys = newKeys (loadKeys load) (loadKeySize load)
    values = newValues (loadSeed load) (loadValueSize load)
    shares = case operation of
      OperationGet -> [(1, getKind keys values)]
      OperationSet -> [(1, setKind keys values)]
      OperationMixed -> [(1, setKind keys values), (4, getKind keys values)]

-- The sums of all weights but the last, as shares of 2^32.
marks :: [Int] -> [Word64]
marks weights = zipWith (\done _ -> fromIntegral (done * 0x100000000 `div` total)) (drop 1 sums) (drop 1 weights)
  where
    sums = scanl (+) 0 (map toInteger weights)
    total = max 1 (sum (map toInteger weights))

getKind, setKind :: Keys -> Values -> Int -> Kind
getKind keys values kind =
  Kind
    { kindName = "get",
      kindStats = [("get", 1)],
      kindMake = \stream -> do
        number <- below (keyCount keys) . upper <$> current stream
        ahead stream >>= prefetchKey keys . below (keyCount keys) . upper
        let verdict = \case
              BulkString found
                | holds values number found -> Right Hit
                | otherwise -> Right (Wrong found)
              Null -> Right Miss
              other -> mismatch "the value of a key" other
        pure (Drawn kind (judged verdict (Commands.get (keyOf keys number))))
    }
setKind keys values kind =
  Kind
    { kindName = "set",
      kindStats = [("set", 1)],
      kindMake = \stream -> do
        number <- below (keyCount keys) . upper <$> current stream
        ahead stream >>= prefetchKey keys . below (keyCount keys) . upper
        pure (Drawn kind (Done <$ Commands.set (keyOf keys number) (valueOf values number)))
    }

-- | How many keys there are.
workloadKeys :: Workload -> Int
workloadKeys = keyCount . workloadNames

-- | The key of a number below 'workloadKeys'. \(O(1)\).
workloadKey :: Workload -> Int -> ByteString
workloadKey = keyOf . workloadNames

-- | What that key holds. \(O(1)\), copies nothing.
workloadValue :: Workload -> Int -> ByteString
workloadValue = valueOf . workloadValues

-- | The names of the kinds, in the order of their numbers.
kinds :: Workload -> [Text]
kinds = map kindName . toList . workloadKinds

-- | What one operation of a kind adds to the server's count of calls: names as
-- in @INFO commandstats@, and how many of each. Empty for a number that is no
-- kind's.
expectedStats :: Workload -> Int -> [(Text, Int)]
expectedStats workload kind
  | kind >= 0 && kind < sizeofSmallArray all' = kindStats (indexSmallArray all' kind)
  | otherwise = []
  where
    all' = workloadKinds workload

-- | The stream of the thread with this number.
newStream :: Workload -> Int -> IO Stream
newStream workload = Random.newStream (workloadSeed workload)

-- | Draws an operation. \(O(k)\) in the number of kinds; only for the thread
-- that the stream belongs to.
next :: Workload -> Stream -> IO Drawn
next Workload {workloadKinds, workloadMarks} stream = do
  word <- step stream
  let choice = lower word
      last' = sizeofSmallArray workloadKinds - 1
      pick kind
        | kind >= last' || choice < indexPrimArray workloadMarks kind = kind
        | otherwise = pick (kind + 1)
  kindMake (indexSmallArray workloadKinds (pick 0)) stream
{-# INLINE next #-}
