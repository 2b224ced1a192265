module Tool.Campaign.ServerSpec (spec) where

import Control.Exception (try)
import Control.Monad (void)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import Data.List (isPrefixOf)
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Server
import System.Directory (listDirectory)
import System.IO.Temp (withSystemTempDirectory)
import Test.Hspec
import Tool.Campaign.Design
import Tool.Campaign.Durability
import Tool.Campaign.Namespace
import Tool.Campaign.Server
import Tool.Failure (Failure (failureText))

cellIn :: FilePath -> Cell
cellIn folder =
  Cell
    { cellServer = Named "redis-server" "redis-server",
      cellPersistence = PersistNone,
      cellPlace = Place "temporary" folder,
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

    it "takes the kernel's delay if there is one, else says why not" $
      withSystemTempDirectory "server-spec" $ \folder ->
        delayer >>= \case
          DelayerRelay reason -> reason `shouldNotBe` ""
          DelayerNetem ->
            withCellServer surroundings {surroundingsDelayer = DelayerNetem} (cellIn folder) {cellNet = NetRoundTrip 2000000} $
              \started -> do
                startedNetwork started `shouldBe` "netem rtt=2ms"
                startedPing started `shouldSatisfy` (>= 2000000)

  describe "Tool.Campaign.Namespace" $ do
    it "takes other addresses while some are taken" $ do
      outcome <- try . withNamespace Nothing "redis-server" $ \one ->
        withNamespace Nothing "redis-server" $ \other -> pure (namespaceHost one, namespaceHost other)
      case outcome of
        Right (one, other) -> one `shouldNotBe` other
        Left problem -> do
          failureText problem `shouldSatisfy` ("network namespace: " `isPrefixOf`)
          failureText problem `shouldNotContain` "File exists"

    it "runs a server in a network of its own, or says what the system does not allow" $ do
      outcome <- try . withNamespace Nothing "redis-server" $ \namespace -> do
        let options =
              defaultServerOptions
                { optionsBinary = Just (namespaceWrapper namespace),
                  optionsHosts = [namespaceHost namespace]
                }
        withServer options $ \server -> command server ["ECHO", "from there"]
      case outcome of
        Right reply -> reply `shouldBe` Text "from there"
        Left problem -> failureText problem `shouldSatisfy` ("network namespace: " `isPrefixOf`)

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
