-- | The mode @bench campaign@, as a process, with real servers.
module Tool.CampaignSpec (spec) where

import Control.Monad (forM_)
import Data.Aeson (Object, Value (..), decodeStrict', encode)
import Data.Aeson.KeyMap qualified as KeyMap
import Data.ByteString qualified as ByteString
import Data.ByteString.Lazy qualified as Lazy
import Data.List (intercalate, isInfixOf, sort)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Text qualified as Text
import Every (every)
import Redis.TestKit.Wait (eventually)
import System.Directory (createDirectory, createDirectoryIfMissing, createFileLink, doesFileExist, findExecutable, getModificationTime, listDirectory, removeFile)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO (IOMode (WriteMode), withFile)
import System.IO.Temp (withSystemTempDirectory)
import System.Posix.Signals (sigTERM, signalProcess)
import System.Process
import Test.Hspec
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Json (decodeDocument, documentValue)
import Tool.Bench.Document.Totals (runOps)
import Tool.Bench.RedisBenchmark (ReferenceLoad (..))
import Tool.Campaign.Workload (benchArguments, carriesValue, findWorkload, workloadName, workloadReference, workloads)
import Tool.ProgramSpec (oneLine, program, run')

-- | A short campaign of two cells, once. The servers' files are in one folder, the results in
-- another. A machine that does other work meanwhile may keep threads from running; these tests do
-- not check for that.
small :: FilePath -> [String]
small folder = smallBut folder []

-- | Like 'small', with some options changed.
smallBut :: FilePath -> [(String, String)] -> [String]
smallBut folder changes =
  ["bench", "campaign", "--allow", "saturation,little"] <> concat [[name, value] | (name, value) <- Map.toList (Map.union (Map.fromList changes) usual)]
  where
    usual =
      Map.fromList
        [ ("--workloads", "set"),
          ("--payload", "3"),
          ("--clients", "10"),
          ("--net", "local"),
          ("--persist", "none,aof-always"),
          ("--iterations", "1"),
          ("--duration", "0.3s"),
          ("--warmup", "0.1s"),
          ("--keys", "500"),
          ("--durability", "0.2s"),
          ("--dir", "files=" <> (folder </> "files")),
          ("--out", folder </> "out")
        ]

inFolder :: (FilePath -> IO a) -> IO a
inFolder action = withSystemTempDirectory "campaign-spec" $ \folder -> do
  createDirectory (folder </> "files")
  action folder

-- | Changes all runs of a document.
inRuns :: (Object -> Object) -> Value -> Value
inRuns change = \case
  Object fields | Just (Array runs) <- KeyMap.lookup "runs" fields -> Object (KeyMap.insert "runs" (Array (each <$> runs)) fields)
  other -> other
  where
    each = \case
      Object fields -> Object (change fields)
      other -> other

readDocument :: FilePath -> IO Document
readDocument file = ByteString.readFile file >>= either fail pure . decodeDocument

-- | Campaigns run beside other tests: each has its own processes and folders, waits for them most
-- of the time, and is not asked how fast anything is.
spec :: Spec
spec = parallel . describe "bench campaign" $ do
  it "measures each cell with a server of its own, and writes one document and a report" $
    inFolder $ \folder -> do
      (code, output, problem) <- run' (small folder)
      code `shouldBe` ExitSuccess
      lines problem `shouldSatisfy` (not . any ("FAILED" `isInfixOf`))
      output `shouldSatisfy` ("2 cells × 1 iterations" `isInfixOf`)
      document <- readDocument (folder </> "out" </> "campaign.json")
      -- It says when the campaign began.
      map iterationStarted (concatMap runIterations (documentRuns document))
        `shouldSatisfy` every (> manifestStarted (documentManifest document))
      map runName (documentRuns document)
        `shouldBe` ["set.none.files.3B.10c.local.redis-server", "set.aof-always.files.3B.10c.local.redis-server"]
      forM_ (documentRuns document) $ \run -> do
        runOps run `shouldSatisfy` (> 50)
        runProblems run `shouldBe` []
        Map.lookup "workload" (specAxes (runSpec run)) `shouldBe` Just "set"
        specThreads (runSpec run) `shouldBe` 10
        specValueSizes (runSpec run) `shouldBe` "3"
      map (specPersistence . runSpec) (documentRuns document) `shouldBe` [Just "none", Just "aof-always"]
      let lastly = [note | run <- drop 1 (documentRuns document), note <- runNotes run, " 0 missing, 0 wrong" `Text.isInfixOf` note]
      map (Text.take 6) lastly `shouldBe` ["killed", "power "]
      text <- readFile (folder </> "out" </> "report.md")
      text `shouldSatisfy` ("After kill -9, and after a power cut" `isInfixOf`)
      listDirectory (folder </> "files") `shouldReturn` []

  it "adds a round trip, and says by what" $
    inFolder $ \folder -> do
      (code, _, _) <- run' (smallBut folder [("--net", "rtt=2ms"), ("--persist", "none"), ("--clients", "1"), ("--key-template", "participant_{uuid:500}")])
      code `shouldBe` ExitSuccess
      document <- readDocument (folder </> "out" </> "campaign.json")
      forM_ (documentRuns document) $ \run -> do
        specNetwork (runSpec run) `shouldSatisfy` (`elem` ["relay rtt=2ms", "netem rtt=2ms"])
        -- One caller gets a reply every two milliseconds at best.
        runOps run `shouldSatisfy` (<= 150)
        runNotes run `shouldSatisfy` any ("a PING takes" `Text.isInfixOf`)

  it "measures every workload that there is" $
    inFolder $ \folder -> do
      let names = map workloadName workloads
      (code, _, said) <-
        run' (smallBut folder [("--workloads", intercalate "," names), ("--persist", "none"), ("--payload", "10"), ("--clients", "4"), ("--duration", "0.3s"), ("--warmup", "0s"), ("--keys", "300")])
      filter ("FAILED" `isInfixOf`) (lines said) `shouldBe` []
      document <- readDocument (folder </> "out" </> "campaign.json")
      [(Map.lookup "workload" (specAxes (runSpec run)), runProblems run) | run <- documentRuns document]
        `shouldBe` [(Just (Text.pack name), []) | name <- names]
      code `shouldBe` ExitSuccess

  it "has SETs and GETs of one key, as redis-benchmark sends them by default" $
    forM_ ["set", "get"] $ \test -> do
      let found = findWorkload (test <> "-one-key")
      benchArguments Nothing 10000 3 <$> found `shouldBe` Just ["--test", test, "--keys", "1", "--value-size", "3"]
      (($ 3) <$> (found >>= workloadReference)) `shouldBe` Just (ReferenceTest test)

  it "varies the size of values wherever commands or replies have them" $
    filter (not . carriesValue) (map workloadName workloads)
      `shouldBe` words "ping_inline ping_mbulk incr sadd spop zadd zpopmin"

  it "prints the plan and does nothing else" $
    inFolder $ \folder -> do
      (code, output, _) <- run' (small folder <> ["--plan"])
      code `shouldBe` ExitSuccess
      output `shouldSatisfy` ("baseline" `isInfixOf`)
      sort <$> listDirectory folder `shouldReturn` ["files"]

  it "makes a soak once, though it is named twice" $
    inFolder $ \folder -> do
      (code, output, _) <- run' (small folder <> ["--plan", "--soak", "set:none:10s", "--soak", "set:none:10s"])
      code `shouldBe` ExitSuccess
      output `shouldSatisfy` (" iterations, 1 soaks: " `isInfixOf`)

  it "goes on where it was, and measures only what is missing" $
    inFolder $ \folder -> do
      let runs = folder </> "out" </> "runs"
          kept = runs </> "set.none.files.3B.10c.local.redis-server" </> "1.json"
          lost = runs </> "get.none.files.3B.10c.local.redis-server" </> "1.json"
          both = smallBut folder [("--workloads", "set,get"), ("--persist", "none")]
      (first, _, _) <- run' both
      first `shouldBe` ExitSuccess
      time <- getModificationTime kept
      removeFile lost
      (second, _, said) <- run' (both <> ["--resume"])
      second `shouldBe` ExitSuccess
      said `shouldSatisfy` ("1 measurements are there already, 1 are missing" `isInfixOf`)
      doesFileExist lost `shouldReturn` True
      getModificationTime kept `shouldReturn` time

  it "goes on after it was ended in the middle, and leaves no server behind" $
    inFolder $ \folder -> do
      let kept = folder </> "out" </> "runs" </> "set.none.files.3B.10c.local.redis-server" </> "1.json"
          long = smallBut folder [("--iterations", "50")]
      process <- program [] long
      withFile "/dev/null" WriteMode $ \nowhere ->
        withCreateProcess process {std_out = UseHandle nowhere, std_err = UseHandle nowhere} $ \_ _ _ handle -> do
          eventually 60 "a cell is measured" (doesFileExist kept)
          getPid handle >>= mapM_ (signalProcess sigTERM)
          waitForProcess handle `shouldReturn` ExitFailure 143
      listDirectory (folder </> "files") `shouldReturn` []
      (code, _, said) <- run' (small folder <> ["--resume"])
      code `shouldBe` ExitSuccess
      said `shouldSatisfy` ("there already" `isInfixOf`)

  describe "says in one line" $ do
    it "that there is a campaign already, or one with other settings" $
      inFolder $ \folder -> do
        let plain changes = smallBut folder (("--persist", "none") : changes)
        (first, _, _) <- run' (plain [])
        first `shouldBe` ExitSuccess
        (again, _, problem) <- run' (plain [])
        again `shouldBe` ExitFailure 2
        problem `oneLine` "--resume"
        (other, _, difference) <- run' (plain [("--duration", "0.4s")] <> ["--resume"])
        other `shouldBe` ExitFailure 2
        difference `oneLine` "duration 300ms, now 400ms"

    it "that the directory for temporary files is another" $
      inFolder $ \folder -> do
        createDirectory (folder </> "other")
        let begin place more = do
              process <- program [("TMPDIR", folder </> place)] (placeless (smallBut folder [("--persist", "none")]) <> more)
              readCreateProcessWithExitCode process ""
            placeless = \case
              "--dir" : _ : others -> others
              word : others -> word : placeless others
              [] -> []
        (first, _, _) <- begin "files" []
        first `shouldBe` ExitSuccess
        (second, _, difference) <- begin "other" ["--resume"]
        second `shouldBe` ExitFailure 2
        difference `oneLine` "places temporary="

    it "that a program, a directory or the results cannot be had" $
      inFolder $ \folder -> do
        let cases =
              [ ([("--spawn", "/nowhere/redis-server")], 3, "no such program"),
                ([("--dir", folder </> "missing")], 2, "no such directory"),
                ([("--out", "/proc/nowhere")], 2, "cannot be written"),
                ([("--budget", "500ms")], 2, "the budget of 500ms is not enough")
              ]
        forM_ cases $ \(more, code, part) -> do
          (found, _, problem) <- run' (smallBut folder more)
          found `shouldBe` ExitFailure code
          problem `oneLine` part

    it "that a kept measurement is broken" $
      inFolder $ \folder -> do
        let plain changes = smallBut folder (("--persist", "none") : changes)
        (first, _, _) <- run' (plain [])
        first `shouldBe` ExitSuccess
        let kept = folder </> "out" </> "runs" </> "set.none.files.3B.10c.local.redis-server" </> "1.json"
        Lazy.writeFile kept (encode (decodeStrict' "{\"schema\":\"other\"}" :: Maybe Value))
        -- The error comes before anything else is measured.
        (again, _, problem) <- run' (plain [("--iterations", "2")] <> ["--resume"])
        again `shouldBe` ExitFailure 2
        problem `oneLine` "its schema is"

    it "that the directory has measurements, and nothing that says how they were made" $
      inFolder $ \folder -> do
        createDirectoryIfMissing True (folder </> "out" </> "runs" </> "some")
        (code, _, problem) <- run' (small folder <> ["--resume"])
        code `shouldBe` ExitFailure 2
        problem `oneLine` "no settings.json"

  it "calls kept measurements invalid that were edited, or made in another way" $
    inFolder $ \folder -> do
      let both = smallBut folder [("--iterations", "2"), ("--persist", "none")]
          kept = folder </> "out" </> "runs" </> "set.none.files.3B.10c.local.redis-server" </> "1.json"
          change edited = readDocument kept >>= Lazy.writeFile kept . encode . edited . documentValue
          problems = concatMap runProblems . documentRuns <$> readDocument (folder </> "out" </> "campaign.json")
      (first, _, _) <- run' both
      first `shouldBe` ExitSuccess
      problems `shouldReturn` []
      document <- readDocument kept
      let elsewhere = (documentManifest document) {manifestKernel = "another", manifestCompiler = "another"}
      Lazy.writeFile kept (encode (documentValue document {documentManifest = elsewhere}))
      (second, _, _) <- run' (both <> ["--resume"])
      second `shouldBe` ExitFailure 2
      problems `shouldReturn` ["its measurements differ in the kernel, the compiler"]
      Lazy.writeFile kept (encode (documentValue document))
      change (inRuns (KeyMap.insert "total_ops" (Number 1)))
      (third, _, said) <- run' (both <> ["--resume"])
      third `shouldBe` ExitFailure 2
      said `shouldSatisfy` ("INVALID: its numbers do not agree: total_ops is 1" `isInfixOf`)
      found <- problems
      found `shouldSatisfy` any ("total_ops is 1" `Text.isInfixOf`)

  it "keeps the rate of each run of redis-benchmark" $
    inFolder $ \folder -> do
      (code, _, _) <- run' (smallBut folder [("--iterations", "2"), ("--persist", "none")] <> ["--reference"])
      code `shouldBe` ExitSuccess
      [found] <- map runReference . documentRuns <$> readDocument (folder </> "out" </> "campaign.json")
      let turns = fromMaybe [] (found >>= referenceTurns)
      length turns `shouldBe` 2
      (referenceOpsPerSecond <$> found) `shouldBe` Just (minimum turns)

  it "says why there is no reference" $
    inFolder $ \folder -> do
      server <- findExecutable "redis-server" >>= maybe (fail "no redis-server") pure
      createDirectory (folder </> "bin")
      createFileLink server (folder </> "bin" </> "redis-server")
      process <- program [("PATH", folder </> "bin")] (smallBut folder [("--persist", "none")] <> ["--reference"])
      (code, _, _) <- readCreateProcessWithExitCode process ""
      code `shouldBe` ExitSuccess
      document <- readDocument (folder </> "out" </> "campaign.json")
      concatMap runNotes (documentRuns document) `shouldSatisfy` any ("no reference: redis-benchmark cannot be run: " `Text.isPrefixOf`)

  it "reports what could not be measured, and ends badly" $
    inFolder $ \folder -> do
      writeFile (folder </> "broken") "#!/bin/sh\necho it is broken >&2\nexit 1\n"
      callProcess "chmod" ["+x", folder </> "broken"]
      (code, _, said) <- run' (smallBut folder [("--spawn", "redis-server,broken=" <> (folder </> "broken")), ("--persist", "none")])
      code `shouldBe` ExitFailure 2
      said `shouldSatisfy` ("FAILED: the server did not start" `isInfixOf`)
      document <- readDocument (folder </> "out" </> "campaign.json")
      length (documentRuns document) `shouldBe` 1
      documentNotes document `shouldSatisfy` any ("not measured" `Text.isInfixOf`)
