-- | @bench record@ and @bench replay@, as processes, with real servers.
module Tool.ReplaySpec (spec) where

import Control.Concurrent.Async (concurrently, withAsync)
import Control.Monad (forM_, forever)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isRight)
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import MonitorLines (renderLine)
import OnServer (at, watched)
import Redis.TestKit.Certificates (Certificates (..), withCertificates)
import Redis.TestKit.Cluster (ClusterOptions (..), clusterDefaults, clusterNodes, nodeServer, withCluster)
import Redis.TestKit.Command
import Redis.TestKit.Server
import Redis.TestKit.Wait (eventually, within)
import System.Directory (listDirectory)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import Test.Hspec
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Json (decodeDocument)
import Tool.Bench.Document.Totals (runAgreement, runErrorCount, runOps, runResponse, runSeconds)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Monitor
import Tool.ProgramSpec (oneLine, run')
import Tool.Relay (relayPort, withRelay)

-- | A recorded line at this many microseconds.
line :: Int -> ByteString -> [ByteString] -> ByteString
line micros client arguments =
  renderLine
    Observed
      { observedMicros = 1700000000000000 + micros,
        observedDatabase = 0,
        observedOrigin = OriginClient client,
        observedWords = arguments
      }

-- | A hundred commands by each of two clients, half a millisecond apart, and some lines that are
-- left out.
sample :: ByteString
sample =
  Char8.unlines $
    ["OK", line 0 "a:1" ["MULTI"], "1700000000.000000 [0 lua] \"set\" \"x\" \"1\""]
      <> concat [[line (number * 1000) "a:1" ["INCR", "one"], line (number * 1000 + 500) "b:2" ["RPUSH", "list", Char8.pack (show number)]] | number <- [1 .. 100]]

replayed :: Server -> FilePath -> [String] -> IO (ExitCode, Run)
replayed = replayedAt . at

-- | Like 'replayed', with the options that name the server.
replayedAt :: [String] -> FilePath -> [String] -> IO (ExitCode, Run)
replayedAt target folder more = do
  ByteString.writeFile (folder </> "recording") sample
  (code, output, problem) <- run' (["bench", "replay", folder </> "recording", "--json", folder </> "out.json"] <> target <> more)
  bytes <- ByteString.readFile (folder </> "out.json")
  case decodeDocument bytes of
    Right document | [run] <- documentRuns document -> pure (code, run)
    other -> fail (show (other, output, problem))

spec :: Spec
spec = do
  describe "Tool.Monitor, recordings" $ do
    it "keeps times from the first command on, clients, and what is left out" $
      case parseRecording sample of
        Left problem -> expectationFailure (show problem)
        Right recording -> do
          length (recordingCommands recording) `shouldBe` 200
          take 3 (map recordedAt (recordingCommands recording)) `shouldBe` [0, 500, 1000]
          recordingClients recording `shouldBe` 2
          recordingNames recording `shouldBe` Map.fromList [("incr", 100), ("rpush", 100)]
          recordingLeftOut recording `shouldBe` Map.fromList [(ObstacleScripted, 1), (ObstacleConnectionState, 1)]
          recordingSpan recording `shouldBe` 0.0995

    it "says in which line something is wrong" $
      either fst (const 0) (parseRecording ("OK\n" <> line 0 "a:1" ["GET", "k"] <> "\nnonsense\n")) `shouldBe` 3

  describe "bench record and replay" $ do
    it "record what a server does, and replay leaves another one the same" $
      withSystemTempDirectory "replay-spec" $ \folder ->
        withServer serverDefaults $ \original ->
          withServer serverDefaults $ \copy -> do
            let file = folder </> "recording"
                load = do
                  eventually 30 "somebody watches" (watched original)
                  withServerConnection original $ \connection -> do
                    forM_ [1 .. 50 :: Int] $ \number -> do
                      _ <- requestOk connection ["SET", Char8.pack ("key " <> show number), ByteString.pack [0, 10, 13, 34, 92, 255, fromIntegral number]]
                      requestOk connection ["INCRBY", "sum", Char8.pack (show number)]
                    -- They follow all of these, and so the recording ends after them.
                    forever (requestOk connection ["PING"])
            (code, output, _) <-
              withAsync load (const (run' (["bench", "record", "--count", "500", "--for", "60s", "--out", file] <> at original)))
            code `shouldBe` ExitSuccess
            output `shouldSatisfy` ("commands in" `isInfixOf`)
            listDirectory folder `shouldReturn` ["recording"]
            recording <- parseRecording <$> ByteString.readFile file
            recording `shouldSatisfy` isRight
            (again, _, problem) <- run' (["bench", "replay", file, "--speed", "10"] <> at copy)
            (again, problem) `shouldSatisfy` ((== ExitSuccess) . fst)
            forM_ ("sum" : [Char8.pack ("key " <> show number) | number <- [1 .. 50 :: Int]]) $ \key -> do
              expected <- command original ["GET", key]
              command copy ["GET", key] `shouldReturn` expected
            command copy ["GET", "sum"] `shouldReturn` Text "1275"

    it "record through TLS, as a user, and no more than were wanted" $
      withSystemTempDirectory "replay-spec" $ \folder ->
        withCertificates $ \certificates ->
          withServer
            serverDefaults
              { optionsTls =
                  Just
                    TlsOptions
                      { tlsKeyPair = certificatesServer certificates,
                        tlsAuthority = certificatesAuthority certificates,
                        tlsClients = ClientCertificatesIgnored
                      }
              }
            $ \server -> do
              _ <- command server ["ACL", "SETUSER", "listener", "on", ">secret", "+monitor"]
              let file = folder </> "recording"
                  port = maybe "0" show (serverTlsPort server)
                  said = ["-h", serverHost server, "-p", port, "--tls", "--cacert", certificatesAuthority certificates, "-u", "listener"]
                  load = do
                    eventually 30 "somebody watches" (watched server)
                    forM_ [1 .. 10 :: Int] $ \number -> command server ["SET", "key", Char8.pack (show number)]
              ((code, _, problem), _) <- concurrently (run' (["bench", "record", "--count", "7", "--for", "60s", "--out", file, "-a", "secret"] <> said)) load
              (code, problem) `shouldBe` (ExitSuccess, "")
              recording <- Char8.lines <$> ByteString.readFile file
              length recording `shouldBe` 7
              (refused, _, why) <- run' (["bench", "record", "--for", "1s", "--out", folder </> "other", "-a", "wrong"] <> said)
              refused `shouldBe` ExitFailure 3
              why `oneLine` "WRONGPASS"
              listDirectory folder `shouldReturn` ["recording"]

    it "replay ends when its recording does, and says why, when the server dies meanwhile" $
      withSystemTempDirectory "replay-spec" $ \folder ->
        withServer serverDefaults $ \server -> do
          let file = folder </> "recording"
              killer = eventually 30 "the replay has begun" ((/= Nil) <$> command server ["GET", "one"]) >> kill9 server
          -- Two seconds.
          ByteString.writeFile file (Char8.unlines [line (number * 1000) "a:1" ["INCR", "one"] | number <- [0 .. 2000]])
          (code, output, problem) <- within 60 (withAsync killer (const (run' (["bench", "replay", file] <> at server))))
          code `shouldBe` ExitFailure 2
          (output <> problem) `shouldSatisfy` \said -> all (`isInfixOf` said) ["no connection to 127.0.0.1:" <> show (serverPort server), "Connection refused", "ServerAway"]

    it "record all primaries of a cluster, merged by time" $
      withSystemTempDirectory "replay-spec" $ \folder ->
        withCluster clusterDefaults {clusterPrimaryCount = 3, clusterNodeTimeout = 15000} $ \cluster -> do
          nodes <- clusterNodes cluster
          let file = folder </> "recording"
              servers = map nodeServer nodes
              load = do
                forM_ servers $ \server -> eventually 30 "somebody watches" (watched server)
                -- Each node runs commands that concern no key, all nodes in turn.
                forM_ [1 .. 5 :: Int] $ \number ->
                  forM_ (zip [1 :: Int ..] servers) $ \(place, server) -> command server ["ECHO", Char8.pack (show (number * 10 + place))]
          ((code, _, problem), _) <- concurrently (within 50 (run' (["bench", "record", "-c", "--for", "3s", "--out", file] <> concatMap at (take 1 servers)))) (within 50 load)
          (code, problem) `shouldBe` (ExitSuccess, "")
          observed <- map parseLine . Char8.lines <$> ByteString.readFile file
          [observedWords one | Right one <- observed, "ECHO" `elem` observedWords one]
            `shouldBe` [["ECHO", Char8.pack (show (number * 10 + place))] | number <- [1 .. 5 :: Int], place <- [1 .. length servers]]
          listDirectory folder `shouldReturn` ["recording"]

    it "sends at the recorded times, in order, and counts as the server does" $
      withSystemTempDirectory "replay-spec" $ \folder ->
        withServer serverDefaults $ \server -> do
          (code, run) <- replayed server folder []
          code `shouldBe` ExitSuccess
          runOps run `shouldBe` 200
          runSeconds run `shouldSatisfy` (\seconds -> seconds >= 0.0995 && seconds < 5)
          fmap Histogram.count (runResponse run) `shouldBe` Just 200
          runAgreement run `shouldBe` Agrees (Map.fromList [("get", 0), ("incr", 100), ("rpush", 100), ("set", 0)])
          runNotes run `shouldSatisfy` any ("left out" `Text.isInfixOf`)
          command server ["LRANGE", "list", "0", "-1"]
            `shouldReturn` List [Text (Char8.pack (show number)) | number <- [1 .. 100 :: Int]]

    it "does not count the time that its connection takes to open" $
      withSystemTempDirectory "replay-spec" $ \folder ->
        withServer serverDefaults $ \server ->
          withRelay 150000000 (serverAddress server) $ \relay -> do
            (code, run) <- replayedAt ["-h", "127.0.0.1", "-p", show (relayPort relay)] folder []
            code `shouldBe` ExitSuccess
            -- A round trip takes 300 ms, and a handshake before it as long again.
            fmap Histogram.maximumValue (runResponse run) `shouldSatisfy` maybe False (\most -> most >= 300000000 && most < 550000000)

    it "is faster or slower if told so" $
      withSystemTempDirectory "replay-spec" $ \folder ->
        withServer serverDefaults $ \server -> do
          (_, slow) <- replayed server folder ["--speed", "0.2"]
          runSeconds slow `shouldSatisfy` (>= 0.4975)
          (_, unpaced) <- replayed server folder ["--unpaced"]
          runSeconds unpaced `shouldSatisfy` (< 0.4975)
          fmap Histogram.count (runResponse unpaced) `shouldBe` Nothing

    it "counts errors by class, and ends badly" $
      withSystemTempDirectory "replay-spec" $ \folder ->
        withServer serverDefaults $ \server -> do
          _ <- command server ["SET", "list", "no list"]
          (code, run) <- replayed server folder ["--unpaced"]
          code `shouldBe` ExitFailure 2
          runErrorCount run `shouldBe` 100
          map iterationErrors (runIterations run) `shouldBe` [Map.fromList [("ReplyError WRONGTYPE", 100)]]
          -- Each also counts in the second in which it came.
          sum [sliceErrors stats | one <- runIterations run, slice <- iterationSeries one, stats <- Map.elems (sliceCommands slice)] `shouldBe` 100

    it "says in one line what it cannot read, or has no server for" $
      withSystemTempDirectory "replay-spec" $ \folder ->
        withServer serverDefaults {optionsPassword = Just "secret"} $ \server -> do
          let file = folder </> "recording"
          ByteString.writeFile file (line 0 "a:1" ["GET", "k"] <> "\n1.000000 [0 a:1] \"get\" \"k\n")
          (broken, _, problem) <- run' (["bench", "replay", file, "-a", "secret"] <> at server)
          broken `shouldBe` ExitFailure 2
          problem `oneLine` "recording:2:26: \" is expected here"
          (missing, _, where') <- run' (["bench", "replay", folder </> "none", "-a", "secret"] <> at server)
          missing `shouldBe` ExitFailure 3
          where' `oneLine` "no such file or directory"
          (refused, _, why) <- run' (["bench", "record", "--for", "1s", "--out", folder </> "out"] <> at server)
          refused `shouldBe` ExitFailure 3
          why `oneLine` "NOAUTH"
          (nowhere, _, what) <- run' (["bench", "record", "--for", "1s", "-a", "secret", "--out", folder </> "no" </> "out"] <> at server)
          nowhere `shouldBe` ExitFailure 2
          what `oneLine` "cannot be written"
          (noHost, _, asks) <- run' ["bench", "replay", file]
          noHost `shouldBe` ExitFailure 2
          asks `oneLine` "--host"
          listDirectory folder `shouldReturn` ["recording"]
