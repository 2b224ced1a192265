-- | Commands that change a cluster: its nodes, their roles, and the slots that they serve.
--
-- > run client (onNode replica Redis.clusterFailover)
--
-- All of these need the name of a node ('Redis.Command.onNode'). That node makes the change, and
-- tells the others of most changes. A server that is not a cluster answers with an error. The
-- server's page: <https://valkey.io/topics/cluster-tutorial/>.
module Redis.Commands.ClusterAdmin
  ( -- * Nodes
    clusterMeet,
    clusterMeetWith,
    ClusterMeetOptions (clusterMeetBusPort),
    clusterMeetDefaults,
    clusterForget,
    clusterReplicate,
    clusterReplicateNoOne,
    clusterFailover,
    clusterFailoverWith,
    ClusterFailoverOptions (clusterFailoverMode),
    clusterFailoverDefaults,
    ClusterFailoverMode (..),
    clusterReset,
    clusterResetWith,
    ClusterResetOptions (clusterResetMode),
    clusterResetDefaults,
    ClusterResetMode (..),
    clusterSaveconfig,
    clusterBumpepoch,
    BumpedEpoch (..),
    clusterSetConfigEpoch,

    -- * Slots
    clusterAddslots,
    clusterAddslotsrange,
    clusterDelslots,
    clusterDelslotsrange,
    clusterFlushslots,
    clusterFlushslot,
    clusterFlushslotWith,
    clusterSetslot,
    clusterSetslotWith,
    ClusterSetslotOptions (clusterSetslotTimeout),
    clusterSetslotDefaults,
    SlotAssignment (..),

    -- * Atomic slot migration
    clusterMigrateslots,
    clusterGetslotmigrations,
    SlotMigration (..),
    clusterCancelslotmigrations,
    clusterMigrationImport,
    clusterMigrationStatus,
    clusterMigrationStatusOf,
    clusterMigrationCancel,
    clusterMigrationCancelAll,
    MigrationTask (..),
    trimslots,
  )
where

import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (fold)
import Redis.Decode qualified as Decode
import Redis.Error (Host, Port)
import Redis.Internal.Command.ClusterNode
import Redis.Internal.Command.Common
import Redis.Value (Value (BulkString))

-- | @CLUSTER MEET ip port@: makes the node meet the node at this address, and the clusters of both
-- become one. The reply comes before that has happened. \(O(1)\),
-- [since 3.0.0](https://valkey.io/commands/cluster-meet/).
clusterMeet :: Host -> Port -> Command ()
clusterMeet = clusterMeetWith clusterMeetDefaults

-- | Options of CLUSTER MEET.
newtype ClusterMeetOptions = ClusterMeetOptions
  { -- | The port for other nodes. 'Nothing' is the port for clients plus 10000. Since 4.0.0.
    clusterMeetBusPort :: Maybe Port
  }
  deriving stock (Eq, Show)

-- | Uses the port for clients plus 10000.
clusterMeetDefaults :: ClusterMeetOptions
clusterMeetDefaults = ClusterMeetOptions {clusterMeetBusPort = Nothing}

-- | @CLUSTER MEET ip port [bus-port]@: like 'clusterMeet'.
clusterMeetWith :: ClusterMeetOptions -> Host -> Port -> Command ()
clusterMeetWith ClusterMeetOptions {clusterMeetBusPort} host port =
  command "CLUSTER MEET" (arg host : portArgument port : maybe [] (pure . portArgument) clusterMeetBusPort) Decode.okay

portArgument :: Port -> Argument
portArgument = int . fromIntegral

-- | @CLUSTER FORGET id@: makes the node forget the node with this id, and ignore it for a minute
-- even if other nodes name it. So all nodes must be told within that minute. An error for the node
-- itself, for its primary, and for an id that it does not know. \(O(1)\),
-- [since 3.0.0](https://valkey.io/commands/cluster-forget/).
--
-- > run client (onEach AllNodes (clusterForget gone))
clusterForget :: ByteString -> Command ()
clusterForget node = command "CLUSTER FORGET" [arg node] Decode.okay

-- | @CLUSTER REPLICATE id@: the node becomes a replica of that primary. An error for a primary with
-- slots or keys. \(O(1)\), [since 3.0.0](https://valkey.io/commands/cluster-replicate/).
clusterReplicate :: ByteString -> Command ()
clusterReplicate node = command "CLUSTER REPLICATE" [arg node] Decode.okay

-- | @CLUSTER REPLICATE NO ONE@: the replica becomes a primary without slots, and its data are
-- deleted. [Since Valkey 9.0.0](https://valkey.io/commands/cluster-replicate/); Redis lacks it.
clusterReplicateNoOne :: Command ()
clusterReplicateNoOne = command "CLUSTER REPLICATE" [arg "NO", arg "ONE"] Decode.okay

-- | Which nodes a failover does without.
data ClusterFailoverMode
  = -- | FORCE: the primary, which may be down.
    FailoverForce
  | -- | TAKEOVER: also the agreement of the other primaries.
    FailoverTakeover
  deriving stock (Eq, Show)

-- | Options of CLUSTER FAILOVER.
newtype ClusterFailoverOptions = ClusterFailoverOptions
  { -- | 'Nothing' needs the primary and the agreement of the other primaries.
    clusterFailoverMode :: Maybe ClusterFailoverMode
  }
  deriving stock (Eq, Show)

-- | Needs the primary and the agreement of the other primaries.
clusterFailoverDefaults :: ClusterFailoverOptions
clusterFailoverDefaults = ClusterFailoverOptions {clusterFailoverMode = Nothing}

-- | @CLUSTER FAILOVER@: a replica takes its primary's place, as soon as it has all of its data;
-- nothing is lost. The reply comes before that has happened. An error for a primary. \(O(1)\),
-- [since 3.0.0](https://valkey.io/commands/cluster-failover/).
clusterFailover :: Command ()
clusterFailover = clusterFailoverWith clusterFailoverDefaults

-- | @CLUSTER FAILOVER [FORCE|TAKEOVER]@: like 'clusterFailover'. With FORCE or TAKEOVER the replica
-- does not wait for its primary, and the data that it lacks are lost.
clusterFailoverWith :: ClusterFailoverOptions -> Command ()
clusterFailoverWith ClusterFailoverOptions {clusterFailoverMode} = command "CLUSTER FAILOVER" mode Decode.okay
  where
    mode = case clusterFailoverMode of
      Nothing -> []
      Just FailoverForce -> [arg "FORCE"]
      Just FailoverTakeover -> [arg "TAKEOVER"]

-- | How much a node forgets.
data ClusterResetMode
  = -- | The other nodes and its slots.
    ResetSoft
  | -- | Its id and its epochs, too.
    ResetHard
  deriving stock (Eq, Show)

-- | Options of CLUSTER RESET.
newtype ClusterResetOptions = ClusterResetOptions
  { -- | 'Nothing' is 'ResetSoft'.
    clusterResetMode :: Maybe ClusterResetMode
  }
  deriving stock (Eq, Show)

-- | A soft reset.
clusterResetDefaults :: ClusterResetOptions
clusterResetDefaults = ClusterResetOptions {clusterResetMode = Nothing}

-- | @CLUSTER RESET@: the node leaves its cluster. A replica becomes an empty primary. An error for
-- a primary with keys. \(O(n)\) in nodes, [since 3.0.0](https://valkey.io/commands/cluster-reset/).
clusterReset :: Command ()
clusterReset = clusterResetWith clusterResetDefaults

-- | @CLUSTER RESET [HARD|SOFT]@: like 'clusterReset'.
clusterResetWith :: ClusterResetOptions -> Command ()
clusterResetWith ClusterResetOptions {clusterResetMode} = command "CLUSTER RESET" mode Decode.okay
  where
    mode = case clusterResetMode of
      Nothing -> []
      Just ResetSoft -> [arg "SOFT"]
      Just ResetHard -> [arg "HARD"]

-- | @CLUSTER SAVECONFIG@: writes what the node knows of the cluster to its disk. \(O(1)\),
-- [since 3.0.0](https://valkey.io/commands/cluster-saveconfig/).
clusterSaveconfig :: Command ()
clusterSaveconfig = command "CLUSTER SAVECONFIG" [] Decode.okay

-- | The epoch of a node after CLUSTER BUMPEPOCH.
data BumpedEpoch
  = -- | A new epoch.
    Bumped Int64
  | -- | The old epoch, which was the highest already.
    StillHighest Int64
  deriving stock (Eq, Show)

-- | @CLUSTER BUMPEPOCH@: gives the node the highest epoch of all, unless it has it already.
-- \(O(1)\), [since 3.0.0](https://valkey.io/commands/cluster-bumpepoch/).
clusterBumpepoch :: Command BumpedEpoch
clusterBumpepoch = command "CLUSTER BUMPEPOCH" [] bumpedEpoch

bumpedEpoch :: Decoder BumpedEpoch
bumpedEpoch reply = do
  text <- Decode.bytes reply
  case Char8.words text of
    ["BUMPED", number] | Right epoch <- Decode.integer (BulkString number) -> Right (Bumped epoch)
    ["STILL", number] | Right epoch <- Decode.integer (BulkString number) -> Right (StillHighest epoch)
    _ -> Decode.mismatch "BUMPED or STILL and an epoch" reply

-- | @CLUSTER SET-CONFIG-EPOCH epoch@: sets the epoch of a new node that knows no other node. An
-- error for any other node. \(O(1)\),
-- [since 3.0.0](https://valkey.io/commands/cluster-set-config-epoch/).
clusterSetConfigEpoch :: Int64 -> Command ()
clusterSetConfigEpoch epoch = command "CLUSTER SET-CONFIG-EPOCH" [int epoch] Decode.okay

-- | @CLUSTER ADDSLOTS slot …@: the node serves these slots from now on. An error if it knows of a
-- node that serves one of them. @CLUSTER DELSLOTS slot …@: the node forgets which node serves these
-- slots, itself or another, and is down until one serves them again. Both change all of the slots,
-- or none. \(O(n)\), since 3.0.0 ([CLUSTER ADDSLOTS](https://valkey.io/commands/cluster-addslots/),
-- [CLUSTER DELSLOTS](https://valkey.io/commands/cluster-delslots/)).
clusterAddslots, clusterDelslots :: NonEmpty Int -> Command ()
clusterAddslots slots = command "CLUSTER ADDSLOTS" (map slotArgument (toList slots)) Decode.okay
clusterDelslots slots = command "CLUSTER DELSLOTS" (map slotArgument (toList slots)) Decode.okay

-- | @CLUSTER ADDSLOTSRANGE first last …@, @CLUSTER DELSLOTSRANGE first last …@: like
-- 'clusterAddslots' and 'clusterDelslots', since 7.0.0
-- ([CLUSTER ADDSLOTSRANGE](https://valkey.io/commands/cluster-addslotsrange/),
-- [CLUSTER DELSLOTSRANGE](https://valkey.io/commands/cluster-delslotsrange/)).
clusterAddslotsrange, clusterDelslotsrange :: NonEmpty SlotRange -> Command ()
clusterAddslotsrange ranges = command "CLUSTER ADDSLOTSRANGE" (concatMap rangeArguments ranges) Decode.okay
clusterDelslotsrange ranges = command "CLUSTER DELSLOTSRANGE" (concatMap rangeArguments ranges) Decode.okay

-- | @CLUSTER FLUSHSLOTS@: the node serves no slots from now on. An error if it has keys. \(O(1)\),
-- [since 3.0.0](https://valkey.io/commands/cluster-flushslots/).
clusterFlushslots :: Command ()
clusterFlushslots = command "CLUSTER FLUSHSLOTS" [] Decode.okay

-- | @CLUSTER FLUSHSLOT slot@: deletes all keys of a slot that the node serves. \(O(n)\),
-- [since Valkey 9.0.0](https://valkey.io/commands/cluster-flushslot/); Redis lacks it.
clusterFlushslot :: Int -> Command ()
clusterFlushslot = clusterFlushslotWith flushDefaults

-- | @CLUSTER FLUSHSLOT slot [ASYNC|SYNC]@: like 'clusterFlushslot'.
clusterFlushslotWith :: FlushOptions -> Int -> Command ()
clusterFlushslotWith options slot = command "CLUSTER FLUSHSLOT" (slotArgument slot : flushArguments options) Decode.okay

-- | The state of a slot, from a node's point of view.
data SlotAssignment
  = -- | The node gets the slot's keys from the node with this id.
    SlotImporting ByteString
  | -- | The node gives the slot's keys to the node with this id.
    SlotMigrating ByteString
  | -- | The node with this id serves the slot.
    SlotOf ByteString
  | -- | The slot is neither importing nor migrating.
    SlotStable
  deriving stock (Eq, Show)

-- | @CLUSTER SETSLOT slot IMPORTING|MIGRATING|NODE|STABLE …@: one step in moving a slot key by key.
-- \(O(1)\), [since 3.0.0](https://valkey.io/commands/cluster-setslot/).
clusterSetslot :: Int -> SlotAssignment -> Command ()
clusterSetslot = clusterSetslotWith clusterSetslotDefaults

-- | Options of CLUSTER SETSLOT.
newtype ClusterSetslotOptions = ClusterSetslotOptions
  { -- | How long a primary waits until its replicas have made the change, before it fails with
    -- @NOREPLICAS@. Some of the replicas may have made it then. Since Valkey 8.0.0, where 'Nothing'
    -- is two seconds; Redis lacks it.
    clusterSetslotTimeout :: Maybe Duration
  }
  deriving stock (Eq, Show)

-- | The server's own timeout.
clusterSetslotDefaults :: ClusterSetslotOptions
clusterSetslotDefaults = ClusterSetslotOptions {clusterSetslotTimeout = Nothing}

-- | @CLUSTER SETSLOT … [TIMEOUT milliseconds]@: like 'clusterSetslot'.
clusterSetslotWith :: ClusterSetslotOptions -> Int -> SlotAssignment -> Command ()
clusterSetslotWith ClusterSetslotOptions {clusterSetslotTimeout} slot assignment =
  command "CLUSTER SETSLOT" (slotArgument slot : step <> option "TIMEOUT" wholeMilliseconds clusterSetslotTimeout) Decode.okay
  where
    step = case assignment of
      SlotImporting node -> [arg "IMPORTING", arg node]
      SlotMigrating node -> [arg "MIGRATING", arg node]
      SlotOf node -> [arg "NODE", arg node]
      SlotStable -> [arg "STABLE"]

-- | @CLUSTER MIGRATESLOTS SLOTSRANGE first last … NODE id …@: the node begins to move these slots
-- to the nodes with these ids. Clients notice nothing before a migration is done. An error if the
-- node does not serve the slots. \(O(n)\) in slots,
-- [since Valkey 9.0.0](https://valkey.io/commands/cluster-migrateslots/); Redis lacks it.
clusterMigrateslots :: NonEmpty (NonEmpty SlotRange, ByteString) -> Command ()
clusterMigrateslots moves = command "CLUSTER MIGRATESLOTS" (concatMap move moves) Decode.okay
  where
    move (ranges, node) = arg "SLOTSRANGE" : concatMap rangeArguments ranges <> [arg "NODE", arg node]

-- | A migration of slots, current or ended.
data SlotMigration = SlotMigration
  { -- | 40 letters and digits.
    slotMigrationName :: ByteString,
    -- | @EXPORT@ or @IMPORT@.
    slotMigrationOperation :: ByteString,
    slotMigrationRanges :: [SlotRange],
    -- | The id of the node that gives the slots. Empty if the node that answers is a replica.
    slotMigrationSource :: ByteString,
    -- | The id of the node that gets the slots. Empty if the node that answers is a replica.
    slotMigrationTarget :: ByteString,
    -- | When it was created, to the second.
    slotMigrationCreated :: UTCTime,
    -- | When it was last updated, to the second.
    slotMigrationUpdated :: UTCTime,
    -- | Such as @snapshotting@, @replicating@, @success@, @failed@ or @cancelled@; on a replica
    -- @occurring-on-primary@.
    slotMigrationState :: ByteString,
    -- | More about the state, such as why it failed; may be empty.
    slotMigrationMessage :: ByteString,
    slotMigrationOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @CLUSTER GETSLOTMIGRATIONS@: the node's migrations, those that ended lately, too. \(O(n)\),
-- [since Valkey 9.0.0](https://valkey.io/commands/cluster-getslotmigrations/); Redis lacks it.
clusterGetslotmigrations :: Command [SlotMigration]
clusterGetslotmigrations =
  command "CLUSTER GETSLOTMIGRATIONS" [] . Decode.list . recordOf $
    SlotMigration
      <$> field "name" Decode.bytes
      <*> field "operation" Decode.bytes
      <*> field "slot_ranges" slotRanges
      <*> node "source_node"
      <*> node "target_node"
      <*> field "create_time" Decode.unixSeconds
      <*> field "last_update_time" Decode.unixSeconds
      <*> field "state" Decode.bytes
      <*> field "message" Decode.bytes
      <*> others Decode.value
  where
    -- A replica knows of a migration, but not of its nodes.
    node name = fold <$> optionalField name Decode.bytes

slotRanges :: Decoder [SlotRange]
slotRanges one = Decode.bytes one >>= maybe (Decode.mismatch "ranges of slots" one) Right . traverse slotRangeText . Char8.words

-- | @CLUSTER CANCELSLOTMIGRATIONS@: cancels all migrations in which this node gives slots; the
-- slots stay where they are. An error if there are none. \(O(n)\),
-- [since Valkey 9.0.0](https://valkey.io/commands/cluster-cancelslotmigrations/); Redis lacks it.
clusterCancelslotmigrations :: Command ()
clusterCancelslotmigrations = command "CLUSTER CANCELSLOTMIGRATIONS" [] Decode.okay

-- | @CLUSTER MIGRATION IMPORT first last …@: the node begins to take these slots from the primary
-- that serves them, and this is the id of the task. Clients notice nothing before it is done.
-- \(O(n)\) in slots, [since Redis 8.4.0](https://redis.io/docs/latest/commands/cluster-migration/);
-- Valkey has 'clusterMigrateslots'.
clusterMigrationImport :: NonEmpty SlotRange -> Command ByteString
clusterMigrationImport slots = command "CLUSTER MIGRATION" (arg "IMPORT" : concatMap rangeArguments slots) Decode.bytes

-- | A task that moves slots: current, or one of the last that ended.
data MigrationTask = MigrationTask
  { -- | 40 letters and digits.
    migrationTaskId :: ByteString,
    migrationTaskSlots :: [SlotRange],
    -- | The id of the node that gives the slots.
    migrationTaskSource :: ByteString,
    -- | The id of the node that gets the slots.
    migrationTaskTarget :: ByteString,
    -- | @import@ or @migrate@: what the node that answers does.
    migrationTaskOperation :: ByteString,
    -- | Such as @completed@ or @failed@.
    migrationTaskState :: ByteString,
    -- | Empty if there was no error.
    migrationTaskLastError :: ByteString,
    migrationTaskRetries :: Int64,
    migrationTaskCreated :: UTCTime,
    migrationTaskStarted :: Maybe UTCTime,
    migrationTaskEnded :: Maybe UTCTime,
    -- | How long writes to the slots had to wait.
    migrationTaskWritePause :: Duration,
    migrationTaskOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @CLUSTER MIGRATION STATUS ALL@: the node's tasks, those that ended lately, too. \(O(n)\).
clusterMigrationStatus :: Command [MigrationTask]
clusterMigrationStatus = migrationStatus [arg "ALL"]

-- | @CLUSTER MIGRATION STATUS ID id@: like 'clusterMigrationStatus', of one task; empty if the node
-- does not know it.
clusterMigrationStatusOf :: ByteString -> Command [MigrationTask]
clusterMigrationStatusOf task = migrationStatus [arg "ID", arg task]

migrationStatus :: [Argument] -> Command [MigrationTask]
migrationStatus which =
  command "CLUSTER MIGRATION" (arg "STATUS" : which) . Decode.list . recordOf $
    MigrationTask
      <$> field "id" Decode.bytes
      <*> field "slots" slotRanges
      <*> field "source" Decode.bytes
      <*> field "dest" Decode.bytes
      <*> field "operation" Decode.bytes
      <*> field "state" Decode.bytes
      <*> field "last_error" Decode.bytes
      <*> field "retries" Decode.integer
      <*> field "create_time" Decode.unixMilliseconds
      <*> field "start_time" (numberWhere (> 0) Decode.unixMilliseconds)
      <*> field "end_time" (numberWhere (> 0) Decode.unixMilliseconds)
      <*> field "write_pause_ms" millisecondsReply
      <*> others Decode.value

-- | @CLUSTER MIGRATION CANCEL ID id@: cancels a task; how many were cancelled.
clusterMigrationCancel :: ByteString -> Command Int64
clusterMigrationCancel task = command "CLUSTER MIGRATION" [arg "CANCEL", arg "ID", arg task] Decode.integer

-- | @CLUSTER MIGRATION CANCEL ALL@: cancels all tasks of the node; how many were cancelled.
clusterMigrationCancelAll :: Command Int64
clusterMigrationCancelAll = command "CLUSTER MIGRATION" [arg "CANCEL", arg "ALL"] Decode.integer

-- | @TRIMSLOTS RANGES n first last …@: deletes, in the background, the keys of slots that the node
-- does not serve, such as an interrupted migration leaves. An error for a slot that it serves.
-- \(O(n)\) in the node's keys,
-- [since Redis 8.4.0](https://redis.io/docs/latest/commands/trimslots/); Valkey lacks it.
trimslots :: NonEmpty SlotRange -> Command ()
trimslots slots =
  command "TRIMSLOTS" (arg "RANGES" : int (fromIntegral (length slots)) : concatMap rangeArguments slots) Decode.okay
