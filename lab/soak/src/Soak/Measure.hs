-- | What the process holds: descriptors that do not belong to an open connection, and live memory.
module Soak.Measure
  ( Holdings (..),
    holdings,
    liveBytes,
    grown,
  )
where

import Control.Concurrent.STM (atomically)
import Control.Monad (forM)
import Data.Word (Word64)
import GHC.Stats (GCDetails (gcdetails_live_bytes), RTSStats (gc), getRTSStats)
import Redis.Metrics
import Redis.TestKit.Proxy (Traffic (trafficOpen), proxyTraffic)
import Redis.TestKit.Wait (openDescriptors, pause)
import Soak.Places
import System.Mem (performMajorGC)

data Holdings = Holdings
  { -- | Open connections, as the clients count them.
    heldConnections :: Int,
    -- | Open descriptors that belong neither to those connections nor to the proxies.
    heldDescriptors :: Int,
    -- | Dedicated connections that were not closed although they were idle for long.
    heldLent :: Int,
    heldBytes :: Word64
  }
  deriving stock (Eq, Show)

-- | Measures while no caller calls. Waits until no dedicated connection is open, and until the
-- number of descriptors no longer changes.
holdings :: Surroundings -> IO Holdings
holdings around = do
  lent <- untilNone (300 :: Int) (sum . map lentOf <$> gauges)
  (connections, descriptors) <- steady (40 :: Int) =<< counted
  bytes <- liveBytes
  pure Holdings {heldConnections = connections, heldDescriptors = descriptors, heldLent = lent, heldBytes = bytes}
  where
    gauges = concat <$> mapM (fmap snapshotNodes . clientSnapshot) (theClients around)
    untilNone tries look = do
      left <- look
      if left == 0 || tries == 0 then pure left else pause 0.1 >> untilNone (tries - 1) look
    lentOf node = let lent = gaugeDedicated node in gaugeLent lent + gaugeIdle lent + gaugeOpening lent
    counted = do
      connections <- sum . map connectionsOf <$> gauges
      passing <- fmap sum . forM (allProxies around) $ \(_, proxy) -> trafficOpen <$> atomically (proxyTraffic proxy)
      descriptors <- openDescriptors
      -- A proxy has two descriptors for each connection.
      pure (connections, descriptors - connections - 2 * passing)
    connectionsOf node = length (gaugeConnections node) + length (gaugeReplicaConnections node) + length (gaugeControlConnections node)
    -- The proxies close their side of a closed connection a moment later.
    steady tries before = do
      pause 0.1
      now <- counted
      if now == before || tries == 0 then pure now else steady (tries - 1) now

-- | The live heap, in bytes, after a major collection.
liveBytes :: IO Word64
liveBytes = performMajorGC >> gcdetails_live_bytes . gc <$> getRTSStats

-- | What has grown between two measurements and should not have. There may be more connections than
-- before, because nodes have had both roles since, and each connection has its buffers. But there
-- may not be more than one per capability, node and role.
grown :: Holdings -> Holdings -> [String]
grown before after =
  [ "descriptors: " <> show (heldDescriptors before) <> " before, " <> show (heldDescriptors after) <> " after, connections left out"
    | heldDescriptors after > heldDescriptors before + 4
  ]
    <> ["lent connections are kept: " <> show (heldLent after) | heldLent after > 0]
    <> ["connections: " <> show (heldConnections after) <> ", at most " <> show mostConnections | heldConnections after > mostConnections]
    <> [ "live heap: " <> show (heldBytes before) <> " bytes before, " <> show (heldBytes after) <> " after"
         | fromIntegral (heldBytes after) > 1.25 * bytes before + 2e6 + more * perConnection
       ]
  where
    bytes = fromIntegral . heldBytes :: Holdings -> Double
    more = fromIntegral (max 0 (heldConnections after - heldConnections before))
    -- The buffers for sending and for receiving.
    perConnection = 7e5
    -- Four clients of the cluster and one that reads from replicas, six nodes, two capabilities; four
    -- clients of the server; and one control connection of each client to each node.
    mostConnections = 4 * 6 * 2 + 6 * 2 * 2 + 4 * 2 + (5 * 6 + 4)
