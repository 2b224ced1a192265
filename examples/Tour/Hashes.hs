-- | Hashes: fields with values under one key.
module Tour.Hashes (tour) where

import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

tour :: Client -> IO ()
tour client = fresh client ("example:hashes" :| []) $ do
  -- The number is that of the new fields.
  run client (Redis.hset "example:hashes" (("name", "Ada") :| [("born", "1815")])) >>= print
  run client (Redis.hset "example:hashes" (("born", "1815") :| [("visits", "1")])) >>= print

  -- One, several, or all of them.
  run client (Redis.hget "example:hashes" "name") >>= print
  run client (Redis.hmget "example:hashes" ("born" :| ["died"])) >>= print
  run client (Redis.hgetall "example:hashes") >>= print

  -- A field may be a counter, and may be set if it is not there.
  run client (Redis.hincrby "example:hashes" "visits" 41) >>= print
  run client (Redis.hsetnx "example:hashes" "name" "Grace") >>= print
  run client (Redis.hexists "example:hashes" "mail") >>= print

  -- A large hash is walked over, some fields at a time; this one comes at once.
  page <- run client (Redis.hscanWith Redis.hscanDefaults {Redis.hscanMatch = Just "v*"} "example:hashes" Redis.scanStart)
  print (Redis.scanFound page, Redis.scanNext page)

  -- The last field to go takes the hash along.
  run client (Redis.hdel "example:hashes" ("name" :| ["born", "visits"])) >>= print
  run client (Redis.hgetall "example:hashes") >>= print
