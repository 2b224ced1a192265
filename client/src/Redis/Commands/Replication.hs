-- | Who follows whom, for servers that are no cluster; a cluster's nodes are told by
-- "Redis.Commands.ClusterAdmin".
--
-- > role <- run client (onNode node Redis.role)
-- > print [length (Redis.primaryReplicas primary) | Redis.RolePrimary primary <- [role]]
--
-- All of these are one node's own. The server's page:
-- <https://valkey.io/topics/replication/>.
module Redis.Commands.Replication
  ( role,
    ServerRole (..),
    AsPrimary (..),
    FollowingReplica (..),
    AsReplica (..),
    ReplicaState (..),

    -- * Changing it
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

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration)
import Redis.Error (Host, Port)
import Redis.Value (Value)

-- | What a server is to others.
--
-- @since 0.1.0.0
data ServerRole
  = RolePrimary AsPrimary
  | RoleReplica AsReplica
  | -- | A sentinel, and the names of the primaries that it watches.
    RoleSentinel [ByteString]
  | -- | By the server's word for it, and what it says besides.
    OtherRole ByteString [Value]
  deriving stock (Eq, Show)

-- | Of a primary.
--
-- @since 0.1.0.0
data AsPrimary = AsPrimary
  { -- | How many bytes it has told its replicas so far.
    primaryOffset :: Int64,
    primaryReplicas :: [FollowingReplica]
  }
  deriving stock (Eq, Show)

-- | A replica that is connected.
--
-- @since 0.1.0.0
data FollowingReplica = FollowingReplica
  { followingHost :: Host,
    followingPort :: Int64,
    -- | How many bytes it has acknowledged.
    followingOffset :: Int64
  }
  deriving stock (Eq, Show)

-- | Of a replica.
--
-- @since 0.1.0.0
data AsReplica = AsReplica
  { replicaPrimaryHost :: Host,
    replicaPrimaryPort :: Int64,
    replicaState :: ReplicaState,
    -- | How many bytes it has got from its primary; -1 before the first.
    replicaOffset :: Int64
  }
  deriving stock (Eq, Show)

-- | How far a replica is with its primary.
--
-- @since 0.1.0.0
data ReplicaState
  = -- | It is going to connect.
    ReplicaConnect
  | -- | It is connecting.
    ReplicaConnecting
  | -- | It gets the whole data.
    ReplicaSyncing
  | -- | It follows.
    ReplicaConnected
  | OtherReplicaState ByteString
  deriving stock (Eq, Show)

-- | @ROLE@. \(O(1)\) on the server, [since 2.8.12](https://valkey.io/commands/role/).
--
-- @since 0.1.0.0
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
    asPrimary elements = do
      primaryOffset <- Decode.element 1 Decode.integer elements
      primaryReplicas <- Decode.element 2 (Decode.list following) elements
      pure AsPrimary {primaryOffset, primaryReplicas}
    asReplica elements = do
      replicaPrimaryHost <- Decode.element 1 Decode.bytes elements
      replicaPrimaryPort <- Decode.element 2 Decode.integer elements
      replicaState <- Decode.element 3 (fmap state . Decode.bytes) elements
      replicaOffset <- Decode.element 4 Decode.integer elements
      pure AsReplica {replicaPrimaryHost, replicaPrimaryPort, replicaState, replicaOffset}
    state = \case
      "connect" -> ReplicaConnect
      "connecting" -> ReplicaConnecting
      "sync" -> ReplicaSyncing
      "connected" -> ReplicaConnected
      word -> OtherReplicaState word

following :: Decoder FollowingReplica
following reply = do
  (followingHost, followingPort, followingOffset) <- Decode.triple Decode.bytes Decode.integer Decode.integer reply
  pure FollowingReplica {followingHost, followingPort, followingOffset}

-- | @REPLICAOF host port@: the server follows that one from now on, and loses what it has. Answers
-- at once; 'role' tells how far it is. Refused in a cluster. \(O(1)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/replicaof/).
--
-- @since 0.1.0.0
replicaof :: Host -> Port -> Command ()
replicaof host port = command "REPLICAOF" [arg host, int (fromIntegral port)] Decode.okay

-- | @REPLICAOF NO ONE@: the server is a primary from now on, and keeps what it has. Refused in a
-- cluster. \(O(1)\) on the server, [since 5.0.0](https://valkey.io/commands/replicaof/).
--
-- @since 0.1.0.0
replicaofNoOne :: Command ()
replicaofNoOne = command "REPLICAOF" [arg "NO", arg "ONE"] Decode.okay

-- | @SLAVEOF host port@: what 'replicaof' replaces
-- [since 5.0.0](https://valkey.io/commands/slaveof/). Since 1.0.0.
--
-- @since 0.1.0.0
slaveof :: Host -> Port -> Command ()
slaveof host port = command "SLAVEOF" [arg host, int (fromIntegral port)] Decode.okay

-- | @SLAVEOF NO ONE@: what 'replicaofNoOne' replaces
-- [since 5.0.0](https://valkey.io/commands/slaveof/). Since 1.0.0.
--
-- @since 0.1.0.0
slaveofNoOne :: Command ()
slaveofNoOne = command "SLAVEOF" [arg "NO", arg "ONE"] Decode.okay

-- | Who takes over, and how long its primary waits until it has everything.
--
-- @since 0.1.0.0
data FailoverTarget
  = -- | The replica that comes up to the primary first. TIMEOUT: gives up after so
    -- long.
    AnyReplica (Maybe Duration)
  | -- | TO: this one. TIMEOUT: gives up after so long.
    ThisReplica Host Port (Maybe Duration)
  | -- | TO, FORCE and TIMEOUT: this one, after so long even if it lacks something,
    -- which is lost.
    ForcedReplica Host Port Duration
  deriving stock (Eq, Show)

-- | @FAILOVER@: a primary changes places with its replica that is the furthest. It takes no writes
-- until that is done; 'role' tells. An error without replicas. Refused in a cluster, which has
-- 'Redis.Commands.ClusterAdmin.clusterFailover'. \(O(1)\) on the server,
-- [since 6.2.0](https://valkey.io/commands/failover/).
--
-- @since 0.1.0.0
failover :: Command ()
failover = command "FAILOVER" [] Decode.okay

-- | @FAILOVER [TO host port [FORCE]] [TIMEOUT milliseconds]@: as 'failover', with this
-- replica.
--
-- @since 0.1.0.0
failoverTo :: FailoverTarget -> Command ()
failoverTo target = command "FAILOVER" options Decode.okay
  where
    options = case target of
      AnyReplica limit -> within limit
      ThisReplica host port limit -> to host port <> within limit
      ForcedReplica host port limit -> to host port <> [arg "FORCE"] <> within (Just limit)
    to host port = [arg "TO", arg host, int (fromIntegral port)]
    within = option "TIMEOUT" wholeMilliseconds

-- | @FAILOVER ABORT@: gives up one that goes on. An error if there is none.
--
-- @since 0.1.0.0
failoverAbort :: Command ()
failoverAbort = command "FAILOVER" [arg "ABORT"] Decode.okay
