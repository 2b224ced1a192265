-- | The generator's own use of the machine. A generator without spare processor time measures
-- itself: each latency that it reports includes its own delay.
module Tool.Bench.Usage
  ( Usage (..),
    usage,
    usedSince,
    usableCores,
    takeAllCores,

    -- * Parts
    queuedNanos,
    quotaOf,
  )
where

import Control.Exception (IOException, try)
import Control.Monad (unless)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (isPrefixOf)
import Data.Maybe (mapMaybe)
import GHC.Conc (getNumCapabilities, getNumProcessors, setNumCapabilities)
import GHC.Environment (getFullArgs)
import GHC.Stats (RTSStats (gc_cpu_ns), getRTSStats, getRTSStatsEnabled)
import System.Directory (listDirectory)
import System.FilePath ((</>))
import Tool.Bench.Environment (contents)
import Tool.Bench.Time (Nanos, monotonic, ownCpu)

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
  deriving stock (Eq, Show)

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

-- | The number of cores on which this process can run Haskell at a time. Not a whole number if its
-- container has a limit of processor time.
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
      pure $ case mapMaybe queuedNanos texts of
        [] -> Nothing
        found -> Just (sum found)
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
