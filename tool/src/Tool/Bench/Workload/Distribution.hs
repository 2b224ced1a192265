-- | How often each key is drawn. A distribution that is not even is drawn from by the alias method
-- (Walker 1974, Vose 1991): one look-up and one comparison in a table of one word per key.
module Tool.Bench.Workload.Distribution
  ( Distribution (..),
    distribution,
    describeDistribution,
    needsTable,
    mostInTable,
    weightOf,
    Chooser,
    newChooser,
    choose,
  )
where

import Control.Monad.ST (ST)
import Data.Bits (shiftL, shiftR, (.&.), (.|.))
import Data.Primitive.PrimArray
import Data.Word (Word64)
import Numeric (showFFloat)
import Tool.Bench.Workload.Random
import Tool.Bench.Workload.Syntax

-- | A distribution over the keys. A rank is a key's number, from zero, except for 'Latest'.
data Distribution
  = -- | All keys equally often.
    Uniform
  | -- | One key after the other, each thread from a different start.
    Sequential
  | -- | One key after the other, each thread in its own part of the keys.
    Disjoint
  | -- | Rank @r@ as often as @1/(r+1)^s@.
    Zipf Double
  | -- | A bell over the middle of the keys. The standard deviation is a share of their number.
    Gaussian Double
  | -- | The first share is that of the keys, the second that of the draws which they get.
    HotSet Double Double
  | -- | A zipf in which the last key has the first rank.
    Latest Double
  deriving stock (Eq, Show)

-- | Reads the form of the command line: @uniform@, @sequential@, @disjoint@,
-- @zipf[:EXPONENT]@, @gaussian[:SHARE]@, @hot:SHARE:SHARE@, @latest[:EXPONENT]@.
distribution :: Syntax Distribution
distribution = do
  word <- takeWhile' (`notElem` (":" :: String))
  case word of
    "uniform" -> pure Uniform
    "sequential" -> pure Sequential
    "disjoint" -> pure Disjoint
    "zipf" -> Zipf <$> optionally 0.99 exponent'
    "gaussian" -> Gaussian <$> optionally 0.1 share
    "hot" -> HotSet <$> optionally 0.2 share <*> optionally 0.8 share
    "latest" -> Latest <$> optionally 0.99 exponent'
    _ ->
      complain $
        "the distribution is uniform, sequential, disjoint, zipf, gaussian, hot or latest, not "
          <> (show word <> ";")
  where
    optionally standard syntax = text ":" >>= \more -> if more then syntax else pure standard
    exponent' = decimal "an exponent" >>= within (<= 20) "an exponent can be 20 at most,"
    share = decimal "a share" >>= within (\x -> x > 0 && x < 1) "a share is more than 0 and less than 1,"
    within good problem found = if good found then pure found else complain problem

-- | The text that 'distribution' reads.
describeDistribution :: Distribution -> String
describeDistribution = \case
  Uniform -> "uniform"
  Sequential -> "sequential"
  Disjoint -> "disjoint"
  Zipf exponent' -> "zipf:" <> shown exponent'
  Gaussian share -> "gaussian:" <> shown share
  HotSet keys draws -> "hot:" <> shown keys <> ":" <> shown draws
  Latest exponent' -> "latest:" <> shown exponent'
  where
    shown number = showFFloat Nothing number ""

-- | Whether the distribution needs a table with a word per key.
needsTable :: Distribution -> Bool
needsTable = (`notElem` [Uniform, Sequential, Disjoint])

-- | The largest number of keys of a table: 128 MB.
mostInTable :: Int
mostInTable = 16777216

-- | The weight of a key. Takes the number of keys and the number of the key.
weightOf :: Distribution -> Int -> Int -> Double
weightOf law count number = case law of
  Zipf exponent' -> fromIntegral (number + 1) ** negate exponent'
  Latest exponent' -> fromIntegral (count - number) ** negate exponent'
  Gaussian share ->
    let middle = fromIntegral (count - 1) / 2
        distance = abs (fromIntegral number - middle)
        -- The nearest keys have the weight 1. Of a narrow bell, all weights would be 0 otherwise.
        nearest = if odd count then 0 else 0.5
        width = share * fromIntegral count
     in exp (negate ((distance - nearest) * (distance + nearest)) / (2 * width * width))
  HotSet keys draws ->
    let hot = max 1 (min (count - 1) (round (keys * fromIntegral count))) :: Int
     in if count == 1
          then 1
          else
            if number < hot
              then draws / fromIntegral hot
              else (1 - draws) / fromIntegral (count - hot)
  _ -> 1

-- | A distribution that is ready for drawing.
data Chooser
  = ChooseEvenly Int
  | ChooseUnevenly Uneven

data Uneven
  = -- | The number of keys, and the number of threads that have a part each.
    InTurn Int Int
  | ByTable (PrimArray Word64)

-- | Prepares for these numbers of keys and threads. \(O(n)\) in the keys if a table is needed.
newChooser :: Distribution -> Int -> Int -> Chooser
newChooser law count threads = case law of
  Uniform -> ChooseEvenly count
  Sequential -> ChooseUnevenly (InTurn count 1)
  Disjoint -> ChooseUnevenly (InTurn count (max 1 (min threads count)))
  _ -> ChooseUnevenly (ByTable (aliasTable count (weightOf law count)))

-- | Draws a key's number, from the upper half of the stream's number if that is enough. \(O(1)\).
choose :: Chooser -> Stream -> IO Int
choose chooser stream = case chooser of
  ChooseEvenly count -> below count . upper <$> current stream
  ChooseUnevenly uneven -> chooseUnevenly uneven stream
{-# INLINE choose #-}

chooseUnevenly :: Uneven -> Stream -> IO Int
chooseUnevenly uneven stream = case uneven of
  InTurn count parts -> do
    drawn <- turn stream
    thread <- streamThread stream
    pure $
      if parts == 1
        then (start count thread + drawn) `rem` count
        else
          let part = thread `rem` parts
              from = part * count `quot` parts
              to = (part + 1) * count `quot` parts
           in from + drawn `rem` (to - from)
  ByTable table -> do
    -- New bits: the other half of the current ones chose the kind.
    word <- step stream
    let column = below (sizeofPrimArray table) (upper word)
        entry = indexPrimArray table column
    pure $ if lower word < entry `shiftR` 32 then column else fromIntegral (entry .&. 0xffffffff)
  where
    -- Threads begin far from each other: at multiples of the golden section.
    start count thread = below count (lower (fromIntegral thread * 0x9e3779b9))

-- Each word has the share of its column (of 2^32) that is its own, and the key that has the rest.
aliasTable :: Int -> (Int -> Double) -> PrimArray Word64
aliasTable count weight = runPrimArray $ do
  let total = sum (map weight [0 .. count - 1])
      scale = fromIntegral count / total
  shares <- newPrimArray count :: ST s (MutablePrimArray s Double)
  -- From the left the columns with less than their share, from the right those with more.
  work <- newPrimArray count :: ST s (MutablePrimArray s Int)
  table <- newPrimArray count
  let sort number little much
        | number == count = pure (little, much)
        | otherwise = do
          let share = weight number * scale
          writePrimArray shares number share
          writePrimArray table number (pack 1 number)
          if share < 1
            then writePrimArray work little number >> sort (number + 1) (little + 1) much
            else writePrimArray work (much - 1) number >> sort (number + 1) little (much - 1)
      pair little much
        | little == 0 || much == count = pure ()
        | otherwise = do
          small <- readPrimArray work (little - 1)
          large <- readPrimArray work much
          share <- readPrimArray shares small
          writePrimArray table small (pack share large)
          left <- subtract (1 - share) <$> readPrimArray shares large
          writePrimArray shares large left
          if left < 1
            then writePrimArray work (little - 1) large >> pair little (much + 1)
            else pair (little - 1) much
  (little, much) <- sort 0 0 count
  pair little much
  pure table
  where
    pack :: Double -> Int -> Word64
    pack share other =
      (min 0xffffffff (round (share * 4294967296)) `shiftL` 32) .|. fromIntegral other
