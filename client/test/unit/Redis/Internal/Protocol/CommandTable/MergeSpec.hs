module Redis.Internal.Protocol.CommandTable.MergeSpec (spec) where

import Data.Either (isLeft)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Redis.Internal.Protocol.CommandTable.Merge
import Redis.Value (Value (..))
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Protocol.CommandTable.Merge" $ do
  it "adds what each node counts" $
    merge MergeSum (Integer 334 :| [Integer 327, Integer 339]) `shouldBe` Right (Integer 1000)

  it "takes the smallest or the largest, for each element of an array" $ do
    merge MergeMin (numbers [1, 5] :| [numbers [2, 3]]) `shouldBe` Right (numbers [1, 3])
    merge MergeMax (numbers [1, 5] :| [numbers [2, 3]]) `shouldBe` Right (numbers [2, 5])

  it "calls a script there that every node has" $
    merge MergeAnd (numbers [1, 1, 0] :| [numbers [1, 0, 0], numbers [1, 1, 0]]) `shouldBe` Right (numbers [1, 0, 0])

  it "joins truths of either protocol" $ do
    merge MergeAnd (Boolean True :| [Boolean False]) `shouldBe` Right (Boolean False)
    merge MergeOr (Boolean True :| [Boolean False]) `shouldBe` Right (Boolean True)
    merge MergeOr (numbers [0, 1] :| [numbers [0, 0]]) `shouldBe` Right (numbers [0, 1])

  it "keeps the first reply where all, or one, must succeed" $ do
    merge MergeAllSucceeded (BulkString "a" :| [BulkString "b"]) `shouldBe` Right (BulkString "a")
    merge MergeOneSucceeded (SimpleString "OK" :| []) `shouldBe` Right (SimpleString "OK")

  it "joins arrays, sets and maps" $ do
    merge MergeConcatenated (numbers [1, 2] :| [Array [], numbers [3]]) `shouldBe` Right (numbers [1, 2, 3])
    merge MergeConcatenated (Set [Integer 1] :| [Set [Integer 2]]) `shouldBe` Right (Set [Integer 1, Integer 2])
    merge MergeConcatenated (Map [(Integer 1, Integer 2)] :| [Map [(Integer 3, Null)]])
      `shouldBe` Right (Map [(Integer 1, Integer 2), (Integer 3, Null)])

  it "finds what one node has" $ do
    merge MergeFound (Null :| [BulkString "k", BulkString "l"]) `shouldBe` Right (BulkString "k")
    merge MergeFound (Null :| [Null]) `shouldBe` Right Null

  it "looks through attributes" $
    merge MergeSum (WithAttributes [] (Integer 1) :| [Integer 2]) `shouldBe` Right (Integer 3)

  describe "refuses" $ do
    it "a sum that no server could say" $ do
      merge MergeSum (Integer maxBound :| [Integer 1]) `shouldSatisfy` isLeft
      merge MergeSum (Integer minBound :| [Integer (-1)]) `shouldSatisfy` isLeft
    it "arrays of different lengths where it merges their elements" $
      merge MergeSum (numbers [1] :| [numbers [1, 2]]) `shouldSatisfy` isLeft
    it "numbers that are no truths" $
      [(one, other) | (one, other) <- [(2, 1), (1, 2), (0, -1)], not (isLeft (merge MergeAnd (Integer one :| [Integer other])))] `shouldBe` []
    it "arrays beside sets" $
      merge MergeConcatenated (Array [] :| [Set []]) `shouldSatisfy` isLeft
    it "a shape that does not fit, also from one node alone" $
      [ (how, shape)
        | how <- [MergeSum, MergeMin, MergeMax, MergeAnd, MergeOr, MergeConcatenated],
          shape <- [SimpleString "OK", BulkString "1", Null],
          not (isLeft (merge how (shape :| [])))
      ]
        `shouldBe` []

  it "needs every node but for what one node does for all" $
    filter oneIsEnough [minBound ..] `shouldBe` [MergeOneSucceeded]

  prop "does not add twice, or forget, any node's count" $
    forAll (NonEmpty.fromList <$> listOf1 (choose (-1000000, 1000000))) $ \counts ->
      merge MergeSum (Integer <$> counts) === Right (Integer (sum counts))

  prop "gives of arrays each element once, in the order of the nodes" $ \(NonEmpty arrays) ->
    merge MergeConcatenated (numbers <$> NonEmpty.fromList arrays) === Right (numbers (concat arrays))

  prop "gives the reply of a single node as it is" $
    forAll anyFitting $ \(how, reply) -> merge how (reply :| []) === Right reply

numbers :: [Int64] -> Value
numbers = Array . map Integer

anyFitting :: Gen (Merge, Value)
anyFitting = do
  how <- elements [minBound ..]
  reply <- case how of
    _ | how `elem` [MergeSum, MergeMin, MergeMax] -> oneof [Integer <$> arbitrary, numbers <$> arbitrary]
    _ | how `elem` [MergeAnd, MergeOr] -> oneof [Boolean <$> arbitrary, numbers <$> listOf (elements [0, 1])]
    MergeConcatenated -> elements [Array, Set] <*> (map Integer <$> arbitrary)
    _ -> oneof [pure Null, pure (SimpleString "OK"), numbers <$> arbitrary]
  pure (how, reply)
