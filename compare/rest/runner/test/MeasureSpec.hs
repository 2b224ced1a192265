-- | The counts of wrk, and the reasons why a measurement is not used.
module MeasureSpec (spec) where

import Compare.Cell
import Compare.Load (Scenario (..))
import Compare.Measure (Wrk (..), judged, wrk)
import Compare.Service (Running (..))
import Data.Text (Text)
import Redis.TestKit.Wait (within)
import Support
import System.Exit (ExitCode (..))
import System.FilePath (takeDirectory, (</>))
import Test.Hspec

spec :: Case -> Spec
spec service = describe "measurement" $ do
  around_ (within 10) $ do
    it "may have one answer of 404 in a thousand, and not more" $ do
      problemsOf Mixed (failures 10 10) `shouldBe` []
      problemsOf Mixed (failures 11 11) `shouldBe` ["answers of 404: 11"]
    it "may have no other answer of an error, in the mix neither" $ do
      problemsOf Mixed (failures 11 10) `shouldBe` ["answers with a wrong status: 1"]
      problemsOf Listing (failures 1 0) `shouldBe` ["answers with a wrong status: 1"]
    it "says why a service had no better answer than 503" $
      judged (mix Listing) (failures 2 0) 0 0 Nothing ExitSuccess "unavailable: locked\nother\nunavailable: locked\n"
        `shouldBe` ["answers with a wrong status: 2", "503, warm-up included: 2 × locked"]

  -- The second run repeats the first one's addresses, which are refused, and its deletions, which
  -- find no user.
  around (withWorld service) $
    it "counts 404 in the mix apart from other errors" $ \world -> do
      let load = wrk (takeDirectory (takeDirectory (worldSqlFile world)) </> "wrk") [] (mix Mixed) (runningPort (worldRunning world)) 10001 "same" 1
      once <- load
      wrkStatusErrors once `shouldBe` wrkNotFound once
      twice <- load
      wrkNotFound twice `shouldSatisfy` (> 0)
      wrkStatusErrors twice `shouldSatisfy` (> wrkNotFound twice)

problemsOf :: Scenario -> Wrk -> [Text]
problemsOf scenario' summary = judged (mix scenario') summary 0 0 Nothing ExitSuccess ""

-- In the free layout wrk has two threads, whose counts are added.
mix :: Scenario -> Cell
mix scenario' = Cell {topology = Standalone, layout = Free, scenario = scenario', connections = 20, row = "haskell", iteration = 1}

-- Ten thousand requests, of which this many had an error status, and this many 404.
failures :: Int -> Int -> Wrk
failures errors notFound =
  Wrk {wrkRequests = 10000, wrkMicros = 1000000, wrkStatusErrors = errors, wrkNotFound = notFound, wrkSocketErrors = 0, wrkP50 = 1, wrkP99 = 2}
