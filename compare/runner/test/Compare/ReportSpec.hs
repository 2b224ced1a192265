module Compare.ReportSpec (spec) where

import Compare.Cell
import Compare.Document
import Compare.Goals
import Compare.Report.Figures
import Compare.Report.Html
import Compare.Report.Markdown
import Compare.Row
import Compare.Sample
import Data.Aeson (eitherDecode, encode, object, (.=))
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.Text qualified as Text
import Fixture
import System.Directory (listDirectory)
import System.FilePath ((</>))
import System.IO (IOMode (ReadMode), withFile)
import System.IO.Temp (withSystemTempDirectory)
import Test.Hspec

spec :: Spec
spec = describe "reports" $ do
  let cell = cellOf Wait 16
      document =
        (documentOf [row "redis-client" False, row "faster" False] (concat [[sample "redis-client" cell each 100000 900, sample "faster" cell each 200000 800] | each <- [0, 1]]))
          { documentAbsent = [Absent {absentName = "gone", absentWhy = "install <gone>"}]
          }
  it "name every loss" $
    losses document `shouldBe` ["standalone, GET hit 512 B, 16 waiting: faster has 200.0 k/s, redis-client 0.50 of it"]
  it "tell cells with other keys or connections from the usual ones" $ do
    let other = cell {cellCommon = defaultCommon {commonKeySize = 512, commonConnections = 4}}
        both = document {documentSamples = documentSamples document <> [one {sampleCell = other} | one <- documentSamples document]}
        title = "standalone, GET hit 512 B, 16 waiting"
    filter (("## " <> title) `Text.isPrefixOf`) (Text.lines (markdown [] both)) `shouldBe` ["## " <> title, "## " <> title <> ", keys of 512 B, 4 connections"]
    Lazy.unpack (html [] both) `shouldContain` "standalone, GET hit 512 B, keys of 512 B, 4 connections"
  it "name what is not there" $ do
    missing document `shouldBe` ["gone: install <gone>"]
    Text.unpack (markdown [] document) `shouldContain` "gone: install <gone>"
  it "have missed goals before those that were reached" $ do
    let beside = documentOf [row "redis-client" False, row "StackExchange.Redis 1.2.6" False] [sample "redis-client" cell 0 100000 900, sample "StackExchange.Redis 1.2.6" cell 0 200000 800]
        text = Text.unpack (markdown (judge [cell] beside) beside)
    text `shouldContain` "- MISSED"
    -- The page begins with its charts, and only the verdict is red.
    let (begin, rest) = Text.breakOn "<svg" (Text.pack (Lazy.unpack (html (judge [cell] beside) beside)))
    begin `shouldSatisfy` not . ("class=\"bad\"" `Text.isInfixOf`)
    rest `shouldSatisfy` ("<span class=\"bad\">MISSED</span>" `Text.isInfixOf`)
    text `shouldContain` "| **redis-client** | **100.0 k/s** |"
  it "say how long each row was warmed up" $ do
    let rows = [row "redis-client" False, (row "faster" False) {rowWarmup = 2.5}]
        settings = map (last . Text.splitOn " | ") . filter (" | a runtime | " `Text.isInfixOf`) . Text.lines
    settings (markdown [] document {documentRows = rows}) `shouldBe` ["warm-up 1.0 s; a note |", "warm-up 2.5 s; a note |"]
  it "show what a command cost the servers, and a dash where that is not known" $ do
    let costing = document {documentSamples = [one {sampleServerCpuPerOp = Just 1250} | one <- documentSamples document]}
        ours = filter ("| **redis-client**" `Text.isPrefixOf`) . Text.lines . markdown []
    map (take 2 . drop 5 . Text.splitOn " | ") (ours costing) `shouldBe` [["1.25", "1.00"]]
    map (take 2 . drop 5 . Text.splitOn " | ") (ours document) `shouldBe` [["-", "1.00"]]
  it "escape what goes into the page, which asks for nothing from elsewhere" $ do
    let page = Lazy.unpack (html [] document)
    page `shouldContain` "install &lt;gone&gt;"
    page `shouldContain` "<svg"
    page `shouldNotContain` "<script"
    page `shouldNotContain` "src="
  it "leave out a row that was wrong once, and say why" $ do
    let wrong = (sample "faster" cell 2 300000 800) {sampleProblems = ["1 replies were wrong"]}
        spoilt = document {documentSamples = wrong : documentSamples document}
    map lineRow (cellLines spoilt cell) `shouldBe` ["redis-client"]
    invalidities spoilt `shouldBe` ["faster, standalone, GET hit 512 B, 16 waiting: 1 replies were wrong"]
  it "can be made from what was written, and a later piece is added behind" $
    case eitherDecode (encode document) of
      Left problem -> expectationFailure problem
      Right again -> do
        documentSamples again `shouldBe` documentSamples document
        let both = merge again document
        map sampleIteration (validSamples both "faster" cell) `shouldBe` [0, 1, 2, 3]
  it "take no later piece that was measured in another way" $ do
    mergeProblem (Window 1 2) (object []) document `shouldBe` Nothing
    mergeProblem (Window 1 2) (object ["revision" .= Text.pack "abc"]) document
      `shouldBe` Just "the results that are there are of no known revision, these would be of abc; give another --output"
    mergeProblem (Window 1 0.5) (object []) document
      `shouldBe` Just "the results that are there are of 2.0 s after 1.0 s of warm-up, these would be of 0.5 s after 1.0 s of warm-up; give another --output"
  it "replace what was written only when all of the new is there" . withSystemTempDirectory "report" $ \folder -> do
    let file = folder </> "raw.json"
    writeDocument file document
    -- Of the old file, which is open meanwhile, nothing is overwritten.
    text <- withFile file ReadMode $ \handle -> do
      writeDocument file document {documentSamples = []}
      Char8.hGetContents handle
    text `shouldBe` Lazy.toStrict (encode document)
    fmap documentSamples <$> readDocument file `shouldReturn` Right []
    listDirectory folder `shouldReturn` ["raw.json"]
