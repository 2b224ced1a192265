module Tool.Bench.HistogramSpec (spec) where

import Data.List (sort)
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Histogram.Recorder

-- | Nanoseconds of all magnitudes, from one to years.
latency :: Gen Int
latency = do
  magnitude <- choose (0, 62 :: Int)
  choose (0, 2 ^ magnitude)

recordAll :: [Int] -> IO Histogram
recordAll values = do
  recorder <- newRecorder
  mapM_ (record recorder) values
  drain recorder

spec :: Spec
spec = describe "Tool.Bench.Histogram" $
  modifyMaxSuccess (const 300) $ do
    prop "answers any percentile within a thousandth of the sample of that rank" $
      forAll (listOf1 latency) $ \values -> forAll (choose (0, 100)) $ \percent ->
        let sorted = sort values
            size = length values
            rank = max 1 (min size (ceiling (percent * fromIntegral size / 100 - 1e-9)))
            answer = Histogram.percentile percent (Histogram.fromValues values)
         in case drop (rank - 1) sorted of
              exact : _ ->
                counterexample (show (exact, answer)) $
                  abs (toInteger answer - toInteger exact) * 1000 <= toInteger exact
              [] -> counterexample "no such rank" False

    prop "keeps count, mean and extremes exactly" $
      forAll (listOf1 (choose (0, 2 ^ (50 :: Int)))) $ \values -> do
        histogram <- recordAll values
        Histogram.count histogram `shouldBe` length values
        Histogram.minimumValue histogram `shouldBe` minimum values
        Histogram.maximumValue histogram `shouldBe` maximum values
        Histogram.mean histogram
          `shouldBe` fromInteger (sum (map toInteger values)) / fromIntegral (length values)

    prop "merges recorders into what one that saw everything would hold" $
      forAll (listOf (listOf (choose (0, 2 ^ (50 :: Int))))) $ \parts -> do
        merged <- mconcat <$> mapM recordAll parts
        together <- recordAll (concat parts)
        merged `shouldBe` together

    prop "records what the values themselves would give" $
      forAll (listOf (choose (0, 2 ^ (50 :: Int)))) $ \values -> do
        recordedThere <- recordAll values
        recordedThere `shouldBe` Histogram.fromValues values

    prop "puts every value in a bucket that begins at or below it and ends above" $
      forAll latency $ \value ->
        let bucket = Histogram.bucketOf value
         in Histogram.bucketLowest bucket <= value
              .&&. (value == maxBound || toInteger value < nextLowest bucket)

    it "has buckets without gaps, up to the largest number there is" $ do
      let last' = Histogram.bucketOf maxBound
      last' `shouldSatisfy` (< Histogram.rowCount * Histogram.bucketsPerRow)
      map (Histogram.bucketOf . Histogram.bucketLowest) [0 .. last'] `shouldBe` [0 .. last']

    it "does not clamp an hour" $ do
      let hour = 3600 * 1000000000 + 1
      histogram <- recordAll [1, hour]
      Histogram.maximumValue histogram `shouldBe` hour
      Histogram.percentile 100 histogram `shouldBe` hour
      Histogram.percentile 50 histogram `shouldBe` 1

    it "counts a clock that went backwards as nothing" $ do
      histogram <- recordAll [-5]
      (Histogram.count histogram, Histogram.maximumValue histogram) `shouldBe` (1, 0)

    it "answers 0 when it is empty" $ do
      histogram <- recordAll []
      histogram `shouldBe` mempty
      (Histogram.percentile 50 histogram, Histogram.minimumValue histogram) `shouldBe` (0, 0)

    prop "forgets nothing, and keeps nothing, when it is drained" $
      forAll (listOf (listOf (choose (0, 2 ^ (40 :: Int))))) $ \parts -> do
        recorder <- newRecorder
        drained <- mapM (\values -> mapM_ (record recorder) values >> drain recorder) parts
        drained `shouldBe` map Histogram.fromValues parts
        recorded recorder `shouldReturn` 0

    it "counts while it is being written to" $ do
      recorder <- newRecorder
      mapM_ (record recorder) [1 .. 5000]
      recorded recorder `shouldReturn` 5000
  where
    nextLowest bucket = toInteger (Histogram.bucketLowest bucket) + width bucket
    width bucket
      | bucket < 2 * Histogram.bucketsPerRow = 1
      | otherwise = 2 ^ (bucket `div` Histogram.bucketsPerRow - 1)
