-- | The program, as a process, when servers die or stop under its load, and when there is no room
-- for its output.
module Tool.FaultSpec (spec) where

import Control.Concurrent.Async (withAsync)
import Control.Concurrent.MVar (newEmptyMVar, putMVar, takeMVar)
import Control.Monad (forM_, unless)
import Data.Aeson (encode)
import Data.ByteString qualified as ByteString
import Data.ByteString.Lazy qualified as Lazy
import Data.List (isInfixOf, isPrefixOf)
import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import OnServer (at)
import Redis.Config (Limits (limitInFlight), limitsDefaults)
import Redis.TestKit.Cluster (ClusterOptions (..), clusterDefaults, clusterNodes, nodeServer, slotPrimary, withCluster)
import Redis.TestKit.Command (CommandCalls (callsRun))
import Redis.TestKit.Server
import Redis.TestKit.Wait (eventually)
import Sample (sample, sampleDocument)
import System.Directory (doesFileExist, listDirectory)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO (IOMode (WriteMode), withFile)
import System.IO.Temp (withSystemTempDirectory)
import System.Process
import Test.Hspec
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Json (decodeDocument, documentValue)
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Time (monotonic, sleepUntilExactly)
import Tool.ProgramSpec (oneLine, program, run')

-- | Runs the program with JSON and HTML. Returns the exit code, the output, the only run, and the
-- page. Checks that nothing else is written.
measured :: [String] -> IO (ExitCode, String, Run, ByteString.ByteString)
measured arguments = withSystemTempDirectory "fault-spec" $ \folder -> do
  let (json, html) = (folder </> "out.json", folder </> "out.html")
  (code, output, problem) <- run' (arguments <> ["--json", json, "--html", html])
  written <- doesFileExist json
  unless written $ fail ("no JSON: " <> show (code, output, problem))
  length <$> listDirectory folder `shouldReturn` 2
  document <- ByteString.readFile json >>= either fail pure . decodeDocument
  page <- ByteString.readFile html
  case documentRuns document of
    [run] -> pure (code, output, run, page)
    runs -> fail (show (length runs) <> " runs")

-- | How often a server ran GET.
gets :: Server -> IO Int
gets = callsOf callsRun "get"

-- | Waits until the load has begun.
loaded :: Server -> IO ()
loaded server = eventually 30 "the load has begun" ((> 1000) <$> gets server)

spec :: Spec
spec = describe "the program, in bad times" $ do
  it "counts errors against the node that died, and goes on with the others" $
    -- Without full coverage, the other nodes go on serving their slots.
    withCluster clusterDefaults {clusterPrimaryCount = 3, clusterServer = serverDefaults {optionsConfig = ["cluster-require-full-coverage no"]}} $ \cluster -> do
      victim <- nodeServer <$> slotPrimary cluster 0
      servers <- map nodeServer <$> clusterNodes cluster
      let nameOf server = serverHost server <> ":" <> show (serverPort server)
          others = filter ((/= serverPort victim) . serverPort) servers
          seed = concatMap at (take 1 others)
          load = ["bench", "-c", "--operation", "get", "--rate", "2000", "--duration", "4", "--warmup", "0", "--keys", "2000", "--brief", "--allow", "saturation,little,rate"]
      (code, output, run, page) <- withAsync (loaded victim >> kill9 victim) (const (measured (load <> seed)))
      code `shouldBe` ExitFailure 2
      let found = Map.unionsWith (Map.unionWith (+)) (map (fmap nodeErrors . iterationNodes) (runIterations run))
          errorsOf server = Map.findWithDefault Map.empty (Text.pack (nameOf server)) found
      runErrorCount run `shouldSatisfy` (> 0)
      sum (errorsOf victim) `shouldBe` runErrorCount run
      map (sum . errorsOf) others `shouldBe` [0, 0]
      runProblems run `shouldSatisfy` any ("failed" `Text.isInfixOf`)
      -- Each node has its own connections.
      specInFlight (runSpec run) `shouldBe` 3 * specCapabilities (runSpec run) * limitInFlight limitsDefaults
      -- The other nodes have answered all the time, including the last second.
      let answered node = sum [Histogram.count (nodeService stats) | one <- runIterations run, Just stats <- [Map.lookup (Text.pack (nameOf node)) (iterationNodes one)]]
      map ((> 1000) . answered) others `shouldBe` [True, True]
      output `shouldSatisfy` (("errors of " <> nameOf victim <> ": ") `isInfixOf`)
      output `shouldSatisfy` ("INVALID" `isInfixOf`)
      ByteString.isInfixOf "By node" page `shouldBe` True

  it "counts every command of a server that stopped for a while, and how long they waited" $
    withServer serverDefaults $ \server -> do
      stalled <- newEmptyMVar
      let stall = do
            loaded server
            from <- monotonic
            freeze server
            sleepUntilExactly (from + 700000000)
            -- The server cannot have answered before this moment.
            until' <- monotonic
            thaw server
            putMVar stalled (until' - from)
          load = ["bench", "--operation", "get", "--rate", "2000", "--requests", "6000", "--warmup", "0", "--keys", "1000", "--brief", "--allow", "saturation,little,rate"]
      (code, output, run, _) <- withAsync stall (const (measured (load <> at server)))
      length' <- takeMVar stalled
      code `shouldBe` ExitSuccess
      runOps run `shouldBe` 6000
      runErrorCount run `shouldBe` 0
      runAgreement run `shouldSatisfy` \case
        Agrees counts -> Map.lookup "get" counts == Just 6000
        _ -> False
      output `shouldSatisfy` ("commandstats agree" `isInfixOf`)
      -- Commands sent just as the server stopped waited for the whole stall; commands that were due
      -- during it waited for the rest of it.
      let longest = Histogram.maximumValue (runService run)
          half = 100 - 100 * 0.9 * (2000 * fromIntegral length' / 2e9) / 6000 :: Double
      longest `shouldSatisfy` (>= length' - length' `div` 50)
      fmap (Histogram.percentile half) (runResponse run) `shouldSatisfy` maybe False (>= length' `div` 2)

  describe "says in one line that the disk is full, and leaves nothing half-written" $ do
    forM_ ["--json", "--html", "--csv", "--prometheus", "--hdr-log"] $ \option ->
      it option $
        onFullDisk [option, "/dev/full"]
    forM_ ["seed", "rb-csv", "memtier"] $ \kind ->
      it ("--compat " <> kind) $
        onFullDisk ["--compat", kind <> "=/dev/full"]

    it "of a comparison" $
      withDocument $ \file ->
        forM_ ["--json", "--html"] $ \option -> do
          (code, _, problem) <- run' ["bench", "compare", file, file, option, "/dev/full"]
          code `shouldBe` ExitFailure 3
          problem `oneLine` "/dev/full: the disk is full"

    it "of the standard output" $
      withDocument $ \file ->
        forM_ [["bench", "report", file], ["bench", "report", file, "--csv", "-"], ["bench", "schema"], ["--help"]] $ \arguments -> do
          process <- program [] arguments
          withFile "/dev/full" WriteMode $ \full -> do
            (code, problem) <- withCreateProcess process {std_out = UseHandle full, std_err = CreatePipe} $ \_ _ errors handle -> do
              said <- maybe (pure "") ByteString.hGetContents errors
              flip (,) said <$> waitForProcess handle
            (arguments, code) `shouldBe` (arguments, ExitFailure 3)
            ByteString.isSuffixOf "redis-client: <stdout>: the disk is full\n" problem `shouldBe` True
  where
    onFullDisk outputs =
      withDocument $ \file -> do
        (code, _, problem) <- run' (["bench", "report", file] <> outputs)
        code `shouldBe` ExitFailure 3
        problem `oneLine` "/dev/full: the disk is full"
    withDocument action =
      withSystemTempDirectory "fault-spec" $ \folder -> do
        let file = folder </> "run.json"
        Lazy.writeFile file (encode (documentValue (sampleDocument [sample])))
        result <- action file
        listDirectory folder `shouldReturn` ["run.json"]
        files <- filter ("full.part" `isPrefixOf`) <$> listDirectory "/dev"
        files `shouldBe` []
        pure result
