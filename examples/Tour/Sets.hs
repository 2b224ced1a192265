-- | Sets: distinct members without an order.
module Tour.Sets (tour) where

import Data.List (sort)
import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

-- The braces put all keys in one slot of a cluster, which commands with several sets need.
tour :: Client -> IO ()
tour client = fresh client ("example:{sets}:may" :| ["example:{sets}:june", "example:{sets}:both"]) $ do
  -- The result is the number of new members.
  run client (Redis.sadd "example:{sets}:may" ("ada" :| ["grace", "ada"])) >>= print
  run client (Redis.sadd "example:{sets}:june" ("grace" :| ["barbara"])) >>= print
  run client (Redis.sismember "example:{sets}:may" "ada") >>= print
  run client (Redis.smismember "example:{sets}:june" ("ada" :| ["grace"])) >>= print

  -- Members come in any order.
  members <- run client (Redis.smembers "example:{sets}:may")
  print (sort members)

  -- Several sets together: their members, the number of these, or a new set of them.
  run client (Redis.sinter ("example:{sets}:may" :| ["example:{sets}:june"])) >>= print
  everybody <- run client (Redis.sunion ("example:{sets}:may" :| ["example:{sets}:june"]))
  print (sort everybody)
  run client (Redis.sintercardWith Redis.sintercardDefaults {Redis.sintercardLimit = Just 10} ("example:{sets}:may" :| ["example:{sets}:june"])) >>= print
  run client (Redis.sdiffstore "example:{sets}:both" ("example:{sets}:may" :| ["example:{sets}:june"])) >>= print

  -- Random members: each at most once, or with repetitions.
  drawn <- run client (Redis.srandmemberCount "example:{sets}:may" (Redis.Distinct 10))
  print (sort drawn)
  run client (Redis.srandmemberCount "example:{sets}:both" (Redis.Repeated 3)) >>= print
  run client (Redis.spop "example:{sets}:both") >>= print
