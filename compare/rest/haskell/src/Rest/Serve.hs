-- | The whole service: the parts that the settings select, behind warp.
module Rest.Serve
  ( serve,
  )
where

import Control.Exception (bracket)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty (..))
import Network.Wai (Application)
import Network.Wai.Handler.Warp (defaultSettings, runSettings, setBeforeMainLoop, setFork, setGracefulShutdownTimeout, setHost, setInstallShutdownHandler, setOnException, setPort, setServerName, setTimeout)
import Redis (Endpoint (..), clusterConfig, standaloneConfig, withClient)
import Rest.Cache (CacheConfig (..), withCache)
import Rest.Http (application)
import Rest.Naive (naiveUsers)
import Rest.Readers (closeReaders, openReaders)
import Rest.Scotty (scottyApplication)
import Rest.Settings (HttpLayer (..), Mode (..), Settings (..))
import Rest.Spread (forkSpread, newSpread)
import Rest.Statements (Statements, loadStatements)
import Rest.Users (Users, tunedUsers)
import Rest.Writer (withWriter)
import System.IO (BufferMode (..), hSetBuffering, stdout)
import System.Posix.Signals (Handler (..), installHandler, sigINT, sigTERM)

-- | Serves until SIGTERM or SIGINT; then finishes the requests that have begun, for at most 5 s.
-- Throws the exceptions of opening the database or the port.
serve :: Settings -> IO ()
serve settings = do
  hSetBuffering stdout LineBuffering
  statements <- loadStatements (settingsSqlFile settings)
  withUsers settings statements $ \users -> do
    wai <- case (settingsMode settings, settingsHttpLayer settings) of
      (Tuned, Warp) -> pure (application users)
      _ -> scottyApplication users
    runWarp settings wai

runWarp :: Settings -> Application -> IO ()
runWarp settings served = do
  spread <- newSpread
  flip runSettings served
    . setPort (settingsPort settings)
    . setHost "127.0.0.1"
    . setServerName ""
    . setFork (forkSpread spread)
    . setTimeout (settingsClientTimeout settings)
    -- A client that disconnects is no error of the service.
    . setOnException (\_ _ -> pure ())
    . setBeforeMainLoop (putStrLn ("listening on " <> show (settingsPort settings)))
    . setGracefulShutdownTimeout (Just 5)
    . setInstallShutdownHandler (\closeSocket -> mapM_ (\signal -> installHandler signal (CatchOnce closeSocket) Nothing) [sigTERM, sigINT])
    $ defaultSettings

withUsers :: Settings -> Statements -> (Users -> IO a) -> IO a
withUsers settings statements action = case settingsMode settings of
  Naive -> withClient redis $ \client -> action (naiveUsers client statements path)
  Tuned ->
    -- The writer comes first, because only it can create the log of a new database.
    withWriter encoder statements path $ \writer ->
      bracket (openReaders encoder statements path) closeReaders $ \readers ->
        withCache cacheConfig $ \cache -> action (tunedUsers cache readers writer)
  where
    encoder = settingsEncoder settings
    path = settingsDatabase settings
    host = Char8.pack (settingsRedisHost settings)
    port = settingsRedisPort settings
    cacheConfig = CacheConfig {cacheHost = host, cachePort = port, cacheIsCluster = settingsCluster settings, cachePolls = settingsPolls settings}
    redis
      | settingsCluster settings = clusterConfig (TcpEndpoint host port :| [])
      | otherwise = standaloneConfig host port
