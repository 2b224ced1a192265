-- | "Redis.Commands.Cluster" and "Redis.Commands.ClusterAdmin", with the replies of a standalone
-- server. The suite @cluster@ tests the replies of a cluster.
module Redis.Cases.Cluster (clusterCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.Command (Command)
import Redis.CommandCase
import Redis.Commands.Cluster
import Redis.Commands.ClusterAdmin
import Redis.Commands.Clusterscan
import Redis.Commands.Keys (KeyType (HashKey))
import Redis.Commands.Server (FlushMode (..), FlushOptions (flushMode), flushDefaults)
import Redis.Duration

clusterCases :: [Case]
clusterCases = asking <> nodes <> slots

-- | A command that the server refuses, since there is no cluster.
alone :: (Eq a, Show a) => String -> Command a -> [ByteString] -> Case
alone name command words' = onEmpty name command ("CLUSTER" : words') (Fails "ERR")

asking :: [Case]
asking =
  [ alone "clusterShards" clusterShards ["SHARDS"],
    alone "clusterSlots" clusterSlots ["SLOTS"],
    -- Valkey answers this without a cluster, too.
    needs [(IsValkey, (9, 0))] (onEmpty "clusterKeyslot" (clusterKeyslot "k") ["CLUSTER", "KEYSLOT", "k"] (Gives 7629)),
    alone "clusterCountkeysinslot" (clusterCountkeysinslot 5) ["COUNTKEYSINSLOT", "5"],
    alone "clusterGetkeysinslot" (clusterGetkeysinslot 5 10) ["GETKEYSINSLOT", "5", "10"],
    alone "clusterSlotStats" (clusterSlotStats (SlotRange 0 9)) ["SLOT-STATS", "SLOTSRANGE", "0", "9"],
    alone
      "clusterSlotStatsOrderby"
      (clusterSlotStatsOrderby ByKeyCount 3 Descending)
      ["SLOT-STATS", "ORDERBY", "KEY-COUNT", "LIMIT", "3", "DESC"],
    alone
      "clusterSlotStatsOrderby"
      (clusterSlotStatsOrderby ByCpu 3 Ascending)
      ["SLOT-STATS", "ORDERBY", "CPU-USEC", "LIMIT", "3", "ASC"],
    alone
      "clusterSlotStatsOrderby"
      (clusterSlotStatsOrderby ByBytesIn 3 Descending)
      ["SLOT-STATS", "ORDERBY", "NETWORK-BYTES-IN", "LIMIT", "3", "DESC"],
    alone
      "clusterSlotStatsOrderby"
      (clusterSlotStatsOrderby ByBytesOut 3 Descending)
      ["SLOT-STATS", "ORDERBY", "NETWORK-BYTES-OUT", "LIMIT", "3", "DESC"],
    alone "clusterNodes" clusterNodes ["NODES"],
    alone "clusterReplicas" (clusterReplicas "n") ["REPLICAS", "n"],
    alone "clusterSlaves" (clusterSlaves "n") ["SLAVES", "n"],
    alone "clusterMyid" clusterMyid ["MYID"],
    alone "clusterMyshardid" clusterMyshardid ["MYSHARDID"],
    alone "clusterCountFailureReports" (clusterCountFailureReports "n") ["COUNT-FAILURE-REPORTS", "n"],
    alone "clusterLinks" clusterLinks ["LINKS"],
    onEmpty "clusterscan" (clusterscan clusterscanStart) ["CLUSTERSCAN", "0"] (Fails "ERR"),
    onEmpty
      "clusterscanWith"
      (clusterscanWith clusterscanDefaults {clusterscanMatch = Just "a*", clusterscanCount = Just 5, clusterscanType = Just HashKey, clusterscanSlot = Just 7} clusterscanStart)
      ["CLUSTERSCAN", "0", "MATCH", "a*", "COUNT", "5", "TYPE", "hash", "SLOT", "7"]
      (Fails "ERR"),
    alone "clusterInfo" clusterInfo ["INFO"],
    alone "clusterHelp" clusterHelp ["HELP"]
  ]

nodes :: [Case]
nodes =
  [ alone "clusterMeet" (clusterMeet "h" 7000) ["MEET", "h", "7000"],
    alone "clusterMeetWith" (clusterMeetWith clusterMeetDefaults {clusterMeetBusPort = Just 7001} "h" 7000) ["MEET", "h", "7000", "7001"],
    alone "clusterForget" (clusterForget "n") ["FORGET", "n"],
    alone "clusterReplicate" (clusterReplicate "n") ["REPLICATE", "n"],
    alone "clusterReplicateNoOne" clusterReplicateNoOne ["REPLICATE", "NO", "ONE"],
    alone "clusterFailover" clusterFailover ["FAILOVER"],
    alone "clusterFailoverWith" (clusterFailoverWith clusterFailoverDefaults {clusterFailoverMode = Just FailoverForce}) ["FAILOVER", "FORCE"],
    alone "clusterFailoverWith" (clusterFailoverWith clusterFailoverDefaults {clusterFailoverMode = Just FailoverTakeover}) ["FAILOVER", "TAKEOVER"],
    alone "clusterReset" clusterReset ["RESET"],
    alone "clusterResetWith" (clusterResetWith clusterResetDefaults {clusterResetMode = Just ResetHard}) ["RESET", "HARD"],
    alone "clusterResetWith" (clusterResetWith clusterResetDefaults {clusterResetMode = Just ResetSoft}) ["RESET", "SOFT"],
    alone "clusterSaveconfig" clusterSaveconfig ["SAVECONFIG"],
    alone "clusterBumpepoch" clusterBumpepoch ["BUMPEPOCH"],
    alone "clusterSetConfigEpoch" (clusterSetConfigEpoch 5) ["SET-CONFIG-EPOCH", "5"]
  ]

slots :: [Case]
slots =
  [ alone "clusterAddslots" (clusterAddslots (5 :| [6])) ["ADDSLOTS", "5", "6"],
    alone "clusterAddslotsrange" (clusterAddslotsrange (SlotRange 5 6 :| [SlotRange 8 9])) ["ADDSLOTSRANGE", "5", "6", "8", "9"],
    alone "clusterDelslots" (clusterDelslots (5 :| [])) ["DELSLOTS", "5"],
    alone "clusterDelslotsrange" (clusterDelslotsrange (SlotRange 5 6 :| [])) ["DELSLOTSRANGE", "5", "6"],
    alone "clusterFlushslots" clusterFlushslots ["FLUSHSLOTS"],
    alone "clusterFlushslot" (clusterFlushslot 5) ["FLUSHSLOT", "5"],
    alone "clusterFlushslotWith" (clusterFlushslotWith flushDefaults {flushMode = Just FlushSync} 5) ["FLUSHSLOT", "5", "SYNC"],
    alone "clusterFlushslotWith" (clusterFlushslotWith flushDefaults {flushMode = Just FlushAsync} 5) ["FLUSHSLOT", "5", "ASYNC"],
    alone "clusterSetslot" (clusterSetslot 5 (SlotImporting "n")) ["SETSLOT", "5", "IMPORTING", "n"],
    alone "clusterSetslot" (clusterSetslot 5 (SlotMigrating "n")) ["SETSLOT", "5", "MIGRATING", "n"],
    alone "clusterSetslot" (clusterSetslot 5 (SlotOf "n")) ["SETSLOT", "5", "NODE", "n"],
    alone "clusterSetslot" (clusterSetslot 5 SlotStable) ["SETSLOT", "5", "STABLE"],
    alone
      "clusterSetslotWith"
      (clusterSetslotWith clusterSetslotDefaults {clusterSetslotTimeout = Just (seconds 0.5)} 5 (SlotOf "n"))
      ["SETSLOT", "5", "NODE", "n", "TIMEOUT", "500"],
    alone
      "clusterMigrateslots"
      (clusterMigrateslots ((SlotRange 5 6 :| [SlotRange 8 9], "n") :| [(SlotRange 1 1 :| [], "m")]))
      ["MIGRATESLOTS", "SLOTSRANGE", "5", "6", "8", "9", "NODE", "n", "SLOTSRANGE", "1", "1", "NODE", "m"],
    alone "clusterGetslotmigrations" clusterGetslotmigrations ["GETSLOTMIGRATIONS"],
    alone "clusterCancelslotmigrations" clusterCancelslotmigrations ["CANCELSLOTMIGRATIONS"],
    alone
      "clusterMigrationImport"
      (clusterMigrationImport (SlotRange 5 6 :| [SlotRange 8 9]))
      ["MIGRATION", "IMPORT", "5", "6", "8", "9"],
    alone "clusterMigrationStatus" clusterMigrationStatus ["MIGRATION", "STATUS", "ALL"],
    alone "clusterMigrationStatusOf" (clusterMigrationStatusOf "t") ["MIGRATION", "STATUS", "ID", "t"],
    alone "clusterMigrationCancel" (clusterMigrationCancel "t") ["MIGRATION", "CANCEL", "ID", "t"],
    alone "clusterMigrationCancelAll" clusterMigrationCancelAll ["MIGRATION", "CANCEL", "ALL"],
    onEmpty
      "trimslots"
      (trimslots (SlotRange 5 6 :| [SlotRange 8 9]))
      ["TRIMSLOTS", "RANGES", "2", "5", "6", "8", "9"]
      (Fails "ERR")
  ]
