-- | Where a server's memory is.
--
-- > heavy <- run client (Redis.memoryUsage "example:server")
--
-- The server's pages: <https://valkey.io/commands/memory-usage/> and those beside it.
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

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Lines (otherThan)
import Redis.Value (Value)

-- | What MEMORY USAGE takes.
--
-- @since 0.1.0.0
newtype MemoryUsageOptions = MemoryUsageOptions
  { -- | How many elements are looked at: 5 if 'Nothing', all if 0.
    memoryUsageSamples :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | Five.
--
-- @since 0.1.0.0
memoryUsageDefaults :: MemoryUsageOptions
memoryUsageDefaults = MemoryUsageOptions {memoryUsageSamples = Nothing}

-- | @MEMORY USAGE key@: how many bytes the key and what it holds take; 'Nothing' for no key. Of
-- lists, sets and the like it looks at five elements and estimates the rest. \(O(1)\) on the
-- server, [since 4.0.0](https://valkey.io/commands/memory-usage/).
--
-- @since 0.1.0.0
memoryUsage :: ByteString -> Command (Maybe Int64)
memoryUsage = memoryUsageWith memoryUsageDefaults

-- | @MEMORY USAGE key [SAMPLES count]@: as 'memoryUsage'. \(O(n)\) on the server in the
-- elements that it looks at.
--
-- @since 0.1.0.0
memoryUsageWith :: MemoryUsageOptions -> ByteString -> Command (Maybe Int64)
memoryUsageWith MemoryUsageOptions {memoryUsageSamples} name =
  command "MEMORY USAGE" (key name : option "SAMPLES" int memoryUsageSamples) (Decode.nullable Decode.integer)

-- | Bytes, but where another unit is named.
--
-- @since 0.1.0.0
data MemoryStats = MemoryStats
  { -- | Taken from the allocator, at its highest.
    memoryStatsPeak :: Int64,
    -- | Taken from the allocator now.
    memoryStatsTotal :: Int64,
    -- | When the server had just started.
    memoryStatsStartup :: Int64,
    -- | What is not data: buffers, tables and so on.
    memoryStatsOverhead :: Int64,
    -- | Total less overhead.
    memoryStatsDataset :: Int64,
    -- | How many keys there are.
    memoryStatsKeys :: Int64,
    -- | For each key, all data together.
    memoryStatsBytesPerKey :: Int64,
    -- | Connections of clients.
    memoryStatsClients :: Int64,
    -- | Connections of replicas.
    memoryStatsReplicas :: Int64,
    -- | Resident memory divided by what is in use.
    memoryStatsFragmentation :: Double,
    -- | All that the server says besides, in its words. What it says of each database
    -- is here, as @db.0@.
    memoryStatsOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @MEMORY STATS@. One node's own. \(O(1)\) on the server,
-- [since 4.0.0](https://valkey.io/commands/memory-stats/).
--
-- @since 0.1.0.0
memoryStats :: Command MemoryStats
memoryStats = command "MEMORY STATS" [] $ \reply -> do
  fields <- Decode.record reply
  let number name = Decode.field name Decode.integer fields
  memoryStatsPeak <- number "peak.allocated"
  memoryStatsTotal <- number "total.allocated"
  memoryStatsStartup <- number "startup.allocated"
  memoryStatsOverhead <- number "overhead.total"
  memoryStatsDataset <- number "dataset.bytes"
  memoryStatsKeys <- number "keys.count"
  memoryStatsBytesPerKey <- number "keys.bytes-per-key"
  memoryStatsClients <- number "clients.normal"
  memoryStatsReplicas <- number "clients.slaves"
  memoryStatsFragmentation <- Decode.field "fragmentation" Decode.double fields
  pure
    MemoryStats
      { memoryStatsPeak,
        memoryStatsTotal,
        memoryStatsStartup,
        memoryStatsOverhead,
        memoryStatsDataset,
        memoryStatsKeys,
        memoryStatsBytesPerKey,
        memoryStatsClients,
        memoryStatsReplicas,
        memoryStatsFragmentation,
        memoryStatsOthers = otherThan known fields
      }
  where
    known =
      [ "peak.allocated",
        "total.allocated",
        "startup.allocated",
        "overhead.total",
        "dataset.bytes",
        "keys.count",
        "keys.bytes-per-key",
        "clients.normal",
        "clients.slaves",
        "fragmentation"
      ]

-- | @MEMORY PURGE@: has the allocator give back what it can; in a cluster on all primaries. How
-- long that takes depends on how much there is;
-- [since 4.0.0](https://valkey.io/commands/memory-purge/).
--
-- @since 0.1.0.0
memoryPurge :: Command ()
memoryPurge = command "MEMORY PURGE" [] Decode.okay

-- | @MEMORY DOCTOR@: what the server makes of its memory, in words for people. One node's own.
-- \(O(1)\) on the server, [since 4.0.0](https://valkey.io/commands/memory-doctor/).
--
-- @since 0.1.0.0
memoryDoctor :: Command ByteString
memoryDoctor = command "MEMORY DOCTOR" [] Decode.bytes

-- | @MEMORY MALLOC-STATS@: what the allocator says of itself. One node's own. May be slow where
-- there is much; [since 4.0.0](https://valkey.io/commands/memory-malloc-stats/).
--
-- @since 0.1.0.0
memoryMallocStats :: Command ByteString
memoryMallocStats = command "MEMORY MALLOC-STATS" [] Decode.bytes

-- | @MEMORY HELP@: what MEMORY can do, in lines for people. \(O(1)\) on the server,
-- [since 4.0.0](https://valkey.io/commands/memory-help/).
--
-- @since 0.1.0.0
memoryHelp :: Command [ByteString]
memoryHelp = command "MEMORY HELP" [] (Decode.list Decode.bytes)
