-- | Facts about a machine that make the same program fast or slow there, beside the name of its
-- processor: governor, mitigations, limits of the container.
module Tool.Bench.Machine
  ( machineFacts,
    revision,
  )
where

import Control.Exception (IOException, try)
import Data.ByteString qualified as ByteString
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Data.Text.Encoding.Error qualified as Text
import System.Directory (listDirectory)
import System.Environment (getExecutablePath, lookupEnv)
import System.Exit (ExitCode (..))
import System.FilePath (takeDirectory, (</>))
import System.Process (proc, readCreateProcessWithExitCode)

-- | The facts by name. Leaves out what the kernel does not tell.
machineFacts :: IO (Map Text Text)
machineFacts = do
  found <- traverse fact files
  flaws <- mitigations
  wsl <-
    maybe False (Text.isInfixOf "microsoft" . Text.toLower)
      <$> contents "/proc/sys/kernel/osrelease"
  pure . Map.fromList $
    catMaybes found
      <> [("mitigations", flaws) | not (Text.null flaws)]
      <> [("hypervisor", "WSL") | wsl]
  where
    fact (name, path) = fmap ((,) name) . (>>= something) <$> contents path
    something text
      | Text.null text = Nothing
      | otherwise = Just text
    files =
      [ ("cpu_governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ("cpu_no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
        ("smt", "/sys/devices/system/cpu/smt/control"),
        ("numa_nodes", "/sys/devices/system/node/online"),
        ("transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("hypervisor", "/sys/class/dmi/id/sys_vendor"),
        ("machine", "/sys/class/dmi/id/product_name"),
        ("cgroup_cpu_max", "/sys/fs/cgroup/cpu.max"),
        ("cgroup_memory_max", "/sys/fs/cgroup/memory.max"),
        ("overcommit_memory", "/proc/sys/vm/overcommit_memory"),
        ("swappiness", "/proc/sys/vm/swappiness"),
        ("somaxconn", "/proc/sys/net/core/somaxconn"),
        ("load_average_at_start", "/proc/loadavg")
      ]

-- The processor flaws that the kernel mitigates, and how.
mitigations :: IO Text
mitigations =
  try @IOException (listDirectory folder) >>= \case
    Left _ -> pure ""
    Right names -> do
      states <-
        traverse (\name -> fmap ((Text.pack name <> ": ") <>) <$> contents (folder </> name)) names
      let flawed = filter (not . ("Not affected" `Text.isSuffixOf`)) (catMaybes states)
      pure (Text.intercalate "; " flawed)
  where
    folder = "/sys/devices/system/cpu/vulnerabilities"

contents :: FilePath -> IO (Maybe Text)
contents path =
  either (const Nothing) (Just . decoded) <$> try @IOException (ByteString.readFile path)
  where
    decoded = Text.strip . Text.decodeUtf8With Text.lenientDecode

-- | The revision of the sources that the program was built from: the value of
-- the variable @REDIS_CLIENT_REVISION@, or, for a program that lies in a working copy, git's answer, with
-- @-dirty@ if there are changes.
revision :: IO (Maybe Text)
revision =
  lookupEnv "REDIS_CLIENT_REVISION" >>= \case
    Just told -> pure (Just (Text.pack told))
    Nothing -> do
      self <- getExecutablePath
      outcome <- try @IOException (readCreateProcessWithExitCode (describe (takeDirectory self)) "")
      pure $ case outcome of
        Right (ExitSuccess, output, _)
          | text <- Text.strip (Text.pack output),
            not (Text.null text) ->
            Just text
        _ -> Nothing
  where
    describe folder =
      proc "git" ["-C", folder, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
