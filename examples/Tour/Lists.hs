-- | Lists: queues with two ends, and elements by their place.
module Tour.Lists (tour) where

import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

-- The braces put both keys in one slot of a cluster: LMOVE wants that.
tour :: Client -> IO ()
tour client = fresh client ("example:{lists}" :| ["example:{lists}:busy"]) $ do
  -- In at the right end, out at the left one.
  run client (Redis.rpush "example:{lists}" ("first" :| ["second", "third"])) >>= print
  run client (Redis.lpop "example:{lists}") >>= print

  -- A worker keeps what it works on where others find it if the worker dies.
  run client (Redis.lmove ("example:{lists}", Redis.LeftEnd) ("example:{lists}:busy", Redis.RightEnd)) >>= print
  run client (Redis.lrem "example:{lists}:busy" Redis.RemoveAll "second") >>= print

  -- Whoever waits has a connection for it; others go on.
  run client (Redis.blpop ("example:{lists}" :| []) (Just (seconds 1))) >>= print
  run client (Redis.blpop ("example:{lists}" :| []) (Just (milliseconds 10))) >>= print

  -- By place, from the left or, below 0, from the right. The last hundred are kept.
  run client (Redis.rpush "example:{lists}" ("30" :| ["4", "100", "4"])) >>= print
  run client (Redis.ltrim "example:{lists}" (-100) (-1))
  run client (Redis.linsert "example:{lists}" (Redis.BeforeElement "100") "99") >>= print
  run client (Redis.lrange "example:{lists}" 0 (-1)) >>= print
  run client (Redis.lposCount 0 "example:{lists}" "4") >>= print

  -- Sorted by the server.
  run client (Redis.sortWith Redis.sortDefaults {Redis.sortOrder = Redis.Descending, Redis.sortCount = Just 2} "example:{lists}") >>= print
