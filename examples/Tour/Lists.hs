-- | Lists: queues with two ends, and elements by index.
module Tour.Lists (tour) where

import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

-- The braces put both keys in one slot of a cluster, which LMOVE needs.
tour :: Client -> IO ()
tour client = fresh client ("example:{lists}" :| ["example:{lists}:busy"]) $ do
  -- Push at the right end, pop at the left end.
  run client (Redis.rpush "example:{lists}" ("first" :| ["second", "third"])) >>= print
  run client (Redis.lpop "example:{lists}") >>= print

  -- A worker moves its element to a second list, where others find it if the worker dies.
  run client (Redis.lmove ("example:{lists}", Redis.LeftEnd) ("example:{lists}:busy", Redis.RightEnd)) >>= print
  run client (Redis.lrem "example:{lists}:busy" Redis.RemoveAll "second") >>= print

  -- A caller that waits has a connection of its own; other callers go on.
  run client (Redis.blpop ("example:{lists}" :| []) (Just (seconds 1))) >>= print
  run client (Redis.blpop ("example:{lists}" :| []) (Just (milliseconds 10))) >>= print

  -- By index, from the left or, if negative, from the right. The last hundred elements are kept.
  run client (Redis.rpush "example:{lists}" ("30" :| ["4", "100", "4"])) >>= print
  run client (Redis.ltrim "example:{lists}" (-100) (-1))
  run client (Redis.linsert "example:{lists}" (Redis.BeforeElement "100") "99") >>= print
  run client (Redis.lrange "example:{lists}" 0 (-1)) >>= print
  run client (Redis.lposCount 0 "example:{lists}" "4") >>= print

  -- Sorted by the server.
  run client (Redis.sortWith Redis.sortDefaults {Redis.sortOrder = Redis.Descending, Redis.sortCount = Just 2} "example:{lists}") >>= print
