-- | Strings: values, counters, and locks that expire.
module Tour.Strings (tour) where

import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

tour :: Client -> IO ()
tour client = fresh client ("example:strings" :| ["example:strings:visits", "example:strings:lock"]) $ do
  -- A key holds a value, or does not exist.
  run client (Redis.get "example:strings") >>= print
  run client (Redis.set "example:strings" "hello")
  run client (Redis.get "example:strings") >>= print
  run client (Redis.append "example:strings" ", world") >>= print
  run client (Redis.getrange "example:strings" 7 (-1)) >>= print

  -- Options are fields of a record. This is a lock for the first caller, for half a minute.
  let options = Redis.setDefaults {Redis.setCondition = Just Redis.OnlyIfAbsent, Redis.setExpiry = Redis.ExpireIn (seconds 30)}
  run client (Redis.setWith options "example:strings:lock" "me") >>= print
  run client (Redis.setWith options "example:strings:lock" "you") >>= print

  -- A counter is a string, too. It starts at 0.
  run client (Redis.incr "example:strings:visits") >>= print
  run client (Redis.incrby "example:strings:visits" 9) >>= print

  -- Read several keys, which exist or not; and read a key for the last time.
  run client (Redis.mget ("example:strings:visits" :| ["example:strings:lock", "example:strings:none"])) >>= print
  run client (Redis.getdel "example:strings") >>= print
