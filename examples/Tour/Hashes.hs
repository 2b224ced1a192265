-- | Hashes: fields with values under one key.
module Tour.Hashes (tour) where

import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

tour :: Client -> IO ()
tour client = fresh client ("example:hashes" :| []) $ do
  -- The result is the number of new fields.
  run client (Redis.hset "example:hashes" (("name", "Ada") :| [("born", "1815")])) >>= print
  run client (Redis.hset "example:hashes" (("born", "1815") :| [("visits", "1")])) >>= print

  -- Read one field, several, or all of them.
  run client (Redis.hget "example:hashes" "name") >>= print
  run client (Redis.hmget "example:hashes" ("born" :| ["died"])) >>= print
  run client (Redis.hgetall "example:hashes") >>= print

  -- A field can be a counter, and can be set only if it does not exist.
  run client (Redis.hincrby "example:hashes" "visits" 41) >>= print
  run client (Redis.hsetnx "example:hashes" "name" "Grace") >>= print
  run client (Redis.hexists "example:hashes" "mail") >>= print

  -- A large hash is read page by page; this small one comes in a single page.
  page <- run client (Redis.hscanWith Redis.hscanDefaults {Redis.hscanMatch = Just "v*"} "example:hashes" Redis.scanStart)
  print (Redis.scanFound page, Redis.scanNext page)

  -- When the last field is removed, the hash is gone, too.
  run client (Redis.hdel "example:hashes" ("name" :| ["born", "visits"])) >>= print
  run client (Redis.hgetall "example:hashes") >>= print
