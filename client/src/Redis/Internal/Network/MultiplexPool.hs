-- | The connections of one node: a fixed number of multiplexers, each opened
-- when it is first needed.
--
-- A caller gets the multiplexer of the capability it runs on, so that cores do
-- not contend; with commands in flight on another one it stays there, so that
-- what a thread submits is run in that order ("Redis.Internal.Network.OrderCounts").
--
-- At most one attempt to connect is made at a time. It belongs to the pool,
-- not to the caller that happened to need it: a caller that gives up waiting
-- does not stop it. After a failed attempt callers fail at once with its cause
-- until the backoff has passed; whether to try again later is the retry
-- policy's decision.
module Redis.Internal.Network.MultiplexPool
  ( MultiplexPool,
    newMultiplexPool,
    closeMultiplexPool,
    poolEndpoint,

    -- * Submitting
    submitToNode,
    submitToNodeAsync,
    submitRunToNode,
    waitSlotResult,

    -- * Connections
    reconnectNode,
    poolGauges,
    PoolGauges (..),
  )
where

import Control.Concurrent (myThreadId, threadCapability, threadDelay, yield)
import Control.Concurrent.MVar
import Control.Exception (SomeException, mask_, try, tryJust)
import Control.Monad (filterM, join, unless, void, when)
import Data.IORef
import Data.Maybe (catMaybes)
import Data.Primitive.Array (Array, arrayFromList, indexArray, sizeofArray)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock
import Redis.Internal.Network.Handshake (ConnectionRole)
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.OpenConnection
import Redis.Internal.Network.OrderCounts
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Network.Worker (spawn)
import Redis.Internal.Protocol.Encode (Request)
import Redis.Internal.Routing.Backoff (delayFor)
