module Compare.PairSpec (spec) where

import Compare.Cell (Operation (..))
import Compare.Options (Mode (..), modeParser, modeProblem)
import Compare.Pair
import Compare.Pair.Results
import Compare.Row (Row (rowWarmup))
import Data.Aeson (Value (..), object, toJSON, (.=))
import Data.IORef (modifyIORef', newIORef, readIORef)
import Data.List (isInfixOf, isPrefixOf, nub, sort)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Fixture (row)
import Options.Applicative (defaultPrefs, execParserPure, getParseResult, info)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import Test.Hspec

spec :: Spec
spec = do
  describe "the comparison of two" $ do
    it "overwrites no result" . withSystemTempDirectory "pair" $ \folder -> do
      let output = folder </> "comparison.json"
          place = ["--compare", folder, "--output", output]
      writeFile output "[]"
      said <- newIORef []
      let announce line = modifyIORef' said (line :)
          measurements = [action | Just mode <- [parsed ("pair" : place), parsed ("sweep" : place)], action <- actions announce mode]
      codes <- sequence measurements
      codes `shouldBe` [ExitFailure 2, ExitFailure 2]
      readFile output `shouldReturn` "[]"
      readIORef said `shouldReturn` replicate 2 (output <> " is there already and is not overwritten; give another --output")
    it "has medians, and ratios to the fastest of each turn" $ do
      let one = head' (compared (pairs Set))
      comparedVersion one `shouldBe` "StackExchange.Redis 1.2.6"
      (comparedOurs one, comparedTheirs one) `shouldBe` ([300, 280, 260], [100, 200, 150])
      -- The other version is faster in the last turn.
      comparedRatios one `shouldBe` [3, 1.4, 1.3]
    it "keeps medians, and every turn" $
      comparedDocument (compared (pairs GetHit))
        `shouldBe` toJSON
          [ object
              [ "operation" .= ("get" :: Text),
                "se_redis_ops_per_sec" .= (150 :: Double),
                "se_redis_version" .= ("StackExchange.Redis 1.2.6" :: Text),
                "redis_client_ops_per_sec" .= (280 :: Double),
                "ratio_pct" .= (140 :: Double),
                "ratio_pct_turns" .= [300, 140, 130 :: Double],
                "turns"
                  .= Map.fromList
                    [ ("redis-client" :: Text, [300, 280, 260 :: Double]),
                      ("StackExchange.Redis 1.2.6", [100, 200, 150]),
                      ("StackExchange.Redis 3.4.35", [90, 100, 200])
                    ]
              ]
          ]
    it "shows the range of the turns" $
      last (comparedTable (compared (pairs Mixed))) `shouldSatisfy` \line -> all (`isInfixOf` line) ["150 (100..200)", "280 (260..300)", "140.0 (130.0..300.0)"]
    it "demands nine tenths of the fastest, by the median of the ratios" $ do
      let everywhere rates = concatMap (\operation -> rated operation "redis-client" rates <> rated operation "StackExchange.Redis 1.2.6" [100, 100, 100]) operations
          verdict = comparedVerdict . compared . everywhere
      verdict [91, 50, 91] `shouldBe` ExitSuccess
      verdict [89, 89, 500] `shouldBe` ExitFailure 1
    it "has no number of a row that failed in a turn" $ do
      let failed name = (((Set, name), Left "1 wrong") :) . filter ((/= (Set, name)) . fst)
          others = concatMap pairs operations
      comparedVersion (head' (compared (failed "StackExchange.Redis 1.2.6" others))) `shouldBe` "StackExchange.Redis 3.4.35"
      comparedVerdict (compared others) `shouldBe` ExitSuccess
      comparedVerdict (compared (failed "redis-client" others)) `shouldBe` ExitFailure 2
    it "takes five turns in six minutes" $
      minutes "pair" (concat (replicate 3 (row "redis-client" False : replicate 3 slow))) `shouldSatisfy` \time -> time > 5 && time < 6.5
    it "takes no fewer than one turn" $
      (parsed ["pair", "--iterations", "0"] >>= modeProblem) `shouldBe` Just "--iterations must be at least 1"
  describe "the sweep" $ do
    let order = sweepOrder 5
    it "measures 1 to 4096 callers on 1 to 8 connections, all of them in each turn" $ do
      map sort [nub (map pointCallers (order 0)), nub (map pointConnections (order 0))] `shouldBe` [[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096], [1, 2, 4, 8]]
      map (sort . order) [0 .. 4] `shouldBe` replicate 5 (sort (order 0))
      length (nub (order 0)) `shouldBe` 156
    it "begins each turn at another part of the grid" $ do
      let starts = map (head' . order) [0 .. 4]
      length (nub (map (\point -> (pointConnections point, pointCallers point)) starts)) `shouldBe` 5
    it "says of the best how often it was the fastest" $
      bestLines (Map.fromList [(Point Set 4 64, [5, 1, 5]), (Point Set 2 32, [4, 4, 4])])
        `shouldBe` ["best set: 4 connections, 64 threads: 5 (1..5)/s, the fastest in 2 of 3 turns"]
    it "warns if the best is at the edge of the grid, beyond which there may be a better one" $ do
      warnings (Map.fromList [(Point Set 4 4096, [2]), (Point Set 4 2048, [1])]) `shouldBe` ["warning: the best of set is at the edge of the grid: more threads may be faster still"]
      warnings (Map.fromList [(Point Mixed 8 64, [2])]) `shouldBe` ["warning: the best of mixed is at the edge of the grid: more connections may be faster still"]
      -- There are no fewer than one.
      warnings (Map.fromList [(Point Set 1 1, [2])]) `shouldBe` []
    it "keeps medians, and every turn" $
      sweptDocument (inEveryTurn [(Point GetHit 2 16, Right rate) | rate <- [3, 1, 2]])
        `shouldBe` toJSON [object ["operation" .= ("get" :: Text), "mux_count" .= (2 :: Int), "threads" .= (16 :: Int), "ops_per_sec" .= (2 :: Double), "turns" .= [3, 1, 2 :: Double]]]
    it "takes five turns in half an hour" $
      minutes "sweep" (replicate 156 (row "redis-client" False)) `shouldSatisfy` \time -> time > 24 && time < 30
  where
    actions announce = \case
      ComparePair options -> [comparePair announce (pure (const Null)) options]
      Sweep options -> [sweep announce (pure (const Null)) options]
      CompareClients _ -> []
    parsed words' = getParseResult (execParserPure defaultPrefs (info modeParser mempty) words')
    minutes mode rows = maximum (0 : [pairSeconds options rows / 60 | Just options <- [parsed [mode] >>= pairOptionsOf]])
    pairOptionsOf = \case
      ComparePair options -> Just options
      Sweep options -> Just options
      CompareClients _ -> Nothing
    slow = (row "StackExchange.Redis" False) {rowWarmup = 2.5}
    rated :: Operation -> Text -> [Double] -> [Rated (Operation, Text)]
    rated operation name = map ((,) (operation, name) . Right)
    pairs operation =
      rated operation "redis-client" [300, 280, 260]
        <> rated operation "StackExchange.Redis 1.2.6" [100, 200, 150]
        <> rated operation "StackExchange.Redis 3.4.35" [90, 100, 200]
    warnings :: Map Point [Double] -> [String]
    warnings = filter ("warning" `isPrefixOf`) . bestLines
    head' = \case
      first : _ -> first
      [] -> error "nothing"
