module Redis.Internal.Protocol.CommandTable.AggregationSpec (spec) where

import Data.Either (isLeft)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Redis.Internal.Protocol.CommandTable.Aggregation
import Redis.Value (Value (..))
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Protocol.CommandTable.Aggregation" $ do
  it "adds what each node counts" $
    aggregate AggSum (Integer 334 :| [Integer 327, Integer 339]) `shouldBe` Right (Integer 1000)

  it "takes the smallest or the largest, for each element of an array" $ do
    aggregate AggMin (numbers [1, 5] :| [numbers [2, 3]]) `shouldBe` Right (numbers [1, 3])
    aggregate AggMax (numbers [1, 5] :| [numbers [2, 3]]) `shouldBe` Right (numbers [2, 5])

  it "calls a script there that every node has" $
    aggregate AggAnd (numbers [1, 1, 0] :| [numbers [1, 0, 0], numbers [1, 1, 0]]) `shouldBe` Right (numbers [1, 0, 0])

  it "joins truths of either protocol" $ do
    aggregate AggAnd (Boolean True :| [Boolean False]) `shouldBe` Right (Boolean False)
    aggregate AggOr (Boolean True :| [Boolean False]) `shouldBe` Right (Boolean True)
    aggregate AggOr (numbers [0, 1] :| [numbers [0, 0]]) `shouldBe` Right (numbers [0, 1])

  it "keeps the first reply where all, or one, must succeed" $ do
    aggregate AggAllSucceeded (BulkString "a" :| [BulkString "b"]) `shouldBe` Right (BulkString "a")
    aggregate AggOneSucceeded (SimpleString "OK" :| []) `shouldBe` Right (SimpleString "OK")

  it "joins arrays, sets and maps" $ do
    aggregate AggConcatenated (numbers [1, 2] :| [Array [], numbers [3]]) `shouldBe` Right (numbers [1, 2, 3])
    aggregate AggConcatenated (Set [Integer 1] :| [Set [Integer 2]]) `shouldBe` Right (Set [Integer 1, Integer 2])
    aggregate AggConcatenated (Map [(Integer 1, Integer 2)] :| [Map [(Integer 3, Null)]])
      `shouldBe` Right (Map [(Integer 1, Integer 2), (Integer 3, Null)])

  it "finds what one node has" $ do
    aggregate AggFirstFound (Null :| [BulkString "k", BulkString "l"]) `shouldBe` Right (BulkString "k")
    aggregate AggFirstFound (Null :| [Null]) `shouldBe` Right Null

  it "looks through attributes" $
    aggregate AggSum (WithAttributes [] (Integer 1) :| [Integer 2]) `shouldBe` Right (Integer 3)

  describe "refuses" $ do
    it "a sum that no server could say" $ do
      aggregate AggSum (Integer maxBound :| [Integer 1]) `shouldSatisfy` isLeft
      aggregate AggSum (Integer minBound :| [Integer (-1)]) `shouldSatisfy` isLeft
    it "arrays of different lengths where it merges their elements" $
      aggregate AggSum (numbers [1] :| [numbers [1, 2]]) `shouldSatisfy` isLeft
    it "numbers that are no truths" $
      [(one, other) | (one, other) <- [(2, 1), (1, 2), (0, -1)], not (isLeft (aggregate AggAnd (Integer one :| [Integer other])))] `shouldBe` []
    it "arrays beside sets" $
      aggregate AggConcatenated (Array [] :| [Set []]) `shouldSatisfy` isLeft
    it "a shape that does not fit, also from one node alone" $
      [ (how, shape)
        | how <- [AggSum, AggMin, AggMax, AggAnd, AggOr, AggConcatenated],
          shape <- [SimpleString "OK", BulkString "1", Null],
          not (isLeft (aggregate how (shape :| [])))
      ]
        `shouldBe` []

  it "needs every node but for what one node does for all" $
    filter oneIsEnough [minBound ..] `shouldBe` [AggOneSucceeded]

  prop "does not add twice, or forget, any node's count" $
    forAll (NonEmpty.fromList <$> listOf1 (choose (-1000000, 1000000))) $ \counts ->
      aggregate AggSum (Integer <$> counts) === Right (Integer (sum counts))

  prop "gives of arrays each element once, in the order of the nodes" $ \(NonEmpty arrays) ->
    aggregate AggConcatenated (numbers <$> NonEmpty.fromList arrays) === Right (numbers (concat arrays))

  prop "gives the reply of a single node as it is" $
    forAll anyFitting $ \(how, reply) -> aggregate how (reply :| []) === Right reply

numbers :: [Int64] -> Value
numbers = Array . map Integer

anyFitting :: Gen (Aggregation, Value)
anyFitting = do
  how <- elements [minBound ..]
  reply <- case how of
    _ | how `elem` [AggSum, AggMin, AggMax] -> oneof [Integer <$> arbitrary, numbers <$> arbitrary]
    _ | how `elem` [AggAnd, AggOr] -> oneof [Boolean <$> arbitrary, numbers <$> listOf (elements [0, 1])]
    AggConcatenated -> elements [Array, Set] <*> (map Integer <$> arbitrary)
    _ -> oneof [pure Null, pure (SimpleString "OK"), numbers <$> arbitrary]
  pure (how, reply)
