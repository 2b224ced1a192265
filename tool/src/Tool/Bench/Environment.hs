-- | The origin of a result, as far as the process can find out: a number without its machine is a
-- rumour. No secrets, and no host names or paths but those of the command line.
--
-- Also what this process uses of the machine: a generator without spare processor time measures
-- itself, because each latency that it reports includes its own delay. And the cost of a disk for a
-- server that must not lose anything: how long it takes until the kernel confirms that an append
-- has reached it.
module Tool.Bench.Environment
  ( manifest,
    wallClock,
    clocks,
    memory,
    Usage (..),
    usage,
    usedSince,
    usableCores,
    takeAllCores,
    queuedNanos,
    quotaOf,
    probeDisk,
    filesystemOf,
  )
where

import Control.Exception (IOException, bracket, try)
import Control.Monad (unless)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Either (fromRight)
import Data.Foldable (maximumBy)
import Data.List (find, isPrefixOf)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (listToMaybe, mapMaybe)
import Data.Ord (comparing)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Time.Clock.POSIX (getPOSIXTime)
import Data.Version (showVersion)
import GHC.Conc (getNumCapabilities, getNumProcessors, setNumCapabilities)
import GHC.Environment (getFullArgs)
import GHC.Stats (RTSStats (..), getRTSStats, getRTSStatsEnabled)
import Paths_redis_client_tool (version)
import System.Directory
import System.Environment (getArgs, getExecutablePath, lookupEnv)
import System.Exit (ExitCode (..))
import System.FilePath (addTrailingPathSeparator, takeDirectory, (</>))
import System.IO (openBinaryTempFile)
import System.Info (arch, compilerName, fullCompilerVersion, os)
import System.Mem (performMajorGC)
import System.Posix.IO (closeFd, fdWrite, handleToFd)
import System.Posix.Types (Fd)
import System.Posix.Unistd (fileSynchroniseDataOnly)
import System.Process (proc, readCreateProcessWithExitCode)
import Tool.Bench.Document (Disk (..), Manifest (..), Memory (..))
import Tool.Bench.Histogram (fromValues)
import Tool.Bench.Time (Nanos, monotonic, ownCpu)
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
        -- Waking a sleeping core is expensive there.
        manifestVirtual = maybe False (elem "hypervisor" . Char8.words) (field "flags" cpuInfo),
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

-- | The most memory that this process has needed, after a major collection, which gives live memory.
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

-- The bytes of a file; empty if it cannot be read.
contents :: FilePath -> IO ByteString
contents path = fromRight ByteString.empty <$> try @IOException (ByteString.readFile path)

textOf :: FilePath -> IO Text
textOf path = stripped <$> contents path

stripped :: ByteString -> Text
stripped = Text.strip . utf8

-- What else makes the same program fast or slow on a machine, as far as the kernel tells.
machineFacts :: IO (Map Text Text)
machineFacts = do
  found <- traverse fact files
  flaws <- mitigations
  idle <- lookupEnv "QUIET_IDLE"
  wsl <- Text.isInfixOf "microsoft" . Text.toLower <$> textOf "/proc/sys/kernel/osrelease"
  pure . Map.fromList $
    filter (not . Text.null . snd) found
      <> [("mitigations", flaws) | not (Text.null flaws)]
      <> [("hypervisor", "WSL") | wsl]
      -- What scripts/quiet.sh saw before the measurement.
      <> [("idle_at_start", Text.pack share) | Just share <- [idle]]
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
      pure (Text.intercalate "; " (filter (not . ("Not affected" `Text.isSuffixOf`)) states))
  where
    folder = "/sys/devices/system/cpu/vulnerabilities"

-- The revision of the program's sources: the variable @REDIS_CLIENT_REVISION@, or, for a program that
-- lies in a working copy, git's answer, with @-dirty@ if there are changes.
revision :: IO (Maybe Text)
revision =
  lookupEnv "REDIS_CLIENT_REVISION" >>= \case
    Just told -> pure (Just (Text.pack told))
    Nothing -> do
      self <- getExecutablePath
      outcome <- try @IOException (readCreateProcessWithExitCode (describe (takeDirectory self)) "")
      pure . listToMaybe $
        [ text
          | Right (ExitSuccess, output, _) <- [outcome],
            let text = Text.strip (Text.pack output),
            not (Text.null text)
        ]
  where
    describe folder =
      proc "git" ["-C", folder, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]

-- | Usage since the process began or, as a difference, between two moments.
data Usage = Usage
  { usageTime :: Nanos,
    -- | Processor time of all threads.
    usageCpu :: Nanos,
    -- | The part of 'usageCpu' that was garbage collection, if the runtime counts it.
    usageGc :: Maybe Nanos,
    -- | Time that the generator's threads were ready to run and had no core, if the kernel counts
    -- it. Threads that have ended are not included.
    usageQueued :: Maybe Nanos
  }

-- | The usage up to now. Reads a small file per thread of the process.
usage :: IO Usage
usage = do
  now <- monotonic
  cpu <- ownCpu
  counted <- getRTSStatsEnabled
  gc <- if counted then Just . fromIntegral . gc_cpu_ns <$> getRTSStats else pure Nothing
  Usage now cpu gc <$> queued

-- | The later usage minus the earlier.
usedSince :: Usage -> Usage -> Usage
usedSince before after =
  Usage
    { usageTime = usageTime after - usageTime before,
      usageCpu = usageCpu after - usageCpu before,
      usageGc = (-) <$> usageGc after <*> usageGc before,
      -- A thread that ended in between takes its time out of the sum.
      usageQueued =
        (\late early -> max 0 (late - early)) <$> usageQueued after <*> usageQueued before
    }

-- | The cores on which this process can run Haskell at a time; not whole if its container has a limit.
usableCores :: IO Double
usableCores = do
  cores <- min <$> getNumCapabilities <*> getNumProcessors
  limit <- contents "/sys/fs/cgroup/cpu.max"
  pure (maybe id min (quotaOf limit) (fromIntegral cores))

-- | Lets this process use all cores, up to four, unless its command line sets a number (@+RTS -N@).
-- On one core of several, a generator is easily the bottleneck.
takeAllCores :: IO ()
takeAllCores = do
  arguments <- getFullArgs
  processors <- getNumProcessors
  unless (any ("-N" `isPrefixOf`) (drop 1 (dropWhile (/= "+RTS") arguments))) $
    setNumCapabilities (max 1 (min 4 processors))

queued :: IO (Maybe Nanos)
queued =
  try @IOException (listDirectory tasks) >>= \case
    Left _ -> pure Nothing
    Right threads -> do
      texts <- traverse (\thread -> contents (tasks </> thread </> "schedstat")) threads
      pure (sum <$> NonEmpty.nonEmpty (mapMaybe queuedNanos texts))
  where
    tasks = "/proc/self/task"

-- | The cores that a control group's file @cpu.max@ allows: the processor time in a period, over
-- the length of the period. 'Nothing' if it has no limit.
quotaOf :: ByteString -> Maybe Double
quotaOf text = case map Char8.readInt (Char8.words text) of
  [Just (quota, ""), Just (period, "")]
    | quota > 0 && period > 0 -> Just (fromIntegral quota / fromIntegral period)
  _ -> Nothing

-- | The waiting time in a @schedstat@ file: its second number, after the running time.
queuedNanos :: ByteString -> Maybe Nanos
queuedNanos text = case map Char8.readInt (Char8.words text) of
  [Just _, Just (waited, ""), Just _] -> Just waited
  _ -> Nothing

-- | Appends a hundred bytes and synchronises, up to two hundred times or for half a second, in a
-- file of its own in that folder. 'Nothing' if it cannot write there. Blocks for up to half a
-- second and one synchronisation.
probeDisk :: FilePath -> IO (Maybe Disk)
probeDisk folder = do
  mounts <- contents "/proc/self/mounts"
  outcome <- try @IOException $ do
    place <- canonicalizePath folder
    allowed <- writable <$> getPermissions place
    if allowed
      then Just . Disk (filesystemOf mounts place) . fromValues <$> measured place
      else pure Nothing
  pure (fromRight Nothing outcome)

measured :: FilePath -> IO [Nanos]
measured folder =
  bracket (openBinaryTempFile folder "fsync-probe") (removeFile . fst) $ \(_, handle) ->
    bracket (handleToFd handle) closeFd $ \file -> do
      -- Not counted: the first append allocates blocks and metadata.
      _ <- once file
      began <- monotonic
      repeated (began + 500000000) 200 file
  where
    repeated :: Nanos -> Int -> Fd -> IO [Nanos]
    repeated _ 0 _ = pure []
    repeated end left file = do
      took <- once file
      now <- monotonic
      if now >= end then pure [took] else (took :) <$> repeated end (left - 1) file
    once file = do
      before <- monotonic
      _ <- fdWrite file (replicate 100 'x')
      fileSynchroniseDataOnly file
      subtract before <$> monotonic

-- | The type and the options of the file system that a folder lies on, from the
-- text of @/proc/self/mounts@; the longest mount point wins.
filesystemOf :: ByteString -> FilePath -> Text
filesystemOf mounts folder =
  maybe "unknown" (snd . maximumBy (comparing fst)) (NonEmpty.nonEmpty mountPoints)
  where
    mountPoints =
      [ (length point, Text.pack (kind <> " (" <> options <> ")"))
        | _ : point : kind : options : _ <- map (map Char8.unpack . Char8.words) (Char8.lines mounts),
          addTrailingPathSeparator point `isPrefixOf` addTrailingPathSeparator folder
      ]
