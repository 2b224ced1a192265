-- | A server: facts about it, its settings, and where its time and memory went.
module Tour.Server (tour) where

import Control.Exception (finally)
import Data.Foldable (for_)
import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

-- Most of these commands are about a single node. With a single server there is no need to name it.
tour :: Client -> IO ()
tour client = fresh client ("example:server" :| []) $ do
  nodes <- clientNodes client
  for_ (clientNodeEndpoint <$> take 1 nodes) $ \node -> do
    -- Facts about the server: sections of INFO as text, or commands with typed results.
    facts <- run client (onNode node (Redis.infoOf ("server" :| ["replication"])))
    print (lookup "role" facts)
    role <- run client (onNode node Redis.role)
    print [length (Redis.primaryReplicas primary) | Redis.RolePrimary primary <- [role]]
    saved <- run client (onNode node Redis.lastsave)
    now <- run client (onNode node Redis.time)
    print (saved <= now)
    known <- run client (Redis.commandInfo ("get" :| ["config|get"]))
    print (map (fmap Redis.commandInfoArity) known)
    names <- map Redis.moduleName <$> run client (onNode node Redis.moduleList)
    print ("search" `elem` names)

    -- The server's settings. In a cluster, all nodes get the change.
    before <- run client (onNode node (Redis.configGet ("slowlog-log-slower-than" :| ["latency-monitor-threshold"])))
    run client (Redis.configSet (("slowlog-log-slower-than", "0") :| []))
    slowest client node `finally` for_ (nonEmpty before) (run client . Redis.configSet)
  count <- run client Redis.dbsize
  print (count >= 1)

slowest :: Client -> Endpoint -> IO ()
slowest client node = do
  -- The commands that took at least the configured time: now, any time.
  run client Redis.slowlogReset
  run client (Redis.set "example:server" "value")
  slow <- run client (Redis.slowlogGet 10)
  print [Redis.slowlogCommand entry | entry <- slow, take 1 (Redis.slowlogCommand entry) == ["SET"]]

  -- Other events that took 100 ms, on each node; and the latencies of commands.
  run client (Redis.configSet (("latency-monitor-threshold", "100") :| []))
  worst <- run client (onEvery AllNodes Redis.latencyLatest)
  print (all (all ((>= milliseconds 100) . Redis.latencyEventMaximum)) worst)
  times <- run client (onNode node (Redis.latencyHistogramOf ("info" :| [])))
  print (map fst times)

  -- The use of memory: bytes for one key, and for the whole server.
  heavy <- run client (Redis.memoryUsage "example:server")
  print (fmap (> 0) heavy)
  stats <- run client (onNode node Redis.memoryStats)
  print (Redis.memoryStatsTotal stats > Redis.memoryStatsDataset stats)
