-- | The report, as text and in a real browser.
module Tool.Bench.HtmlSpec (spec) where

import Control.Concurrent.Async (mapConcurrently)
import Data.ByteString qualified as ByteString
import Data.ByteString.Lazy qualified as Lazy
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes)
import Data.Text.Lazy qualified as LazyText
import Data.Text.Lazy.Encoding qualified as LazyText
import Every (every)
import Sample
import System.Directory (findExecutable)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import System.Process (readProcessWithExitCode)
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (sample)
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Html
import WellFormed

shown :: Document -> String
shown = LazyText.unpack . LazyText.decodeUtf8 . report

spec :: Spec
spec = describe "Tool.Bench.Html" $ do
  modifyMaxSuccess (const 30) . prop "is well-formed whatever the document" $
    forAll (scale (min 12) anyDocument) $ \document -> do
      let html = shown document
      conjoin [malformed html === Nothing, counterexample html (not (any (`isInfixOf` html) ["NaN", "Infinity"]))]

  it "needs nothing but itself" $
    filter (`isInfixOf` shown richDocument) ["<script", "src=", "url(", "@import", "href=\"http", "<link", "<img"] `shouldBe` []

  it "shows every run with its charts, its tables, and where it was made" $ do
    let text = textOf (shown richDocument)
        wanted =
          [ "cell A",
            "cell B",
            "Throughput over time",
            "Latency over time",
            "Latency heat map",
            "Latency spectrum",
            "Server: processor",
            "Server: memory",
            "aof-rewrite",
            "127.0.0.1:7001",
            "p99.9",
            "By iteration",
            "Little&#39;s law",
            "CONFIG appendfsync",
            "the server counted the same: 1 800 GET, 800 SET",
            "Where it was measured",
            "a processor",
            "A note &lt;about&gt; all of it."
          ]
    filter (not . (`isInfixOf` text)) wanted `shouldBe` []

  it "says how long threads waited for a core as time and not as a share above the whole" $ do
    let waited = sample {runIterations = [sampleIteration {iterationTrust = noTrust {trustRunQueue = Just 2.15}}]}
        text = textOf (shown (sampleDocument [waited]))
    text `shouldSatisfy` isInfixOf "all its threads together waited for a core"
    text `shouldSatisfy` isInfixOf "2.15 s in each second"
    text `shouldSatisfy` not . isInfixOf "215.0 %"

  it "shows the generator's figures of all windows where they differ" $ do
    let window share steady = sampleIteration {iterationTrust = noTrust {trustCpuShare = Just share, trustSteady = Just steady}}
        text = textOf (shown (sampleDocument [sample {runIterations = [window 0.5 True, window 0.7 False]}]))
    text `shouldSatisfy` isInfixOf "50.0 % to 70.0 %"
    text `shouldSatisfy` isInfixOf "in 1 of 2 windows"

  it "takes threads times batch for what is in flight in a closed loop only" $ do
    let text = textOf (shown richDocument)
    text `shouldSatisfy` isInfixOf "1024 in flight (16 threads"
    text `shouldSatisfy` isInfixOf "at most 1024 in flight, 16 threads"

  it "says first that a run must not be used, and why" $ do
    let text = textOf (shown (sampleDocument [sample {runProblems = ["it lied"]}]))
    text `shouldSatisfy` isInfixOf "1 of 1 runs must not be used"
    text `shouldSatisfy` isInfixOf "cluster mixed: it lied"

  describe "in a browser" $ do
    it "fits a desk and a phone without a sideways scroll, light and dark, and asks nothing of the network" $
      withBrowser $ \browse -> do
        pages <- mapConcurrently (uncurry browse) [(1200, []), (800, []), (390, ["--blink-settings=preferredColorScheme=0"])]
        -- The results that the probe's script measured in the report.
        map fst pages
          `shouldBe` [ "wide=block narrow=none overflow=no cut=no errors=0 page=rgb(255, 255, 255)",
                       "wide=block narrow=none overflow=no cut=no errors=0 page=rgb(255, 255, 255)",
                       "wide=none narrow=block overflow=no cut=yes errors=0 page=rgb(18, 22, 30)"
                     ]
        -- The browser drew something: a blank picture of this size has a few kilobytes.
        map snd pages `shouldSatisfy` every (> 20000)

-- | A document with every column that a table can have, and all of them full.
wideDocument :: Document
wideDocument = richDocument {documentRuns = map widened (documentRuns richDocument)}
  where
    widened run =
      run
        { runName = "cluster 70:get,30:set tls at poisson 100000/s, " <> runName run,
          runIterations = map (\one -> one {iterationCommands = Map.mapWithKey counted (iterationCommands one), iterationErrors = Map.fromList [("ConnectionError", 123456)]}) (runIterations run)
        }
    counted name stats
      | name == "get" = stats {commandHits = 1234567, commandMisses = 123, commandErrors = Map.fromList [("ConnectionError", 123456)]}
      | otherwise = stats

-- | Gives the action a headless browser that opens the report in a window of some width, with
-- additional flags. It returns the measured results, and the size of its picture in bytes.
withBrowser :: ((Int -> [String] -> IO (String, Int)) -> IO a) -> IO a
withBrowser action = do
  found <- catMaybes <$> traverse findExecutable ["chromium", "chromium-browser", "google-chrome"]
  case found of
    [] -> fail "no Chromium: scripts/setup.sh installs it"
    browser : _ -> withSystemTempDirectory "report-spec" $ \folder -> do
      -- The report has no script, so the measuring script is appended to it.
      let file = folder </> "report.html"
      Lazy.writeFile file (report wideDocument <> probe)
      action $ \width special -> do
        let picture = folder </> ("picture-" <> show width <> ".png")
        (code, dom, problem) <-
          readProcessWithExitCode browser (flags folder width <> special <> ["--dump-dom", "--screenshot=" <> picture, "file://" <> file]) ""
        if code == ExitSuccess then pure () else fail ("the browser ended with " <> show code <> ": " <> problem)
        size <- ByteString.length <$> ByteString.readFile picture
        pure (measured dom, size)
  where
    flags folder width =
      [ "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        "--user-data-dir=" <> folder </> ("profile-" <> show width),
        "--window-size=" <> show (width :: Int) <> ",2000"
      ]
    measured dom = takeWhile (/= '"') (beyond "data-measured=\"" dom)
    beyond part text
      | null text = ""
      | part == take (length part) text = drop (length part) text
      | otherwise = beyond part (drop 1 text)
    probe =
      "<script>var e=0;addEventListener('error',function(){e++},true);addEventListener('load',function(){\
      \var r=document.documentElement,s=function(c){return getComputedStyle(document.querySelector(c)).display};\
      \var n=performance.getEntriesByType('resource').length;\
      \r.setAttribute('data-measured','wide='+s('.wide')+' narrow='+s('.narrow')+' overflow='+(r.scrollWidth>innerWidth?'yes':'no')+' cut='+([...document.querySelectorAll('.scroll')].some(function(t){return t.scrollWidth>t.clientWidth})?'yes':'no')+' errors='+(e+n)+' page='+getComputedStyle(document.body).backgroundColor)})</script>"
