-- | Places on a map, by longitude and latitude, and searches for places near a point.
--
-- > run client (Redis.geoadd "example:geo" ((palermo, "Palermo") :| [(catania, "Catania")]))
-- > run client (Redis.geosearch "example:geo" (Redis.ByBox (Redis.FromMember "Catania") 100 100 Redis.Kilometres))
--
-- To all other commands such a key holds a sorted set: @ZREM@ removes a place. The server keeps places
-- to less than a metre, so a place that is read differs a little from the place that was added.
--
-- The server's page: <https://valkey.io/commands/#geo>.
module Redis.Commands.Geo
  ( -- * Places
    geoadd,
    geoaddWith,
    GeoaddOptions (geoaddCondition, geoaddChanged),
    geoaddDefaults,
    GeoaddCondition (..),
    geopos,
    geohash,
    geodist,
    GeoPoint (..),
    GeoUnit (..),

    -- * Searching
    geosearch,
    geosearchWith,
    geosearchDetails,
    geosearchDetailsWith,
    GeosearchOptions (geosearchOrder, geosearchCount),
    geosearchDefaults,
    GeoArea (..),
    GeoCentre (..),
    GeoRadius (..),
    GeoOrder (..),
    GeoCount (..),
    GeoDetail (..),
    GeoFound (..),
    geosearchstore,
    geosearchstoreWith,
    GeosearchstoreOptions (geosearchstoreOrder, geosearchstoreCount, geosearchstoreStoredist),
    geosearchstoreDefaults,

    -- * On servers before 6.2
    georadius,
    georadiusWith,
    georadiusDetails,
    georadiusDetailsWith,
    georadiusStore,
    georadiusStoreWith,
    GeoStore (..),
    georadiusbymember,
    georadiusbymemberWith,
    georadiusbymemberDetails,
    georadiusbymemberDetailsWith,
    georadiusbymemberStore,
    georadiusbymemberStoreWith,

    -- ** Read-only forms, which replicas answer
    georadiusRo,
    georadiusRoWith,
    georadiusRoDetails,
    georadiusRoDetailsWith,
    georadiusbymemberRo,
    georadiusbymemberRoWith,
    georadiusbymemberRoDetails,
    georadiusbymemberRoDetailsWith,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | A place, in degrees. The server takes longitudes from -180 to 180 and latitudes
-- from -85.05112878 to 85.05112878.
data GeoPoint = GeoPoint
  { geoPointLongitude :: Double,
    geoPointLatitude :: Double
  }
  deriving stock (Eq, Ord, Show)

-- | A unit of distance.
data GeoUnit
  = -- | m
    Metres
  | -- | km
    Kilometres
  | -- | ft
    Feet
  | -- | mi
    Miles
  deriving stock (Eq, Show)

unit :: GeoUnit -> Argument
unit = \case
  Metres -> arg "m"
  Kilometres -> arg "km"
  Feet -> arg "ft"
  Miles -> arg "mi"

point :: GeoPoint -> [Argument]
point GeoPoint {geoPointLongitude, geoPointLatitude} = [double geoPointLongitude, double geoPointLatitude]

readPoint :: Decoder GeoPoint
readPoint = fmap (uncurry GeoPoint) . Decode.pair Decode.double Decode.double

-- | @GEOADD key longitude latitude member …@: adds places, or moves those that are there; how many
-- are new. \(O(\log n)\) each, [since 3.2.0](https://valkey.io/commands/geoadd/).
geoadd :: ByteString -> NonEmpty (GeoPoint, ByteString) -> Command Int64
geoadd = geoaddWith geoaddDefaults

-- | How to add places.
data GeoaddOptions = GeoaddOptions
  { -- | 'Nothing' adds and moves.
    geoaddCondition :: Maybe GeoaddCondition,
    -- | CH (since 6.2.0): the result also counts the places that were moved.
    geoaddChanged :: Bool
  }
  deriving stock (Eq, Show)

-- | Which places to change.
data GeoaddCondition
  = -- | NX (since 6.2.0): only adds places, and moves none.
    OnlyNewPlaces
  | -- | XX (since 6.2.0): only moves places, and adds none.
    OnlyKnownPlaces
  deriving stock (Eq, Show)

-- | Adds and moves places, and counts the new ones.
geoaddDefaults :: GeoaddOptions
geoaddDefaults = GeoaddOptions {geoaddCondition = Nothing, geoaddChanged = False}

-- | @GEOADD key [NX|XX] [CH] longitude latitude member …@: as 'geoadd'.
geoaddWith :: GeoaddOptions -> ByteString -> NonEmpty (GeoPoint, ByteString) -> Command Int64
geoaddWith GeoaddOptions {geoaddCondition, geoaddChanged} name places =
  command "GEOADD" (key name : maybe [] condition geoaddCondition <> flag "CH" geoaddChanged <> concatMap place places) Decode.integer
  where
    place (where', member) = point where' <> [arg member]
    condition = \case
      OnlyNewPlaces -> [arg "NX"]
      OnlyKnownPlaces -> [arg "XX"]

-- | @GEOPOS key member …@: the positions of the places, in their order; 'Nothing' for a place that
-- is not there. \(O(1)\) each, [since 3.2.0](https://valkey.io/commands/geopos/).
geopos :: ByteString -> NonEmpty ByteString -> Command [Maybe GeoPoint]
geopos name members =
  command "GEOPOS" (key name : args members) (Decode.listOf (length members) (Decode.nullable readPoint))

-- | @GEOHASH key member …@: the geohashes of the places, of eleven letters, as other programs know
-- them; 'Nothing' for a place that is not there. \(O(1)\) each,
-- [since 3.2.0](https://valkey.io/commands/geohash/).
geohash :: ByteString -> NonEmpty ByteString -> Command [Maybe ByteString]
geohash name members =
  command "GEOHASH" (key name : args members) (Decode.listOf (length members) (Decode.nullable Decode.bytes))

-- | @GEODIST key member member m|km|ft|mi@: the distance between two places; 'Nothing' if one is
-- not there. \(O(1)\), [since 3.2.0](https://valkey.io/commands/geodist/).
geodist :: ByteString -> ByteString -> ByteString -> GeoUnit -> Command (Maybe Double)
geodist name one other in' =
  command "GEODIST" [key name, arg one, arg other, unit in'] (Decode.nullable Decode.double)

-- | The area of a search.
data GeoArea
  = -- | BYRADIUS: within a circle.
    ByRadius GeoCentre GeoRadius
  | -- | BYBOX: within a box of this width, from west to east, and this height, from south to north.
    ByBox GeoCentre Double Double GeoUnit
  | -- | BYPOLYGON (Valkey, since 9.0): within a polygon with these three or more corners.
    ByPolygon GeoPoint GeoPoint GeoPoint [GeoPoint]
  deriving stock (Eq, Show)

-- | The middle of a search.
data GeoCentre
  = -- | A place in the set. The server refuses a place that is not there.
    FromMember ByteString
  | FromLonlat GeoPoint
  deriving stock (Eq, Show)

-- | A distance from the middle.
data GeoRadius = GeoRadius Double GeoUnit
  deriving stock (Eq, Show)

area :: GeoArea -> [Argument]
area = \case
  ByRadius centre circle -> from centre <> (arg "BYRADIUS" : radius circle)
  ByBox centre width height in' -> from centre <> [arg "BYBOX", double width, double height, unit in']
  ByPolygon a b c more ->
    let corners = a : b : c : more
     in [arg "BYPOLYGON", int (fromIntegral (length corners))] <> concatMap point corners
  where
    from = \case
      FromMember member -> [arg "FROMMEMBER", arg member]
      FromLonlat where' -> arg "FROMLONLAT" : point where'

radius :: GeoRadius -> [Argument]
radius (GeoRadius far in') = [double far, unit in']

-- | Which places come first.
data GeoOrder
  = -- | ASC
    NearestFirst
  | -- | DESC
    FarthestFirst
  deriving stock (Eq, Show)

-- | How many places to find. A number that is not positive is refused before the command is sent.
data GeoCount
  = -- | COUNT n: at most this many, the nearest ones unless the order is another.
    CountNearest Int64
  | -- | COUNT n ANY (since 6.2.0): the first ones that the server comes across, at most this many,
    -- which is faster.
    CountAny Int64
  deriving stock (Eq, Show)

orderAndCount :: Maybe GeoOrder -> Maybe GeoCount -> [Argument]
orderAndCount order count = maybe [] inOrder order <> maybe [] atMost count
  where
    inOrder = \case
      NearestFirst -> [arg "ASC"]
      FarthestFirst -> [arg "DESC"]
    atMost = \case
      CountNearest most -> [arg "COUNT", positive most]
      CountAny most -> [arg "COUNT", positive most, arg "ANY"]

-- | The order and number of the places that a search gives.
data GeosearchOptions = GeosearchOptions
  { -- | 'Nothing' is any order.
    geosearchOrder :: Maybe GeoOrder,
    -- | 'Nothing' is all places.
    geosearchCount :: Maybe GeoCount
  }
  deriving stock (Eq, Show)

-- | All places, in any order.
geosearchDefaults :: GeosearchOptions
geosearchDefaults = GeosearchOptions {geosearchOrder = Nothing, geosearchCount = Nothing}

searchOptions :: GeosearchOptions -> [Argument]
searchOptions GeosearchOptions {geosearchOrder, geosearchCount} = orderAndCount geosearchOrder geosearchCount

-- | @GEOSEARCH key FROMMEMBER member|FROMLONLAT longitude latitude BYRADIUS …|BYBOX …@, or
-- @GEOSEARCH key BYPOLYGON …@: what is there. \(O(n+\log m)\) in what lies around and in all
-- places, [since 6.2.0](https://valkey.io/commands/geosearch/). It gives the places in the area.
geosearch :: ByteString -> GeoArea -> Command [ByteString]
geosearch = geosearchWith geosearchDefaults

-- | @GEOSEARCH key … [ASC|DESC] [COUNT n [ANY]]@: like 'geosearch'.
geosearchWith :: GeosearchOptions -> ByteString -> GeoArea -> Command [ByteString]
geosearchWith options name within =
  command "GEOSEARCH" (key name : area within <> searchOptions options) foundMembers

foundMembers :: Decoder [ByteString]
foundMembers = Decode.list Decode.bytes

-- | A detail of each place that a search gives on request.
data GeoDetail
  = -- | WITHDIST: its distance from the middle.
    WithDist
  | -- | WITHHASH: the number that the server keeps for the place.
    WithHash
  | -- | WITHCOORD: its position.
    WithCoord
  deriving stock (Eq, Show)

-- | A place that was found, with the details requested.
data GeoFound = GeoFound
  { geoFoundMember :: ByteString,
    -- | In the unit of the search. For a polygon: in metres, from its middle.
    geoFoundDist :: Maybe Double,
    -- | Its score in the sorted set.
    geoFoundHash :: Maybe Int64,
    geoFoundCoord :: Maybe GeoPoint
  }
  deriving stock (Eq, Show)

details :: NonEmpty GeoDetail -> [Argument]
details = map word . toList
  where
    word = \case
      WithDist -> arg "WITHDIST"
      WithHash -> arg "WITHHASH"
      WithCoord -> arg "WITHCOORD"

found :: NonEmpty GeoDetail -> Decoder [GeoFound]
found asked = Decode.list $ \reply -> do
  elements <- Decode.list Decode.value reply
  geoFoundMember <- Decode.element 0 Decode.bytes elements
  geoFoundDist <- detail WithDist [] Decode.double elements
  geoFoundHash <- detail WithHash [WithDist] Decode.integer elements
  geoFoundCoord <- detail WithCoord [WithDist, WithHash] readPoint elements
  pure GeoFound {geoFoundMember, geoFoundDist, geoFoundHash, geoFoundCoord}
  where
    -- The server sends details in an order of its own, not in that of the request.
    detail one before decoder elements
      | one `elem` asked = Just <$> Decode.element (1 + length (filter (`elem` asked) before)) decoder elements
      | otherwise = Right Nothing

-- | @GEOSEARCH key … WITHDIST|WITHHASH|WITHCOORD …@: like 'geosearch', with details of each place.
--
-- > geosearchDetails (WithDist :| []) "towns" (ByRadius (FromMember "Palermo") (GeoRadius 200 Miles))
geosearchDetails :: NonEmpty GeoDetail -> ByteString -> GeoArea -> Command [GeoFound]
geosearchDetails asked = geosearchDetailsWith asked geosearchDefaults

-- | @GEOSEARCH key … [ASC|DESC] [COUNT n [ANY]] WITHDIST|WITHHASH|WITHCOORD …@: like 'geosearchWith',
-- with details of each place.
geosearchDetailsWith :: NonEmpty GeoDetail -> GeosearchOptions -> ByteString -> GeoArea -> Command [GeoFound]
geosearchDetailsWith asked options name within =
  command "GEOSEARCH" (key name : area within <> searchOptions options <> details asked) (found asked)

-- | @GEOSEARCHSTORE destination source …@: stores the places that 'geosearch' would find; how many
-- there are. They replace the value of the destination, which is deleted if nothing is found. In a
-- cluster both keys must share a slot. \(O(n+\log m)\) in the places around the area and in all
-- places of the key, [since 6.2.0](https://valkey.io/commands/geosearchstore/).
geosearchstore :: ByteString -> ByteString -> GeoArea -> Command Int64
geosearchstore = geosearchstoreWith geosearchstoreDefaults

-- | Which of the places that are found to store, and how.
data GeosearchstoreOptions = GeosearchstoreOptions
  { -- | Matters only together with a count.
    geosearchstoreOrder :: Maybe GeoOrder,
    -- | 'Nothing' is all places.
    geosearchstoreCount :: Maybe GeoCount,
    -- | STOREDIST: stores a sorted set of distances in the unit of the search. Its members are no
    -- places any more.
    geosearchstoreStoredist :: Bool
  }
  deriving stock (Eq, Show)

-- | All that are found, as places.
geosearchstoreDefaults :: GeosearchstoreOptions
geosearchstoreDefaults =
  GeosearchstoreOptions {geosearchstoreOrder = Nothing, geosearchstoreCount = Nothing, geosearchstoreStoredist = False}

-- | @GEOSEARCHSTORE destination source … [ASC|DESC] [COUNT n [ANY]] [STOREDIST]@: like
-- 'geosearchstore', with options.
geosearchstoreWith :: GeosearchstoreOptions -> ByteString -> ByteString -> GeoArea -> Command Int64
geosearchstoreWith options destination source within =
  command
    "GEOSEARCHSTORE"
    ( [key destination, key source]
        <> area within
        <> orderAndCount (geosearchstoreOrder options) (geosearchstoreCount options)
        <> flag "STOREDIST" (geosearchstoreStoredist options)
    )
    Decode.integer

-- | @GEORADIUS key longitude latitude radius m|km|ft|mi@: the places in the circle. A write, which
-- goes to primaries; @GEORADIUS_RO …@ only reads. \(O(n+\log m)\) in the places around the circle
-- and in all places of the key, [since 3.2.0](https://valkey.io/commands/georadius/), GEORADIUS_RO
-- [since 3.2.10](https://valkey.io/commands/georadius_ro/). Deprecated since 6.2.0; use
-- 'geosearch'.
georadius, georadiusRo :: ByteString -> GeoPoint -> GeoRadius -> Command [ByteString]
georadius = georadiusWith geosearchDefaults
georadiusRo = georadiusRoWith geosearchDefaults

-- | @GEORADIUS key … [COUNT n [ANY]] [ASC|DESC]@, @GEORADIUS_RO …@: like 'georadius' and
-- 'georadiusRo'. Deprecated since 6.2.0; use 'geosearchWith'.
georadiusWith, georadiusRoWith :: GeosearchOptions -> ByteString -> GeoPoint -> GeoRadius -> Command [ByteString]
georadiusWith options name where' circle = command "GEORADIUS" (inCircle options name (point where') circle) foundMembers
georadiusRoWith options name where' circle = command "GEORADIUS_RO" (inCircle options name (point where') circle) foundMembers

inCircle :: GeosearchOptions -> ByteString -> [Argument] -> GeoRadius -> [Argument]
inCircle options name centre circle = key name : centre <> radius circle <> searchOptions options

-- | @GEORADIUS key … WITHDIST|WITHHASH|WITHCOORD …@, @GEORADIUS_RO …@: like 'georadius' and
-- 'georadiusRo', with details of each place. Deprecated since 6.2.0; use 'geosearchDetails'.
georadiusDetails, georadiusRoDetails :: NonEmpty GeoDetail -> ByteString -> GeoPoint -> GeoRadius -> Command [GeoFound]
georadiusDetails asked = georadiusDetailsWith asked geosearchDefaults
georadiusRoDetails asked = georadiusRoDetailsWith asked geosearchDefaults

-- | @GEORADIUS key … WITHDIST|WITHHASH|WITHCOORD … [COUNT n [ANY]] [ASC|DESC]@, @GEORADIUS_RO …@:
-- like 'georadiusWith' and 'georadiusRoWith', with details of each place. Deprecated since 6.2.0;
-- use 'geosearchDetailsWith'.
georadiusDetailsWith,
  georadiusRoDetailsWith ::
    NonEmpty GeoDetail -> GeosearchOptions -> ByteString -> GeoPoint -> GeoRadius -> Command [GeoFound]
georadiusDetailsWith asked options name where' circle =
  command "GEORADIUS" (inCircle options name (point where') circle <> details asked) (found asked)
georadiusRoDetailsWith asked options name where' circle =
  command "GEORADIUS_RO" (inCircle options name (point where') circle <> details asked) (found asked)

-- | Where to store the places that are found, and in which form.
data GeoStore
  = -- | STORE: as places.
    StorePlaces ByteString
  | -- | STOREDIST: as a sorted set of distances, in the unit of the search.
    StoreDistances ByteString
  deriving stock (Eq, Show)

store :: GeoStore -> [Argument]
store = \case
  StorePlaces destination -> [arg "STORE", key destination]
  StoreDistances destination -> [arg "STOREDIST", key destination]

-- | @GEORADIUS key … STORE|STOREDIST destination@: stores the places that 'georadius' would find;
-- how many there are. In a cluster both keys must share a slot. Deprecated since 6.2.0; use
-- 'geosearchstore'.
georadiusStore :: GeoStore -> ByteString -> GeoPoint -> GeoRadius -> Command Int64
georadiusStore = georadiusStoreWith geosearchDefaults

-- | @GEORADIUS key … [COUNT n [ANY]] [ASC|DESC] STORE|STOREDIST destination@: like
-- 'georadiusStore'. Deprecated since 6.2.0; use 'geosearchstoreWith'.
georadiusStoreWith :: GeosearchOptions -> GeoStore -> ByteString -> GeoPoint -> GeoRadius -> Command Int64
georadiusStoreWith options destination name where' circle =
  command "GEORADIUS" (inCircle options name (point where') circle <> store destination) Decode.integer

-- | @GEORADIUSBYMEMBER key member radius m|km|ft|mi@, @GEORADIUSBYMEMBER_RO …@: like 'georadius'
-- and 'georadiusRo', around a place in the set.
-- [Since 3.2.0](https://valkey.io/commands/georadiusbymember/), GEORADIUSBYMEMBER_RO
-- [since 3.2.10](https://valkey.io/commands/georadiusbymember_ro/). Deprecated since 6.2.0; use
-- 'geosearch'.
georadiusbymember, georadiusbymemberRo :: ByteString -> ByteString -> GeoRadius -> Command [ByteString]
georadiusbymember = georadiusbymemberWith geosearchDefaults
georadiusbymemberRo = georadiusbymemberRoWith geosearchDefaults

-- | @GEORADIUSBYMEMBER key … [COUNT n [ANY]] [ASC|DESC]@, @GEORADIUSBYMEMBER_RO …@: like
-- 'georadiusbymember' and 'georadiusbymemberRo'. Deprecated since 6.2.0; use 'geosearchWith'.
georadiusbymemberWith,
  georadiusbymemberRoWith ::
    GeosearchOptions -> ByteString -> ByteString -> GeoRadius -> Command [ByteString]
georadiusbymemberWith options name member circle =
  command "GEORADIUSBYMEMBER" (inCircle options name [arg member] circle) foundMembers
georadiusbymemberRoWith options name member circle =
  command "GEORADIUSBYMEMBER_RO" (inCircle options name [arg member] circle) foundMembers

-- | @GEORADIUSBYMEMBER key … WITHDIST|WITHHASH|WITHCOORD …@, @GEORADIUSBYMEMBER_RO …@: like
-- 'georadiusbymember' and 'georadiusbymemberRo', with details of each place. Deprecated since
-- 6.2.0; use 'geosearchDetails'.
georadiusbymemberDetails,
  georadiusbymemberRoDetails ::
    NonEmpty GeoDetail -> ByteString -> ByteString -> GeoRadius -> Command [GeoFound]
georadiusbymemberDetails asked = georadiusbymemberDetailsWith asked geosearchDefaults
georadiusbymemberRoDetails asked = georadiusbymemberRoDetailsWith asked geosearchDefaults

-- | @GEORADIUSBYMEMBER key … WITHDIST|WITHHASH|WITHCOORD … [COUNT n [ANY]] [ASC|DESC]@,
-- @GEORADIUSBYMEMBER_RO …@: like 'georadiusbymemberWith' and 'georadiusbymemberRoWith', with
-- details of each place. Deprecated since 6.2.0; use 'geosearchDetailsWith'.
georadiusbymemberDetailsWith,
  georadiusbymemberRoDetailsWith ::
    NonEmpty GeoDetail -> GeosearchOptions -> ByteString -> ByteString -> GeoRadius -> Command [GeoFound]
georadiusbymemberDetailsWith asked options name member circle =
  command "GEORADIUSBYMEMBER" (inCircle options name [arg member] circle <> details asked) (found asked)
georadiusbymemberRoDetailsWith asked options name member circle =
  command "GEORADIUSBYMEMBER_RO" (inCircle options name [arg member] circle <> details asked) (found asked)

-- | @GEORADIUSBYMEMBER key … STORE|STOREDIST destination@: like 'georadiusStore', for the places
-- that 'georadiusbymember' would find. Deprecated since 6.2.0; use 'geosearchstore'.
georadiusbymemberStore :: GeoStore -> ByteString -> ByteString -> GeoRadius -> Command Int64
georadiusbymemberStore = georadiusbymemberStoreWith geosearchDefaults

-- | @GEORADIUSBYMEMBER key … [COUNT n [ANY]] [ASC|DESC] STORE|STOREDIST destination@: like
-- 'georadiusbymemberStore'. Deprecated since 6.2.0; use 'geosearchstoreWith'.
georadiusbymemberStoreWith :: GeosearchOptions -> GeoStore -> ByteString -> ByteString -> GeoRadius -> Command Int64
georadiusbymemberStoreWith options destination name member circle =
  command "GEORADIUSBYMEMBER" (inCircle options name [arg member] circle <> store destination) Decode.integer
