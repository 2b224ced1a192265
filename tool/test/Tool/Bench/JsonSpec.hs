module Tool.Bench.JsonSpec (spec) where

import Data.Aeson (Value (..), decode, encode, object, (.=))
import Data.Aeson.Key qualified as Key
import Data.Aeson.Types (parseMaybe, withObject, (.:))
import Data.ByteString.Lazy qualified as Lazy
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Sample (sample)
import Test.Hspec
import Tool.Bench.Json
import Tool.Bench.Result

field :: Text -> Value -> Maybe Value
field name = parseMaybe (withObject "object" (.: Key.fromText name))

spec :: Spec
spec = describe "Tool.Bench.Json" $ do
  it "names its schema" $
    field "schema" (document [] [sample] []) `shouldBe` Just "redis-client-bench/1"

  it "has the four fields that other harnesses write" $
    map (`field` runObject sample) ["operation", "ops_per_sec", "duration_sec", "total_ops"]
      `shouldBe` map Just [String "mixed", Number 500, Number 2, Number 1000]

  it "has exactly the fields of the schema" $ do
    let names = decode (encode (runObject sample)) :: Maybe (Map.Map Text Value)
    fmap Map.keys names
      `shouldBe` Just
        [ "capabilities",
          "client_cpu_ns_per_op",
          "commandstats",
          "duration_sec",
          "error_count",
          "errors",
          "hit_ratio",
          "hits",
          "latency_ns",
          "latency_ns_get",
          "latency_ns_set",
          "memory_bytes",
          "misses",
          "nodes",
          "operation",
          "ops_per_sec",
          "parameters",
          "problems",
          "redis_benchmark",
          "server",
          "target",
          "tls",
          "total_ops"
        ]

  it "writes latencies in nanoseconds" $
    (field "latency_ns" (runObject sample) >>= field "max") `shouldBe` Just (Number 1000000)

  it "can be read back by the gate" $ do
    let broken = sample {runErrors = Map.fromList [("TimeoutError", 2)]}
        written = Lazy.toStrict (encode (document ["note" .= object []] [sample, broken] []))
    case decodeSummaries written of
      Right [good, bad] -> do
        summaryOpsPerSecond good `shouldBe` 500
        summaryCpuPerOp good `shouldBe` 412
        summaryProblems good `shouldBe` []
        summaryNotCompared good `shouldBe` Nothing
        summaryPeakResident good `shouldBe` 3
        summaryErrors bad `shouldBe` Map.fromList [("TimeoutError", 2)]
        summaryProblems bad `shouldBe` problems broken
      other -> expectationFailure (show other)

  it "does not read another schema" $
    decodeSummaries "{\"schema\":\"other/1\",\"runs\":[]}" `shouldSatisfy` either (const True) (const False)
