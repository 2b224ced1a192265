-- | Definitions that the specifications share: services to test against the contract, and short
-- functions for requests.
module Support
  ( -- * Services
    Case (..),
    World (..),
    withWorld,
    withWorldOf,
    serviceCases,
    Kind (..),

    -- * Asking
    get,
    put,
    post,
    delete,
    ask,
    posted,
    userText,

    -- * Redis
    cached,
    redisTells,
  )
where

import Compare.HttpClient
import Compare.Service
import Control.Applicative ((<|>))
import Control.Monad (mfilter)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.Maybe (fromMaybe)
import Redis.TestKit.Command (Reply, replyText)
import Redis.TestKit.Server (Server, command, serverDefaults, serverPort, withServer)
import Redis.TestKit.Wait (within)
import System.Directory (findExecutable, makeAbsolute)
import System.Environment (lookupEnv)
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)

-- | The part of the contract that a service keeps: all of it, or the part that the naive design can
-- keep.
data Kind = Whole | NaiveOnly
  deriving stock (Eq, Show)

-- | A service to test against the contract.
data Case = Case
  { caseName :: String,
    caseKind :: Kind,
    caseProgram :: Program,
    caseSqlFile :: FilePath
  }

-- | A running service, with a Redis of its own.
data World = World
  { worldRunning :: Running,
    worldRedis :: Server,
    worldSqlFile :: FilePath
  }

-- | The Haskell service, and the C# one if @REST_DOTNET@ names its program; both
-- designs of each.
serviceCases :: IO [Case]
serviceCases = do
  sqlFile <- lookupEnv "SQL_FILE" >>= makeAbsolute . fromMaybe "../shared/statements.sql"
  named <- lookupEnv "REST_HASKELL"
  found <- findExecutable "rest-service"
  -- An empty variable counts as absent: a machine without .NET.
  dotnet <- mfilter (not . null) <$> lookupEnv "REST_DOTNET"
  let programs = [("Haskell", path) | Just path <- [named <|> found]] <> [("C#", path) | Just path <- [dotnet]]
  pure
    [ Case
        { caseName = language <> suffix,
          caseKind = kind,
          caseProgram = Program {programName = "service", programPath = path, programArguments = [], programEnvironment = [("MODE", mode)]},
          caseSqlFile = sqlFile
        }
      | (language, path) <- programs,
        (kind, suffix, mode) <- [(Whole, "", "tuned"), (NaiveOnly, " (naive)", "naive")]
    ]

-- | Runs the action with a fresh service, for at most 60 s.
withWorld :: Case -> (World -> IO a) -> IO a
withWorld = withWorldOf id

-- | Like 'withWorld', with other options.
withWorldOf :: (Options -> Options) -> Case -> (World -> IO a) -> IO a
withWorldOf change service action =
  within 60 . withSystemTempDirectory "rest" $ \folder ->
    withServer serverDefaults $ \redis -> do
      database <- goldenDatabase (caseSqlFile service) folder
      let options = change (defaultOptions (caseSqlFile service) (serverPort redis))
      restoreDatabase database (folder </> "users.db")
      withService (caseProgram service) options folder (folder </> "users.db") $ \running ->
        action World {worldRunning = running, worldRedis = redis, worldSqlFile = caseSqlFile service}

-- | Sends one request on a connection of its own.
ask :: World -> ByteString -> ByteString -> Maybe ByteString -> IO Response
ask world method target body =
  withConnection (runningPort (worldRunning world)) $ \connection -> exchange connection (requestBytes method target body)

get, delete :: World -> ByteString -> IO Response
get world target = ask world "GET" target Nothing
delete world target = ask world "DELETE" target Nothing

put, post :: World -> ByteString -> ByteString -> IO Response
put world target = ask world "PUT" target . Just
post world target = ask world "POST" target . Just

-- | Creates a user with this name and address.
posted :: World -> ByteString -> ByteString -> IO Response
posted world name email = post world "/users" (userText name email)

-- | A body for POST and PUT.
userText :: ByteString -> ByteString -> ByteString
userText name email = "{\"name\":\"" <> name <> "\",\"email\":\"" <> email <> "\"}"

-- | The value that Redis has for a user.
cached :: World -> Int64 -> IO (Maybe ByteString)
cached world number = replyText <$> redisTells world ["GET", "user:" <> Char8.pack (show number)]

redisTells :: World -> [ByteString] -> IO Reply
redisTells world = command (worldRedis world)
