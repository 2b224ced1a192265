-- | Every acknowledged write is on the disk, however the service ends: killed, on a disk whose
-- power is cut ("Redis.TestKit.Disk"), or terminated. Only the power cut shows whether the database
-- is synchronised; so that test must also fail with settings that do not synchronise.
module DurabilitySpec (spec) where

import Compare.HttpClient
import Compare.Service
import Control.Concurrent.Async (forConcurrently, mapConcurrently_, withAsync)
import Control.Concurrent.Async qualified as Async
import Control.Exception (IOException, bracket, try)
import Control.Monad (filterM, forM_)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (atomicModifyIORef', newIORef, readIORef)
import Data.Maybe (fromMaybe)
import Redis.TestKit.Disk (cutPower, diskEnvironment, restoreDisk, withDisk)
import Redis.TestKit.Process qualified as Process
import Redis.TestKit.Server (serverDefaults, serverPort, withServer)
import Redis.TestKit.Wait (eventually, within)
import Rest.Sqlite (OpenMode (..), Step (..), bindText, close, finalize, open, prepare, reset, step)
import Support
import System.Directory (createDirectory)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import Test.Hspec

spec :: Case -> Spec
spec service = do
  around (withWorld service) . describe (caseName service) $ do
    it "loses nothing that it acknowledged when it is killed" $ \world -> do
      known <- interrupted (worldRunning world) $ \count -> do
        eventually 20 "there are a thousand users" ((>= 1000) <$> count)
        Process.kill9 (runningProcess (worldRunning world))
      length known `shouldSatisfy` (>= 1000)
      lost <- missingFrom (runningDatabase (worldRunning world)) [email | Created {createdEmail = email} <- known]
      lost `shouldBe` []
    it "ends by itself when it is asked to, and has kept everything" $ \world -> do
      emails <- forConcurrently [1 .. 50 :: Int] $ \number -> do
        let email = "t" <> Char8.pack (show number) <> "@test.example"
        email <$ posted world "Kept" email
      terminate (worldRunning world) `shouldReturn` ExitSuccess
      missingFrom (runningDatabase (worldRunning world)) emails `shouldReturn` []

  describe (caseName service) $ do
    it "loses nothing that it acknowledged when the power is cut" $
      lostInPowerCut service "FULL" `shouldReturn` []
    -- The second setting syncs, too, but later.
    forM_ ["OFF", "NORMAL"] $ \weaker ->
      it ("would be seen to lose what it acknowledged if synchronous were " <> Char8.unpack weaker) $
        lostInPowerCut service weaker >>= (`shouldSatisfy` (not . null))

-- | A user whose creation was acknowledged.
data Created = Created
  { createdEmail :: ByteString,
    -- | The path that the service returned.
    createdPath :: ByteString,
    createdBody :: ByteString
  }
  deriving stock (Eq, Show)

-- | Twenty writers create users until the action has ended the service; the action may ask how many
-- users are acknowledged. Returns all acknowledged users.
interrupted :: Running -> (IO Int -> IO ()) -> IO [Created]
interrupted running end = do
  acknowledged <- newIORef (0, [])
  let writing worker = untilBroken . withConnection (runningPort running) $ \connection ->
        forM_ [1 :: Int ..] $ \number -> do
          let email = "k" <> Char8.pack (show worker) <> "." <> Char8.pack (show number) <> "@test.example"
          response <- exchange connection (requestBytes "POST" "/users" (Just (userText "Kept" email)))
          responseStatus response `shouldBe` 201
          let created = Created {createdEmail = email, createdPath = fromMaybe "" (header "location" response), createdBody = responseBody response}
          atomicModifyIORef' acknowledged (\(count, known) -> ((count + 1, created : known), ()))
  withAsync (mapConcurrently_ writing [1 .. writers]) $ \working -> do
    end (fst <$> readIORef acknowledged)
    Async.wait working
  snd <$> readIORef acknowledged

writers :: Int
writers = 20

-- | Cuts the power, with this synchronous setting of the database's writer. Returns the users that
-- were acknowledged before or during the power cut, and that a service started afterwards does not
-- have, or has with other contents.
lostInPowerCut :: Case -> ByteString -> IO [Created]
lostInPowerCut service synchronous =
  within 60 . withSystemTempDirectory "rest" $ \folder ->
    withServer serverDefaults $ \redis -> do
      settings <- Char8.readFile (caseSqlFile service)
      let (start, full) = Char8.breakSubstring "FULL" settings
          sqlFile = folder </> "statements.sql"
          data' = folder </> "data"
          database = data' </> "users.db"
          options = defaultOptions sqlFile (serverPort redis)
      start `shouldSatisfy` ("synchronous = " `Char8.isSuffixOf`)
      Char8.writeFile sqlFile (start <> synchronous <> Char8.drop 4 full)
      createDirectory data'
      golden <- goldenDatabase sqlFile folder
      restoreDatabase golden database
      outcome <- withDisk data' $ \disk -> do
        let program = caseProgram service
            onDisk = program {programEnvironment = programEnvironment program <> diskEnvironment disk}
        known <- withService onDisk options folder database $ \running ->
          interrupted running $ \count -> do
            eventually 20 "there are two hundred users" ((>= 200) <$> count)
            cutPower disk writers count
            Process.kill9 (runningProcess running)
        restoreDisk disk
        withService program options folder database $ \running ->
          withConnection (runningPort running) $ \connection ->
            flip filterM known $ \created -> do
              response <- exchange connection (requestBytes "GET" (createdPath created) Nothing)
              pure ((responseStatus response, responseBody response) /= (200, createdBody created))
      either fail pure outcome

-- | Runs the action until the connection to the service breaks.
untilBroken :: IO () -> IO ()
untilBroken action = try action >>= \(_ :: Either IOException ()) -> pure ()

-- | The addresses that the database does not have.
missingFrom :: FilePath -> [ByteString] -> IO [ByteString]
missingFrom path emails =
  bracket (open ReadWrite path) close $ \connection ->
    bracket (prepare connection "SELECT 1 FROM users WHERE email = ?1") finalize $ \query ->
      flip filterM emails $ \email -> do
        bindText query 1 email
        found <- step query
        reset query
        pure (found == Done)
