module Tool.Bench.Document.ConsistencySpec (spec) where

import Data.Aeson (Value (..), toJSON)
import Data.Aeson.Key qualified as Key
import Data.Aeson.KeyMap qualified as KeyMap
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Sample
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck hiding (sample)
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Json (checked, contradictions, documentValue)

-- | The problems found in a document in which one field was changed after it was written.
found :: [Text] -> (Value -> Value) -> Document -> [Text]
found path change document = concatMap runProblems (documentRuns (checked (changed path (documentValue document)) document))
  where
    changed fields value = case (fields, value) of
      ([], _) -> change value
      (name : rest, Object whole) -> Object (KeyMap.fromList [(key, if key == Key.fromText name then changed rest one else one) | (key, one) <- KeyMap.toList whole])
      (_, Array several) -> Array (fmap (changed fields) several)
      _ -> value

double :: Value -> Value
double = \case
  Number number -> Number (2 * number)
  other -> other

says :: [Text] -> Text -> Expectation
says problems part = case problems of
  [line] -> line `shouldSatisfy` (part `Text.isInfixOf`)
  _ -> expectationFailure (show problems)

spec :: Spec
spec = describe "the numbers of a document" $ do
  it "agree in what is measured" $ do
    found [] id (sampleDocument [sample]) `shouldBe` []
    found [] id richDocument `shouldBe` []

  prop "agree in what follows from the rest, in any document" $
    forAll anyDocument $ \document ->
      let read' = checked (documentValue document) document
       in counterexample (show (map runProblems (documentRuns read'))) $
            not (any (any ("follows from" `Text.isInfixOf`) . runProblems) (documentRuns read'))

  it "do not agree where the rate was doubled" $ do
    found ["runs", "ops_per_sec"] double (sampleDocument [sample])
      `says` "its numbers do not agree: ops_per_sec is 1000, but 500 follows from the rest"
    found ["runs", "iterations", "ops_per_sec"] double (sampleDocument [sample]) `says` "iterations.0.ops_per_sec is 1000, but 500"

  it "do not agree where a total, a percentile, a count or the verdict was changed" $ do
    found ["runs", "total_ops"] double (sampleDocument [sample]) `says` "total_ops is 2000, but 1000"
    found ["runs", "latency_ns", "p99"] (const (toJSON (1 :: Int))) (sampleDocument [sample]) `says` "latency_ns.p99 is 1, but"
    found ["runs", "iterations", "commands", "get", "service_ns", "count"] double (sampleDocument [sample]) `says` "commands.get.service_ns.count is 1600, but 800"
    found ["runs", "error_count"] (const (toJSON (7 :: Int))) (sampleDocument [sample]) `says` "error_count is 7, but 0"
    found ["runs", "hit_ratio"] (const Null) (sampleDocument [sample]) `says` "hit_ratio is null, but 1"
    found ["runs", "valid"] (const (Bool True)) (sampleDocument [sample {runProblems = ["it lied"]}]) `shouldSatisfy` any ("valid is true, but false" `Text.isInfixOf`)

  it "agree where they were only rounded" $
    found ["runs", "latency_ns", "mean"] (const (toJSON (500500.0001 :: Double))) (sampleDocument [sample]) `shouldBe` []

  it "are not all there in the file of another version, which is no contradiction" $
    found ["runs"] (\case Array runs -> Array (fmap without runs); other -> other) (sampleDocument [sample]) `shouldBe` []

  it "say at most three things, and how many more there are" $
    found ["runs", "iterations", "commands", "get", "service_ns"] (\case Object fields -> Object (fmap double fields); other -> other) (sampleDocument [sample]) `says` "; and "

  it "cannot be more hits than commands, nor other slices than the window, nor failures without a problem" $ do
    let in' change = sample {runIterations = [change sampleIteration]}
        slice = Slice {sliceAt = 0, sliceSpan = 2, sliceCommands = Map.map (\stats -> SliceStats (commandService stats) Nothing 0) (iterationCommands sampleIteration)}
    contradictions (in' (\one -> one {iterationCommands = Map.adjust (\stats -> stats {commandMisses = 2000}) "get" (iterationCommands one)}))
      `says` "get has 2800 hits and misses of 800 commands"
    -- The last command may just have been counted when the window ended.
    contradictions (in' (\one -> one {iterationCommands = Map.adjust (\stats -> stats {commandMisses = 1}) "get" (iterationCommands one)})) `shouldBe` []
    contradictions (in' (\one -> one {iterationSeries = [slice]})) `shouldBe` []
    contradictions (in' (\one -> one {iterationSeries = [slice {sliceSpan = 1}]})) `says` "the slices last 1.000 s, the window 2.000 s"
    contradictions (in' (\one -> one {iterationSeries = [slice {sliceCommands = Map.delete "set" (sliceCommands slice)}]}))
      `says` "set has 200 commands in the window and 0 in its slices"
    contradictions (in' (\one -> one {iterationErrors = Map.fromList [("Timeout", 1)]})) `says` "problems is empty"
    contradictions (in' (\one -> one {iterationAgreement = reversedAgreement})) `says` "problems is empty"
  where
    without = \case
      Object fields -> Object (KeyMap.delete "latency_ns" (KeyMap.delete "ops_per_sec" fields))
      other -> other
