module Lab.OptionsSpec (spec) where

import Data.List (isInfixOf)
import Lab.Differential.Table (Judged (..))
import Lab.Moving (MovingOptions (..))
import Lab.Options
import Lab.Options.Differential (DifferentialOptions (..))
import Lab.Options.Gate (GateOptions (..), defaultGate)
import Lab.Options.Suite (SuiteOptions (..))
import Test.Hspec
import Tool.Options.Output (Format (..), Outputs (..))

parse :: String -> Outcome
parse = parseArguments . words

rejected :: String -> String -> Expectation
rejected line part = case parse line of
  Reject message -> do
    message `shouldSatisfy` (part `isInfixOf`)
    lines message `shouldBe` [message]
  other -> expectationFailure ("accepted: " <> show other)

spec :: Spec
spec = describe "Lab.Options" $ do
  it "reads the options of each mode" $ do
    parse "suite --duration 2 --json out.json" `shouldBe` Run (Suite (SuiteOptions 2 (Outputs [(FormatJson, "out.json")])))
    parse "gate" `shouldBe` Run (Gate (GateOptions 1 15 (10, 60) "compare/peers/hiredis" Nothing))
    parse "gate" `shouldBe` Run (Gate defaultGate)
    parse "gate --duration 3 --iterations 5 --memory-short 1 --memory-long 2 --hiredis h --json x"
      `shouldBe` Run (Gate (GateOptions 3 5 (1, 2) "h" (Just "x")))
    parse "gate --render a.json b.json" `shouldBe` Run (Render ["a.json", "b.json"])
    parse "moving --rounds 2" `shouldBe` Run (Moving (MovingOptions 2 Nothing))
    case parse "differential --test get,incr --iterations 1 --counts-only" of
      Run (Differential options) -> (differentialTests options, differentialIterations options, differentialJudged options) `shouldBe` (["get", "incr"], 1, ByTheServer)
      other -> expectationFailure (show other)

  it "helps" $
    case parse "--help" of
      Help text -> text `shouldSatisfy` \shown -> all (`isInfixOf` shown) ["gate", "suite", "differential", "moving", "Exit codes"]
      other -> expectationFailure (show other)

  describe "says in one line what is wrong" $ do
    let cases =
          [ ("", "name a mode"),
            ("again", "again"),
            ("suite --batch 3", "--batch"),
            ("suite --duration 0", "--duration"),
            ("suite --json - --csv -", "only one form"),
            ("gate --memory-short 9 --memory-long 3", "--memory-long"),
            ("moving --rounds 0", "--rounds"),
            ("gate --iterations 0", "--iterations"),
            ("gate --json=", "--json needs a file"),
            ("gate --render", "FILE"),
            ("gate a.json", "for --render"),
            ("gate --render a.json --iterations 3", "no other options"),
            ("gate --duration soon", "not a number of seconds"),
            ("differential --test lrange_100", "there is no such test to compare"),
            ("differential --test get,get", "names a test twice"),
            ("differential --duration 0.1", "--duration must be from 0.5"),
            ("differential --duration NaN", "--duration must be from 0.5"),
            ("differential --pipeline 0", "--pipeline must be from 1"),
            ("differential --clients 18446744073709551617", "not above")
          ]
    mapM_ (\(line, part) -> it ("redis-client-lab " <> line) (rejected line part)) cases
