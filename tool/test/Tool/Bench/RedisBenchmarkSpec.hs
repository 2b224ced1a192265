module Tool.Bench.RedisBenchmarkSpec (spec) where

import Test.Hspec
import Tool.Bench.RedisBenchmark

benchmark :: RedisBenchmark
benchmark =
  RedisBenchmark
    { redisBenchmarkHost = "127.0.0.1",
      redisBenchmarkPort = 7000,
      redisBenchmarkCluster = False,
      redisBenchmarkTls = Nothing,
      redisBenchmarkLoad = ReferenceTest "get",
      redisBenchmarkClients = 16,
      redisBenchmarkPipeline = 64,
      redisBenchmarkKeys = 100000,
      redisBenchmarkValueSize = 512,
      redisBenchmarkPrefix = []
    }

spec :: Spec
spec = describe "Tool.Bench.RedisBenchmark" $ do
  it "asks for the same sizes" $
    unwords (referenceArgs 1000 benchmark)
      `shouldBe` "-h 127.0.0.1 -p 7000 -t get -c 16 -P 64 -r 100000 -d 512 -n 1000 --csv"

  it "sends a command instead of a test" $
    unwords (referenceArgs 7 benchmark {redisBenchmarkLoad = ReferenceCommand ["script", "load", "return 1"]})
      `shouldBe` "-h 127.0.0.1 -p 7000 -c 16 -P 64 -r 100000 -d 512 -n 7 --csv script load return 1"

  it "asks for a cluster and for TLS" $
    unwords
      ( referenceArgs
          5
          benchmark
            { redisBenchmarkCluster = True,
              redisBenchmarkTls = Just (ReferenceTls (Just "ca.pem") False)
            }
      )
      `shouldBe` "-h 127.0.0.1 -p 7000 --cluster --tls --cacert ca.pem -t get -c 16 -P 64 -r 100000 -d 512 -n 5 --csv"

  it "reads the CSV of version 7, also after a note of the cluster's nodes" $
    parseCsv
      "Cluster has 5 master nodes:\n\nMaster 0: 86 127.0.0.1:7000\n\n\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\"GET\",\"2857142.75\",\"0.308\",\"0.112\",\"0.279\",\"0.559\",\"0.815\",\"1.103\"\n"
      `shouldBe` Just (2857142.75, 0.279, 0.815)

  it "reads the test itself, not what it needs first" $
    parseCsv
      "\"test\",\"rps\",\"p50_latency_ms\",\"p99_latency_ms\"\n\"LPUSH (needed to benchmark LRANGE)\",\"90000.00\",\"0.1\",\"0.2\"\n\"LRANGE_100 (first 100 elements)\",\"40000.00\",\"0.3\",\"0.4\"\n"
      `shouldBe` Just (40000, 0.3, 0.4)

  it "reads the row of a command with commas" $
    parseCsv "\"test\",\"rps\",\"p50_latency_ms\",\"p99_latency_ms\"\n\"script load redis.call('set','a','b')\",\"50000.00\",\"0.1\",\"0.2\"\n"
      `shouldBe` Just (50000, 0.1, 0.2)

  it "reads nothing from anything else" $
    map parseCsv ["", "Could not connect to Redis", "\"test\",\"rps\"\n"]
      `shouldBe` [Nothing, Nothing, Nothing]

  it "says in one line why it could not run" $
    runCounted 1 benchmark {redisBenchmarkPrefix = ["no-such-program"]} >>= \case
      Left problem -> length (lines problem) `shouldBe` 1
      Right reference -> expectationFailure (show reference)
