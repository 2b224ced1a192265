-- | Streams: logs of entries, and groups of consumers that share them.
module Tour.Streams (tour) where

import Data.Foldable (for_)
import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

tour :: Client -> IO ()
tour client = fresh client ("example:streams" :| []) $ do
  -- An entry has fields, and gets an id by the server's clock. Old entries may be trimmed.
  first <- run client (Redis.xadd "example:streams" (("kind", "login") :| [("user", "ada")]))
  let atMost = Redis.xaddDefaults {Redis.xaddTrim = Just (Redis.Maxlen (Redis.TrimRoughly Nothing) 1000)}
  second <- run client (Redis.xaddWith atMost "example:streams" (("kind", "logout") :| [("user", "ada")]))
  print (second > Just first)
  run client (Redis.xlen "example:streams") >>= print

  -- A range of the stream, or the entries after a known one.
  entries <- run client (Redis.xrange "example:streams" (Redis.IncludingId first) Redis.HighestId)
  print (map Redis.streamEntryFields entries)
  news <- run client (Redis.xread (("example:streams", Redis.ReadAfter first) :| []))
  print [(name, length found) | (name, found) <- news]

  -- A group: each entry goes to one of its consumers and is pending until acknowledged.
  run client (Redis.xgroupCreate "example:streams" "mailers" (Redis.GroupAfter (Redis.StreamId 0 0)))
  let one = Redis.Consumer "mailers" "one"
  got <- run client (Redis.xreadgroupWith Redis.xreadgroupDefaults {Redis.xreadgroupCount = Just 1} one ("example:streams" :| []))
  for_ (nonEmpty (map Redis.streamEntryId (concatMap snd got))) $ \ids ->
    run client (Redis.xack "example:streams" "mailers" ids) >>= print

  -- If a consumer is gone, another one claims its pending entries.
  _ <- run client (Redis.xreadgroup one ("example:streams" :| []))
  run client (Redis.xpending "example:streams" "mailers") >>= print . Redis.pendingSummaryConsumers
  claimed <- run client (Redis.xautoclaim "example:streams" (Redis.Consumer "mailers" "two") (seconds 0) (Redis.StreamId 0 0))
  print (map Redis.streamEntryFields (Redis.autoclaimedEntries claimed))

  -- Facts about the stream.
  known <- run client (Redis.xinfoStream "example:streams")
  print (Redis.streamInfoLength known, Redis.streamInfoGroups known)
