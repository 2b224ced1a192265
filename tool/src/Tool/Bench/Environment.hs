-- | The origin of a result, as far as the process can find out: a number without its machine is a
-- rumour. No secrets, and no host names or paths but those of the command line.
module Tool.Bench.Environment
  ( manifest,
    wallClock,
    clocks,
    memory,
    contents,
  )
where

import Control.Exception (IOException, try)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Either (fromRight)
import Data.List (find, isPrefixOf)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Time.Clock.POSIX (getPOSIXTime)
import Data.Version (showVersion)
import GHC.Conc (getNumCapabilities, getNumProcessors)
import GHC.Environment (getFullArgs)
import GHC.Stats (RTSStats (max_live_bytes, max_mem_in_use_bytes), getRTSStats, getRTSStatsEnabled)
import Paths_redis_client_tool (version)
import System.Directory (listDirectory)
import System.Environment (getArgs, getExecutablePath, lookupEnv)
import System.Exit (ExitCode (..))
import System.FilePath (takeDirectory, (</>))
import System.Info (arch, compilerName, fullCompilerVersion, os)
import System.Mem (performMajorGC)
import System.Process (proc, readCreateProcessWithExitCode)
import Tool.Bench.Document (Manifest (..), Memory (..))
import Tool.Bench.Time (Nanos, monotonic)
import Tool.Span (sinceEpoch)
import Tool.Text (utf8)

-- | Describes the machine, the kernel, the compiler and the runtime.
manifest :: IO Manifest
manifest = do
  cpuInfo <- contents "/proc/cpuinfo"
  memoryInfo <- contents "/proc/meminfo"
  kernel <- textOf "/proc/sys/kernel/osrelease"
  clock <- textOf "/sys/devices/system/clocksource/clocksource0/current_clocksource"
  processors <- getNumProcessors
  capabilities <- getNumCapabilities
  virtual <- isVirtualMachine
  arguments <- getArgs
  whole <- getFullArgs
  started <- wallClock
  facts <- machineFacts
  built <- revision
  pure
    Manifest
      { manifestTool = Text.pack (showVersion version),
        manifestRevision = built,
        manifestStarted = started,
        manifestCommand = map Text.pack (withoutSecrets arguments),
        manifestOs = Text.pack os,
        manifestArchitecture = Text.pack arch,
        manifestKernel = kernel,
        manifestCpu = stripped <$> field "model name" cpuInfo,
        manifestProcessors = processors,
        manifestMemory = (* 1024) . fst <$> (field "MemTotal" memoryInfo >>= Char8.readInt),
        manifestVirtual = virtual,
        manifestClockSource = clock,
        manifestCompiler = Text.pack (compilerName <> "-" <> showVersion fullCompilerVersion),
        manifestCapabilities = capabilities,
        manifestRtsArguments =
          map Text.pack (takeWhile (/= "-RTS") (drop 1 (dropWhile (/= "+RTS") whole))),
        manifestDisk = Nothing,
        manifestFacts = facts
      }

-- | Nanoseconds since 1970.
wallClock :: IO Int
wallClock = sinceEpoch <$> getPOSIXTime

-- | Nanoseconds since 1970, and the monotonic clock at the same moment. The system may suspend this
-- thread between the readings, so it repeats them until they lie within twenty microseconds, or
-- takes the closest of a hundred.
clocks :: IO (Int, Nanos)
clocks = look >>= closest (99 :: Int)
  where
    closest left best@(width, found)
      | width <= 20000 || left <= 0 = pure found
      | otherwise =
        look >>= \other -> closest (left - 1) (if fst other < width then other else best)
    look = do
      before <- monotonic
      wall <- wallClock
      after <- monotonic
      pure (after - before, (wall, before + (after - before) `div` 2))

-- The command line with stars in place of passwords.
withoutSecrets :: [String] -> [String]
withoutSecrets = \case
  "--password" : _ : rest -> "--password" : "***" : withoutSecrets rest
  argument : rest
    | "--password=" `isPrefixOf` argument -> "--password=***" : withoutSecrets rest
    | '-' : letters <- argument,
      (flags, 'a' : value) <- span (`elem` ("ct" :: String)) letters ->
      if null value
        then argument : map (const "***") (take 1 rest) <> withoutSecrets (drop 1 rest)
        else ('-' : flags <> "a***") : withoutSecrets rest
    | otherwise -> withoutPassword argument : withoutSecrets rest
  [] -> []

-- A URL with stars in place of its password, which ends at the last @.
withoutPassword :: String -> String
withoutPassword argument = case Text.breakOn "://" (Text.pack argument) of
  (scheme, rest)
    | (credentials, host) <- Text.breakOnEnd "@" (Text.drop 3 rest),
      not (Text.null credentials) ->
      Text.unpack (scheme <> "://" <> Text.takeWhile (/= ':') credentials <> ":***@" <> host)
  _ -> argument

-- Whether the processor reports that it is virtual: waking a sleeping core is expensive there.
isVirtualMachine :: IO Bool
isVirtualMachine =
  maybe False (elem "hypervisor" . Char8.words) . field "flags" <$> contents "/proc/cpuinfo"

-- | The most memory that this process has needed so far. Ends with a major collection, so that
-- there is at least one figure for live memory.
memory :: IO Memory
memory = do
  status <- contents "/proc/self/status"
  performMajorGC
  enabled <- getRTSStatsEnabled
  (inUse, live) <- if enabled then sizes <$> getRTSStats else pure (0, 0)
  pure
    Memory
      { memoryPeakResident = maybe 0 ((* 1024) . fst) (field "VmHWM" status >>= Char8.readInt),
        memoryMaxInUse = inUse,
        memoryMaxLive = live
      }
  where
    sizes stats = (fromIntegral (max_mem_in_use_bytes stats), fromIntegral (max_live_bytes stats))

-- The value of the first "name : value" line.
field :: ByteString -> ByteString -> Maybe ByteString
field name whole = do
  line <- find (name `ByteString.isPrefixOf`) (Char8.lines whole)
  pure (Char8.dropWhile (`elem` (" \t:" :: String)) (Char8.dropWhile (/= ':') line))

-- | The bytes of a file; empty if it cannot be read.
contents :: FilePath -> IO ByteString
contents path = fromRight ByteString.empty <$> try @IOException (ByteString.readFile path)

textOf :: FilePath -> IO Text
textOf path = stripped <$> contents path

stripped :: ByteString -> Text
stripped = Text.strip . utf8

-- Facts that make the same program fast or slow on a machine, beside the name of its processor. Leaves
-- out what the kernel does not tell.
machineFacts :: IO (Map Text Text)
machineFacts = do
  found <- traverse fact files
  flaws <- mitigations
  wsl <- Text.isInfixOf "microsoft" . Text.toLower <$> textOf "/proc/sys/kernel/osrelease"
  pure . Map.fromList $
    filter (not . Text.null . snd) found
      <> [("mitigations", flaws) | not (Text.null flaws)]
      <> [("hypervisor", "WSL") | wsl]
  where
    fact (name, path) = (,) name <$> textOf path
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
      states <- traverse (\name -> ((Text.pack name <> ": ") <>) <$> textOf (folder </> name)) names
      let flawed = filter (not . ("Not affected" `Text.isSuffixOf`)) states
      pure (Text.intercalate "; " flawed)
  where
    folder = "/sys/devices/system/cpu/vulnerabilities"

-- The revision of the sources that the program was built from: the value of
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
