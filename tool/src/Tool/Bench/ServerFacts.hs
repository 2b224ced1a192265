-- | Identifies the server: name and version, the program file's hash, the settings that are not the
-- default, and the difference between its clock and ours. A server of the same program file
-- without settings tells the defaults, so they are known on this machine only. The facts say what
-- the server refused.
module Tool.Bench.ServerFacts
  ( serverFacts,
    Found (..),
    startedServerHash,
    differing,
    persistenceOf,
  )
where

import Control.Exception (IOException, SomeException, bracket, displayException, throwIO, try)
import Control.Monad (replicateM, void)
import Crypto.Hash.SHA256 qualified as Sha256
import Data.Bifunctor (bimap)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Either (fromRight, isRight, lefts, rights)
import Data.Foldable (minimumBy, toList)
import Data.List (isInfixOf)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, listToMaybe)
import Data.Ord (comparing)
import Data.Set (Set)
import Data.Set qualified as Set
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Time.Clock (UTCTime)
import Data.Time.Clock.POSIX (utcTimeToPOSIXSeconds)
import Redis (Client, onNode)
import Redis qualified
import Redis.Command (Command)
import Redis.Commands qualified as Commands
import Redis.Error (Error (..))
import Redis.TestKit.Address (Address (UnixAddress))
import Redis.TestKit.Command qualified as TestKit
import Redis.TestKit.Folder (withFolder)
import Redis.TestKit.Process qualified as Process
import Redis.TestKit.Server (findBinary)
import Redis.TestKit.Wait (eventuallyJust)
import System.Directory (doesFileExist, findExecutable, getSymbolicLinkTarget)
import System.FilePath (takeFileName, (</>))
import Tool.Bench.Document (Clock (..), ServerFacts (..))
import Tool.Bench.Environment (wallClock)
import Tool.Bench.Time (monotonic)
import Tool.Connect
import Tool.Span (sinceEpoch)
import Tool.Text (utf8)

-- | The facts that were found.
data Found = Found
  { foundFacts :: ServerFacts,
    -- | @none@, @rdb@, @aof-everysec@ and so on, if the server told.
    foundPersistence :: Maybe Text
  }

-- | Asks the server. Hash and defaults, which take a tenth of a second, only with the flag. Throws if
-- the server cannot be reached.
serverFacts :: Bool -> Target -> IO Found
serverFacts thorough target =
  withTarget quiet target $ \client -> do
    nodes <- primaries client
    let onFirst :: Command a -> Command a
        onFirst = maybe id onNode (listToMaybe nodes)
    told <- asked "INFO" client (onFirst (Commands.infoOf (pure "server")))
    settings <- asked "CONFIG" client (onFirst (Commands.configGet (pure "*")))
    clock <- if isRight told then clockOf client (onFirst Commands.time) else pure Nothing
    let fields = foldMap Map.fromList told
        config = foldMap (Map.fromList . map both) settings
    -- Only this machine has its program.
    binary <- if thorough && targetNetwork target /= "remote" then programFile fields else pure Nothing
    defaults <- maybe (pure Nothing) (defaultsOf . fst) binary
    pure
      Found
        { foundFacts =
            ServerFacts
              { serverName = maybe "unknown" utf8 (TestKit.nameAndVersion fields),
                serverNodes = length nodes,
                serverSha256 = snd <$> binary,
                serverConfig = maybe (Map.restrictKeys config telling) (differing config) defaults,
                serverClock = clock,
                serverRefused =
                  lefts [void told, void settings]
                    <> [ "its defaults are not known here: \
                         \of its settings those are given that matter, default or not"
                         | not (Map.null config),
                           Nothing <- [defaults]
                       ]
              },
          foundPersistence = if Map.null config then Nothing else Just (persistenceOf config)
        }
  where
    both = bimap utf8 utf8

-- The reply, or the error with which the server refuses it. Throws if the connection fails.
asked :: Text -> Client -> Command a -> IO (Either Text a)
asked what client command =
  try (Redis.run client command) >>= \case
    Right answer -> pure (Right answer)
    Left problem@(ReplyError _) -> pure (Left (what <> ": " <> Text.pack (displayException problem)))
    Left problem -> throwIO problem

-- Our clock minus the server's: the best of five readings, each uncertain by half its round trip.
clockOf :: Client -> Command UTCTime -> IO (Maybe Clock)
clockOf client time = do
  found <- replicateM 5 once
  pure (minimumBy (comparing clockUncertainty) <$> NonEmpty.nonEmpty (rights found))
  where
    once = do
      before <- monotonic
      answer <- try @Error (Redis.run client time)
      -- Inside the interval: a pause at any of these lines makes the reading more uncertain.
      now <- wallClock
      after <- monotonic
      let halfway = now - (after - before) `div` 2
          clock told =
            Clock
              { clockOffset = halfway - sinceEpoch (utcTimeToPOSIXSeconds told),
                clockUncertainty = (after - before + 1) `div` 2 + 1000
              }
      pure (clock <$> answer)

-- The program file of a server on this machine, and its hash. The process id may come from another
-- container. So the process must look like a server, and the file that is found by name must be the
-- one that the process runs.
programFile :: Map ByteString ByteString -> IO (Maybe (FilePath, Text))
programFile fields = case (Map.lookup "process_id" fields, Map.lookup "executable" fields) of
  (Just process, Just told) -> do
    let image = "/proc" </> Char8.unpack process </> "exe"
    target <- fromRight "" <$> try @IOException (getSymbolicLinkTarget image)
    if any (`isInfixOf` takeFileName target) ["redis", "valkey", "keydb"]
      then do
        running <- hashOf image
        named <- findExecutable (takeFileName (Char8.unpack told))
        candidates <-
          concat <$> sequence [existing (Char8.unpack told), pure (toList named), existing target]
        -- The name matters too: one file is both server and checker, depending on its name.
        matching <-
          traverse
            (\path -> (,) path <$> hashOf path)
            [path | path <- candidates, "server" `isInfixOf` takeFileName path]
        pure (listToMaybe [(path, hash) | (path, Just hash) <- matching, Just hash == running])
      else pure Nothing
  _ -> pure Nothing
  where
    existing path = (\there -> [path | there]) <$> doesFileExist path

hashOf :: FilePath -> IO (Maybe Text)
hashOf path = fmap (hex . Sha256.hash) . rightToMaybe <$> try @IOException (ByteString.readFile path)
  where
    hex = utf8 . Lazy.toStrict . Builder.toLazyByteString . Builder.byteStringHex

rightToMaybe :: Either e a -> Maybe a
rightToMaybe = either (const Nothing) Just

-- | The SHA-256 of the program that the testkit starts as a server, if it can be read.
-- Throws 'Redis.TestKit.Wait.TestKitFailure' when there is none.
startedServerHash :: IO (Maybe Text)
startedServerHash = do
  binary <- findBinary Nothing
  -- The name may lack a folder.
  findExecutable binary >>= hashOf . fromMaybe binary

-- The settings of a server that is started without any. It listens only in a folder of its own.
defaultsOf :: FilePath -> IO (Maybe (Map Text Text))
defaultsOf program = rightToMaybe <$> try @SomeException ask
  where
    ask = withFolder "redis-client-defaults" $ \folder -> do
      let socket = folder </> "socket"
          arguments = ["--port", "0", "--unixsocket", socket, "--dir", folder]
      bracket (Process.spawn folder program arguments (folder </> "log")) end $ \_ ->
        eventuallyJust 5 "the server with default settings answers" $
          fromRight Nothing <$> try @IOException (settingsAt socket)
    settingsAt socket = TestKit.withConnection (UnixAddress socket) $ \connection -> do
      reply <- TestKit.request connection ["CONFIG", "GET", "*"]
      pure (Map.fromList . pairs <$> texts reply)
    texts = \case
      TestKit.List items -> traverse TestKit.replyText items
      _ -> Nothing
    pairs = \case
      name : value : rest -> (utf8 name, utf8 value) : pairs rest
      _ -> []
    end process = Process.kill9 process >> Process.awaitExit process

-- | The settings that differ from the defaults, without secrets and places.
differing :: Map Text Text -> Map Text Text -> Map Text Text
differing config defaults =
  Map.filterWithKey (\name value -> not (private name) && Map.lookup name defaults /= Just value) config

-- Settings that change how much a server can do in a second.
telling :: Set Text
telling =
  Set.fromList . Text.words $
    "appendfsync appendonly aof-use-rdb-preamble auto-aof-rewrite-min-size \
    \auto-aof-rewrite-percentage cluster-enabled hz io-threads io-threads-do-reads \
    \latency-tracking lazyfree-lazy-expire maxclients maxmemory maxmemory-policy \
    \no-appendfsync-on-rewrite save slowlog-log-slower-than tcp-backlog"

private :: Text -> Bool
private name = any (`Text.isInfixOf` name) secrets || name `elem` places
  where
    secrets = Text.words "pass auth -file file- dir user socket replicaof slaveof announce"
    places =
      Text.words
        "port tls-port cluster-port bind bind-source-addr logfile pidfile aclfile dbfilename \
        \server-cpulist syslog-ident"

-- | How the server keeps its data: from @appendonly@, @appendfsync@ and @save@.
persistenceOf :: Map Text Text -> Text
persistenceOf config
  | at "appendonly" == "yes" = "aof-" <> at "appendfsync" <> (if snapshots then "+rdb" else "")
  | snapshots = "rdb"
  | otherwise = "none"
  where
    at name = Map.findWithDefault "" name config
    snapshots = not (Text.null (at "save"))
