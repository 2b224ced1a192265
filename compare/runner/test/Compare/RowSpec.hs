module Compare.RowSpec (spec) where

import Compare.Cell
import Compare.Row
import Data.Either (isLeft)
import Data.Map.Strict qualified as Map
import Fixture (cellOf)
import Fixture qualified
import Test.Hspec

spec :: Spec
spec = describe "what build.sh says" $ do
  it "is rows and absent rows, a line each" $ do
    let output = "{\"row\": \"a\", \"version\": \"1\", \"origin\": \"npm\", \"run\": [\"node\", \"a.js\"]}\n\n{\"row\": \"b\", \"absent\": \"no b\"}\n"
    case parseRows "folder" output of
      Right [Right found, Left absent] -> do
        (rowName found, rowRun found, rowFolder found) `shouldBe` ("a", ["node", "a.js"], "folder")
        (absentName absent, absentWhy absent) `shouldBe` ("b", "no b")
      other -> expectationFailure (show other)
  it "is refused when it is neither" $ do
    parseRows "folder" "{\"row\": \"a\"}" `shouldSatisfy` isLeft
    parseRows "folder" "Up to date" `shouldSatisfy` isLeft
  it "decides at which cells a row is measured" $ do
    let single = (Fixture.row "a" False) {rowCluster = False, rowStyles = [Wait]}
    rowCan (cellOf Wait 1) single `shouldBe` True
    rowCan (cellOf Batch 64) single `shouldBe` False
    rowCan (cellOf Wait 1) {cellPlace = Cluster} single `shouldBe` False
  it "is, of the variables that change a runtime, all that a row is started with" $ do
    let inherited = [("COMPlus_gcServer", "0"), ("DOTNET_TieredPGO", "0"), ("GHCRTS", "-N"), ("GOGC", "50"), ("PATH", "/bin")]
        declaring = (Fixture.row "a" False) {rowEnvironment = Map.fromList [("DOTNET_ReadyToRun", "0"), ("GOGC", "400")]}
    rowVariables (Fixture.row "a" False) inherited `shouldBe` [("PATH", "/bin")]
    rowVariables declaring inherited `shouldBe` [("DOTNET_ReadyToRun", "0"), ("GOGC", "400"), ("PATH", "/bin")]
  it "tells ours, StackExchange.Redis and the limit from the others" $
    map rowKind [Fixture.row "redis-client" False, Fixture.row "StackExchange.Redis 3.1" False, Fixture.row "hiredis" True, Fixture.row "x" False]
      `shouldBe` [Ours, StackExchange, Limit, Other]
