-- | Workloads with real servers: every reply is what it must be, and the server counts what was
-- sent.
module Tool.Bench.Workload.RunSpec (spec) where

import Control.Monad (forM_)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Test.Hspec
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Private (withPrivate)
import Tool.Bench.Progress (silent)
import Tool.Bench.Run (measure)
import Tool.Bench.Workload
import Tool.Bench.Workload.Dataset (Shape (..), defaultShape)
import Tool.Bench.Workload.Keys (keyTemplate)
import Tool.Bench.Workload.Named (namedTests)
import Tool.Bench.Workload.Syntax (parse)
import Tool.Bench.Workload.Template
import Tool.Bench.Workload.Values
import Tool.Connect (Target)
import Tool.Options.Bench
import Tool.Options.Load (Check (..), Plan (..), Warmup (..), defaultPlan)

-- | Few keys, small values, a short time.
small :: Shape
small = defaultShape {shapeKeys = 500, shapeSizes = SizeFixed 20, shapeThreads = 4, shapeSubscribers = 3}

brief :: LoadOptions
brief = defaultLoad {loadPlan = defaultPlan {planWarmup = WarmupFor 0.05, planBrief = True, planAllowed = [Saturation]}, loadDuration = 0.1, loadThreads = 4, loadBatch = 8, loadKeys = 500}

ran :: Target -> Shape -> String -> IO Run
ran target shape written = do
  tasks <- either fail pure (parse mix written)
  workload <- either fail pure (makeWorkload Nothing shape tasks)
  measure silent target workload brief

-- | Checks that the run had no errors, and that the server's counts agree.
good :: Run -> Expectation
good run = do
  runErrors run `shouldBe` Map.empty
  case runAgreement run of
    Agrees _ -> pure ()
    other -> expectationFailure (show other)
  -- Whether a tenth of a second on a busy machine is enough to measure is not checked.
  filter ("GETs" `Text.isInfixOf`) (runProblems run) `shouldBe` []

standalone, cluster :: (Target -> IO ()) -> IO ()
standalone = withPrivate TargetStandalone False []
cluster = withPrivate TargetCluster False []

spec :: Spec
spec = describe "workloads, against real servers" $ do
  it "runs every named test: replies are right, and the server counts the same" $
    standalone $ \target -> forM_ namedTests $ \(name, _) -> ran target small name >>= good

  it "runs a weighted mix of tests and commands, each under its name" $
    standalone $ \target -> do
      run <- ran target small "70:get,20:set,10:'INCR counter:__rand_int__'"
      good run
      let counts = commandOps' <$> runCommands run
          share name = fromIntegral (Map.findWithDefault 0 name counts) / fromIntegral (max 1 (sum counts)) :: Double
      Map.keys counts `shouldBe` ["INCR counter:__rand_int__", "get", "set"]
      share "get" `shouldSatisfy` (\one -> abs (one - 0.7) < 0.1)

  aroundAll cluster . describe "in a cluster" $ do
    it "runs every named test" $ \target ->
      forM_ namedTests $ \(name, _) -> ran target small {shapeClustered = True} name >>= good

    it "runs commands of all three tools' syntaxes" $ \target ->
      forM_ commands $ \command -> ran target small {shapeClustered = True} ("'" <> command <> "'") >>= good

    it "does not compare the counts of commands that it sends in parts" $ \target ->
      forM_ ["MSET a:__rand_1st__ 1 b:__rand_1st__ 2", "DEL __key__ other"] $ \command -> do
        run <- ran target small {shapeClustered = True} ("'" <> command <> "'")
        runErrors run `shouldBe` Map.empty
        runAgreement run `shouldSatisfy` \case
          NotComparable _ -> True
          _ -> False

  it "finds as much as was asked for" $
    standalone $ \target -> do
      run <- ran target small {shapeHitRatio = Just 0.7} "get"
      good run
      -- The deviation by chance, for a machine so busy that there are few commands.
      let chance = 4 * sqrt (0.21 / fromIntegral (max 1 (runHits run + runMisses run)))
      runHitRatio run `shouldSatisfy` maybe False (\found -> abs (found - 0.7) < 0.02 + chance)

  it "lets keys expire if asked to" $
    standalone $ \target -> do
      run <- ran target small {shapeExpiry = Just (100, 200)} "1:set,1:get"
      good run

  it "names keys by a template and draws values of several sizes, and still knows them" $
    standalone $ \target -> do
      template <- either fail pure (parse keyTemplate "participant_{uuid}:{n}")
      sizes <- either fail pure (parse valueSizes "3:1,100:2,3k:1")
      run <- ran target small {shapeTemplate = template, shapeSizes = sizes, shapeCompressible = Just 0.5} "1:get,1:set,1:mget"
      good run

  it "does not compare the counts of scripts that it did not write" $
    standalone $ \target -> do
      run <- ran target small "'EVAL \"return redis.call(\\\"SET\\\", KEYS[1], 1)\" 1 __key__'"
      runErrors run `shouldBe` Map.empty
      runAgreement run `shouldSatisfy` \case
        NotComparable _ -> True
        _ -> False

  it "counts replies that are errors as errors" $
    standalone $ \target -> do
      run <- ran target small "'LPUSH __key__ 1'"
      runErrors run `shouldBe` Map.empty
      wrong <- ran target small "'INCR __key__'"
      Map.keys (runErrors wrong) `shouldBe` ["ReplyError WRONGTYPE" :: Text]
  where
    commands =
      [ "SET key:__rand_int__ __data__",
        "MSET {tag}:a __rand_1st__ {tag}:b __rand_1st__",
        "SET __key__ __data__ EX 100",
        "ZADD {key sequence 100} {rand 1000} {value 8}",
        "HSET h:{key zipfian 100} f {value 30}"
      ]
    commandOps' = Histogram.count . commandService
