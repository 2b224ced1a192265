module Redis.TestKit.CommandSpec (spec) where

import Data.ByteString.Char8 qualified as Char8
import Data.Either (fromLeft)
import Data.Map.Strict qualified as Map
import Redis.TestKit.Command
import Redis.TestKit.Server
import Redis.TestKit.Wait (TestKitFailure)
import Test.Hspec

spec :: Spec
spec = aroundAll (withServer serverDefaults) $ do
  it "reads every kind of reply" $ \server ->
    withServerConnection server $ \connection -> do
      request connection ["SET", "key", "line\r\nbreak"] >>= (`shouldBe` Status "OK")
      request connection ["GET", "key"] >>= (`shouldBe` Text "line\r\nbreak")
      request connection ["GET", "missing"] >>= (`shouldBe` Nil)
      request connection ["INCR", "number"] >>= (`shouldBe` Number 1)
      request connection ["MGET", "key", "missing"]
        >>= (`shouldBe` List [Text "line\r\nbreak", Nil])
      request connection ["INCR", "key"]
        >>= (`shouldBe` Failed "ERR value is not an integer or out of range")

  it "says how much of a command is missing at least, exactly within its last word" $ \_ -> do
    let bytes = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n" <> Char8.replicate 100000 'x' <> "\r\n"
        missing seen = fromLeft 0 (takeRequest (Char8.take seen bytes))
        size = Char8.length bytes
    [seen | seen <- [0 .. 40] <> [1000, 50000, size - 1], missing seen < 1 || missing seen > size - seen] `shouldBe` []
    [size - seen - missing seen | seen <- [40, 1000, 50000, size - 1]] `shouldBe` [0, 0, 0, 0]
    takeRequest (bytes <> "*1") `shouldBe` Right (["SET", "k", Char8.replicate 100000 'x'], "*1")

  it "reads a reply larger than one receive" $ \server ->
    withServerConnection server $ \connection -> do
      let large = Char8.replicate 1000000 'x'
      request connection ["SET", "large", large] >>= (`shouldBe` Status "OK")
      request connection ["GET", "large"] >>= (`shouldBe` Text large)

  it "throws an error reply where none is expected" $ \server ->
    command server ["NO-SUCH-COMMAND"] `shouldThrow` \(_ :: TestKitFailure) -> True

  it "reads which server it is, and does not take Valkey for Redis" $ \_ ->
    map
      (nameAndVersion . infoFields)
      ["redis_version:7.0.15\r\n", "redis_version:7.2.4\r\nvalkey_version:9.1.0\r\n", "tcp_port:1\r\n"]
      `shouldBe` [Just "redis 7.0.15", Just "valkey 9.1.0", Nothing]

  it "reads command statistics" $ \_ ->
    commandCalls
      "# Commandstats\r\ncmdstat_get:calls=7,usec=20,usec_per_call=2.86,rejected_calls=1,failed_calls=2\r\ncmdstat_config|set:calls=3,usec=4,usec_per_call=1.33,rejected_calls=0,failed_calls=0\r\n"
      `shouldBe` Map.fromList
        [("get", CommandCalls 7 1 2), ("config|set", CommandCalls 3 0 0)]
