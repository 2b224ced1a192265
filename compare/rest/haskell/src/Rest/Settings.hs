-- | The settings of a service, read from the environment.
module Rest.Settings
  ( Settings (..),
    Mode (..),
    HttpLayer (..),
    settingsFromEnvironment,
  )
where

import Control.Exception (throwIO)
import Data.Maybe (fromMaybe)
import Data.Word (Word16)
import Rest.Json.Write (Encoder (..))
import System.Environment (lookupEnv)
import Text.Read (readMaybe)

-- | The settings of a service; the contract has a table of them.
data Settings = Settings
  { settingsPort :: Int,
    settingsDatabase :: FilePath,
    settingsSqlFile :: FilePath,
    settingsRedisHost :: String,
    settingsRedisPort :: Word16,
    settingsCluster :: Bool,
    settingsMode :: Mode,
    -- | Only for the study of HTTP layers; otherwise warp.
    settingsHttpLayer :: HttpLayer,
    -- | Only for the study of JSON; otherwise direct.
    settingsEncoder :: Encoder,
    -- | Whether the Redis client may poll its socket; only for the study.
    settingsPolls :: Bool,
    -- | In seconds.
    settingsClientTimeout :: Int
  }
  deriving stock (Eq, Show)

-- | The design of the service.
data Mode = Tuned | Naive
  deriving stock (Eq, Show)

-- | The HTTP layer.
data HttpLayer = Warp | Scotty
  deriving stock (Eq, Show)

-- | Reads the environment. Throws an 'IOError' that names the missing or invalid variable.
settingsFromEnvironment :: IO Settings
settingsFromEnvironment = do
  settingsPort <- number "PORT" 3000
  settingsDatabase <- lookupEnv "SQLITE_DB" >>= maybe (bad "SQLITE_DB is not set") pure
  settingsSqlFile <- fromMaybe "compare/rest/shared/statements.sql" <$> lookupEnv "SQL_FILE"
  settingsRedisHost <- fromMaybe "127.0.0.1" <$> lookupEnv "REDIS_HOST"
  settingsRedisPort <- number "REDIS_PORT" 6379
  settingsCluster <- choice "REDIS_CLUSTER" [("false", False), ("true", True)]
  settingsMode <- choice "MODE" [("tuned", Tuned), ("naive", Naive)]
  settingsHttpLayer <- choice "HTTP_LAYER" [("warp", Warp), ("scotty", Scotty)]
  settingsEncoder <- choice "JSON" [("direct", Direct), ("aeson", Generic)]
  settingsPolls <- choice "POLLING" [("default", True), ("never", False)]
  settingsClientTimeout <- number "CLIENT_TIMEOUT" 30
  pure
    Settings
      { settingsPort,
        settingsDatabase,
        settingsSqlFile,
        settingsRedisHost,
        settingsRedisPort,
        settingsCluster,
        settingsMode,
        settingsHttpLayer,
        settingsEncoder,
        settingsPolls,
        settingsClientTimeout
      }

number :: Read a => String -> a -> IO a
number name absent =
  lookupEnv name >>= \case
    Nothing -> pure absent
    Just text -> maybe (bad (name <> " is not a number: " <> text)) pure (readMaybe text)

-- | One of several words; the first one if the variable is not set.
choice :: String -> [(String, a)] -> IO a
choice name options =
  lookupEnv name >>= \set -> case (set, options) of
    (Nothing, (_, first) : _) -> pure first
    (Just text, _) | Just value <- lookup text options -> pure value
    _ -> bad (name <> " must be one of " <> unwords (map fst options))

bad :: String -> IO a
bad = throwIO . userError
