module Tool.Campaign.ServerSpec (spec) where

import Control.Exception (IOException, try)
import Control.Monad (void)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import Data.List (elemIndex, isPrefixOf, nub, stripPrefix)
import Data.Maybe (mapMaybe)
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Server
import System.Directory (listDirectory)
import System.Exit (ExitCode (ExitSuccess))
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import System.Posix.Files (setFileMode)
import System.Process (readProcess, readProcessWithExitCode)
import Test.Hspec
import Tool.Campaign.Design
import Tool.Campaign.Durability
import Tool.Campaign.Server
import Tool.Failure (Failure (failureText))

cellIn :: FilePath -> Cell
cellIn folder =
  Cell
    { cellServer = Named "redis-server" "redis-server",
      cellPersistence = PersistNone,
      cellPlace = Named "temporary" folder,
      cellWorkload = "set",
      cellPayload = 3,
      cellClients = 50,
      cellNet = NetLocal
    }

surroundings :: Surroundings
surroundings = Surroundings {surroundingsCores = [], surroundingsDelayer = DelayerRelay "for the test"}

setting :: Server -> String -> IO String
setting server name =
  command server ["CONFIG", "GET", Char8.pack name] >>= \case
    List [_, Text value] -> pure (Char8.unpack value)
    other -> fail (show other)

-- Checks the durability of a server with this persistence, with 20 callers.
powerCut :: Persistence -> IO Durability
powerCut persistence =
  withSystemTempDirectory "durability-spec" $ \folder ->
    withForgetfulServer surroundings (cellIn folder) {cellPersistence = persistence} (\disk -> checkDurability (Just disk) False 0.3 20 . startedServer)
      >>= either fail pure

-- Stand-ins for ip and tc, which write down how they are called, keep the names of namespaces, and
-- do not permit what begins with these words. The action gets their places, and what was called: of
-- the calls that begin with these words, the rest.
withStandIns :: [[String]] -> ((String -> FilePath) -> ([String] -> IO [String]) -> IO a) -> IO a
withStandIns forbidden action =
  withSystemTempDirectory "namespace-spec" $ \folder -> do
    let place name = folder </> name
        said beginning = mapMaybe (stripPrefix (unwords beginning <> " ")) . lines <$> readFile (folder </> "said")
        refusing call = "case \"$call\" in \"" <> unwords call <> "\"*) echo 'not permitted' >&2; exit 1 ;; esac"
    writeFile (folder </> "said") ""
    for_ ["ip", "tc"] $ \name -> do
      writeFile (place name) . unlines $
        ["#!/bin/sh", "call=\"" <> name <> " $*\"", "echo \"$call\" >>" <> folder </> "said"]
          <> map refusing forbidden
          <> [ "case \"$1 $2\" in",
               "'netns add') mkdir " <> folder </> "\"$3\" 2>" <> folder </> "problem || { cat " <> folder </> "problem >&2; exit 1; } ;;",
               "'netns del') rmdir " <> folder </> "\"$3\" ;;",
               "'netns exec') shift 3; exec \"$@\" ;;",
               "esac"
             ]
      setFileMode (place name) 0o700
    action place said

-- This program, by itself, does not do here what the test cannot do.
fails :: FilePath -> [String] -> Expectation
fails name arguments =
  try (readProcessWithExitCode name arguments "") >>= \case
    Left (_ :: IOException) -> pure ()
    Right (code, _, _) -> code `shouldNotBe` ExitSuccess

spec :: Spec
spec = do
  describe "Tool.Campaign.Server" $ do
    for_
      [ (PersistNone, "", "no", "everysec"),
        (PersistRdb, "3600 1 300 100 60 10000", "no", "everysec"),
        (PersistAofNo, "", "yes", "no"),
        (PersistAofEverysec, "", "yes", "everysec"),
        (PersistAofAlways, "", "yes", "always")
      ]
      $ \(persistence, save, appendonly, appendfsync) ->
        it ("starts a server that persists as " <> persistenceName persistence <> ", in a directory of its own") $
          withSystemTempDirectory "server-spec" $ \folder -> do
            withCellServer surroundings (cellIn folder) {cellPersistence = persistence} $ \started -> do
              let server = startedServer started
              setting server "save" >>= (`shouldBe` save)
              setting server "appendonly" >>= (`shouldBe` appendonly)
              setting server "appendfsync" >>= (`shouldBe` appendfsync)
              setting server "dir" >>= (`shouldSatisfy` (folder `isPrefixOf`))
              startedNetwork started `shouldBe` "local"
              startedPing started `shouldSatisfy` (> 0)
            listDirectory folder `shouldReturn` []

    it "puts the round trip before the server, and measures it" $
      withSystemTempDirectory "server-spec" $ \folder ->
        withCellServer surroundings (cellIn folder) {cellNet = NetRoundTrip 2000000} $ \started -> do
          startedNetwork started `shouldBe` "relay rtt=2ms"
          startedPing started `shouldSatisfy` (>= 2000000)
          startedPort started `shouldNotBe` serverPort (startedServer started)

    runIO delayer >>= \case
      DelayerRelay reason ->
        it ("takes the relay where the kernel does not delay; its delay is not tested here: " <> reason) $
          fails "unshare" ["--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
      DelayerNetem ->
        it "takes the kernel's delay" $
          withSystemTempDirectory "server-spec" $ \folder ->
            withCellServer surroundings {surroundingsDelayer = DelayerNetem} (cellIn folder) {cellNet = NetRoundTrip 2000000} $
              \started -> do
                startedNetwork started `shouldBe` "netem rtt=2ms"
                startedPing started `shouldSatisfy` (>= 2000000)

  describe "withNamespace" $ do
    it "takes another name and other addresses while some are taken, and gives all back" $
      withStandIns [] $ \place said -> do
        (one, other) <- withNamespaceBy place Nothing "redis-server" $ \one ->
          withNamespaceBy place Nothing "redis-server" $ \other -> pure (namespaceHost one, namespaceHost other)
        one `shouldNotBe` other
        names <- said ["ip", "netns", "add"]
        -- The first name twice: the second time it was taken.
        map (`elemIndex` names) names `shouldBe` map Just [0, 0, 2]
        gone <- said ["ip", "netns", "del"]
        gone `shouldBe` reverse (nub names)
        again <- withNamespaceBy place Nothing "redis-server" (pure . namespaceHost)
        again `shouldBe` one

    it "delays both ends, and enters with the program's arguments as they are" $
      withStandIns [] $ \place said -> do
        shown <- withNamespaceBy place (Just 1000000) "printf" $ \namespace ->
          readProcess (namespaceWrapper namespace) ["<%s>", "it's", "two words"] ""
        shown `shouldBe` "<it's><two words>"
        delays <- said ["tc", "qdisc", "add", "dev"]
        map (drop 1 . words) delays `shouldBe` replicate 2 (words "root netem delay 1000us limit 100000")
        map (take 3) delays `shouldBe` ["rcn", "rcf"]

    it "says what the system does not allow, and leaves nothing" $ do
      withStandIns [["ip", "netns", "add"]] $ \place _ ->
        withNamespaceBy place Nothing "redis-server" (\_ -> pure ()) `shouldThrow` ((== "network namespace: " <> place "ip" <> ": not permitted") . failureText)
      withStandIns [["ip", "link", "add"]] $ \place said -> do
        withNamespaceBy place Nothing "redis-server" (\_ -> pure ()) `shouldThrow` ((== "network namespace: " <> place "ip" <> ": not permitted") . failureText)
        names <- said ["ip", "netns", "add"]
        said ["ip", "netns", "del"] `shouldReturn` names

    runIO (try (withNamespace Nothing "redis-server" (\_ -> pure ()))) >>= \case
      Left problem ->
        it ("is not tested with a network of its own, which this system does not allow: " <> failureText problem) $
          fails "ip" ["netns", "add", "redis-client-test"]
      Right () ->
        it "runs a server in a network of its own" $
          withNamespace Nothing "redis-server" $ \namespace -> do
            let options =
                  serverDefaults
                    { optionsBinary = Just (namespaceWrapper namespace),
                      optionsHosts = [namespaceHost namespace]
                    }
            withServer options (\server -> command server ["ECHO", "from there"]) `shouldReturn` Text "from there"

  describe "Tool.Campaign.Durability" $ do
    it "finds every acknowledged key of a log that is synchronised always" $
      withSystemTempDirectory "durability-spec" $ \folder ->
        withCellServer surroundings (cellIn folder) {cellPersistence = PersistAofAlways} $ \started -> do
          let server = startedServer started
          void (command server ["MSET", "a", "1", "b", "2"])
          found <- checkDurability Nothing False 0.5 20 server
          durabilityAcknowledged found `shouldSatisfy` (> 20)
          durabilityEarlier found `shouldBe` 2
          (durabilityMissing found, durabilityWrong found) `shouldBe` (0, 0)
          found `shouldSatisfy` durabilityHolds

    it "misses every key of a server that keeps nothing" $
      withSystemTempDirectory "durability-spec" $ \folder ->
        withCellServer surroundings (cellIn folder) $ \started -> do
          found <- checkDurability Nothing False 0.3 5 (startedServer started)
          durabilityMissing found `shouldBe` durabilityAcknowledged found
          durabilityFound found `shouldBe` 0
          found `shouldNotSatisfy` durabilityHolds

    it "finds every acknowledged key after a power cut if the log is synchronised always" $ do
      found <- powerCut PersistAofAlways
      durabilityAcknowledged found `shouldSatisfy` (> 20)
      durabilityPowerCut found `shouldBe` True
      found `shouldSatisfy` durabilityHolds

    for_ [PersistAofNo, PersistAofEverysec] $ \persistence ->
      it ("misses acknowledged keys after a power cut with " <> persistenceName persistence) $ do
        found <- powerCut persistence
        durabilityMissing found `shouldSatisfy` (> 0)
        found `shouldNotSatisfy` durabilityHolds

    it "misses none of a log that is never synchronised when only the server is killed" $
      withSystemTempDirectory "durability-spec" $ \folder ->
        withCellServer surroundings (cellIn folder) {cellPersistence = PersistAofNo} $ \started ->
          checkDurability Nothing False 0.2 20 (startedServer started) >>= (`shouldSatisfy` durabilityHolds)

    it "misses keys of a log that lost its end" $ do
      let found = Durability {durabilityPowerCut = False, durabilityAcknowledged = 10, durabilityMissing = 0, durabilityWrong = 0, durabilityEarlier = 5, durabilityExpiring = False, durabilityFound = 14, durabilityRestart = 1}
      found `shouldNotSatisfy` durabilityHolds
      found {durabilityFound = 15} `shouldSatisfy` durabilityHolds
      found {durabilityFound = 15, durabilityWrong = 1} `shouldNotSatisfy` durabilityHolds

    it "misses no keys that were to expire" $ do
      let found = Durability {durabilityPowerCut = False, durabilityAcknowledged = 10, durabilityMissing = 0, durabilityWrong = 0, durabilityEarlier = 5, durabilityExpiring = True, durabilityFound = 12, durabilityRestart = 1}
      found `shouldSatisfy` durabilityHolds
      found {durabilityMissing = 1} `shouldNotSatisfy` durabilityHolds
