-- | Where a result comes from, as far as the process can tell: a number without
-- its machine is a rumour. No host names, no paths, no secrets.
module Tool.Bench.Environment
  ( environment,
    memory,
    isVirtualMachine,
  )
where

import Control.Exception (IOException, try)
import Data.Aeson ((.=))
import Data.Aeson.Types (Pair)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List (find)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Data.Text.Encoding.Error qualified as Text
import Data.Version (showVersion)
import GHC.Conc (getNumCapabilities, getNumProcessors)
import GHC.Environment (getFullArgs)
import GHC.Stats (RTSStats (max_live_bytes, max_mem_in_use_bytes), getRTSStats, getRTSStatsEnabled)
import Paths_redis_client_tool (version)
import System.Info (arch, compilerName, fullCompilerVersion, os)
import System.Mem (performMajorGC)
import Tool.Bench.Result (Memory (..))

-- | The machine, the kernel, the compiler, the runtime.
environment :: IO [Pair]
environment = do
  cpuInfo <- contents "/proc/cpuinfo"
  kernel <- contents "/proc/sys/kernel/osrelease"
  clock <- contents "/sys/devices/system/clocksource/clocksource0/current_clocksource"
  processors <- getNumProcessors
  capabilities <- getNumCapabilities
  virtual <- isVirtualMachine
  arguments <- getFullArgs
  pure
    [ "tool_version" .= showVersion version,
      "os" .= os,
      "arch" .= arch,
      "kernel" .= text kernel,
      "cpu" .= fmap text (field "model name" cpuInfo),
      "processors" .= processors,
      "virtual_machine" .= virtual,
      "clock_source" .= text clock,
      "compiler" .= (compilerName <> "-" <> showVersion fullCompilerVersion),
      "capabilities" .= capabilities,
      "rts_arguments" .= takeWhile (/= "-RTS") (drop 1 (dropWhile (/= "+RTS") arguments))
    ]
  where
    text = Text.strip . Text.decodeUtf8With Text.lenientDecode

-- | Whether the processor says that it is not a real one: waking a sleeping
-- core is dear there.
isVirtualMachine :: IO Bool
isVirtualMachine =
  maybe False (elem "hypervisor" . Char8.words) . field "flags" <$> contents "/proc/cpuinfo"

-- | What this process needed at most, so far. Ends with a major collection, so
-- that there is at least one figure for what is live.
memory :: IO Memory
memory = do
  status <- contents "/proc/self/status"
  performMajorGC
  enabled <- getRTSStatsEnabled
  (inUse, live) <-
    if enabled
      then (\stats -> (fromIntegral (max_mem_in_use_bytes stats), fromIntegral (max_live_bytes stats))) <$> getRTSStats
      else pure (0, 0)
  pure
    Memory
      { memoryPeakResident = maybe 0 ((* 1024) . fst) (field "VmHWM" status >>= Char8.readInt),
        memoryMaxInUse = inUse,
        memoryMaxLive = live
      }

-- The value of the first "name : value" line.
field :: ByteString -> ByteString -> Maybe ByteString
field name whole = do
  line <- find (name `ByteString.isPrefixOf`) (Char8.lines whole)
  pure (Char8.dropWhile (`elem` (" \t:" :: String)) (Char8.dropWhile (/= ':') line))

-- Empty where there is no such file.
contents :: FilePath -> IO ByteString
contents path = either nothing id <$> try (ByteString.readFile path)
  where
    nothing :: IOException -> ByteString
    nothing _ = ByteString.empty
