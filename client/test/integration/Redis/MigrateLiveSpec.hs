-- | MIGRATE, which needs two servers.
module Redis.MigrateLiveSpec (spec) where

import Control.Monad (forM_)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isLeft)
import Redis
import Redis.Commands qualified as Redis
import Redis.Surroundings (addressed)
import Redis.TestKit.Server (serverDefaults, serverHost, serverPort, withServer)
import Redis.TestKit.Wait (within)
import Test.Hspec

spec :: Spec
spec = around_ (within 60) . describe "MIGRATE" $
  forM_ [OnlyResp2, PreferResp3] $ \protocol -> describe (show protocol) $ do
    it "moves one key, and several" . withTwo protocol $ \here there host port -> do
      run here (Redis.mset (("a", "1") :| [("b", "2")]))
      run here (Redis.migrate host port ("a" :| [])) `shouldReturn` True
      run here (Redis.migrate host port ("a" :| [])) `shouldReturn` False
      run here (Redis.migrate host port ("b" :| ["a"])) `shouldReturn` True
      run there (Redis.mget ("a" :| ["b"])) `shouldReturn` [Just "1", Just "2"]
      run here (Redis.mget ("a" :| ["b"])) `shouldReturn` [Nothing, Nothing]

    it "copies, and over what is there if it may" . withTwo protocol $ \here there host port -> do
      run there (Redis.set "k" "old")
      run here (Redis.set "k" "new")
      tryRun here (Redis.migrate host port ("k" :| [])) >>= \case
        Left (ReplyError ServerError {serverErrorMessage}) -> serverErrorMessage `shouldSatisfy` Char8.isInfixOf "BUSYKEY"
        result -> expectationFailure (show result)
      run here (Redis.migrateWith Redis.migrateDefaults {Redis.migrateCopy = True, Redis.migrateReplace = True} host port ("k" :| []))
        `shouldReturn` True
      run there (Redis.get "k") `shouldReturn` Just "new"
      run here (Redis.get "k") `shouldReturn` Just "new"

    it "says a password, and which database" . withTwo protocol $ \here there host port -> do
      let with password = Redis.migrateWith Redis.migrateDefaults {Redis.migrateCredentials = Just (Credentials Nothing (toSecret password)), Redis.migrateDatabase = 3} host port ("k" :| [])
      run there (Redis.configSet (("requirepass", "p") :| []))
      run here (Redis.set "k" "v")
      wrong <- tryRun here (with "q")
      wrong `shouldSatisfy` isLeft
      run here (with "p") `shouldReturn` True
      run there (Redis.get "k") `shouldReturn` Nothing

-- | Runs an action with the clients of two servers, and the address of the second.
withTwo :: ProtocolVersion -> (Client -> Client -> Host -> Port -> IO a) -> IO a
withTwo protocol action =
  withServer serverDefaults $ \one -> withServer serverDefaults $ \other ->
    withClient (setProtocol protocol (addressed one)) $ \here ->
      withClient (addressed other) $ \there ->
        -- Connects before a password is set.
        run there Redis.ping >> action here there (Char8.pack (serverHost other)) (fromIntegral (serverPort other))
