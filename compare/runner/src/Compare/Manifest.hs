-- | Where the numbers come from: what "Tool.Bench.Environment" tells of the
-- machine, and the programs that a comparison needs beside it.
module Compare.Manifest
  ( manifest,
    serverHash,
  )
where

import Control.Exception (IOException, try)
import Data.Aeson (Value, object, (.=))
import Data.Aeson.Key qualified as Key
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Time (getCurrentTime)
import Data.Time.Format.ISO8601 (iso8601Show)
import Redis.TestKit.Server (findBinary)
import System.Directory (findExecutable)
import System.Exit (ExitCode (..))
import System.Process (readProcessWithExitCode)
import Tool.Bench.Document (Manifest (..))
import Tool.Bench.Environment qualified as Environment

-- | The machine as it is now and the programs, from the options that the
-- comparison was run with. The server's version, which is known when servers
-- have run, is added then.
manifest :: [String] -> IO (String -> Value)
manifest arguments = do
  now <- getCurrentTime
  machine <- Environment.manifest
  dotnet <- says "dotnet" ["--version"]
  node <- says "node" ["--version"]
  gcc <- says "gcc" ["-dumpfullversion"]
  hash <- serverHash
  pure $ \server ->
    object $
      [ "date" .= iso8601Show now,
        "os" .= manifestOs machine,
        "arch" .= manifestArchitecture machine,
        "kernel" .= manifestKernel machine,
        "cpu" .= manifestCpu machine,
        "processors" .= manifestProcessors machine,
        "memory" .= ((<> " kB") . show . (`div` 1024) <$> manifestMemory machine),
        "virtual_machine" .= manifestVirtual machine,
        "clock_source" .= manifestClockSource machine,
        "server" .= server,
        "server_sha256" .= hash,
        "pinning" .= ("servers on core 0, client on core 1; both on cores 0 and 1 where the cell says that both are free" :: Text),
        "persistence" .= ("none: save \"\", appendonly no" :: Text),
        "compiler" .= manifestCompiler machine,
        "dotnet" .= dotnet,
        "node" .= node,
        "gcc" .= gcc,
        "revision" .= manifestRevision machine,
        "options" .= arguments
      ]
        <> [Key.fromText name .= value | (name, value) <- Map.toList (manifestFacts machine)]

-- | The SHA-256 of the server's program, the one that is started.
serverHash :: IO (Maybe Text)
serverHash = do
  binary <- findBinary Nothing
  -- It may be a name without a folder.
  path <- fromMaybe binary <$> findExecutable binary
  fmap (Text.takeWhile (/= ' ')) <$> says "sha256sum" ["--", path]

-- What a program prints; 'Nothing' if it is not there or fails.
says :: FilePath -> [String] -> IO (Maybe Text)
says program arguments =
  either nothing found <$> try (readProcessWithExitCode program arguments "")
  where
    nothing :: IOException -> Maybe Text
    nothing _ = Nothing
    found = \case
      (ExitSuccess, output, _) -> Just (Text.strip (Text.pack output))
      _ -> Nothing
