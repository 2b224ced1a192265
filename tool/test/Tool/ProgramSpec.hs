-- | The whole program, as a process, with real servers.
module Tool.ProgramSpec (spec, actAsProgram, program, run', oneLine) where

import Control.Concurrent.Async (Concurrently (..), withAsync)
import Control.Monad (forever, void)
import Data.Aeson (Value, eitherDecodeStrict', encode)
import Data.Aeson.Types (Parser, parseEither, withObject, (.:))
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Either (fromRight, isRight)
import Data.Foldable (for_)
import Data.List (isInfixOf, isPrefixOf, tails)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Every (every)
import OnServer (at)
import Redis.TestKit.Address (Address (..), connectTo, freePorts)
import Redis.TestKit.Certificates (Certificates (..), withCertificates)
import Redis.TestKit.Cluster (ClusterOptions (..), clusterDefaults, clusterNodes, nodeServer, withCluster)
import Redis.TestKit.Command (CommandCalls (callsRun), request)
import Redis.TestKit.Server
import Redis.TestKit.Wait (eventually, eventuallyJust, within)
import Sample (sample, sampleDocument)
import System.Directory (doesFileExist, listDirectory)
import System.Environment (getEnvironment, getExecutablePath)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO (IOMode (WriteMode), withFile)
import System.IO.Error (tryIOError)
import System.IO.Temp (withSystemTempDirectory)
import System.Posix.Signals (sigHUP, sigKILL, sigTERM, signalProcess)
import System.Process
import Test.Hspec
import Tool.Bench.Document (Document (..), Iteration (..), Manifest (..), Run (..))
import Tool.Bench.Document.Json (decodeDocument, documentValue)

-- | An environment variable that makes a process of these tests run the program instead of the
-- tests.
actAsProgram :: String
actAsProgram = "REDIS_CLIENT_TEST_ACTS_AS_PROGRAM"

program :: [(String, String)] -> [String] -> IO CreateProcess
program settings arguments = do
  self <- getExecutablePath
  inherited <- getEnvironment
  let ours = (actAsProgram, "1") : settings
      others = [entry | entry@(name, _) <- inherited, name `notElem` ("REDISCLI_AUTH" : map fst ours)]
  pure (proc self arguments) {env = Just (ours <> others)}

run' :: [String] -> IO (ExitCode, String, String)
run' = runWith []

runWith :: [(String, String)] -> [String] -> IO (ExitCode, String, String)
runWith settings arguments = do
  process <- program settings arguments
  readCreateProcessWithExitCode process ""

-- | Options for a short load. A machine that does other work meanwhile may keep threads from
-- running; these tests do not check for that.
brief :: [String]
brief = ["--duration", "0.5", "--warmup", "0.1", "--keys", "2000", "--allow", "saturation,little"]

-- | Runs the program with a JSON file. Returns the exit code and the only run in the file.
measured :: [String] -> IO (ExitCode, Value)
measured arguments = withSystemTempDirectory "program-spec" $ \folder -> do
  let file = folder </> "out.json"
  (code, output, problem) <- run' (arguments <> ["--json", file])
  written <- doesFileExist file
  if not written
    then fail ("no JSON: " <> show (code, output, problem))
    else do
      listDirectory folder `shouldReturn` ["out.json"]
      bytes <- ByteString.readFile file
      run <- either fail pure (eitherDecodeStrict' bytes >>= parseEither onlyRun)
      pure (code, run)
  where
    onlyRun :: Value -> Parser Value
    onlyRun = withObject "document" $ \whole ->
      whole .: "runs" >>= \case
        [run] -> pure run
        runs -> fail (show (length runs) <> " runs")

statusOf :: Value -> Either String Text
statusOf = parseEither (withObject "run" (\run -> run .: "commandstats" >>= (.: "status")))

-- | A document in which a run's rate of 500 a second is doubled.
doubled :: Char8.ByteString -> Char8.ByteString
doubled document = case Char8.breakSubstring "\"ops_per_sec\":500" document of
  (left, rest)
    | Char8.null rest -> document
    | otherwise -> left <> "\"ops_per_sec\":1000" <> doubled (Char8.drop 17 rest)

oneLine :: String -> String -> Expectation
oneLine problem part = do
  lines problem `shouldSatisfy` ((== 1) . length)
  problem `shouldSatisfy` (\text -> "redis-client: " `isPrefixOf` text && part `isInfixOf` text)

-- | How the program ended where it got no answer.
data WithoutAnswer = WithoutAnswer
  { -- | With the port.
    nobodyAnswers :: (Int, (ExitCode, String, String)),
    noSuchSocket :: (ExitCode, String, String),
    -- | With the port.
    withoutTls :: (Int, (ExitCode, String, String))
  }

withoutAnswer :: IO WithoutAnswer
withoutAnswer =
  withServer serverDefaults $ \server ->
    runConcurrently $
      WithoutAnswer
        <$> Concurrently (freePorts 1 >>= toNobody . sum)
        <*> Concurrently (run' ["bench", "--socket", "/nowhere/redis.sock"])
        <*> Concurrently ((,) (serverPort server) <$> run' (["bench", "--tls", "--insecure"] <> at server))
  where
    toNobody port = (,) port <$> run' ["bench", "-h", "127.0.0.1", "-p", show port]

spec :: Spec
spec = describe "the program" $ do
  describe "bench" $ do
    it "measures a private server: all hits, and counts that agree" $ do
      (code, run) <- measured (["bench", "--operation", "get"] <> brief)
      code `shouldBe` ExitSuccess
      statusOf run `shouldBe` Right "agrees"
      let field name = parseEither (withObject "run" (.: name)) run :: Either String Double
      field "hit_ratio" `shouldBe` Right 1
      field "misses" `shouldBe` Right 0
      field "error_count" `shouldBe` Right 0
      field "total_ops" `shouldSatisfy` either (const False) (> 100)
      field "client_cpu_ns_per_op" `shouldSatisfy` either (const False) (> 0)

    it "measures a private server in the database and the protocol that are said" $ do
      (code, run) <- measured (["bench", "--db", "3", "--resp2"] <> brief)
      code `shouldBe` ExitSuccess
      parseEither (withObject "run" (\fields -> fields .: "spec" >>= (.: "protocol"))) run `shouldBe` Right (2 :: Int)

    it "counts what subscribers hear in the older protocol, too" $ do
      (code, _) <- measured (["bench", "--test", "publish", "--resp2", "-n", "2", "--batch", "8"] <> brief)
      code `shouldBe` ExitSuccess

    it "measures a private cluster with every kind of command, waiting for each reply" $ do
      (code, run) <- measured (["-c", "bench", "--batch", "1"] <> brief)
      code `shouldBe` ExitSuccess
      statusOf run `shouldBe` Right "agrees"
      parseEither (withObject "run" (\fields -> (,) <$> (fields .: "server" >>= (.: "nodes")) <*> fields .: "hit_ratio")) run
        `shouldBe` Right (5 :: Int, 1 :: Double)

    it "measures a cluster that a URL names with commands that a cluster takes" $
      withCluster clusterDefaults {clusterPrimaryCount = 3, clusterNodeTimeout = 15000} $ \cluster -> do
        servers <- map nodeServer <$> clusterNodes cluster
        for_ (take 1 servers) $ \server -> do
          (code, output, problem) <- run' (["bench", "--url", "redis+cluster://" <> serverHost server <> ":" <> show (serverPort server), "--test", "mset,mget"] <> brief)
          words output `shouldSatisfy` (["cluster", "mset"] `isInfixOf`)
          (code, problem) `shouldSatisfy` (== ExitSuccess) . fst

    it "records TLS and the protocol that a URL says" $
      withCertificates $ \certificates ->
        withServer serverDefaults {optionsTls = Just TlsOptions {tlsKeyPair = certificatesServer certificates, tlsAuthority = certificatesAuthority certificates, tlsClients = ClientCertificatesIgnored}} $ \server -> do
          let url = "rediss://" <> serverHost server <> ":" <> maybe "0" show (serverTlsPort server) <> "?protocol=2&ca=" <> certificatesAuthority certificates
          (code, run) <- measured (["bench", "--url", url] <> brief)
          code `shouldBe` ExitSuccess
          parseEither (withObject "run" (\fields -> (,) <$> fields .: "name" <*> (fields .: "spec" >>= \spec' -> (,) <$> spec' .: "tls" <*> spec' .: "protocol"))) run
            `shouldBe` Right ("standalone mixed tls" :: Text, (True, 2 :: Int))

    it "measures a private server by TLS" $ do
      (code, run) <- measured (["bench", "-t", "--operation", "set"] <> brief)
      code `shouldBe` ExitSuccess
      statusOf run `shouldBe` Right "agrees"

    it "measures a server that is named, with the password of the environment" $
      withServer serverDefaults {optionsPassword = Just "secret"} $ \server -> do
        (code, output, _) <- runWith [("REDISCLI_AUTH", "secret")] (["bench"] <> at server <> brief)
        code `shouldBe` ExitSuccess
        output `shouldSatisfy` ("commandstats agree" `isInfixOf`)

    it "writes the JSON, and only that, to the standard output if asked to" $
      withServer serverDefaults $ \server -> do
        (code, output, _) <- run' (["bench", "--json", "-"] <> at server <> brief)
        code `shouldBe` ExitSuccess
        (eitherDecodeStrict' (Char8.pack output) :: Either String Value) `shouldSatisfy` isRight

    it "says when it began, and not when it ended" $
      withServer serverDefaults $ \server ->
        withSystemTempDirectory "program-spec" $ \folder -> do
          let file = folder </> "run.json"
          (code, _, _) <- run' (["bench", "--json", file] <> at server <> brief)
          code `shouldBe` ExitSuccess
          document <- ByteString.readFile file >>= either fail pure . decodeDocument
          map iterationStarted (concatMap runIterations (documentRuns document))
            `shouldSatisfy` every (> manifestStarted (documentManifest document))

    it "writes UTF-8 also where nobody chose a language" $ do
      (code, output, _) <- runWith [("LC_ALL", "C")] ["bench", "campaign", "--help"]
      code `shouldBe` ExitSuccess
      output `shouldSatisfy` isInfixOf "NAME,…"

    it "writes its results in every form, and the same again from the JSON" $
      withSystemTempDirectory "program-spec" $ \folder -> do
        let forms name =
              [ "--html",
                folder </> name <> ".html",
                "--csv",
                folder </> name <> ".csv",
                "--prometheus",
                folder </> name <> ".prom",
                "--hdr-log",
                folder </> name <> ".hlog",
                "--compat",
                "seed=" <> folder </> name <> ".seed",
                "--compat",
                "memtier=" <> folder </> name <> ".memtier",
                "--hgrm",
                folder </> name
              ]
            json = folder </> "run.json"
        (code, _, _) <- run' (["bench", "--operation", "get", "--json", json] <> forms "one" <> brief)
        code `shouldBe` ExitSuccess
        (again, output, _) <- run' (["bench", "report", json] <> forms "two")
        again `shouldBe` ExitSuccess
        output `shouldSatisfy` ("standalone" `isInfixOf`)
        files <- listDirectory folder
        length (filter ("one." `isPrefixOf`) files) `shouldBe` 7
        for_ (filter ("one." `isPrefixOf`) files) $ \file -> do
          first <- ByteString.readFile (folder </> file)
          second <- ByteString.readFile (folder </> ("two" <> drop 3 file))
          ByteString.length first `shouldSatisfy` (> 0)
          (file, first == second) `shouldBe` (file, True)

    it "compares results, and ends as the rules say" $
      withSystemTempDirectory "program-spec" $ \folder -> do
        let (good, slow, wrong) = (folder </> "good.json", folder </> "slow.json", folder </> "wrong.json")
            save path document = Lazy.writeFile path (encode (documentValue document))
            slower run = run {runIterations = [one {iterationSeconds = iterationSeconds one * 1.25} | one <- runIterations run]}
        save good (sampleDocument [sample])
        save slow (sampleDocument [slower sample])
        save wrong (sampleDocument [sample {runProblems = ["it lied"]}])
        let compared one other rules = do
              (code, output, _) <- run' (["bench", "compare", one, other] <> concatMap (\rule -> ["--fail-if", rule]) rules)
              pure (code, output)
        (fine, table) <- compared good slow ["throughput<-30%"]
        fine `shouldBe` ExitSuccess
        table `shouldSatisfy` ("-20.0%" `isInfixOf`)
        (failed, why) <- compared good slow ["throughput<-30%", "throughput<-5%"]
        failed `shouldBe` ExitFailure 1
        why `shouldSatisfy` ("FAILED: cluster mixed: throughput is -20.00 %, below -5.00 %" `isInfixOf`)
        (invalid, reason) <- compared good wrong ["throughput<-5%"]
        invalid `shouldBe` ExitFailure 2
        reason `shouldSatisfy` ("it lied" `isInfixOf`)
        (unreadable, _) <- compared good (folder </> "missing.json") []
        -- An edited file: its numbers do not agree with each other.
        let edited = folder </> "edited.json"
        Char8.writeFile edited . doubled =<< Char8.readFile good
        (doubtful, doubt) <- compared good edited []
        doubtful `shouldBe` ExitFailure 2
        doubt `shouldSatisfy` ("its numbers do not agree: iterations.0.ops_per_sec is 1000, but 500 follows from the rest" `isInfixOf`)
        (shown, text, _) <- run' ["bench", "report", edited]
        shown `shouldBe` ExitFailure 2
        text `shouldSatisfy` ("INVALID: cluster mixed: its numbers do not agree" `isInfixOf`)
        (merged, _, _) <- run' ["bench", "merge", good, edited]
        merged `shouldBe` ExitFailure 2
        unreadable `shouldBe` ExitFailure 3
        (page, _, _) <- run' ["bench", "compare", good, slow, "--html", folder </> "page.html"]
        page `shouldBe` ExitSuccess
        (both, _, _) <- run' ["bench", "compare", good, slow, "--html", folder </> "page.html", "--json", folder </> "both.json", "--fail-if", "throughput<-5%"]
        both `shouldBe` ExitFailure 1
        object' <- ByteString.readFile (folder </> "both.json") >>= either fail pure . eitherDecodeStrict'
        parseEither (withObject "comparison" (\whole -> (,,) <$> whole .: "schema" <*> (length <$> (whole .: "failures" :: Parser [Text])) <*> (whole .: "runs" >>= mapM (withObject "run" (.: "name"))))) object'
          `shouldBe` Right ("redis-client-compare/1" :: Text, 1, ["cluster mixed" :: Text])
        (twice, _, why') <- run' ["bench", "compare", good, slow, "--html", "-", "--json", "-"]
        twice `shouldBe` ExitFailure 2
        why' `oneLine` "only one form"
        html <- readFile (folder </> "page.html")
        html `shouldSatisfy` ("Two benchmarks compared" `isInfixOf`)

    it "says so when somebody else used the server meanwhile" $
      withServer serverDefaults $ \server -> do
        let intrude = withServerConnection server $ \connection ->
              forever (request connection ["GET", "somebody else's"])
        (code, run) <- withAsync intrude (\_ -> measured (["bench"] <> at server <> brief))
        code `shouldBe` ExitFailure 2
        statusOf run `shouldBe` Right "disagrees"

    it "counts errors, and is not content, when the server dies under load" $
      withServer serverDefaults $ \server -> do
        let seen = do
              calls <- Map.lookup "get" <$> commandStatistics server
              pure (maybe False ((> 1000) . callsRun) calls)
            killer = eventually 30 "the load has begun" seen >> kill9 server
        (code, run) <-
          withAsync killer $ \_ ->
            measured (["bench", "--operation", "get", "--duration", "2", "--warmup", "0"] <> at server)
        code `shouldBe` ExitFailure 2
        statusOf run `shouldBe` Right "not compared"
        (parseEither (withObject "run" (.: "error_count")) run :: Either String Int)
          `shouldSatisfy` either (const False) (> 0)
        -- Nobody waited until the time of a command was over.
        let errors = withObject "run" (\fields -> fields .: "iterations" >>= traverse (withObject "iteration" (.: "errors"))) :: Value -> Parser [Map.Map Text Int]
        (concatMap Map.keys <$> parseEither errors run :: Either String [Text])
          `shouldSatisfy` either (const False) (every (not . ("TimeoutError" `Text.isPrefixOf`)))

    it "ends, and says why, when the server dies before a number of commands has run" $
      withServer serverDefaults $ \server -> do
        let killer = eventually 30 "the load has begun" (maybe False ((> 1000) . callsRun) . Map.lookup "get" <$> commandStatistics server) >> kill9 server
        (code, output, problem) <- within 60 (withAsync killer (const (run' (["bench", "--operation", "get", "--requests", "1000000000", "--warmup", "0"] <> at server))))
        code `shouldBe` ExitFailure 2
        (output <> problem) `shouldSatisfy` \said -> every (`isInfixOf` said) ["no connection to 127.0.0.1:" <> show (serverPort server), "Connection refused"]

    it "says in the server's words that its password has changed meanwhile" $
      withServer serverDefaults {optionsPassword = Just "secret"} $ \server -> do
        let change = do
              eventually 30 "the load has begun" (maybe False ((> 1000) . callsRun) . Map.lookup "get" <$> commandStatistics server)
              withServerConnection server $ \connection -> do
                _ <- request connection ["CONFIG", "SET", "requirepass", "another"]
                void (request connection ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
        (code, output, _) <- withAsync change (const (runWith [("REDISCLI_AUTH", "secret")] (["bench", "--operation", "get", "--duration", "2", "--warmup", "0"] <> at server)))
        code `shouldBe` ExitFailure 2
        output `shouldSatisfy` isInfixOf "no connection to "
        output `shouldSatisfy` isInfixOf "WRONGPASS"

    it "refuses to measure a server that evicts what it preloads" $
      withServer serverDefaults {optionsConfig = ["maxmemory 3mb", "maxmemory-policy allkeys-random"]} $ \server -> do
        (code, _, problem) <- run' (["bench", "--keys", "50000", "--duration", "1"] <> at server)
        code `shouldBe` ExitFailure 2
        lastLine problem `oneLine` "does it evict?"

  -- Each waits for its time limit, so all wait together.
  beforeAll withoutAnswer . describe "says in one line" $ do
    it "that nobody answers" $ \found -> do
      let (port, (code, output, problem)) = nobodyAnswers found
      (code, output) `shouldBe` (ExitFailure 3, "")
      problem `oneLine` ("no node answers: 127.0.0.1:" <> show port <> ": cannot be connected to (127.0.0.1:" <> show port <> ": Connection refused)")

    it "that there is no such socket, once" $ \found -> do
      let (code, output, problem) = noSuchSocket found
      (code, output) `shouldBe` (ExitFailure 3, "")
      problem `oneLine` "/nowhere/redis.sock"
      length (filter ("/nowhere/redis.sock" `isPrefixOf`) (tails problem)) `shouldSatisfy` (<= 2)

    it "that a port may be one without TLS" $ \found -> do
      let (port, (code, output, problem)) = withoutTls found
      (code, output) `shouldBe` (ExitFailure 3, "")
      problem `oneLine` ("INFO: no reply within 5.0 s: 127.0.0.1:" <> show port <> ": no TLS within ")
      problem `oneLine` "is this a port without TLS?"

  describe "says in one line" $ do
    it "that the password is wrong" $
      withServer serverDefaults {optionsPassword = Just "secret"} $ \server -> do
        (code, output, problem) <- run' (["bench", "-a", "wrong"] <> at server)
        (code, output) `shouldBe` (ExitFailure 3, "")
        problem `oneLine` "WRONGPASS"

    it "that the JSON cannot be written, before anything is started" $
      withSystemTempDirectory "program-spec" $ \folder -> do
        (code, _, problem) <- runWith [("TMPDIR", folder)] ["bench", "--json", folder </> "missing" </> "out.json"]
        code `shouldBe` ExitFailure 2
        problem `oneLine` "cannot be written"
        (directory, _, where') <- run' ["bench", "--json", folder]
        directory `shouldBe` ExitFailure 2
        where' `oneLine` "is a directory"
        -- The system's own reason.
        (_, _, below) <- run' ["bench", "--json", "/dev/null/out.json"]
        below `oneLine` "(/dev/null: not a directory)"
        (_, _, nowhere) <- run' ["bench", "--json", "/proc/out.json"]
        nowhere `oneLine` "(/proc: no such file or directory)"
        (_, _, read') <- run' ["bench", "report", "/dev/null/out.json"]
        read' `oneLine` "/dev/null/out.json: not a directory"
        listDirectory folder `shouldReturn` []

    it "that a file is no document, or is not there" $
      withSystemTempDirectory "program-spec" $ \folder -> do
        writeFile (folder </> "a.json") "{\"schema\":\"other\"}"
        (code, _, problem) <- run' ["bench", "report", folder </> "a.json"]
        code `shouldBe` ExitFailure 2
        problem `oneLine` "its schema is"
        (missing, _, why) <- run' ["bench", "report", folder </> "b.json"]
        missing `shouldBe` ExitFailure 3
        why `oneLine` "no such file or directory"

    it "that the disk is full, and leaves no half of a file" $ do
      (code, _, problem) <- run' (["bench", "--json", "/dev/full"] <> brief)
      code `shouldBe` ExitFailure 3
      lastLine problem `oneLine` "the disk is full"

    it "that a name of a host is not known, in its own letters" $ do
      (code, _, problem) <- run' ["bench", "--url", "redis://%C3%BC.invalid:1?max_attempts=1"]
      code `shouldBe` ExitFailure 3
      problem `oneLine` "\252.invalid"
      problem `shouldNotSatisfy` isInfixOf "\195"

    it "that a file for TLS is not there" $ do
      (code, output, problem) <- run' ["bench", "-h", "127.0.0.1", "-p", "1", "--tls", "--cacert", "/nowhere/ca.pem"]
      (code, output) `shouldBe` (ExitFailure 3, "")
      problem `oneLine` "--cacert /nowhere/ca.pem: there is no such file"

    it "that there is no such database, in the server's words" $
      withServer serverDefaults $ \server -> do
        (code, output, problem) <- run' (["bench", "--db", "99"] <> at server)
        (code, output) `shouldBe` (ExitFailure 3, "")
        problem `oneLine` "the server refuses: ERR DB index is out of range"

    it "that a user may not write, and measures without INFO where that is refused" $
      withServer serverDefaults $ \server -> do
        withServerConnection server $ \connection -> do
          _ <- request connection ["ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@read", "+@connection"]
          void (request connection ["ACL", "SETUSER", "managed", "on", ">secret", "~*", "+@all", "-info", "-config"])
        let as user = ["-u", user, "-a", "secret"] <> at server <> brief
        (code, output, problem) <- run' (["bench"] <> as "reader")
        (code, output) `shouldBe` (ExitFailure 2, "")
        lastLine problem `oneLine` "NOPERM"
        (managed, table, _) <- run' (["bench"] <> as "managed")
        managed `shouldBe` ExitSuccess
        table `shouldSatisfy` ("no permissions to run the 'info' command" `isInfixOf`)

    it "that a check that may be allowed to fail is none" $ do
      (code, output, problem) <- run' ["bench", "--allow", "errors"]
      (code, output) `shouldBe` (ExitFailure 2, "")
      problem `oneLine` "saturation, little or rate"

    it "that options are bad" $ do
      (code, output, problem) <- run' ["bench", "--batch", "0"]
      (code, output) `shouldBe` (ExitFailure 2, "")
      problem `oneLine` "--batch"

  for_ [("it is told to end", sigTERM, 143), ("its terminal is closed", sigHUP, 129)] $ \(event, signal, code) ->
    it ("leaves nothing behind when " <> event) $
      withSystemTempDirectory "program-spec" $ \folder -> do
        ended <- begun folder id $ \port handle -> do
          getPid handle >>= mapM_ (signalProcess signal)
          (,) port <$> waitForProcess handle
        snd ended `shouldBe` ExitFailure code
        listDirectory folder `shouldReturn` []
        answers (fst ended) `shouldReturn` False

  it "goes on when its terminal is closed, if nohup has started it" $
    withSystemTempDirectory "program-spec" $ \folder -> do
      let nohup process = case cmdspec process of
            RawCommand name arguments -> process {cmdspec = RawCommand "nohup" (name : arguments)}
            ShellCommand _ -> process
      ended <- begun folder nohup $ \_ handle -> do
        getPid handle >>= mapM_ (\pid -> signalProcess sigHUP pid >> signalProcess sigTERM pid)
        waitForProcess handle
      ended `shouldBe` ExitFailure 143

  it "removes what one left behind that was killed, and nothing of one that runs" $
    withSystemTempDirectory "program-spec" $ \folder -> do
      left <- begun folder id $ \_ handle -> do
        getPid handle >>= mapM_ (signalProcess sigKILL)
        _ <- waitForProcess handle
        listDirectory folder
      left `shouldNotBe` []
      begun folder id $ \port handle -> do
        found <- listDirectory folder
        filter (`elem` left) found `shouldBe` []
        (code, _, _) <- runWith [("TMPDIR", folder)] (["bench"] <> brief)
        code `shouldBe` ExitSuccess
        privatePort folder [] `shouldReturn` Just port
        getPid handle >>= mapM_ (signalProcess sigTERM)
        waitForProcess handle `shouldReturn` ExitFailure 143
      listDirectory folder `shouldReturn` []
  where
    -- Runs an action while a long load runs on a private server, whose port the action gets. The
    -- temporary files are in the folder.
    begun :: FilePath -> (CreateProcess -> CreateProcess) -> (Int -> ProcessHandle -> IO a) -> IO a
    begun folder change action = do
      process <- change <$> program [("TMPDIR", folder)] ["bench", "--duration", "60"]
      earlier <- listDirectory folder
      withNowhere $ \nowhere -> withCreateProcess process {std_out = UseHandle nowhere, std_err = UseHandle nowhere} $ \_ _ _ handle -> do
        port <- eventuallyJust 30 "the private server has begun" (privatePort folder earlier)
        eventually 30 "the private server answers" (answers port)
        action port handle
    lastLine text = case reverse (lines text) of
      line : _ -> line
      [] -> ""
    withNowhere = withFile "/dev/null" WriteMode
    answers port = isRight <$> tryIOError (void (connectTo (TcpAddress "127.0.0.1" port)))
    privatePort folder earlier = do
      found <- listDirectory folder
      case filter (`notElem` earlier) found of
        [server] -> do
          text <- fromRight "" <$> tryIOError (Char8.readFile (folder </> server </> "server.conf"))
          pure (portIn (map Char8.words (Char8.lines text)))
        _ -> pure Nothing
    portIn lines' = case [number | ["port", digits] <- lines', Just (number, "") <- [Char8.readInt digits]] of
      number : _ -> Just number
      [] -> Nothing
