module Tool.OptionsSpec (spec) where

import Data.Char (isUpper)
import Data.List (isInfixOf, isPrefixOf, nub)
import Data.List.NonEmpty (NonEmpty (..))
import Redis.Config (ReadFrom (..), toSecret)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck hiding (once)
import Tool.Bench.Workload.Distribution (Distribution (..))
import Tool.Bench.Workload.Keys (KeyPart (..), KeyTemplate (..))
import Tool.Bench.Workload.Template (Task (..))
import Tool.Bench.Workload.Values (ValueSizes (..))
import Tool.Connect (targetIsCluster, targetNetwork, targetOf, targetResp, targetUsesTls)
import Tool.Options
import Tool.Options.Bench
import Tool.Options.Connection
import Tool.Options.Load
import Tool.Options.Modes (ReportOptions (..))
import Tool.Options.Output
import Tool.Options.Workload

parse :: String -> Outcome
parse = parseArguments Nothing . words

once :: Outcome -> Maybe BenchOptions
once = \case
  Run (BenchOnce options) -> Just options
  _ -> Nothing

rejected :: String -> String -> Expectation
rejected line part = case parse line of
  Reject message -> do
    message `shouldSatisfy` (part `isInfixOf`)
    lines message `shouldBe` [message]
  other -> expectationFailure ("accepted: " <> show other)

spec :: Spec
spec = describe "Tool.Options" $ do
  it "takes the mode before, between and after the options" $ do
    let expected = parse "bench -c -h server -p 7000 --operation get"
    fmap (workloadSelection . benchWorkload) (once expected) `shouldBe` Just (SelectOperation OperationGet)
    parse "-c -h server bench -p 7000 --operation get" `shouldBe` expected
    parse "-c -h server -p 7000 --operation get bench" `shouldBe` expected
    parse "-ch server --port=7000 bench --operation=get" `shouldBe` expected

  it "takes the words of a mode anywhere" $ do
    let expected = Run (BenchReport (ReportOptions "run.json" (Outputs [(FormatCsv, "out.csv")])))
    parse "bench report run.json --csv out.csv" `shouldBe` expected
    parse "--csv out.csv bench report run.json" `shouldBe` expected
    parse "bench --csv out.csv report run.json" `shouldBe` expected

  prop "takes options in any order" $
    forAll (shuffle pieces) $ \shuffled ->
      parseArguments Nothing (concat shuffled) == parseArguments Nothing (concat pieces)

  it "does not take the value of an option for the mode" $ do
    fmap (connectionUser . benchConnection) (once (parse "-h s -u bench -a suite bench"))
      `shouldBe` Just (Just "bench")
    rejected "-u bench" "mode"

  it "has no option that takes a value in one mode only" $
    ambiguousOptions `shouldSatisfy` null

  it "has the documented defaults" $
    fmap benchLoad (once (parse "bench")) `shouldBe` Just defaultLoad

  it "reads every option of a run" $
    once
      ( parse
          "bench -h s -p 1 -a p -u n -t --cacert ca --cert c --key k --sni x -c --operation set --duration 2.5 -n 4 --mux-count 2 --key-size 20 --value-size 0 --batch 1 --keys 10 --warmup 0 --json - --seed 7 --no-poll"
      )
      `shouldBe` Just
        BenchOptions
          { benchConnection =
              ConnectionOptions
                { connectionHost = Just "s",
                  connectionPort = Just 1,
                  connectionUser = Just "n",
                  connectionPassword = Just (toSecret "p"),
                  connectionTls =
                    TlsOptions
                      { tlsWanted = True,
                        tlsAuthority = Just "ca",
                        tlsCertificate = Just "c",
                        tlsKey = Just "k",
                        tlsInsecure = False,
                        tlsServerName = Just "x"
                      },
                  connectionCluster = True,
                  connectionUrl = Nothing,
                  connectionSocket = Nothing,
                  connectionDatabase = Nothing,
                  connectionResp2 = False,
                  connectionReplicas = False
                },
            benchWorkload = defaultWorkload {workloadSelection = SelectOperation OperationSet, workloadSizes = SizeFixed 0},
            benchLoad =
              LoadOptions
                { loadDuration = 2.5,
                  loadThreads = 4,
                  loadMuxCount = Just 2,
                  loadBatch = 1,
                  loadKeys = 10,
                  loadKeySize = 20,
                  loadValueSize = 0,
                  loadSeed = 7,
                  loadPolling = False,
                  loadPlan = defaultPlan {planWarmup = WarmupFor 0}
                },
            benchOutputs = Outputs [(FormatJson, "-")]
          }

  it "takes results in any combination of forms" $ do
    fmap benchOutputs (once (parse "bench --html h --json j --csv c --prometheus p --hdr-log l --hgrm x --compat seed=s --compat memtier=m --compat rb-csv=r"))
      `shouldBe` Just
        ( Outputs
            [ (FormatJson, "j"),
              (FormatHtml, "h"),
              (FormatCsv, "c"),
              (FormatPrometheus, "p"),
              (FormatHdrLog, "l"),
              (FormatHgrm, "x"),
              (FormatSeed, "s"),
              (FormatMemtier, "m"),
              (FormatCsv, "r")
            ]
        )
    parse "bench report a.json --html b.html" `shouldBe` parse "bench --html b.html report a.json"

  it "reads every option of a workload" $
    fmap (\options -> (benchWorkload options, loadKeys (benchLoad options), loadValueSize (benchLoad options))) (once (parse workload))
      `shouldBe` Just
        ( WorkloadOptions
            { workloadSelection = SelectMix ((70, TaskNamed "get") :| [(30, TaskNamed "set")]),
              workloadTemplate = Just (KeyTemplate [KeyText "p_", KeyUuid (Just 1000)]),
              workloadDistribution = Zipf 1.5,
              workloadSizes = SizeRange 10 2048,
              workloadCompressible = Just 0.5,
              workloadExpiry = Just (60, 600),
              workloadHitRatio = Just 0.9,
              workloadSubscribers = 10
            },
          1000,
          2048
        )

  it "says in one line what a workload cannot be" $ do
    rejected "bench --test gett" "there is no test"
    rejected "bench --distribution zypf" "column 5"
    rejected "bench -m 70:get,set:20" "there is no test"
    rejected "bench -d 100-2" "the range ends before it begins"
    rejected "bench --key-template always" "the same name"
    rejected "bench --key-template {uuid:10} --keys 20" "--keys for 20"
    rejected "bench --keys 20000000 --distribution zipf" "16777216"
    rejected "bench --command SUBSCRIBE" "connection"
    rejected "bench --hit-ratio 2" "a share is 1 at most"
    rejected "bench -m 0:get" "a weight is 1 at least"
    rejected "bench --command __rand_0th__" "no placeholder __rand_0th__"
    rejected "bench --command {key" "{key LAW N}"
    rejected "bench --key-template {" "{hex:DIGITS}"
    rejected "bench --duration 1 --duration 2" "--duration is given twice"
    rejected "bench -h a -h b" "-h is given twice"
    rejected "bench --allow little,errors" "not \"errors\""
    rejected "bench compare a b --html x --json x" "x is named twice"
    rejected "bench record --for 1s --out x" "--host"

  it "takes a form of keys beside redis-benchmark where that reads no keys" $
    case parse "bench campaign --reference --key-template k{n} --workloads set,eval-set" of
      Run (BenchCampaign _) -> pure ()
      other -> expectationFailure (show other)

  it "reads -h as the host, and --help as a question" $ do
    fmap (connectionHost . benchConnection) (once (parse "bench -h localhost"))
      `shouldBe` Just (Just "localhost")
    case parse "bench --help" of
      Help text -> text `shouldSatisfy` ("--operation" `isInfixOf`)
      other -> expectationFailure (show other)
    case parse "--help" of
      Help text -> text `shouldSatisfy` ("bench" `isInfixOf`)
      other -> expectationFailure (show other)

  it "has every option of a run in one group of its help, and none besides" $
    case parse "bench --help" of
      Help text -> do
        let (groups, closing) = break ("Exit codes" `isPrefixOf`) (lines text)
            titles = [line | line@(first : _) <- groups, isUpper first, last line == ':']
            shown = [words line | line <- groups, "  -" `isPrefixOf` line]
        titles `shouldBe` ["Connection:", "Workload:", "Load:", "Output:", "Trust:", "Other:", "Available commands:"]
        closing `shouldSatisfy` (not . null)
        takeWhile (/= "Available commands:") (dropWhile (/= "Other:") groups) `shouldSatisfy` (== 1) . length . filter ("  -" `isPrefixOf`)
        length shown `shouldBe` length (nub shown)
        [needed | needed <- ["-h,--host", "--rate", "--json", "--allow", "--mix"], not (any ((needed `isInfixOf`) . concat . take 1) shown)] `shouldBe` []
      other -> expectationFailure (show other)

  it "says its version, and completes words for shells" $ do
    case parse "--version" of
      Help text -> text `shouldSatisfy` ("redis-client 0.1" `isPrefixOf`)
      other -> expectationFailure (show other)
    let asked = ["--bash-completion-index", "2", "--bash-completion-word", "redis-client", "--bash-completion-word", "bench", "--bash-completion-word", "--ra"]
    case parseArguments Nothing asked of
      Complete -> completions asked `shouldReturn` "--rate\n--ramp-to\n"
      other -> expectationFailure (show other)
    completions ["--bash-completion-script", "redis-client"] >>= (`shouldSatisfy` isInfixOf "complete -o filenames")

  it "reads from replicas if the option or the URL says so" $ do
    let readFrom = fmap (connectionReadFrom . benchConnection) . once . parse
    readFrom "bench -h s -c" `shouldBe` Just ReadPrimary
    readFrom "bench -h s -c --read-replicas" `shouldBe` Just PreferReplica
    readFrom "bench --url redis+cluster://s" `shouldBe` Just ReadPrimary
    readFrom "bench --url redis+cluster://s?read_from=replica" `shouldBe` Just PreferReplica
    readFrom "bench --url redis+cluster://s --read-replicas" `shouldBe` Just PreferReplica
    readFrom "bench --url redis+cluster://s?read_from=zone:a" `shouldBe` Just (SameZone "a")
    rejected "bench --url redis+cluster://s?read_from=latency --operation set" "read_from in the URL), but set reads nothing"
    rejected "bench --url redis+cluster://s?read_from=replica --operation set" "read_from in the URL), but set reads nothing"

  it "says of a URL what the record needs: cluster, TLS, protocol" $ do
    let target = fmap (targetOf . benchConnection) . once . parse
        about line = (\found -> (targetIsCluster found, targetUsesTls found, targetResp found, targetNetwork found)) <$> target line
    about "bench --url redis://127.0.0.1" `shouldBe` Just (False, False, 3, "local")
    about "bench --url rediss://s?protocol=2" `shouldBe` Just (False, True, 2, "remote")
    about "bench --url redis+cluster://s" `shouldBe` Just (True, False, 3, "remote")
    about "bench --url valkey://127.0.0.1" `shouldBe` Just (False, False, 3, "local")
    about "bench --url valkeys+cluster://s" `shouldBe` Just (True, True, 3, "remote")
    about "bench -h s -c -t --resp2" `shouldBe` Just (True, True, 2, "remote")

  it "takes the password of the environment only where none is given" $ do
    let password arguments =
          connectionPassword . benchConnection <$> once (parseArguments (Just "env") (words arguments))
    password "bench -h s" `shouldBe` Just (Just (toSecret "env"))
    password "bench -h s -a own" `shouldBe` Just (Just (toSecret "own"))
    password "bench" `shouldBe` Just Nothing

  it "never shows a password" $
    show (parse "bench -h s -a hunter2") `shouldSatisfy` (not . ("hunter2" `isInfixOf`))

  describe "says in one line what is wrong" $ do
    let cases =
          [ ("", "try --help"),
            ("bench --operation delete", "not \"delete\""),
            ("bench --duration soon", "not a number of seconds"),
            ("bench --duration 0", "--duration"),
            ("bench --duration -1", "not a number of seconds"),
            ("bench -n 0", "-n must be"),
            ("bench -n x", "x"),
            ("bench -n 100000", "redis-benchmark's -n is --requests here"),
            ("bench --batch 0", "--batch"),
            ("bench -c 50 -n 1000", "--threads 50 --batch 1 --requests 1000"),
            ("bench --mux-count 0", "--mux-count"),
            ("bench --keys 0", "--keys"),
            ("bench --key-size 4 --keys 100000", "too small for 100000 different keys (needs 5)"),
            ("bench --value-size -1", "--value-size"),
            ("bench -h s -p 0", "1 to 65535"),
            ("bench -h s -p 65536", "1 to 65535"),
            ("bench -p 7000", "--port needs --host"),
            ("bench -a secret", "--password needs --host"),
            ("bench --insecure", "--insecure needs --host"),
            ("bench -h s --cacert f", "--cacert needs --tls"),
            ("bench -h s -t --cert f", "--cert needs --key"),
            ("bench -h s -t --key f", "--key needs --cert"),
            ("bench -h s -t --insecure --cacert f", "exclude each other"),
            ("bench -h s -t --sni=", "--sni is empty"),
            ("bench -h s -u name", "--user needs a password"),
            ("bench --nonsense", "--nonsense"),
            ("bench merge a.json b.json --batch 3", "--batch"),
            ("bench --json a --html a", "named twice"),
            ("bench --json - --csv -", "only one form"),
            ("bench --hgrm -", "--hgrm"),
            ("bench --compat seed", "--compat seed=FILE"),
            ("bench --compat xml=f", "not \"xml\""),
            ("bench report", "FILE"),
            ("bench compare a.json", "AFTER"),
            ("bench merge", "FILE"),
            ("bench merge a.json", "at least two"),
            ("bench merge a.json a.json", "named twice"),
            ("bench compare a.json b.json --fail-if nonsense", "character 1"),
            ("bench compare a.json b.json --fail-if p99", "< or > is missing"),
            ("bench report r.json --csv c --csv d", "--csv"),
            ("bench -h", "-h"),
            ("bench --keys 18446744073709551617", "not above"),
            ("bench -n 99999999999999999999", "not above"),
            ("bench --seed -1", "not below 0"),
            ("bench --keys 1.5", "not a whole number"),
            ("bench -h s --db 18446744073709551617", "a database is"),
            ("bench --rate 0", "not a rate from 0.001"),
            ("bench --rate 10 --ramp-to 99999999999/1", "a ramp is"),
            ("bench --rate 1k --batch 1", "--batch belongs to the closed loop"),
            ("bench --rate 1k --poisson --ramp-to 2k/1", "--ramp-to and an option before it exclude each other"),
            ("bench --test get --operation get", "--operation and an option before it exclude each other"),
            ("bench --sweep 1k,99999999999", "a sweep is"),
            ("bench --start-at 99999999999999999999", "a time is"),
            ("bench --start-at 1969-12-31T00:00:00Z", "a time is"),
            ("bench record -h s", "--out"),
            ("bench record -h s --out x --count 0", "--count"),
            ("bench record -h s --out x --for 0s", "--for"),
            ("bench record -h s --out x --for 99999999h", "at most"),
            ("bench record -h s --out=", "--out needs a file"),
            ("bench replay file -h s --speed 0", "above 0"),
            ("bench replay file -h s --unpaced --speed 2", "exclude each other"),
            ("bench campaign --clients 18446744073709551617", "from 1 to 100000"),
            ("bench campaign --iterations 18446744073709551617", "not above"),
            ("bench campaign --key-template fixed", "the same name"),
            ("bench campaign --key-template {uuid:10}", "--keys for 10000"),
            ("bench campaign --key-template {nothing}", "--key-template: expected"),
            ("bench --rate 1k --batch 64", "--batch belongs to the closed loop"),
            ("bench --sweep 4 --batch=64", "--batch belongs to the closed loop"),
            ("bench --requests 10 --duration 10", "no --duration"),
            ("bench --no-sampling --sample 1", "--sample and an option before it exclude each other"),
            ("bench --rate 1k --sweep 4", "--sweep and an option before it exclude each other"),
            ("bench --sweep 4 --rate 1k", "--rate and an option before it exclude each other"),
            ("bench -h s --start-at 1769860800 --sweep 4", "--sweep and an option before it exclude each other"),
            ("bench -h s --start-at 1769860800 --test get,set", "no second --test"),
            ("bench --test blpop --batch 64", "blpop waits for each"),
            ("bench --key-template {n} --key-size 16", "no --key-size"),
            ("bench --key-template {uuid:10} --keys 100000", "than --keys 100000"),
            ("bench --test ping --key-template k{n}", "--key-template: ping_inline and ping_mbulk"),
            ("bench --test incr --key-size 20", "--key-size: incr"),
            ("bench -c --test mset --key-template k{n}", "--key-template: mset in a cluster names no keys of its own choice"),
            ("bench --url redis+cluster://s --test mget --key-size 20", "--key-size: mget in a cluster"),
            ("bench campaign --reference --key-template k{n}", "not with the workload get"),
            ("bench --command PING --distribution uniform", "draws no keys"),
            ("bench --test lpop --distribution zipf", "--distribution: lpop"),
            ("bench --test sadd --compress-ratio 0.5", "--compress-ratio: sadd"),
            ("bench --operation get --expiry 60", "--expiry is for the tests set, setex and getex"),
            ("bench --operation set --hit-ratio 1", "--hit-ratio is for the test get"),
            ("bench --operation get --keys 1 --key-template k --hit-ratio 0.5", "--hit-ratio"),
            ("bench --test get,set --subscribers 10", "--subscribers is for the test publish, not get and set"),
            ("bench -h s -c --operation set --read-replicas", "set reads nothing"),
            ("bench -c --read-replicas", "--read-replicas needs --host"),
            ("bench --url redis://s -a secret", "--password and --url exclude each other"),
            ("bench compare a.json b.json --significant", "--significant is for rules with %"),
            ("bench compare a.json b.json --significant --fail-if p99>5ms", "--significant is for rules with %"),
            ("bench --url rediss://s --cacert f", "a URL takes ?ca=FILE"),
            ("bench --url rediss://s --tls", "a URL says rediss://, and ?ca=FILE"),
            ("bench --warmup auto --slice 60", "--slice can be 1 at most"),
            ("bench --test get,get", "get is named twice"),
            ("bench compare a.json b.json --fail-if throughput<-5", "never below -5"),
            ("bench campaign --net rtt=5s", "from 1us to 4s"),
            ("tunnel", "tunnel"),
            ("bench again", "again")
          ]
    mapM_ (\(line, part) -> it ("redis-client " <> line) (rejected line part)) cases

  describe "takes, because it has an effect," $ do
    let cases =
          [ "bench --batch 64",
            "bench --rate 1k --duration 10",
            "bench --sweep 4 --duration 10",
            "bench --requests 10 --warmup 1",
            "bench --rate 1k --requests 10",
            "bench --test blpop --batch 1",
            "bench --test blpop,get --batch 64",
            "bench --test setex --expiry 60",
            "bench --operation mixed --expiry 60 --hit-ratio 0.9",
            "bench --test publish --subscribers 10",
            "bench --test ping,get --distribution zipf",
            "bench --key-template {uuid:10} --keys 10",
            "bench -h s -c --test set,get --read-replicas",
            "bench -h s -u --expiry -a --batch --rate 1k",
            "bench --db 3 --resp2",
            "bench compare a.json b.json --significant --fail-if p99>5%"
          ]
    mapM_ (\line -> it ("redis-client " <> line) (parse line `shouldSatisfy` \case Run _ -> True; _ -> False)) cases
  where
    workload = "bench -m 70:get,30:set --key-template p_{uuid:1000} --distribution zipf:1.5 -d 10-2k --compress-ratio 0.5 --expiry 60-600 --hit-ratio 0.9"
    pieces =
      [ ["bench"],
        ["-h", "bench"],
        ["-c"],
        ["--operation", "get"],
        ["-n", "3"],
        ["--seed=9"],
        ["-p", "7000"]
      ]
