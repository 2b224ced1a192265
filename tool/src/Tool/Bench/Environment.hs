-- | The origin of a result, as far as the process can find out: a number without its machine is a
-- rumour. No secrets, and no host names or paths but those of the command line.
module Tool.Bench.Environment
  ( manifest,
    withoutSecrets,
    wallClock,
    clocks,
    memory,
    isVirtualMachine,
  )
where

import Control.Exception (IOException, try)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List (find, isPrefixOf)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Data.Text.Encoding.Error qualified as Text
import Data.Time.Clock.POSIX (getPOSIXTime)
import Data.Version (showVersion)
import GHC.Conc (getNumCapabilities, getNumProcessors)
import GHC.Environment (getFullArgs)
import GHC.Stats (RTSStats (max_live_bytes, max_mem_in_use_bytes), getRTSStats, getRTSStatsEnabled)
import Paths_redis_client_tool (version)
import System.Environment (getArgs)
import System.Info (arch, compilerName, fullCompilerVersion, os)
import System.Mem (performMajorGC)
import Tool.Bench.Cpu (Nanos, monotonic)
import Tool.Bench.Document (Manifest (..), Memory (..))
import Tool.Bench.Machine (machineFacts, revision)
import Tool.Span (sinceEpoch)

-- | Describes the machine, the kernel, the compiler and the runtime.
manifest :: IO Manifest
manifest = do
  cpuInfo <- contents "/proc/cpuinfo"
  memoryInfo <- contents "/proc/meminfo"
  kernel <- contents "/proc/sys/kernel/osrelease"
  clock <- contents "/sys/devices/system/clocksource/clocksource0/current_clocksource"
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
        manifestKernel = text kernel,
        manifestCpu = text <$> field "model name" cpuInfo,
        manifestProcessors = processors,
        manifestMemory = (* 1024) . fst <$> (field "MemTotal" memoryInfo >>= Char8.readInt),
        manifestVirtual = virtual,
        manifestClockSource = text clock,
        manifestCompiler = Text.pack (compilerName <> "-" <> showVersion fullCompilerVersion),
        manifestCapabilities = capabilities,
        manifestRtsArguments =
          map Text.pack (takeWhile (/= "-RTS") (drop 1 (dropWhile (/= "+RTS") whole))),
        manifestDisk = Nothing,
        manifestFacts = facts
      }
  where
    text = Text.strip . Text.decodeUtf8With Text.lenientDecode

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

-- | The command line with stars in place of passwords.
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

-- | Whether the processor reports that it is virtual: waking a sleeping core is expensive there.
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
  (inUse, live) <-
    if enabled
      then sizes <$> getRTSStats
      else pure (0, 0)
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

-- Empty if there is no such file.
contents :: FilePath -> IO ByteString
contents path = either nothing id <$> try (ByteString.readFile path)
  where
    nothing :: IOException -> ByteString
    nothing _ = ByteString.empty
