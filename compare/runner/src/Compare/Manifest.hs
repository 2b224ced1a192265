-- | The origin of the numbers: the machine, as "Tool.Bench.Environment" reports it, and the
-- programs that a comparison needs.
module Compare.Manifest
  ( manifest,
    publicOptions,
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
import System.Exit (ExitCode (..))
import System.FilePath (takeFileName)
import System.Process (readProcessWithExitCode)
import Tool.Bench.Document (Manifest (..))
import Tool.Bench.Environment qualified as Environment
import Tool.Bench.ServerFacts (startedServerHash)

-- | The machine as it is now, the programs, and the options of this comparison. The server's
-- version is added later, when the servers have run.
manifest :: [String] -> IO (String -> Value)
manifest arguments = do
  now <- getCurrentTime
  machine <- Environment.manifest
  dotnet <- says "dotnet" ["--version"]
  node <- says "node" ["--version"]
  gcc <- says "gcc" ["-dumpfullversion"]
  hash <- startedServerHash
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

-- | A command line for publication: without the paths on this machine, and without the password.
publicOptions :: [String] -> [String]
publicOptions = \case
  name : value : rest
    | name `elem` hidden -> publicOptions rest
    | name == "--workload" -> name : takeFileName value : publicOptions rest
  word : rest
    | takeWhile (/= '=') word `elem` hidden -> publicOptions rest
    | otherwise -> word : publicOptions rest
  [] -> []
  where
    hidden = ["--output", "--compare", "--password"]

-- A program's output; 'Nothing' if the program does not exist or fails.
says :: FilePath -> [String] -> IO (Maybe Text)
says program arguments =
  either nothing found <$> try (readProcessWithExitCode program arguments "")
  where
    nothing :: IOException -> Maybe Text
    nothing _ = Nothing
    found = \case
      (ExitSuccess, output, _) -> Just (Text.strip (Text.pack output))
      _ -> Nothing
