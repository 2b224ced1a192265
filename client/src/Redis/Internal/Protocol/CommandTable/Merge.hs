-- | How the replies of several nodes become one: what servers call a response
-- policy (<https://valkey.io/topics/command-tips/>).
module Redis.Internal.Protocol.CommandTable.Merge
  ( Merge (..),
    merge,
    oneIsEnough,
  )
where

import Control.Monad (foldM, zipWithM)
import Data.Foldable (asum)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Redis.Decode qualified as Decode
import Redis.Error (DecodeError)
import Redis.Value (Value (..), withoutAttributes)

-- | How the replies are merged. Numbers may also be in arrays, which are then merged element by
-- element.
data Merge
  = -- | The sum of integers.
    MergeSum
  | -- | The smallest of integers.
    MergeMin
  | -- | The largest of integers.
    MergeMax
  | -- | Whether all say so: 0 and 1, or booleans.
    MergeAnd
  | -- | Whether one says so: 0 and 1, or booleans.
    MergeOr
  | -- | The first reply; all nodes must give one that is no error.
    MergeAllSucceeded
  | -- | The first reply; one node must give one that is no error.
    MergeOneSucceeded
  | -- | The elements of all arrays, sets or maps.
    MergeConcatenated
  | -- | The first reply that is not null; null if all are. The caller puts the replies in random
    -- order.
    MergeFound
  deriving stock (Eq, Show, Enum, Bounded)

-- | Whether the command is done when one node has done it, so that errors of the
-- other nodes do not count. Otherwise the error of one is the error of all.
oneIsEnough :: Merge -> Bool
oneIsEnough = (== MergeOneSucceeded)

-- | One reply from those of several nodes, none of which is an error. Fails on
-- replies of a shape that cannot be merged in this way. \(O(n)\) in their size.
merge :: Merge -> NonEmpty Value -> Either DecodeError Value
merge how given = case how of
  MergeSum -> combined "integers of a sum in range" (onIntegers const) added
  MergeMin -> combined "integers" (onIntegers const) (onIntegers min)
  MergeMax -> combined "integers" (onIntegers const) (onIntegers max)
  MergeAnd -> combined "0, 1 or booleans" (onTruths const) (onTruths (&&))
  MergeOr -> combined "0, 1 or booleans" (onTruths const) (onTruths (||))
  MergeAllSucceeded -> Right first
  MergeOneSucceeded -> Right first
  MergeConcatenated -> maybe (unfit "arrays, sets or maps alone") Right (concatenated replies)
  MergeFound -> Right (foldr1 firstFound replies)
  where
    replies@(first :| others) = NonEmpty.map withoutAttributes given

    -- The first reply is merged with itself, too, so that a single reply of an unfit shape does not
    -- pass.
    combined expected fitting combine = maybe (unfit expected) Right $ do
      _ <- elementwise fitting first first
      foldM (elementwise combine) first others

    firstFound reply later = case reply of
      Null -> later
      _ -> reply

    unfit expected = Decode.mismatch (expected <> " from all nodes") (Array (NonEmpty.toList replies))

-- | Combines two replies, or the elements of two arrays of the same length.
elementwise :: (Value -> Value -> Maybe Value) -> Value -> Value -> Maybe Value
elementwise combine = curry $ \case
  (Array one, Array other)
    | length one == length other -> Array <$> zipWithM (elementwise combine) one other
  (one, other) -> combine one other

-- | 'Nothing' if the sum is too large for a server's integers.
added :: Value -> Value -> Maybe Value
added = curry $ \case
  (Integer one, Integer other)
    | total <= toInteger (maxBound :: Int64) && total >= toInteger (minBound :: Int64) -> Just (Integer (fromInteger total))
    where
      total = toInteger one + toInteger other
  _ -> Nothing

onIntegers :: (Int64 -> Int64 -> Int64) -> Value -> Value -> Maybe Value
onIntegers choose = curry $ \case
  (Integer one, Integer other) -> Just (Integer (choose one other))
  _ -> Nothing

onTruths :: (Bool -> Bool -> Bool) -> Value -> Value -> Maybe Value
onTruths connective = curry $ \case
  (Integer one, Integer other)
    | one `elem` [0, 1] && other `elem` [0, 1] -> Just (Integer (if connective (one == 1) (other == 1) then 1 else 0))
  (Boolean one, Boolean other) -> Just (Boolean (connective one other))
  _ -> Nothing

-- | 'Nothing' unless all are of one kind.
concatenated :: NonEmpty Value -> Maybe Value
concatenated replies = asum [Array <$> joined array, Set <$> joined set, Map <$> joined pairs]
  where
    joined elements = concat <$> traverse elements (NonEmpty.toList replies)
    array = \case
      Array elements -> Just elements
      _ -> Nothing
    set = \case
      Set elements -> Just elements
      _ -> Nothing
    pairs = \case
      Map entries -> Just entries
      _ -> Nothing
