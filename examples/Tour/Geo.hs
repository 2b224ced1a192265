-- | Places on a map, and what lies near them.
module Tour.Geo (tour) where

import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

tour :: Client -> IO ()
tour client = fresh client ("example:geo" :| []) $ do
  -- Longitude first.
  let palermo = Redis.GeoPoint 13.361389 38.115556
      catania = Redis.GeoPoint 15.087269 37.502669
  run client (Redis.geoadd "example:geo" ((palermo, "Palermo") :| [(catania, "Catania")])) >>= print
  run client (Redis.geodist "example:geo" "Palermo" "Catania" Redis.Kilometres) >>= print
  run client (Redis.geohash "example:geo" ("Palermo" :| ["Rome"])) >>= print

  -- The places within 200 km of a point, and those within a box around a place.
  let nearest = Redis.geosearchDefaults {Redis.geosearchOrder = Just Redis.NearestFirst}
      near = Redis.ByRadius (Redis.FromLonlat (Redis.GeoPoint 15 37)) (Redis.GeoRadius 200 Redis.Kilometres)
  run client (Redis.geosearchWith nearest "example:geo" near) >>= print
  run client (Redis.geosearch "example:geo" (Redis.ByBox (Redis.FromMember "Catania") 100 100 Redis.Kilometres)) >>= print

  -- With the distance of each place.
  found <- run client (Redis.geosearchDetailsWith (Redis.WithDist :| []) nearest "example:geo" near)
  print [(Redis.geoFoundMember place, Redis.geoFoundDist place) | place <- found]

  -- The server stores places in a sorted set, exact to less than a metre.
  run client (Redis.geopos "example:geo" ("Catania" :| ["Rome"])) >>= print . map (fmap rounded)
  run client (Redis.zrem "example:geo" ("Catania" :| [])) >>= print
  where
    rounded :: Redis.GeoPoint -> (Int, Int)
    rounded (Redis.GeoPoint longitude latitude) = (round (longitude * 1000), round (latitude * 1000))
