-- | Where the numbers come from: what "Tool.Bench.Environment" tells of the
-- machine, and the programs that a comparison needs beside it.
module Compare.Manifest
  ( manifest,
  )
where

import Control.Exception (IOException, try)
import Data.Aeson (Value, object, (.=))
import Data.Aeson.Key qualified as Key
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Time (getCurrentTime)
import Data.Time.Format.ISO8601 (iso8601Show)
import System.Directory (findExecutable)
import System.Exit (ExitCode (..))
import System.Process (readProcessWithExitCode)
import Tool.Bench.Document (Manifest (..))
import Tool.Bench.Environment qualified as Environment

-- | The machine and the programs, from the server's version and the options
-- that the comparison was run with.
manifest :: String -> [String] -> IO Value
manifest server arguments = do
  now <- getCurrentTime
  machine <- Environment.manifest
  dotnet <- says "dotnet" ["--version"]
  node <- says "node" ["--version"]
  gcc <- says "gcc" ["-dumpfullversion"]
  binary <- maybe (pure Nothing) (\path -> fmap (Text.takeWhile (/= ' ')) <$> says "sha256sum" [path]) =<< findExecutable "redis-server"
  pure . object $
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
      "server_sha256" .= binary,
      "pinning" .= ("servers on core 0, client on core 1, unless the cell says otherwise" :: Text),
      "persistence" .= ("none: save \"\", appendonly no" :: Text),
      "compiler" .= manifestCompiler machine,
      "dotnet" .= dotnet,
      "node" .= node,
      "gcc" .= gcc,
      "revision" .= manifestRevision machine,
      "options" .= arguments
    ]
      <> [Key.fromText name .= value | (name, value) <- Map.toList (manifestFacts machine)]

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
