-- | Tests the services against their contract, and the program that compares them.
module Main (main) where

import AutocannonSpec qualified
import ContractSpec qualified
import DurabilitySpec qualified
import FactsSpec qualified
import FaultSpec qualified
import GoalsSpec qualified
import JsonSpec qualified
import LoadSpec qualified
import MeasureSpec qualified
import PlanSpec qualified
import ReportSpec qualified
import RunSpec qualified
import SpreadSpec qualified
import Support (Case (..), Kind (..), serviceCases)
import System.FilePath (takeDirectory)
import Test.Hspec
import Tool.Startup (useUtf8)

main :: IO ()
main = do
  useUtf8
  cases <- serviceCases
  let whole = filter ((== Whole) . caseKind) cases
  hspec $ do
    JsonSpec.spec
    ReportSpec.spec
    GoalsSpec.spec
    PlanSpec.spec
    AutocannonSpec.spec
    LoadSpec.spec
    FactsSpec.spec
    SpreadSpec.spec
    it "has a service to hold to it" (length cases `shouldSatisfy` (>= 2))
    describe "contract" (mapM_ ContractSpec.spec cases)
    mapM_ (RunSpec.spec . takeDirectory . takeDirectory . caseSqlFile) (take 1 cases)
    mapM_ MeasureSpec.spec (take 1 whole)
    describe "faults" (mapM_ FaultSpec.spec whole)
    describe "cluster" (mapM_ FaultSpec.clusterSpec cases)
    describe "durability" (mapM_ DurabilitySpec.spec whole)
