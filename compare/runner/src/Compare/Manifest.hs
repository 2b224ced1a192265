-- | Where the numbers come from, as far as the process can tell: a number
-- without its machine is a rumour. No host names, no paths.
module Compare.Manifest
  ( manifest,
  )
where

import Control.Exception (IOException, try)
import Data.Aeson (Value, object, (.=))
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List (find, isInfixOf)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Data.Text.Encoding.Error qualified as Text
import Data.Time (getCurrentTime)
import Data.Time.Format.ISO8601 (iso8601Show)
import Data.Version (showVersion)
import GHC.Conc (getNumProcessors)
import System.Directory (findExecutable)
import System.Exit (ExitCode (..))
import System.Info (arch, compilerName, fullCompilerVersion, os)
import System.Process (readProcessWithExitCode)

-- | The machine and the programs, from the server's version and the options
-- that the comparison was run with.
manifest :: String -> [String] -> IO Value
manifest server arguments = do
  now <- getCurrentTime
  cpuInfo <- contents "/proc/cpuinfo"
  memory <- contents "/proc/meminfo"
  kernel <- contents "/proc/sys/kernel/osrelease"
  clock <- contents "/sys/devices/system/clocksource/clocksource0/current_clocksource"
  governor <- contents "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
  processors <- getNumProcessors
  revision <- says "git" ["rev-parse", "HEAD"]
  changes <- says "git" ["status", "--porcelain", "--untracked-files=no"]
  dotnet <- says "dotnet" ["--version"]
  node <- says "node" ["--version"]
  gcc <- says "gcc" ["-dumpfullversion"]
  binary <- maybe (pure Nothing) (\path -> fmap (Text.takeWhile (/= ' ')) <$> says "sha256sum" [path]) =<< findExecutable "redis-server"
  pure $
    object
      [ "date" .= iso8601Show now,
        "os" .= os,
        "arch" .= arch,
        "kernel" .= text kernel,
        "cpu" .= fmap text (field "model name" cpuInfo),
        "processors" .= processors,
        "memory" .= fmap text (field "MemTotal" memory),
        "virtual_machine" .= maybe False (isInfixOf "hypervisor" . Char8.unpack) (field "flags" cpuInfo),
        "clock_source" .= text clock,
        "governor" .= text governor,
        "server" .= server,
        "server_sha256" .= binary,
        "pinning" .= ("servers on core 0, client on core 1, unless the cell says otherwise" :: Text),
        "persistence" .= ("none: save \"\", appendonly no" :: Text),
        "compiler" .= (compilerName <> "-" <> showVersion fullCompilerVersion),
        "dotnet" .= dotnet,
        "node" .= node,
        "gcc" .= gcc,
        "revision" .= revision,
        "uncommitted_changes" .= fmap (not . Text.null) changes,
        "options" .= arguments
      ]
  where
    text = Text.strip . Text.decodeUtf8With Text.lenientDecode
    contents path = either nothing id <$> try (ByteString.readFile path)
    nothing :: IOException -> Char8.ByteString
    nothing _ = ByteString.empty
    field name whole = do
      line <- find (name `ByteString.isPrefixOf`) (Char8.lines whole)
      pure (Char8.dropWhile (`elem` (" \t:" :: String)) (Char8.dropWhile (/= ':') line))

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
