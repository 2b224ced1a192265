-- | Code that is shown in the headers of modules and that the tour does not run, because it needs
-- another server, or changes more than an example may. It is compiled only.
module Untoured (untoured) where

import Data.ByteString (ByteString)
import Data.Word (Word64)
import Redis
import Redis.Commands qualified as Redis

untoured :: Client -> Endpoint -> IO ()
untoured client replica = do
  hottest client replica >>= print
  similar client >>= print
  sparse client >>= print
  imported client
  run client (onNode replica Redis.clusterFailover)
  _ <- run client (onEvery Primaries Redis.bgsave)
  everyKey client Redis.clusterscanStart >>= print
  run client (Redis.sortGet (Redis.GetElement :| [Redis.GetKey "name:*"]) "users") >>= print

everyKey :: Client -> Redis.ClusterscanCursor -> IO [ByteString]
everyKey client cursor = do
  page <- run client (Redis.clusterscan cursor)
  rest <- traverse (everyKey client) (Redis.clusterscanNext page)
  pure (Redis.clusterscanFound page <> concat rest)

hottest :: Client -> Endpoint -> IO [(ByteString, Duration)]
hottest client node = do
  run client (onNode node (Redis.hotkeysStart Redis.HotkeysCpu))
  found <- run client (onNode node Redis.hotkeysGet)
  pure (maybe [] Redis.hotkeysByCpuTime found)

similar :: Client -> IO [ByteString]
similar client = do
  _ <- run client (Redis.vadd "example:vectors" "apple" (Redis.embeddingOf [1, 0.2, 0]))
  near <- run client (Redis.vsimWithscores "example:vectors" (Redis.VsimElement "apple"))
  pure (map fst near)

sparse :: Client -> IO [(Word64, ByteString)]
sparse client = do
  _ <- run client (Redis.arset "example:arrays" 1000000 ("first" :| ["second"]))
  run client (Redis.arscan "example:arrays" 0 2000000)

imported :: Client -> IO ()
imported client =
  withDedicated client AnyPrimary $ \connection -> do
    runOn connection (Redis.himportPrepare "people" ("name" :| ["born"]))
    runOn connection (Redis.himportSet "example:himport" "people" ("Ada" :| ["1815"]))
