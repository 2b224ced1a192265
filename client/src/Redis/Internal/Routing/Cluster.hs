-- | A cluster as its clients see it: the published view that commands go by,
-- and the thread that carries out what "Redis.Internal.Routing.Topology"
-- decides.
--
-- Commands read one immutable snapshot and never wait for a refresh, unless
-- nobody is known to serve their slot. What they learn on the way (a MOVED, a
-- lost connection) they drop in a mailbox.
module Redis.Internal.Routing.Cluster
  ( ClusterClient,
    newClusterClient,
    closeClusterClient,
    clusterNodes,

    -- * Routing
    ownerOf,
    readersOf,
    anyPrimary,
    awaitNews,
    clusterSlotMap,

    -- * Learning
    tellCluster,
    observeNode,
  )
where

import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (SomeException, mask_, try)
import Control.Monad (forever, unless, void, when)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_, traverse_)
import Data.IORef
import Data.List.NonEmpty (NonEmpty)
import Data.Map.Strict qualified as Map
import Data.Maybe (listToMaybe)
import Data.Primitive.Array (Array, arrayFromList, indexArray, sizeofArray)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock
import Redis.Internal.Network.Handshake (ConnectionRole (..))
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.Multiplexer (abortMultiplexer, submitCommandAsync)
import Redis.Internal.Network.OpenConnection
import Redis.Internal.Network.OrderCounts (noOrderKey)
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Network.Worker (spawn)
import Redis.Internal.Protocol.Encode (Request, request)
import Redis.Internal.Protocol.Slot (Slot)
import Redis.Internal.Routing.ClusterReply
import Redis.Internal.Routing.Health
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.SlotMap
import Redis.Internal.Routing.Topology
import Redis.Value
import System.Random (newStdGen)
import System.Timeout (timeout)
