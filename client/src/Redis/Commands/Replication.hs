-- | Replication between servers outside a cluster: the role of a server, and how to change it. For
-- the nodes of a cluster there is "Redis.Commands.ClusterAdmin".
--
-- > role <- run client (onNode node Redis.role)
-- > print [length (Redis.primaryReplicas primary) | Redis.RolePrimary primary <- [role]]
--
-- Each of these commands concerns one node; in a cluster, name it. The server's documentation:
-- <https://valkey.io/topics/replication/>.
module Redis.Commands.Replication
  ( role,
    ServerRole (..),
    AsPrimary (..),
    FollowingReplica (..),
    AsReplica (..),
    ReplicaState (..),

    -- * Changing the role
    replicaof,
    replicaofNoOne,
    slaveof,
    slaveofNoOne,
    failover,
    failoverTo,
    FailoverTarget (..),
    failoverAbort,
  )
where

import Data.ByteString qualified as ByteString
import Redis.Decode qualified as Decode
import Redis.Error (Host, Port)
import Redis.Internal.Command.Common

-- | The role of a server in replication.
data ServerRole
  = RolePrimary AsPrimary
  | RoleReplica AsReplica
  | -- | A sentinel, with the names of the primaries that it watches.
    RoleSentinel [ByteString]
  | -- | Another role: the server's name for it, and the rest of the reply.
    OtherRole ByteString [Value]
  deriving stock (Eq, Show)

-- | The replication state of a primary.
data AsPrimary = AsPrimary
  { -- | How many bytes it has written to its replication stream so far.
    primaryOffset :: Int64,
    primaryReplicas :: [FollowingReplica]
  }
  deriving stock (Eq, Show)

-- | A replica that is connected.
data FollowingReplica = FollowingReplica
  { followingHost :: Host,
    followingPort :: Int64,
    -- | How many bytes of the stream it has acknowledged.
    followingOffset :: Int64
  }
  deriving stock (Eq, Show)

-- | The replication state of a replica.
data AsReplica = AsReplica
  { replicaPrimaryHost :: Host,
    replicaPrimaryPort :: Int64,
    replicaState :: ReplicaState,
    -- | How many bytes of the stream it has received from its primary; -1 before the first.
    replicaOffset :: Int64
  }
  deriving stock (Eq, Show)

-- | The state of a replica's connection to its primary.
data ReplicaState
  = -- | It is about to connect.
    ReplicaConnect
  | -- | It is connecting.
    ReplicaConnecting
  | -- | It is receiving a full copy of the data.
    ReplicaSyncing
  | -- | It is connected, and follows the primary.
    ReplicaConnected
  | OtherReplicaState ByteString
  deriving stock (Eq, Show)

-- | @ROLE@: the server's role and the state of its replication. \(O(1)\),
-- [since 2.8.12](https://valkey.io/commands/role/).
role :: Command ServerRole
role = command "ROLE" [] $ \reply -> do
  elements <- Decode.list Decode.value reply
  Decode.element 0 Decode.bytes elements >>= \case
    "master" -> RolePrimary <$> asPrimary elements
    "primary" -> RolePrimary <$> asPrimary elements
    "slave" -> RoleReplica <$> asReplica elements
    "replica" -> RoleReplica <$> asReplica elements
    "sentinel" -> RoleSentinel <$> Decode.element 1 (Decode.list Decode.bytes) elements
    word -> Right (OtherRole word (drop 1 elements))
  where
    asPrimary elements =
      AsPrimary <$> Decode.element 1 Decode.integer elements <*> Decode.element 2 (Decode.list following) elements
    asReplica elements =
      AsReplica
        <$> Decode.element 1 Decode.bytes elements
        <*> Decode.element 2 Decode.integer elements
        <*> Decode.element 3 state elements
        <*> Decode.element 4 Decode.integer elements
    following reply = do
      (host, port, offset) <- Decode.triple Decode.bytes Decode.integer Decode.integer reply
      pure (FollowingReplica host port offset)
    state =
      wordOr
        OtherReplicaState
        [("connect", ReplicaConnect), ("connecting", ReplicaConnecting), ("sync", ReplicaSyncing), ("connected", ReplicaConnected)]

-- | @REPLICAOF host port@: makes the server a replica of another server; its own data are lost. It
-- answers at once; 'role' shows the progress. Servers of a cluster refuse it. \(O(1)\),
-- [since 5.0.0](https://valkey.io/commands/replicaof/), and since 1.0.0 by its old name,
-- [SLAVEOF](https://valkey.io/commands/slaveof/).
replicaof, slaveof :: Host -> Port -> Command ()
replicaof host port = command "REPLICAOF" [arg host, int (fromIntegral port)] follows
slaveof host port = command "SLAVEOF" [arg host, int (fromIntegral port)] follows

-- A server that follows that primary already says so after the OK.
follows :: Decoder ()
follows reply = Decode.bytes reply >>= \text -> if "OK" `ByteString.isPrefixOf` text then Right () else Decode.mismatch "OK" reply

-- | @REPLICAOF NO ONE@, or by its old name @SLAVEOF NO ONE@: makes the server a primary; it keeps
-- its data. Otherwise like 'replicaof'.
replicaofNoOne, slaveofNoOne :: Command ()
replicaofNoOne = command "REPLICAOF" [arg "NO", arg "ONE"] Decode.okay
slaveofNoOne = command "SLAVEOF" [arg "NO", arg "ONE"] Decode.okay

-- | Which replica takes over, and how long the primary waits until that replica has all data.
data FailoverTarget
  = -- | The first replica that has caught up. TIMEOUT: give up after this time.
    AnyReplica (Maybe Duration)
  | -- | TO: this replica. TIMEOUT: give up after this time.
    ThisReplica Host Port (Maybe Duration)
  | -- | TO, FORCE and TIMEOUT: this replica. After this time it takes over even if it lacks data,
    -- which are lost then.
    ForcedReplica Host Port Duration
  deriving stock (Eq, Show)

-- | @FAILOVER@: a primary changes places with the first of its replicas that has caught up. Writes
-- are paused until that is done; 'role' shows the progress. An error if there are no replicas.
-- Servers of a cluster refuse it; use 'Redis.Commands.ClusterAdmin.clusterFailover' there.
-- \(O(1)\), [since 6.2.0](https://valkey.io/commands/failover/).
failover :: Command ()
failover = command "FAILOVER" [] Decode.okay

-- | @FAILOVER [TO host port [FORCE]] [TIMEOUT milliseconds]@: like 'failover', to this target.
failoverTo :: FailoverTarget -> Command ()
failoverTo target = command "FAILOVER" options Decode.okay
  where
    options = case target of
      AnyReplica limit -> within limit
      ThisReplica host port limit -> to host port <> within limit
      ForcedReplica host port limit -> to host port <> [arg "FORCE"] <> within (Just limit)
    to host port = [arg "TO", arg host, int (fromIntegral port)]
    within = option "TIMEOUT" wholeMilliseconds

-- | @FAILOVER ABORT@: gives up a failover that is in progress. An error if there is none.
failoverAbort :: Command ()
failoverAbort = command "FAILOVER" [arg "ABORT"] Decode.okay
