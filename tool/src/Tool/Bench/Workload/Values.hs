-- | The values of keys. A value is a slice of one seeded block, at an offset that follows from the
-- key's number, so that every reply can be compared, and one that belongs to another caller is
-- noticed.
module Tool.Bench.Workload.Values
  ( Values,
    newValues,
    valueOf,
    holds,
    ValueSizes (..),
    valueSizes,
    describeSizes,
    largestSize,
    sharesUpTo,
  )
where

import Data.Bits (shiftR, (.&.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Unsafe qualified as Unsafe
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Primitive.PrimArray (PrimArray, indexPrimArray, primArrayFromList, sizeofPrimArray)
import Data.Word (Word64, Word8)
import Tool.Bench.Workload.Random (below, gamma, mix, upper)
import Tool.Bench.Workload.Syntax

-- | The sizes of values in bytes.
data ValueSizes
  = -- | All values have this size.
    SizeFixed Int
  | -- | Every size from the first to the last, equally often.
    SizeRange Int Int
  | -- | Sizes and their weights.
    SizeWeighted (NonEmpty (Int, Int))
  deriving stock (Eq, Show)

-- | Reads @512@, @100-2000@ or @32:5,1k:3@.
valueSizes :: Syntax ValueSizes
valueSizes = do
  first <- byteSize most
  peek >>= \case
    Just '-' -> do
      _ <- text "-"
      to <- byteSize most
      if to < first then complain "the range ends before it begins" else pure (SizeRange first to)
    Just ':' -> do
      one <- weight
      others <-
        text "," >>= \more ->
          if more then separated "," ((,) <$> byteSize most <*> weight) else pure []
      pure (SizeWeighted ((first, one) :| others))
    _ -> pure (SizeFixed first)
  where
    most = 256 * 1024 * 1024
    weight = do
      marked <- text ":"
      if marked
        then positive "a weight" 1000000 "a weight is 1 at least"
        else complain "expected : and a weight"

-- | The text that 'valueSizes' reads.
describeSizes :: ValueSizes -> String
describeSizes = \case
  SizeFixed one -> show one
  SizeRange from to -> show from <> "-" <> show to
  SizeWeighted weighted ->
    List.intercalate "," [show one <> ":" <> show weight | (one, weight) <- NonEmpty.toList weighted]

-- | The largest size in bytes.
largestSize :: ValueSizes -> Int
largestSize = \case
  SizeFixed one -> one
  SizeRange _ to -> to
  SizeWeighted weighted -> maximum (fmap fst weighted)

-- | The block that values are cut from; immutable.
data Values = Values
  { valuesBlock :: ByteString,
    -- | The size of every value; negative if 'valuesLengths' decides.
    valuesSize :: Int,
    valuesLengths :: Lengths
  }

-- How 32 bits become a size.
data Lengths
  = Between Int Int
  | -- | The cumulative weights, as shares of 2^32, and the sizes.
    ByMark (PrimArray Word64) (PrimArray Int)

-- | Makes values from a seed, the sizes, and optionally the share of each value that compresses to
-- nothing; the rest of the value does not compress at all. Without that share, values are letters.
-- \(O(n)\) in the largest size.
newValues :: Word64 -> ValueSizes -> Maybe Double -> Values
newValues seed sizes compressible =
  Values
    { valuesBlock = block seed compressible (offsets + largestSize sizes),
      valuesSize = case sizes of
        SizeFixed one -> one
        _ -> -1,
      valuesLengths = case sizes of
        SizeFixed one -> Between one one
        SizeRange from to -> Between from to
        SizeWeighted weighted ->
          let (every, weights) = unzip (NonEmpty.toList weighted)
           in ByMark (primArrayFromList (sharesUpTo weights)) (primArrayFromList every)
    }

-- | The cumulative weights, as shares of 2^32.
sharesUpTo :: [Int] -> [Word64]
sharesUpTo weights =
  [fromInteger (upTo * 0x100000000 `div` max 1 total) | upTo <- drop 1 (scanl (+) 0 (map toInteger weights))]
  where
    total = sum (map toInteger weights)

-- | The value for a key's number. \(O(1)\), copies nothing.
valueOf :: Values -> Int -> ByteString
valueOf values number =
  Unsafe.unsafeTake length' (Unsafe.unsafeDrop offset (valuesBlock values))
  where
    offset = fromIntegral (word .&. (fromIntegral offsets - 1))
    word = mix (fromIntegral number)
    length'
      | valuesSize values >= 0 = valuesSize values
      | otherwise = lengthFrom (valuesLengths values) (upper word)
{-# INLINE valueOf #-}

lengthFrom :: Lengths -> Word64 -> Int
lengthFrom lengths bits = case lengths of
  Between from to -> from + below (to - from + 1) bits
  ByMark marks sizes ->
    let go place
          | place >= sizeofPrimArray marks - 1 || bits < indexPrimArray marks place =
            indexPrimArray sizes place
          | otherwise = go (place + 1)
     in go 0
{-# NOINLINE lengthFrom #-}

-- | Whether these bytes are the value for a key's number. \(O(n)\) in its size.
--
-- NOINLINE: the value is then compared in place, and not made first.
holds :: Values -> Int -> ByteString -> Bool
holds values number found = found == valueOf values number
{-# NOINLINE holds #-}

-- | The number of positions in the block at which a value may begin: few enough to stay in the
-- cache.
offsets :: Int
offsets = 4096

block :: Word64 -> Maybe Double -> Int -> ByteString
block seed compressible size' =
  fst (ByteString.unfoldrN size' next (0 :: Int, seed))
  where
    next (place, state) = Just (byte place (mix state), (place + 1, state + gamma))
    byte :: Int -> Word64 -> Word8
    byte place word = case compressible of
      Nothing -> 97 + fromIntegral (below 26 (upper word))
      Just share
        -- In stretches of 64 bytes, so that every value has its share.
        | fromIntegral (place .&. 63) < share * 64 -> 120
        | otherwise -> fromIntegral (word `shiftR` 56)
