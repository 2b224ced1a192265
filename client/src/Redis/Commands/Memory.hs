-- | How a server uses its memory.
--
-- > heavy <- run client (Redis.memoryUsage "example:server")
--
-- 'memoryStats', 'memoryDoctor' and 'memoryMallocStats' concern one node; in a cluster, name it.
-- The server's documentation: <https://valkey.io/commands/memory-usage/> and the pages beside it.
module Redis.Commands.Memory
  ( memoryUsage,
    memoryUsageWith,
    MemoryUsageOptions (memoryUsageSamples),
    memoryUsageDefaults,
    memoryStats,
    MemoryStats (..),
    memoryPurge,
    memoryDoctor,
    memoryMallocStats,
    memoryHelp,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | Options of MEMORY USAGE.
newtype MemoryUsageOptions = MemoryUsageOptions
  { -- | SAMPLES: how many elements to look at; 'Nothing' is 5, and 0 is all.
    memoryUsageSamples :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | Look at five elements.
memoryUsageDefaults :: MemoryUsageOptions
memoryUsageDefaults = MemoryUsageOptions {memoryUsageSamples = Nothing}

-- | @MEMORY USAGE key@: how many bytes the key and its value take; 'Nothing' if there is no such
-- key. Of lists, sets and the like, the server looks at five elements and estimates the rest.
-- \(O(1)\), [since 4.0.0](https://valkey.io/commands/memory-usage/).
memoryUsage :: ByteString -> Command (Maybe Int64)
memoryUsage = memoryUsageWith memoryUsageDefaults

-- | @MEMORY USAGE key [SAMPLES count]@: like 'memoryUsage', with options. \(O(n)\) in the number of
-- elements that it looks at.
memoryUsageWith :: MemoryUsageOptions -> ByteString -> Command (Maybe Int64)
memoryUsageWith MemoryUsageOptions {memoryUsageSamples} name =
  command "MEMORY USAGE" (key name : option "SAMPLES" int memoryUsageSamples) (Decode.nullable Decode.integer)

-- | How a server uses its memory. Sizes are in bytes.
data MemoryStats = MemoryStats
  { -- | The most memory ever taken from the allocator.
    memoryStatsPeak :: Int64,
    -- | The memory taken from the allocator now.
    memoryStatsTotal :: Int64,
    -- | The memory taken when the server had just started.
    memoryStatsStartup :: Int64,
    -- | Memory for other things than data: buffers, tables and so on.
    memoryStatsOverhead :: Int64,
    -- | The total less the overhead.
    memoryStatsDataset :: Int64,
    -- | The number of keys.
    memoryStatsKeys :: Int64,
    -- | The total less the memory at startup, divided by the number of keys.
    memoryStatsBytesPerKey :: Int64,
    -- | Memory for connections of clients.
    memoryStatsClients :: Int64,
    -- | Memory for connections of replicas.
    memoryStatsReplicas :: Int64,
    -- | A ratio: resident memory divided by the memory in use.
    memoryStatsFragmentation :: Double,
    -- | All other fields of the reply, by the server's names. What it tells of each database is
    -- among them, as @db.0@.
    memoryStatsOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @MEMORY STATS@: how the server uses its memory. \(O(1)\),
-- [since 4.0.0](https://valkey.io/commands/memory-stats/).
memoryStats :: Command MemoryStats
memoryStats =
  command "MEMORY STATS" [] . recordOf $
    MemoryStats
      <$> field "peak.allocated" Decode.integer
      <*> field "total.allocated" Decode.integer
      <*> field "startup.allocated" Decode.integer
      <*> field "overhead.total" Decode.integer
      <*> field "dataset.bytes" Decode.integer
      <*> field "keys.count" Decode.integer
      <*> field "keys.bytes-per-key" Decode.integer
      <*> field "clients.normal" Decode.integer
      <*> field "clients.slaves" Decode.integer
      <*> field "fragmentation" Decode.double
      <*> others Decode.value

-- | @MEMORY PURGE@: makes the allocator give back the memory that it can; in a cluster, on all
-- primaries. How long that takes depends on how much there is;
-- [since 4.0.0](https://valkey.io/commands/memory-purge/).
memoryPurge :: Command ()
memoryPurge = command "MEMORY PURGE" [] Decode.okay

-- | @MEMORY DOCTOR@, @MEMORY MALLOC-STATS@: the server's analysis of its memory, and the
-- allocator's own statistics, as text for people. \(O(1)\); the statistics may be slow if much
-- memory is allocated. Since 4.0.0 ([DOCTOR](https://valkey.io/commands/memory-doctor/),
-- [MALLOC-STATS](https://valkey.io/commands/memory-malloc-stats/)).
memoryDoctor, memoryMallocStats :: Command ByteString
memoryDoctor = command "MEMORY DOCTOR" [] Decode.bytes
memoryMallocStats = command "MEMORY MALLOC-STATS" [] Decode.bytes

-- | @MEMORY HELP@: the server's help. \(O(1)\), [since 4.0.0](https://valkey.io/commands/memory-help/).
memoryHelp :: Command [ByteString]
memoryHelp = command "MEMORY HELP" [] (Decode.list Decode.bytes)
