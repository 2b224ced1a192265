-- | The origin of the numbers: the machine and the programs. Several runs may fill one folder of
-- results, even on different revisions or machines. Facts that differ between runs are all
-- recorded, because a report that names only the first run would credit it with all numbers.
module Compare.Facts
  ( noteManifest,
    commandText,
    noteFacts,
    joinedFacts,
  )
where

import Data.Aeson (decodeFileStrict, encode)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Time (defaultTimeLocale, formatTime, getCurrentTime)
import Redis.TestKit.Server (findBinary)
import System.Directory (doesFileExist, findExecutable)
import System.Environment (getArgs)
import System.FilePath ((</>))
import System.Process (readProcessWithExitCode)
import Tool.Bench.Document (Manifest (..))
import Tool.Bench.Environment qualified as Environment
import Tool.Bench.ServerFacts (startedServerHash)
import Tool.Bench.Sink (writeWhole)

-- | Adds to the folder's manifest the facts that do not change within a run: the machine and the
-- programs, with the names of the rows in C#.
noteManifest :: FilePath -> [(Text, FilePath)] -> IO ()
noteManifest out dotnets = do
  machine <- Environment.manifest
  now <- formatTime defaultTimeLocale "%FT%TZ" <$> getCurrentTime
  command <- commandText <$> getArgs
  server <- findBinary Nothing
  versions <-
    mapM
      says
      [ ("redis-server", server, ["--version"]),
        ("wrk", "wrk", ["--version"]),
        ("dotnet", "dotnet", ["--version"]),
        ("ghc", "ghc", ["--numeric-version"])
      ]
  hash <- startedServerHash
  noteFacts out . Map.fromList $
    [ ("date", Text.pack now),
      ("command", command),
      ("kernel", manifestKernel machine),
      ("processor", fromMaybe "unknown" (manifestCpu machine)),
      ("processors", Text.pack (show (manifestProcessors machine))),
      ("virtual machine", if manifestVirtual machine then "yes" else "no"),
      ("memory GiB", maybe "unknown" (Text.pack . show . (`div` 1073741824)) (manifestMemory machine)),
      ("C# rows", if null dotnets then "absent: install the .NET SDK 10 (dotnet) and run again" else Text.intercalate ", " (map fst dotnets))
    ]
      <> [(name, version) | (name, Just version) <- versions]
      <> [("revision", revision) | Just revision <- [manifestRevision machine]]
      <> [("redis-server SHA-256", sum') | Just sum' <- [hash]]
      <> [("idle at start", share) | Just share <- [Map.lookup "idle_at_start" (manifestFacts machine)]]

-- | A command line without the flags whose values are paths on this machine.
commandText :: [String] -> Text
commandText = Text.pack . unwords . kept
  where
    kept = \case
      flag : value : rest
        | '/' `elem` value, '-' `elem` take 1 flag -> kept rest
      word : rest -> word : kept rest
      [] -> []

-- The first line that a program prints, with the given name.
says :: (Text, FilePath, [String]) -> IO (Text, Maybe Text)
says (name, program, arguments) = do
  found <- findExecutable program
  output <- case found of
    Nothing -> pure ""
    Just path -> (\(_, said, _) -> said) <$> readProcessWithExitCode path arguments ""
  pure (name, Text.pack <$> List.find (not . null) (lines output))

-- | Adds facts to the folder's manifest.
noteFacts :: FilePath -> Map Text Text -> IO ()
noteFacts out new = do
  let path = out </> "manifest.json"
  there <- doesFileExist path
  old <- if there then fromMaybe Map.empty <$> decodeFileStrict path else pure Map.empty
  -- An interrupted run must not cost what earlier ones have noted.
  writeWhole path (encode (joinedFacts old new))

-- | The facts of both; where they differ, the older one comes first.
joinedFacts :: Map Text Text -> Map Text Text -> Map Text Text
joinedFacts = Map.unionWith $ \old new ->
  if new `elem` Text.splitOn separator old then old else old <> separator <> new
  where
    separator = "; later: "
