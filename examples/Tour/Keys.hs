-- | Keys of any type: their time to live, their names, and where they are.
module Tour.Keys (tour) where

import Data.ByteString (ByteString)
import Data.List (nub, sort)
import Redis
import Redis.Commands qualified as Redis
import Redis.Duration (minutes)
import Tour.Fresh (fresh)

-- The braces put all three keys in one slot of a cluster, which RENAME and COPY need.
tour :: Client -> IO ()
tour client = fresh client ("example:{keys}" :| ["example:{keys}:new", "example:{keys}:copy"]) $ do
  run client (Redis.set "example:{keys}" "7")
  run client (Redis.type_ "example:{keys}") >>= print
  run client (Redis.objectEncoding "example:{keys}") >>= print

  -- The time to live. The second one is not later than the first, and changes nothing.
  let later = Redis.expireDefaults {Redis.expireCondition = Just Redis.OnlyIfLater}
  run client (Redis.expire "example:{keys}" (minutes 30)) >>= print
  run client (Redis.expireWith later "example:{keys}" (minutes 20)) >>= print
  run client (Redis.persist "example:{keys}") >>= print
  run client (Redis.ttl "example:{keys}") >>= print

  -- Rename a key and copy it: on the server, or as bytes that any server can restore.
  run client (Redis.rename "example:{keys}" "example:{keys}:new")
  run client (Redis.copy "example:{keys}:new" "example:{keys}:copy") >>= print
  payload <- run client (Redis.dump "example:{keys}:new")
  mapM_ (run client . Redis.restore "example:{keys}") payload

  -- A walk over all keys, node by node. It takes a while on a large server, and may return a key twice.
  nodes <- clientNodes client
  found <- traverse (\node -> walk (run client . onNode (clientNodeEndpoint node))) nodes
  print (nub (sort (concat found)))
  run client (Redis.unlink ("example:{keys}" :| ["example:{keys}:new", "example:{keys}:none"])) >>= print

walk :: (Command (Redis.ScanPage ByteString) -> IO (Redis.ScanPage ByteString)) -> IO [ByteString]
walk ask = from Redis.scanStart
  where
    from cursor = do
      page <- ask (Redis.scanWith Redis.scanDefaults {Redis.scanMatch = Just "example:{keys}*"} cursor)
      rest <- maybe (pure []) from (Redis.scanNext page)
      pure (Redis.scanFound page <> rest)
