-- | How the replies of several nodes become one: what servers call a response
-- policy (<https://valkey.io/topics/command-tips/>).
module Redis.Internal.Protocol.CommandTable.Aggregation
  ( Aggregation (..),
    aggregate,
    oneIsEnough,
  )
where

import Control.Monad (foldM, zipWithM)
import Data.Bits (toIntegralSized)
import Data.Foldable (asum)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Redis.Decode qualified as Decode
import Redis.Error (DecodeError)
import Redis.Value (Value (..), withoutAttributes)

-- | How the replies are aggregated; arrays of numbers element by element. "Redis.Internal.Protocol.CommandTable"
-- counts on the order of the first seven.
data Aggregation
  = -- | The sum of integers.
    AggSum
  | -- | The smallest of integers.
    AggMin
  | -- | The largest of integers.
    AggMax
  | -- | Whether all say so: 0 and 1, or booleans.
    AggAnd
  | -- | Whether one says so: 0 and 1, or booleans.
    AggOr
  | -- | The first reply; all nodes must give one that is no error.
    AggAllSucceeded
  | -- | The first reply; one node must give one that is no error.
    AggOneSucceeded
  | -- | The elements of all arrays, sets or maps.
    AggConcatenated
  | -- | The first reply that is not null; null if all are. The caller puts the replies in random
    -- order.
    AggFirstFound
  deriving stock (Eq, Show, Enum, Bounded)

-- | Whether the command is done when one node has done it, so that errors of the
-- other nodes do not count. Otherwise the error of one is the error of all.
oneIsEnough :: Aggregation -> Bool
oneIsEnough = (== AggOneSucceeded)

-- | One reply from those of several nodes, none of which is an error. Fails on
-- replies of a shape that cannot be aggregated in this way. \(O(n)\) in their size.
aggregate :: Aggregation -> NonEmpty Value -> Either DecodeError Value
aggregate how given = case how of
  AggSum -> combined "integers of a sum in range" (onIntegers const) added
  AggMin -> combined "integers" (onIntegers const) (onIntegers min)
  AggMax -> combined "integers" (onIntegers const) (onIntegers max)
  AggAnd -> combined "0, 1 or booleans" (onTruths const) (onTruths (&&))
  AggOr -> combined "0, 1 or booleans" (onTruths const) (onTruths (||))
  AggAllSucceeded -> Right first
  AggOneSucceeded -> Right first
  AggConcatenated -> maybe (unfit "arrays, sets or maps alone") Right (concatenated replies)
  AggFirstFound -> Right (foldr1 firstFound replies)
  where
    replies@(first :| others) = NonEmpty.map withoutAttributes given

    -- The first reply is aggregated with itself, too, so that a single unfit reply does not pass.
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
  (Integer one, Integer other) -> Integer <$> toIntegralSized (toInteger one + toInteger other)
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
