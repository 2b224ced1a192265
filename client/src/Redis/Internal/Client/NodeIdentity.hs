-- | Asks a node about itself, for walks.
module Redis.Internal.Client.NodeIdentity
  ( statusAt,
    processAt,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IntMap.Strict qualified as IntMap
import Data.IntSet qualified as IntSet
import Data.List (find)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (fromMaybe)
import Redis.Client
import Redis.Command (onNode)
import Redis.Commands.Cluster (ClusterNode (..), SlotRange (..), clusterNodes)
import Redis.Commands.Server (infoOf)
import Redis.Error
import Redis.Internal.Client.Core (Client (..), Core (coreCluster))
import Redis.Internal.Protocol.Slot (slotCount)
import Redis.Internal.Routing.Cluster (isClustered)
import Redis.Internal.Routing.Scan (NodeStatus (..))

-- | Sends the questions, and returns an action that waits for the node's answers.
statusAt :: Client -> Endpoint -> IO (IO (Either Error NodeStatus))
statusAt client@(Client core) endpoint = do
  process <- processAt client endpoint
  if isClustered (coreCluster core)
    then do
      nodes <- submit client (onNode endpoint clusterNodes)
      pure (joined process (tryAwaitReply nodes) (\name -> maybe (Left (RefusedError (NoSuchNode endpoint))) Right . ofCluster name))
    else pure (fmap alone <$> process)
  where
    joined first second together =
      first >>= \case
        Left problem -> pure (Left problem)
        Right one -> (>>= together one) <$> second

-- A standalone server owns all keys, whatever its role.
alone :: ByteString -> NodeStatus
alone process =
  NodeStatus
    { statusNode = "",
      statusIdentity = process,
      statusOwned = IntSet.fromDistinctAscList [0 .. slotCount - 1],
      statusLeaving = IntMap.empty,
      statusComing = IntMap.empty
    }

ofCluster :: ByteString -> [ClusterNode] -> Maybe NodeStatus
ofCluster process nodes = status <$> find (elem "myself" . clusterNodeFlags) nodes
  where
    status node
      | any (`elem` clusterNodeFlags node) ["master", "primary"] =
        (nothing node)
          { statusOwned = foldMap slotsOf (clusterNodeSlots node),
            statusLeaving = IntMap.fromList (clusterNodeMigrating node),
            statusComing = IntMap.fromList (clusterNodeImporting node)
          }
      | otherwise = nothing node
    nothing node =
      NodeStatus
        { statusNode = clusterNodeId node,
          statusIdentity = Char8.intercalate "/" [clusterNodeId node, process, Char8.pack (show (clusterNodeEpoch node))],
          statusOwned = IntSet.empty,
          statusLeaving = IntMap.empty,
          statusComing = IntMap.empty
        }
    slotsOf (SlotRange first final) = IntSet.fromDistinctAscList [first .. final]

-- | Sends the questions, and returns an action that waits for the identity of the node's
-- process. The identity of a server outside a cluster also changes when the server begins to
-- follow another one, or stops following. It is empty where this user may not ask.
processAt :: Client -> Endpoint -> IO (IO (Either Error ByteString))
processAt client@(Client core) endpoint = do
  process <- field "server" "run_id"
  if isClustered (coreCluster core)
    then pure process
    else do
      history <- field "replication" "master_replid"
      pure $ do
        one <- process
        other <- history
        pure ((\name since -> name <> "/" <> since) <$> one <*> other)
  where
    field section name = do
      pending <- submit client (onNode endpoint (infoOf (section :| [])))
      pure $
        tryAwaitReply pending >>= \case
          Left (ReplyError ServerError {serverErrorCode = "NOPERM"}) -> pure (Right "")
          result -> pure (fromMaybe "" . lookup name <$> result)
