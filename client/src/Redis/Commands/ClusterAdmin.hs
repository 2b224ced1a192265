-- | What changes a cluster: its nodes, who follows whom, and who serves which slots.
--
-- > run client (onNode replica Redis.clusterFailover)
--
-- Nearly all of these are one node's own, and want it named ('Redis.Command.onNode'):
-- it tells the others. A server that is no cluster answers them with an error. The
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

    -- * Moving slots whole
    clusterMigrateslots,
    clusterGetslotmigrations,
    SlotMigration (..),
    clusterCancelslotmigrations,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (toList)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Data.Time.Clock (UTCTime)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration)
import Redis.Error (Host, Port)
import Redis.Internal.Command.ClusterNode
import Redis.Internal.Command.Flush
import Redis.Internal.Command.Lines (otherThan)
import Redis.Value (Value)

-- | @CLUSTER MEET ip port@: has the node get to know the one there, and the clusters of both become
-- one. Answers before that has happened. \(O(1)\) on the server,
-- [since 3.0.0](https://valkey.io/commands/cluster-meet/).
--
-- @since 0.1.0.0
clusterMeet :: Host -> Port -> Command ()
clusterMeet = clusterMeetWith clusterMeetDefaults

-- | What CLUSTER MEET takes.
--
-- @since 0.1.0.0
newtype ClusterMeetOptions = ClusterMeetOptions
  { -- | The port for nodes: that for clients and 10000 if 'Nothing'. Since 4.0.0.
    clusterMeetBusPort :: Maybe Port
  }
  deriving stock (Eq, Show)

-- | As the port for clients says.
--
-- @since 0.1.0.0
clusterMeetDefaults :: ClusterMeetOptions
clusterMeetDefaults = ClusterMeetOptions {clusterMeetBusPort = Nothing}

-- | @CLUSTER MEET ip port [bus-port]@: as 'clusterMeet'.
--
-- @since 0.1.0.0
clusterMeetWith :: ClusterMeetOptions -> Host -> Port -> Command ()
clusterMeetWith ClusterMeetOptions {clusterMeetBusPort} host port =
  command "CLUSTER MEET" (arg host : portArgument port : maybe [] (pure . portArgument) clusterMeetBusPort) Decode.okay

portArgument :: Port -> Argument
portArgument = int . fromIntegral

-- | @CLUSTER FORGET id@: has the node forget that one, for a minute even if others name it: so all
-- must be told within it. An error for itself, for its primary, and for an id that it does not
-- know. \(O(1)\) on the server, [since 3.0.0](https://valkey.io/commands/cluster-forget/).
--
-- > run client (onEach AllNodes (clusterForget gone))
--
-- @since 0.1.0.0
clusterForget :: ByteString -> Command ()
clusterForget node = command "CLUSTER FORGET" [arg node] Decode.okay

-- | @CLUSTER REPLICATE id@: the node follows that primary from now on. An error for a primary that
-- has slots or keys. \(O(1)\) on the server,
-- [since 3.0.0](https://valkey.io/commands/cluster-replicate/).
--
-- @since 0.1.0.0
clusterReplicate :: ByteString -> Command ()
clusterReplicate node = command "CLUSTER REPLICATE" [arg node] Decode.okay

-- | @CLUSTER REPLICATE NO ONE@: the replica becomes a primary without slots, and its data are
-- deleted. [Since Valkey 9.0.0](https://valkey.io/commands/cluster-replicate/); Redis has none.
--
-- @since 0.1.0.0
clusterReplicateNoOne :: Command ()
clusterReplicateNoOne = command "CLUSTER REPLICATE" [arg "NO", arg "ONE"] Decode.okay

-- | What a replica does without.
--
-- @since 0.1.0.0
data ClusterFailoverMode
  = -- | Its primary, which may be down. FORCE.
    FailoverForce
  | -- | The other primaries' agreement, too. TAKEOVER.
    FailoverTakeover
  deriving stock (Eq, Show)

-- | What CLUSTER FAILOVER takes.
--
-- @since 0.1.0.0
newtype ClusterFailoverOptions = ClusterFailoverOptions
  { -- | 'Nothing' is with all of them.
    clusterFailoverMode :: Maybe ClusterFailoverMode
  }
  deriving stock (Eq, Show)

-- | With its primary and with the others.
--
-- @since 0.1.0.0
clusterFailoverDefaults :: ClusterFailoverOptions
clusterFailoverDefaults = ClusterFailoverOptions {clusterFailoverMode = Nothing}

-- | @CLUSTER FAILOVER@: a replica takes its primary's place, as soon as it has all of its data;
-- nothing is lost. Answers before that has happened. An error for a primary. \(O(1)\) on the
-- server, [since 3.0.0](https://valkey.io/commands/cluster-failover/).
--
-- @since 0.1.0.0
clusterFailover :: Command ()
clusterFailover = clusterFailoverWith clusterFailoverDefaults

-- | @CLUSTER FAILOVER [FORCE|TAKEOVER]@: as 'clusterFailover'. Without waiting for
-- others, what the replica lacks is lost.
--
-- @since 0.1.0.0
clusterFailoverWith :: ClusterFailoverOptions -> Command ()
clusterFailoverWith ClusterFailoverOptions {clusterFailoverMode} = command "CLUSTER FAILOVER" mode Decode.okay
  where
    mode = case clusterFailoverMode of
      Nothing -> []
      Just FailoverForce -> [arg "FORCE"]
      Just FailoverTakeover -> [arg "TAKEOVER"]

-- | How much a node forgets.
--
-- @since 0.1.0.0
data ClusterResetMode
  = -- | The other nodes and its slots.
    ResetSoft
  | -- | Its id and its epochs, too.
    ResetHard
  deriving stock (Eq, Show)

-- | What CLUSTER RESET takes.
--
-- @since 0.1.0.0
newtype ClusterResetOptions = ClusterResetOptions
  { -- | 'Nothing' is 'ResetSoft'.
    clusterResetMode :: Maybe ClusterResetMode
  }
  deriving stock (Eq, Show)

-- | Soft.
--
-- @since 0.1.0.0
clusterResetDefaults :: ClusterResetOptions
clusterResetDefaults = ClusterResetOptions {clusterResetMode = Nothing}

-- | @CLUSTER RESET@: the node is in no cluster any more. A replica becomes an empty primary; for a
-- primary with keys it is an error. \(O(n)\) on the server in nodes,
-- [since 3.0.0](https://valkey.io/commands/cluster-reset/).
--
-- @since 0.1.0.0
clusterReset :: Command ()
clusterReset = clusterResetWith clusterResetDefaults

-- | @CLUSTER RESET [HARD|SOFT]@: as 'clusterReset'.
--
-- @since 0.1.0.0
clusterResetWith :: ClusterResetOptions -> Command ()
clusterResetWith ClusterResetOptions {clusterResetMode} = command "CLUSTER RESET" mode Decode.okay
  where
    mode = case clusterResetMode of
      Nothing -> []
      Just ResetSoft -> [arg "SOFT"]
      Just ResetHard -> [arg "HARD"]

-- | @CLUSTER SAVECONFIG@: writes what the node knows of the cluster to its disk. \(O(1)\) on the
-- server, [since 3.0.0](https://valkey.io/commands/cluster-saveconfig/).
--
-- @since 0.1.0.0
clusterSaveconfig :: Command ()
clusterSaveconfig = command "CLUSTER SAVECONFIG" [] Decode.okay

-- | The epoch of a node afterwards.
--
-- @since 0.1.0.0
data BumpedEpoch
  = -- | It is new.
    Bumped Int64
  | -- | It was the highest already.
    StillHighest Int64
  deriving stock (Eq, Show)

-- | @CLUSTER BUMPEPOCH@: has the node have the highest epoch of all, unless it has. \(O(1)\) on the
-- server, [since 3.0.0](https://valkey.io/commands/cluster-bumpepoch/).
--
-- @since 0.1.0.0
clusterBumpepoch :: Command BumpedEpoch
clusterBumpepoch = command "CLUSTER BUMPEPOCH" [] bumpedEpoch

bumpedEpoch :: Decoder BumpedEpoch
bumpedEpoch reply = do
  text <- Decode.bytes reply
  case Char8.words text of
    ["BUMPED", digits] | Just (epoch, "") <- Char8.readInteger digits -> Right (Bumped (fromInteger epoch))
    ["STILL", digits] | Just (epoch, "") <- Char8.readInteger digits -> Right (StillHighest (fromInteger epoch))
    _ -> Decode.mismatch "BUMPED or STILL and an epoch" reply

-- | @CLUSTER SET-CONFIG-EPOCH epoch@: for a new node that knows no other one; an error for any
-- other. \(O(1)\) on the server,
-- [since 3.0.0](https://valkey.io/commands/cluster-set-config-epoch/).
--
-- @since 0.1.0.0
clusterSetConfigEpoch :: Int64 -> Command ()
clusterSetConfigEpoch epoch = command "CLUSTER SET-CONFIG-EPOCH" [int epoch] Decode.okay

-- | @CLUSTER ADDSLOTS slot …@: the node serves these from now on; all or none. An error if it knows
-- that somebody does. \(O(n)\) on the server,
-- [since 3.0.0](https://valkey.io/commands/cluster-addslots/).
--
-- @since 0.1.0.0
clusterAddslots :: NonEmpty Int -> Command ()
clusterAddslots slots = command "CLUSTER ADDSLOTS" (map slotArgument (toList slots)) Decode.okay

-- | @CLUSTER ADDSLOTSRANGE first last …@: as 'clusterAddslots'.
-- [Since 7.0.0](https://valkey.io/commands/cluster-addslotsrange/).
--
-- @since 0.1.0.0
clusterAddslotsrange :: NonEmpty SlotRange -> Command ()
clusterAddslotsrange ranges = command "CLUSTER ADDSLOTSRANGE" (concatMap rangeArguments ranges) Decode.okay

-- | @CLUSTER DELSLOTS slot …@: the node forgets who serves these, itself or another; all or none.
-- It is down until somebody does. \(O(n)\) on the server,
-- [since 3.0.0](https://valkey.io/commands/cluster-delslots/).
--
-- @since 0.1.0.0
clusterDelslots :: NonEmpty Int -> Command ()
clusterDelslots slots = command "CLUSTER DELSLOTS" (map slotArgument (toList slots)) Decode.okay

-- | @CLUSTER DELSLOTSRANGE first last …@: as 'clusterDelslots'.
-- [Since 7.0.0](https://valkey.io/commands/cluster-delslotsrange/).
--
-- @since 0.1.0.0
clusterDelslotsrange :: NonEmpty SlotRange -> Command ()
clusterDelslotsrange ranges = command "CLUSTER DELSLOTSRANGE" (concatMap rangeArguments ranges) Decode.okay

-- | @CLUSTER FLUSHSLOTS@: the node serves no slots from now on. An error if it has keys. \(O(1)\)
-- on the server, [since 3.0.0](https://valkey.io/commands/cluster-flushslots/).
--
-- @since 0.1.0.0
clusterFlushslots :: Command ()
clusterFlushslots = command "CLUSTER FLUSHSLOTS" [] Decode.okay

-- | @CLUSTER FLUSHSLOT slot@: deletes all keys of a slot that the node serves. \(O(n)\) on the
-- server, [since Valkey 9.0.0](https://valkey.io/commands/cluster-flushslot/); Redis has none.
--
-- @since 0.1.0.0
clusterFlushslot :: Int -> Command ()
clusterFlushslot = clusterFlushslotWith flushDefaults

-- | @CLUSTER FLUSHSLOT slot [ASYNC|SYNC]@: as 'clusterFlushslot'.
--
-- @since 0.1.0.0
clusterFlushslotWith :: FlushOptions -> Int -> Command ()
clusterFlushslotWith options slot = command "CLUSTER FLUSHSLOT" (slotArgument slot : flushArguments options) Decode.okay

-- | What becomes of a slot, in a node's eyes.
--
-- @since 0.1.0.0
data SlotAssignment
  = -- | It gets its keys from the node with this id.
    SlotImporting ByteString
  | -- | It gives its keys to the node with this id.
    SlotMigrating ByteString
  | -- | The node with this id serves it.
    SlotOf ByteString
  | -- | Neither importing nor migrating.
    SlotStable
  deriving stock (Eq, Show)

-- | @CLUSTER SETSLOT slot IMPORTING|MIGRATING|NODE|STABLE …@: one step in moving a slot key by key.
-- \(O(1)\) on the server, [since 3.0.0](https://valkey.io/commands/cluster-setslot/).
--
-- @since 0.1.0.0
clusterSetslot :: Int -> SlotAssignment -> Command ()
clusterSetslot = clusterSetslotWith clusterSetslotDefaults

-- | What CLUSTER SETSLOT takes.
--
-- @since 0.1.0.0
newtype ClusterSetslotOptions = ClusterSetslotOptions
  { -- | How long a primary waits for its replicas to know it, too, before it fails.
    -- Since Valkey 8.0.0, where it is two seconds if 'Nothing'; Redis has none.
    clusterSetslotTimeout :: Maybe Duration
  }
  deriving stock (Eq, Show)

-- | As the server waits.
--
-- @since 0.1.0.0
clusterSetslotDefaults :: ClusterSetslotOptions
clusterSetslotDefaults = ClusterSetslotOptions {clusterSetslotTimeout = Nothing}

-- | @CLUSTER SETSLOT … [TIMEOUT milliseconds]@: as 'clusterSetslot'.
--
-- @since 0.1.0.0
clusterSetslotWith :: ClusterSetslotOptions -> Int -> SlotAssignment -> Command ()
clusterSetslotWith ClusterSetslotOptions {clusterSetslotTimeout} slot assignment =
  command "CLUSTER SETSLOT" (slotArgument slot : step <> option "TIMEOUT" wholeMilliseconds clusterSetslotTimeout) Decode.okay
  where
    step = case assignment of
      SlotImporting node -> [arg "IMPORTING", arg node]
      SlotMigrating node -> [arg "MIGRATING", arg node]
      SlotOf node -> [arg "NODE", arg node]
      SlotStable -> [arg "STABLE"]

-- | @CLUSTER MIGRATESLOTS SLOTSRANGE first last … NODE id …@: the node begins to give these slots
-- to the nodes with these ids, which clients do not notice before it is done. An error if it does
-- not serve them. \(O(n)\) on the server in slots,
-- [since Valkey 9.0.0](https://valkey.io/commands/cluster-migrateslots/); Redis has none.
--
-- @since 0.1.0.0
clusterMigrateslots :: NonEmpty (NonEmpty SlotRange, ByteString) -> Command ()
clusterMigrateslots moves = command "CLUSTER MIGRATESLOTS" (concatMap move moves) Decode.okay
  where
    move (ranges, node) = arg "SLOTSRANGE" : concatMap rangeArguments ranges <> [arg "NODE", arg node]

-- | Slots on their way, or that were.
--
-- @since 0.1.0.0
data SlotMigration = SlotMigration
  { -- | 40 letters and digits.
    slotMigrationName :: ByteString,
    -- | @EXPORT@ or @IMPORT@.
    slotMigrationOperation :: ByteString,
    slotMigrationRanges :: [SlotRange],
    -- | The id of the node that gives them.
    slotMigrationSource :: ByteString,
    -- | The id of the node that gets them.
    slotMigrationTarget :: ByteString,
    -- | To the second.
    slotMigrationCreated :: UTCTime,
    -- | To the second.
    slotMigrationUpdated :: UTCTime,
    -- | Such as @replicating-snapshot@, @success@, @failed@ or @cancelled@.
    slotMigrationState :: ByteString,
    -- | Why it failed.
    slotMigrationMessage :: ByteString,
    -- | All that the server says besides, in its words.
    slotMigrationOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @CLUSTER GETSLOTMIGRATIONS@: what goes on, and what has lately ended. \(O(n)\) on the server,
-- [since Valkey 9.0.0](https://valkey.io/commands/cluster-getslotmigrations/); Redis has none.
--
-- @since 0.1.0.0
clusterGetslotmigrations :: Command [SlotMigration]
clusterGetslotmigrations = command "CLUSTER GETSLOTMIGRATIONS" [] (Decode.list migration)

migration :: Decoder SlotMigration
migration reply = do
  fields <- Decode.record reply
  let text name = Decode.field name Decode.bytes fields
  slotMigrationName <- text "name"
  slotMigrationOperation <- text "operation"
  slotMigrationRanges <- Decode.field "slot_ranges" ranges fields
  slotMigrationSource <- text "source_node"
  slotMigrationTarget <- text "target_node"
  slotMigrationCreated <- Decode.field "create_time" Decode.unixSeconds fields
  slotMigrationUpdated <- Decode.field "last_update_time" Decode.unixSeconds fields
  slotMigrationState <- text "state"
  slotMigrationMessage <- text "message"
  pure
    SlotMigration
      { slotMigrationName,
        slotMigrationOperation,
        slotMigrationRanges,
        slotMigrationSource,
        slotMigrationTarget,
        slotMigrationCreated,
        slotMigrationUpdated,
        slotMigrationState,
        slotMigrationMessage,
        slotMigrationOthers = otherThan known fields
      }
  where
    known = ["name", "operation", "slot_ranges", "source_node", "target_node", "create_time", "last_update_time", "state", "message"]
    ranges one = Decode.bytes one >>= maybe (Decode.mismatch "ranges of slots" one) Right . traverse range . Char8.words
    range word = do
      (begin, rest) <- Char8.readInt word
      (end, "") <- Char8.stripPrefix "-" rest >>= Char8.readInt
      pure (SlotRange begin end)

-- | @CLUSTER CANCELSLOTMIGRATIONS@: ends all that this node gives or gets; the slots
-- stay where they are. An error if there are none. \(O(n)\) on the server, [since Valkey
-- 9.0.0](https://valkey.io/commands/cluster-cancelslotmigrations/); Redis has none.
--
-- @since 0.1.0.0
clusterCancelslotmigrations :: Command ()
clusterCancelslotmigrations = command "CLUSTER CANCELSLOTMIGRATIONS" [] Decode.okay
