-- | What the tool asks of servers besides the load: facts, samples, the disk.
module Tool.Bench.ServerFactsSpec (spec) where

import Control.Exception (bracket_)
import Data.ByteString.Char8 qualified as Char8
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Data.Maybe (isNothing)
import Data.Text qualified as Text
import Every (every)
import OnServer (asGuest, hasty)
import Redis.TestKit.Server
import Redis.TestKit.Wait (eventually)
import System.Directory (listDirectory)
import System.Environment (lookupEnv, setEnv, unsetEnv)
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import Test.Hspec
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Environment
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Sampler
import Tool.Bench.ServerFacts
import Tool.Bench.Time (monotonic)
import Tool.Connect (Target, plainTarget)

to :: Server -> Target
to server = plainTarget (Char8.pack (serverHost server)) (fromIntegral (serverPort server))

-- | A user that may run commands, but may not ask about the server.
guest :: AclUser
guest = AclUser {aclName = "guest", aclPassword = "pw", aclRules = "~* +@all -info -config"}

spec :: Spec
spec = describe "what servers say of themselves" $ do
  it "includes the program's hash, and settings that are not the default" $
    withServer serverDefaults {optionsConfig = ["maxmemory 123mb", "appendonly yes", "appendfsync always"]} $ \server -> do
      found <- serverFacts True (to server)
      let facts = foundFacts found
      Text.unpack (serverName facts) `shouldSatisfy` (\name -> any (`isInfixOf` name) ["redis ", "valkey "])
      fmap Text.length (serverSha256 facts) `shouldBe` Just 64
      Map.lookup "maxmemory" (serverConfig facts) `shouldBe` Just "128974848"
      Map.lookup "hz" (serverConfig facts) `shouldBe` Nothing
      Map.lookup "port" (serverConfig facts) `shouldBe` Nothing
      Map.lookup "dir" (serverConfig facts) `shouldBe` Nothing
      serverRefused facts `shouldBe` []
      foundPersistence found `shouldBe` Just "aof-always"
      -- It is the same clock, so the offset is no more than the reply took.
      fmap (\clock -> abs (clockOffset clock) <= clockUncertainty clock + 1000000) (serverClock facts) `shouldBe` Just True

  it "includes the hash of the program that the environment names, before it is started" $
    withSystemTempDirectory "hash-spec" $ \folder -> do
      writeFile (folder </> "server") "abc"
      old <- lookupEnv "REDIS_TESTKIT_SERVER"
      bracket_
        (setEnv "REDIS_TESTKIT_SERVER" (folder </> "server"))
        (maybe (unsetEnv "REDIS_TESTKIT_SERVER") (setEnv "REDIS_TESTKIT_SERVER") old)
        (startedServerHash `shouldReturn` Just "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")

  it "is told in words where the server refuses to" $
    withServer serverDefaults {optionsUsers = [guest]} $ \server -> do
      found <- serverFacts True (asGuest (to server))
      serverName (foundFacts found) `shouldBe` "unknown"
      foundPersistence found `shouldBe` Nothing
      map (Text.takeWhile (/= ':')) (serverRefused (foundFacts found)) `shouldBe` ["INFO", "CONFIG"]

  it "is sampled while something else goes on" $
    withServer serverDefaults $ \server -> do
      from <- monotonic
      samples <- withSampler (to server) 0.05 $ \sampler -> do
        eventually 10 "three samples" $ do
          now <- monotonic
          (>= 3) . length <$> taken sampler from now
        refusals sampler `shouldReturn` []
        monotonic >>= taken sampler from
      map sampleNode samples `shouldSatisfy` every (== Text.pack (serverHost server <> ":" <> show (serverPort server)))
      let times = map sampleAt samples
      zipWith (-) (drop 1 times) times `shouldSatisfy` every (> 0.01)
      map (Map.lookup "used_memory" . sampleValues) samples `shouldSatisfy` every (> Just 1000)

  it "is asked again after it was gone for a while" $
    withServer serverDefaults $ \server ->
      withSampler (hasty (to server)) 0.05 $ \sampler -> do
        from <- monotonic
        let count = length <$> (monotonic >>= taken sampler from)
        eventually 10 "a sample" ((>= 1) <$> count)
        kill9 server
        eventually 10 "a refusal" (not . null <$> refusals sampler)
        restart server
        early <- count
        eventually 30 "another sample" ((> early) <$> count)

  it "is not sampled where it refuses, which is said" $
    withServer serverDefaults {optionsUsers = [guest]} $ \server ->
      withSampler (asGuest (to server)) 0.02 $ \sampler -> do
        eventually 10 "a refusal" (not . null <$> refusals sampler)
        found <- refusals sampler
        found `shouldSatisfy` every ("NOPERM" `Text.isInfixOf`)
        (monotonic >>= taken sampler 0) `shouldReturn` []

  it "is read from INFO: the numbers that change, and those of each command of the load" $
    sampleValuesOf
      [ ("used_memory", "42"),
        ("used_cpu_sys", "1.5"),
        ("redis_version", "7.0.15"),
        ("role", "slave"),
        ("cmdstat_get", "calls=7,usec=21,usec_per_call=3.00"),
        ("cmdstat_config|get", "calls=7,usec=21"),
        ("latency_percentiles_usec_get", "p50=1.003,p99=2.007,p99.9=4.015")
      ]
      `shouldBe` Map.fromList
        [ ("used_memory", 42),
          ("used_cpu_sys", 1.5),
          ("role_master", 0),
          ("cmdstat_get.calls", 7),
          ("cmdstat_get.usec", 21),
          ("latency_percentiles_usec_get.p50", 1.003),
          ("latency_percentiles_usec_get.p99", 2.007),
          ("latency_percentiles_usec_get.p99.9", 4.015)
        ]

  it "names how it keeps what it is told" $ do
    let settings = Map.fromList
    persistenceOf (settings [("appendonly", "no"), ("save", "")]) `shouldBe` "none"
    persistenceOf (settings [("appendonly", "no"), ("save", "3600 1")]) `shouldBe` "rdb"
    persistenceOf (settings [("appendonly", "yes"), ("appendfsync", "everysec"), ("save", "")]) `shouldBe` "aof-everysec"

  it "shows no secret among its settings" $
    differing (Map.fromList [("requirepass", "x"), ("masterauth", "x"), ("tls-key-file", "x"), ("hz", "20")]) Map.empty
      `shouldBe` Map.fromList [("hz", "20")]

  describe "the disk" $ do
    it "is probed in a folder that can be written, and leaves nothing there" $
      withSystemTempDirectory "disk-spec" $ \folder -> do
        found <- probeDisk folder
        fmap (\disk -> Histogram.count (diskFsync disk) > 0 && Histogram.minimumValue (diskFsync disk) > 0) found `shouldBe` Just True
        listDirectory folder `shouldReturn` []

    it "is not known where nothing can be written" $ do
      found <- probeDisk "/proc"
      found `shouldSatisfy` isNothing

    it "is the one that is mounted nearest" $ do
      let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /data tmpfs rw,size=1 0 0\n/dev/b /data/db xfs rw 0 0\n"
      filesystemOf mounts "/data/dbx" `shouldBe` "tmpfs (rw,size=1)"
      filesystemOf mounts "/data/db/1" `shouldBe` "xfs (rw)"
      filesystemOf mounts "/home" `shouldBe` "ext4 (rw)"
