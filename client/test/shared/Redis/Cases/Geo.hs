module Redis.Cases.Geo (geoCases) where

import Data.ByteString (ByteString)
import Data.List (sort)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Geo

geoCases :: [Case]
geoCases = places <> searches <> stored <> byRadius <> byMember

places :: [Case]
places =
  [ after
      [sicily]
      "geoadd"
      (geoadd "k" ((GeoPoint 13.5 37.25, "Agrigento") :| [(GeoPoint 13 38, "Palermo")]))
      ["GEOADD", "k", "13.5", "37.25", "Agrigento", "13.0", "38.0", "Palermo"]
      (Gives 1),
    onEmpty "geoadd" (geoadd "k" ((GeoPoint 13 86, "Nowhere") :| [])) ["GEOADD", "k", "13.0", "86.0", "Nowhere"] (Fails "ERR"),
    after
      [sicily]
      "geoaddWith"
      (geoaddWith geoaddDefaults {geoaddCondition = Just OnlyNewPlaces} "k" ((GeoPoint 13 38, "Palermo") :| []))
      ["GEOADD", "k", "NX", "13.0", "38.0", "Palermo"]
      (Gives 0),
    after
      [sicily]
      "geoaddWith"
      ( geoaddWith
          geoaddDefaults {geoaddCondition = Just OnlyKnownPlaces, geoaddChanged = True}
          "k"
          ((GeoPoint 13 38, "Palermo") :| [(GeoPoint 13.5 37.25, "Agrigento")])
      )
      ["GEOADD", "k", "XX", "CH", "13.0", "38.0", "Palermo", "13.5", "37.25", "Agrigento"]
      (Gives 1),
    after
      [sicily]
      "geopos"
      (geopos "k" ("Nowhere" :| ["Palermo"]))
      ["GEOPOS", "k", "Nowhere", "Palermo"]
      (Gives [Nothing, Just palermo]),
    onEmpty "geopos" (geopos "k" ("Nowhere" :| [])) ["GEOPOS", "k", "Nowhere"] (Gives [Nothing]),
    after
      [sicily]
      "geohash"
      (geohash "k" ("Palermo" :| ["Nowhere"]))
      ["GEOHASH", "k", "Palermo", "Nowhere"]
      (Gives [Just "sqc8b49rny0", Nothing]),
    after
      [sicily]
      "geodist"
      (geodist "k" "Palermo" "Catania" Kilometres)
      ["GEODIST", "k", "Palermo", "Catania", "km"]
      (Gives (Just 166.2742)),
    after
      [sicily]
      "geodist"
      (geodist "k" "Palermo" "Catania" Metres)
      ["GEODIST", "k", "Palermo", "Catania", "m"]
      (Gives (Just 166274.1516)),
    after
      [sicily]
      "geodist"
      (geodist "k" "Palermo" "Catania" Feet)
      ["GEODIST", "k", "Palermo", "Catania", "ft"]
      (Gives (Just 545518.8700)),
    after
      [sicily]
      "geodist"
      (geodist "k" "Palermo" "Nowhere" Miles)
      ["GEODIST", "k", "Palermo", "Nowhere", "mi"]
      (Gives Nothing)
  ]

searches :: [Case]
searches =
  [ after
      [sicily]
      "geosearch"
      (geosearch "k" (ByRadius (FromLonlat (GeoPoint 15 37)) (GeoRadius 200 Kilometres)))
      ["GEOSEARCH", "k", "FROMLONLAT", "15.0", "37.0", "BYRADIUS", "200.0", "km"]
      (Such "are both towns" ((== ["Catania", "Palermo"]) . sort)),
    after
      [sicily]
      "geosearch"
      (geosearch "k" (ByBox (FromMember "Palermo") 10 5.5 Miles))
      ["GEOSEARCH", "k", "FROMMEMBER", "Palermo", "BYBOX", "10.0", "5.5", "mi"]
      (Gives ["Palermo"]),
    onEmpty
      "geosearch"
      (geosearch "k" (ByBox (FromMember "Palermo") 10 5 Miles))
      ["GEOSEARCH", "k", "FROMMEMBER", "Palermo", "BYBOX", "10.0", "5.0", "mi"]
      (Gives []),
    after
      [sicily]
      "geosearch"
      (geosearch "k" (ByRadius (FromMember "Nowhere") (GeoRadius 1 Feet)))
      ["GEOSEARCH", "k", "FROMMEMBER", "Nowhere", "BYRADIUS", "1.0", "ft"]
      (Fails "ERR"),
    needs [(IsValkey, (9, 0))] $
      after
        [sicily]
        "geosearch"
        (geosearch "k" triangle)
        ["GEOSEARCH", "k", "BYPOLYGON", "3", "13.0", "38.0", "16.0", "38.0", "15.0", "36.0"]
        (Gives ["Catania"]),
    after
      [sicily]
      "geosearchWith"
      (geosearchWith geosearchDefaults {geosearchOrder = Just NearestFirst} "k" wide)
      (["GEOSEARCH", "k"] <> wideWords <> ["ASC"])
      (Gives ["Catania", "Palermo"]),
    after
      [sicily]
      "geosearchWith"
      (geosearchWith geosearchDefaults {geosearchOrder = Just FarthestFirst, geosearchCount = Just (CountNearest 1)} "k" wide)
      (["GEOSEARCH", "k"] <> wideWords <> ["DESC", "COUNT", "1"])
      (Gives ["Palermo"]),
    after
      [sicily]
      "geosearchWith"
      (geosearchWith geosearchDefaults {geosearchCount = Just (CountAny 1)} "k" wide)
      (["GEOSEARCH", "k"] <> wideWords <> ["COUNT", "1", "ANY"])
      (Such "is one town" ((== 1) . length)),
    after
      [sicily]
      "geosearchDetails"
      (geosearchDetails (WithCoord :| [WithDist, WithHash]) "k" near)
      (["GEOSEARCH", "k"] <> nearWords <> ["WITHCOORD", "WITHDIST", "WITHHASH"])
      (Gives [GeoFound "Palermo" (Just 0) (Just 3479099956230698) (Just palermo)]),
    after
      [sicily]
      "geosearchDetails"
      (geosearchDetails (WithCoord :| [WithHash]) "k" near)
      (["GEOSEARCH", "k"] <> nearWords <> ["WITHCOORD", "WITHHASH"])
      (Gives [GeoFound "Palermo" Nothing (Just 3479099956230698) (Just palermo)]),
    after
      [sicily]
      "geosearchDetails"
      (geosearchDetails (WithCoord :| []) "k" near)
      (["GEOSEARCH", "k"] <> nearWords <> ["WITHCOORD"])
      (Gives [GeoFound "Palermo" Nothing Nothing (Just palermo)]),
    onEmpty
      "geosearchDetails"
      (geosearchDetails (WithDist :| []) "k" near)
      (["GEOSEARCH", "k"] <> nearWords <> ["WITHDIST"])
      (Gives []),
    needs [(IsValkey, (9, 0))] $
      after
        [sicily]
        "geosearchDetails"
        (geosearchDetails (WithDist :| []) "k" triangle)
        ["GEOSEARCH", "k", "BYPOLYGON", "3", "13.0", "38.0", "16.0", "38.0", "15.0", "36.0", "WITHDIST"]
        (Gives [GeoFound "Catania" (Just 41095.9174) Nothing Nothing]),
    after
      [sicily]
      "geosearchDetailsWith"
      (geosearchDetailsWith (WithDist :| []) geosearchDefaults {geosearchOrder = Just NearestFirst, geosearchCount = Just (CountNearest 2)} "k" wide)
      (["GEOSEARCH", "k"] <> wideWords <> ["ASC", "COUNT", "2", "WITHDIST"])
      (Gives [GeoFound "Catania" (Just 56.4413) Nothing Nothing, GeoFound "Palermo" (Just 190.4424) Nothing Nothing])
  ]
  where
    near = ByRadius (FromMember "Palermo") (GeoRadius 1 Feet)
    nearWords = ["FROMMEMBER", "Palermo", "BYRADIUS", "1.0", "ft"]
    triangle = ByPolygon (GeoPoint 13 38) (GeoPoint 16 38) (GeoPoint 15 36) []

stored :: [Case]
stored =
  [ after
      [sicilyAt "{k}s"]
      "geosearchstore"
      (geosearchstore "{k}d" "{k}s" wide)
      (["GEOSEARCHSTORE", "{k}d", "{k}s"] <> wideWords)
      (Gives 2),
    after
      [sicilyAt "{k}s"]
      "geosearchstoreWith"
      ( geosearchstoreWith
          geosearchstoreDefaults
            { geosearchstoreOrder = Just NearestFirst,
              geosearchstoreCount = Just (CountNearest 1),
              geosearchstoreStoredist = True
            }
          "{k}d"
          "{k}s"
          wide
      )
      (["GEOSEARCHSTORE", "{k}d", "{k}s"] <> wideWords <> ["ASC", "COUNT", "1", "STOREDIST"])
      (Gives 1)
  ]

-- | The old commands around a point.
byRadius :: [Case]
byRadius =
  [ after [sicily] "georadius" (georadius "k" middle far) (["GEORADIUS", "k"] <> around) (Such "are both towns" ((== 2) . length)),
    onEmpty "georadius" (georadius "k" middle far) (["GEORADIUS", "k"] <> around) (Gives []),
    after
      [sicily]
      "georadiusWith"
      (georadiusWith nearest "k" middle far)
      (["GEORADIUS", "k"] <> around <> ["ASC", "COUNT", "1"])
      (Gives ["Catania"]),
    after
      [sicily]
      "georadiusDetails"
      (georadiusDetails (WithDist :| [WithCoord]) "k" palermo (GeoRadius 1 Metres))
      ["GEORADIUS", "k", "13.361389338970184", "38.1155563954963", "1.0", "m", "WITHDIST", "WITHCOORD"]
      (Gives [GeoFound "Palermo" (Just 0) Nothing (Just palermo)]),
    after
      [sicily]
      "georadiusDetailsWith"
      (georadiusDetailsWith (WithDist :| []) nearest "k" middle far)
      (["GEORADIUS", "k"] <> around <> ["ASC", "COUNT", "1", "WITHDIST"])
      (Gives [GeoFound "Catania" (Just 56.4413) Nothing Nothing]),
    after
      [sicilyAt "{k}s"]
      "georadiusStore"
      (georadiusStore (StoreDistances "{k}d") "{k}s" middle far)
      (["GEORADIUS", "{k}s"] <> around <> ["STOREDIST", "{k}d"])
      (Gives 2),
    onEmpty
      "georadiusStore"
      (georadiusStore (StorePlaces "{k}d") "{k}s" middle far)
      (["GEORADIUS", "{k}s"] <> around <> ["STORE", "{k}d"])
      (Gives 0),
    after
      [sicilyAt "{k}s"]
      "georadiusStoreWith"
      (georadiusStoreWith nearest (StorePlaces "{k}d") "{k}s" middle far)
      (["GEORADIUS", "{k}s"] <> around <> ["ASC", "COUNT", "1", "STORE", "{k}d"])
      (Gives 1),
    after [sicily] "georadiusRo" (georadiusRo "k" middle far) (["GEORADIUS_RO", "k"] <> around) (Such "are both towns" ((== 2) . length)),
    after
      [sicily]
      "georadiusRoWith"
      (georadiusRoWith nearest "k" middle far)
      (["GEORADIUS_RO", "k"] <> around <> ["ASC", "COUNT", "1"])
      (Gives ["Catania"]),
    onEmpty
      "georadiusRoDetails"
      (georadiusRoDetails (WithHash :| []) "k" middle far)
      (["GEORADIUS_RO", "k"] <> around <> ["WITHHASH"])
      (Gives []),
    after
      [sicily]
      "georadiusRoDetailsWith"
      (georadiusRoDetailsWith (WithHash :| []) nearest "k" middle far)
      (["GEORADIUS_RO", "k"] <> around <> ["ASC", "COUNT", "1", "WITHHASH"])
      (Gives [GeoFound "Catania" Nothing (Just 3479447370796909) Nothing])
  ]
  where
    middle = GeoPoint 15 37
    far = GeoRadius 200 Kilometres
    around = ["15.0", "37.0", "200.0", "km"]

-- | The old commands around a member.
byMember :: [Case]
byMember =
  [ after
      [sicily]
      "georadiusbymember"
      (georadiusbymember "k" "Palermo" (GeoRadius 100 Miles))
      ["GEORADIUSBYMEMBER", "k", "Palermo", "100.0", "mi"]
      (Gives ["Palermo"]),
    after
      [sicily]
      "georadiusbymemberWith"
      (georadiusbymemberWith nearest "k" "Palermo" far)
      (["GEORADIUSBYMEMBER", "k"] <> around <> ["ASC", "COUNT", "1"])
      (Gives ["Palermo"]),
    onEmpty
      "georadiusbymemberDetails"
      (georadiusbymemberDetails (WithHash :| []) "k" "Palermo" far)
      (["GEORADIUSBYMEMBER", "k"] <> around <> ["WITHHASH"])
      (Gives []),
    after
      [sicily]
      "georadiusbymemberDetailsWith"
      (georadiusbymemberDetailsWith (WithDist :| []) farthest "k" "Palermo" far)
      (["GEORADIUSBYMEMBER", "k"] <> around <> ["DESC", "WITHDIST"])
      (Gives [GeoFound "Catania" (Just 166.2742) Nothing Nothing, GeoFound "Palermo" (Just 0) Nothing Nothing]),
    after
      [sicilyAt "{k}s"]
      "georadiusbymemberStore"
      (georadiusbymemberStore (StorePlaces "{k}d") "{k}s" "Palermo" far)
      (["GEORADIUSBYMEMBER", "{k}s"] <> around <> ["STORE", "{k}d"])
      (Gives 2),
    after
      [sicilyAt "{k}s"]
      "georadiusbymemberStoreWith"
      (georadiusbymemberStoreWith nearest (StoreDistances "{k}d") "{k}s" "Palermo" far)
      (["GEORADIUSBYMEMBER", "{k}s"] <> around <> ["ASC", "COUNT", "1", "STOREDIST", "{k}d"])
      (Gives 1),
    after
      [sicily]
      "georadiusbymemberRo"
      (georadiusbymemberRo "k" "Palermo" (GeoRadius 100 Miles))
      ["GEORADIUSBYMEMBER_RO", "k", "Palermo", "100.0", "mi"]
      (Gives ["Palermo"]),
    after
      [sicily]
      "georadiusbymemberRoWith"
      (georadiusbymemberRoWith farthest "k" "Palermo" far)
      (["GEORADIUSBYMEMBER_RO", "k"] <> around <> ["DESC"])
      (Gives ["Catania", "Palermo"]),
    after
      [sicily]
      "georadiusbymemberRoDetails"
      (georadiusbymemberRoDetails (WithCoord :| []) "k" "Palermo" (GeoRadius 1 Metres))
      ["GEORADIUSBYMEMBER_RO", "k", "Palermo", "1.0", "m", "WITHCOORD"]
      (Gives [GeoFound "Palermo" Nothing Nothing (Just palermo)]),
    after
      [sicily]
      "georadiusbymemberRoDetailsWith"
      (georadiusbymemberRoDetailsWith (WithDist :| []) nearest "k" "Palermo" far)
      (["GEORADIUSBYMEMBER_RO", "k"] <> around <> ["ASC", "COUNT", "1", "WITHDIST"])
      (Gives [GeoFound "Palermo" (Just 0) Nothing Nothing])
  ]
  where
    far = GeoRadius 200 Kilometres
    around = ["Palermo", "200.0", "km"]
    farthest = geosearchDefaults {geosearchOrder = Just FarthestFirst}

nearest :: GeosearchOptions
nearest = geosearchDefaults {geosearchOrder = Just NearestFirst, geosearchCount = Just (CountNearest 1)}

wide :: GeoArea
wide = ByRadius (FromLonlat (GeoPoint 15 37)) (GeoRadius 200 Kilometres)

wideWords :: [ByteString]
wideWords = ["FROMLONLAT", "15.0", "37.0", "BYRADIUS", "200.0", "km"]

-- | Two towns.
sicily :: [ByteString]
sicily = sicilyAt "k"

sicilyAt :: ByteString -> [ByteString]
sicilyAt name = ["GEOADD", name, "13.361389", "38.115556", "Palermo", "15.087269", "37.502669", "Catania"]

-- | The position at which the server stores Palermo.
palermo :: GeoPoint
palermo = GeoPoint 13.361389338970184 38.1155563954963
