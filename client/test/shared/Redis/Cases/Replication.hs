-- | "Redis.Commands.Replication".
module Redis.Cases.Replication (replicationCases) where

import Redis.CommandCase
import Redis.Commands.Replication
import Redis.Duration

-- | Each case that makes the server a replica is followed by one that makes it a primary again.
replicationCases :: [Case]
replicationCases =
  [ onEmpty
      "role"
      role
      ["ROLE"]
      ( Such
          "is a primary without replicas"
          ( \case
              RolePrimary primary -> null (primaryReplicas primary)
              _ -> False
          )
      ),
    onEmpty "replicaof" (replicaof "127.0.0.1" 1) ["REPLICAOF", "127.0.0.1", "1"] (Gives ()),
    after
      [["REPLICAOF", "127.0.0.1", "1"]]
      "role"
      role
      ["ROLE"]
      ( Such
          "is a replica of nobody that is there"
          ( \case
              RoleReplica replica -> replicaPrimaryHost replica == "127.0.0.1" && replicaPrimaryPort replica == 1 && replicaState replica `elem` [ReplicaConnect, ReplicaConnecting]
              _ -> False
          )
      ),
    onEmpty "replicaofNoOne" replicaofNoOne ["REPLICAOF", "NO", "ONE"] (Gives ()),
    onEmpty "slaveof" (slaveof "127.0.0.1" 1) ["SLAVEOF", "127.0.0.1", "1"] (Gives ()),
    onEmpty "slaveofNoOne" slaveofNoOne ["SLAVEOF", "NO", "ONE"] (Gives ()),
    -- The server has no replicas.
    onEmpty "failover" failover ["FAILOVER"] (Fails "ERR"),
    onEmpty "failoverTo" (failoverTo (AnyReplica Nothing)) ["FAILOVER"] (Fails "ERR"),
    onEmpty "failoverTo" (failoverTo (AnyReplica (Just (seconds 1)))) ["FAILOVER", "TIMEOUT", "1000"] (Fails "ERR"),
    onEmpty "failoverTo" (failoverTo (ThisReplica "h" 1 Nothing)) ["FAILOVER", "TO", "h", "1"] (Fails "ERR"),
    onEmpty
      "failoverTo"
      (failoverTo (ThisReplica "h" 1 (Just (seconds 1))))
      ["FAILOVER", "TO", "h", "1", "TIMEOUT", "1000"]
      (Fails "ERR"),
    onEmpty
      "failoverTo"
      (failoverTo (ForcedReplica "h" 1 (seconds 1)))
      ["FAILOVER", "TO", "h", "1", "FORCE", "TIMEOUT", "1000"]
      (Fails "ERR"),
    onEmpty "failoverAbort" failoverAbort ["FAILOVER", "ABORT"] (Fails "ERR")
  ]
