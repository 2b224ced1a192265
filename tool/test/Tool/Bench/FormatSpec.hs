-- | The output formats for other programs.
module Tool.Bench.FormatSpec (spec) where

import Data.Aeson (Value (..), decode)
import Data.Aeson.Key qualified as Key
import Data.Aeson.Types (parseMaybe, withObject, (.:))
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.List (isInfixOf, isPrefixOf, sort)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Lazy qualified as LazyText
import Data.Text.Lazy.Encoding qualified as LazyText
import Every (every)
import Sample
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (sample)
import Text.Read (readMaybe)
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Totals (runCommands)
import Tool.Bench.Format
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Histogram.Hdr qualified as Hdr
import Tool.Bench.RedisBenchmark (parseCsv)

linesOf :: Lazy.ByteString -> [String]
linesOf = map LazyText.unpack . LazyText.lines . LazyText.decodeUtf8

-- | A run of an open loop whose callers waited for five milliseconds.
waiting :: Run
waiting = sample {runIterations = [sampleIteration {iterationCommands = Map.map waited (iterationCommands sampleIteration)}]}
  where
    waited stats = stats {commandResponse = Just (Histogram.fromValues [5000000])}

spec :: Spec
spec = describe "the forms of results" $ do
  describe "CSV" $ do
    it "is read by whoever reads redis-benchmark's" $
      -- Only the heading and the run's own row: the commands have rows of their own.
      parseCsv (Lazy.toStrict (Lazy.unlines (take 2 (Lazy.lines (csv (sampleDocument [sample])))))) `shouldBe` Just (500, 0.5, 0.99)

    it "has the times that callers waited" $
      parseCsv (Lazy.toStrict (Lazy.unlines (take 2 (Lazy.lines (csv (sampleDocument [waiting])))))) `shouldBe` Just (500, 5, 5)

    it "has a row for the run and one for each of its commands" $
      map (takeWhile (/= ',')) (linesOf (csv (sampleDocument [sample])))
        `shouldBe` ["\"test\"", "\"cluster mixed\"", "\"cluster mixed GET\"", "\"cluster mixed SET\""]

    it "quotes what would break a row" $
      map (take 16) (drop 1 (linesOf (csv (sampleDocument [sample {runName = "a,\"b\"", runIterations = []}]))))
        `shouldBe` ["\"a,\"\"b\"\"\",\"0.00\""]

  describe "--compat" $ do
    it "writes the four keys" $
      (decode (seedJson (sampleDocument [sample])) :: Maybe [Map.Map Text Value])
        `shouldBe` Just
          [Map.fromList [("operation", "mixed"), ("ops_per_sec", Number 500), ("duration_sec", Number 2), ("total_ops", Number 1000)]]

    it "writes what memtier's readers look for" $ do
      let field name = parseMaybe (withObject "object" (.: Key.fromText name)) :: Value -> Maybe Value
          found = decode (memtierJson (sampleDocument [sample])) >>= field "ALL STATS"
      (found >>= field "Totals" >>= field "Ops/sec") `shouldBe` Just (Number 500)
      (found >>= field "Gets" >>= field "Percentile Latencies" >>= field "p99.00") `shouldBe` Just (Number 0.792064)
      (found >>= field "Sets" >>= field "Hits/sec") `shouldBe` Just (Number 0)
      -- The times that callers waited, at the same rate.
      let open = decode (memtierJson (sampleDocument [waiting])) >>= field "ALL STATS"
      (open >>= field "Gets" >>= field "Percentile Latencies" >>= field "p99.00") `shouldBe` Just (Number 5)
      (open >>= field "Gets" >>= field "Ops/sec") `shouldBe` Just (Number 400)
      -- Merged windows: also of the time that all have in common.
      let merged = sample {runIterations = [one {iterationCommon = Just (Common 1 900)} | one <- runIterations sample]}
          rates = decode (memtierJson (sampleDocument [merged])) >>= field "ALL STATS" >>= field "Gets"
          found' = [rates >>= field name | name <- ["Ops/sec", "Hits/sec"]]
      found' `shouldBe` replicate 2 (Just (Number 720))

  describe "HDR logs" $ do
    modifyMaxSuccess (const 30) . prop "give back every count that went in" $
      forAll (scale (min 12) anyDocument) $ \document -> do
        let content = LazyText.toStrict (LazyText.decodeUtf8 (hdrLog document))
            whole histograms = Histogram.buckets (mconcat histograms)
            intervals = concat [interval iteration | run <- documentRuns document, iteration <- runIterations run]
            interval iteration = case iterationSeries iteration of
              [] -> concat [commandService stats : maybe [] pure (commandResponse stats) | stats <- Map.elems (iterationCommands iteration)]
              slices -> concat [sliceService stats : maybe [] pure (sliceResponse stats) | slice <- slices, stats <- Map.elems (sliceCommands slice)]
        fmap (whole . Map.elems) (hdrLogHistograms content) === Right (whole intervals)

    it "tag each interval and time it from the first" $ do
      let rows = filter ("Tag=" `isPrefixOf`) (linesOf (hdrLog richDocument))
      length rows `shouldBe` 2 * 20 * 2 + 2 * 20 * 4
      take 1 rows `shouldSatisfy` every ("Tag=cell_A/get/service,0.000,1.000,0.500,HISTFAAA" `isPrefixOf`)
      rows `shouldSatisfy` any ("Tag=cell_B/set/response,44.000,1.000," `isPrefixOf`)

    it "are refused with the line that is wrong" $ do
      hdrLogHistograms "#x\n0.0,1.0,2.0,nonsense\n" `shouldSatisfy` either ("line 2: " `isPrefixOf`) (const False)
      hdrLogHistograms "1,2\n" `shouldBe` Left "line 1: has not the fields of an interval"
      fmap Map.size (hdrLogHistograms "0.000,0.617,26.083,HISTFAAAADR42pNpmSzMwMAgygABTFCaEUz8///f/gNE4LYcUyszkzaTJVMxkzUTNxMTO1MuEwD7aAiy\n") `shouldBe` Right 1

  it "tables of percentiles rise to the maximum and count everything" $ do
    let histogram = Histogram.fromValues (map (* 1000) [1 .. 1000])
        table = map words (linesOf (hgrm histogram))
        rows = [(value, quantile, held) | [value, quantile, held] <- map (take 3) table, Just _ <- [readMaybe value :: Maybe Double]]
        numbers = mapMaybe (\(value, _, _) -> readMaybe value) rows :: [Double]
    numbers `shouldBe` sort numbers
    [held | (_, "1.000000000000", held) <- rows] `shouldBe` ["1000"]
    [(round (value * 1000) :: Int) | (text, "0.500000000000", _) <- rows, Just value <- [readMaybe text :: Maybe Double]] `shouldBe` [500]
    map fst (hgrmFiles (sampleDocument [sample])) `shouldBe` [".cluster-mixed.get.hgrm", ".cluster-mixed.set.hgrm"]
    Lazy.length (hgrm mempty) `shouldSatisfy` (> 0)

  describe "Prometheus" $ do
    let shown = linesOf (prometheus (sampleDocument [sample {runName = "a \"b\" \\ c\nd"}]))
    it "names units, escapes labels, and explains each metric once" $ do
      shown `shouldContain` ["redis_client_bench_ops_per_second{run=\"a \\\"b\\\" \\\\ c\\nd\",operation=\"mixed\"} 500"]
      filter ("# TYPE redis_client_bench_service_seconds" `isPrefixOf`) shown `shouldBe` ["# TYPE redis_client_bench_service_seconds histogram"]
      filter ("response_seconds" `isInfixOf`) shown `shouldBe` []

    it "counts in buckets that rise to the whole" $ do
      let buckets = [line | line <- shown, "service_seconds_bucket" `isInfixOf` line, "command=\"get\"" `isInfixOf` line]
          counts = mapMaybe (readMaybe . reverse . takeWhile (/= ' ') . reverse) buckets :: [Int]
      counts `shouldBe` sort counts
      reverse counts `shouldSatisfy` (== [800]) . take 1
      map (reverse . takeWhile (/= ' ') . reverse) (filter ("le=\"5.0e-4\"" `isInfixOf`) buckets) `shouldBe` ["500"]

  it "are all written for a document with nothing in it" $ do
    let empty = sampleDocument []
    map (Lazy.null . ($ empty)) [csv, seedJson, memtierJson, hdrLog] `shouldBe` [False, False, False, False]
    map (Text.unpack . fst) (Map.toList (foldMap runCommands (documentRuns empty))) `shouldBe` []
    Char8.null (Lazy.toStrict (prometheus empty)) `shouldBe` True

-- All intervals of a log, merged by tag. Intervals without a tag are under the empty name. The
-- error names the line that cannot be read.
hdrLogHistograms :: Text -> Either String (Map Text Histogram)
hdrLogHistograms content =
  Map.fromListWith (<>) . concat <$> traverse line (zip [1 :: Int ..] (Text.lines content))
  where
    line (number, text)
      | Text.null (Text.strip text) || any (`Text.isPrefixOf` text) ["#", "\""] = Right []
      | otherwise = case Text.splitOn "," (Text.strip text) of
        [start, long, most, coded] -> one "" [start, long, most] coded
        [tagged, start, long, most, coded]
          | Just name <- Text.stripPrefix "Tag=" tagged ->
            one name [start, long, most] coded
        _ -> bad "has not the fields of an interval"
      where
        one name numbers coded
          | any (null . (readMaybe :: String -> Maybe Double) . Text.unpack) numbers =
            bad "has a time that is no number"
          | otherwise = either bad (\histogram -> Right [(name, histogram)]) (Hdr.decodeText coded)
        bad problem = Left ("line " <> show number <> ": " <> problem)
