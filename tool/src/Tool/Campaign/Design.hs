-- | The cells that a campaign measures, in order of importance. All combinations would take days,
-- so the design is a star unless the user requests the full product: a baseline of the first
-- value of each axis, each axis varied alone, and the pairs of axes that are known to affect each
-- other.
module Tool.Campaign.Design
  ( -- * Axes
    Axes (..),
    Persistence (..),
    persistenceName,
    Place (..),
    Named (..),
    Net (..),
    netName,
    netSeconds,
    netPings,

    -- * Cells
    Cell (..),
    cellAxes,
    cellName,
    Reason (..),
    reasonText,
    star,
    fullProduct,
  )
where

import Data.Containers.ListUtils (nubOrdOn)
import Data.List (intercalate)
import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty
import Tool.Span (renderSpan, secondsIn)

-- | The values of each axis. The first value is the baseline's.
data Axes = Axes
  { axesServers :: NonEmpty Named,
    axesPersistence :: NonEmpty Persistence,
    axesPlaces :: NonEmpty Place,
    axesWorkloads :: NonEmpty String,
    -- | Bytes of a value.
    axesPayloads :: NonEmpty Int,
    -- | Numbers of callers. Each caller has one command in flight.
    axesClients :: NonEmpty Int,
    axesNets :: NonEmpty Net
  }
  deriving stock (Eq, Show)

-- | A server program and its label.
data Named = Named
  { namedLabel :: String,
    namedPath :: FilePath
  }
  deriving stock (Eq, Ord, Show)

-- | A directory for the server's files and its label.
data Place = Place
  { placeLabel :: String,
    placePath :: FilePath
  }
  deriving stock (Eq, Ord, Show)

-- | How the server keeps its data.
data Persistence
  = -- | The server keeps nothing.
    PersistNone
  | -- | Snapshots, by the server's usual rules.
    PersistRdb
  | -- | An append-only file that the system writes back when it likes.
    PersistAofNo
  | -- | An append-only file that is synchronised every second.
    PersistAofEverysec
  | -- | An append-only file that is synchronised before each reply.
    PersistAofAlways
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The name on the command line.
persistenceName :: Persistence -> String
persistenceName = \case
  PersistNone -> "none"
  PersistRdb -> "rdb"
  PersistAofNo -> "aof-no"
  PersistAofEverysec -> "aof-everysec"
  PersistAofAlways -> "aof-always"

-- | The distance to the server.
data Net
  = -- | The loopback as it is.
    NetLocal
  | -- | A round trip of this number of nanoseconds is added.
    NetRoundTrip Int
  deriving stock (Eq, Ord, Show)

-- | The name on the command line.
netName :: Net -> String
netName = \case
  NetLocal -> "local"
  NetRoundTrip nanos -> "rtt=" <> renderSpan (secondsIn nanos)

-- | Seconds of the round trip that is added.
netSeconds :: Net -> Double
netSeconds = \case
  NetLocal -> 0
  NetRoundTrip nanos -> secondsIn nanos

-- | The number of PINGs that measure the distance of a server before a measurement.
netPings :: Int
netPings = 100

-- | One combination of values.
data Cell = Cell
  { cellServer :: Named,
    cellPersistence :: Persistence,
    cellPlace :: Place,
    cellWorkload :: String,
    cellPayload :: Int,
    cellClients :: Int,
    cellNet :: Net
  }
  deriving stock (Eq, Ord, Show)

-- | The value on each axis, by the axis' name.
cellAxes :: Cell -> [(String, String)]
cellAxes cell =
  [ ("workload", cellWorkload cell),
    ("persistence", persistenceName (cellPersistence cell)),
    ("place", placeLabel (cellPlace cell)),
    ("payload", show (cellPayload cell)),
    ("clients", show (cellClients cell)),
    ("net", netName (cellNet cell)),
    ("server", namedLabel (cellServer cell))
  ]

-- | A name with all values, which also fits a directory.
cellName :: Cell -> String
cellName cell = intercalate "." (map written (cellAxes cell))
  where
    written = \case
      ("payload", bytes) -> bytes <> "B"
      ("clients", count) -> count <> "c"
      ("net", net) -> map (\character -> if character == '=' then '-' else character) net
      (_, value) -> value

-- | The reason for a cell in the design.
data Reason
  = ReasonBaseline
  | -- | Only this axis differs from the baseline.
    ReasonAxis String
  | -- | A combination that is known to matter.
    ReasonPair String
  | -- | The full product.
    ReasonFull
  deriving stock (Eq, Show)

-- | The reason as the plan shows it.
reasonText :: Reason -> String
reasonText = \case
  ReasonBaseline -> "baseline"
  ReasonAxis axis -> axis
  ReasonPair pair -> pair
  ReasonFull -> "full product"

-- | The star: each cell once, with the first reason for it. The function says whether a workload
-- carries a value. If it does not, its cells have the baseline's payload.
star :: (String -> Bool) -> Axes -> [(Reason, Cell)]
star carriesValue axes = firsts (map (fmap (settled carriesValue axes)) cells)
  where
    base = baseline axes
    cells =
      [(ReasonBaseline, base)]
        <> concat
          [ alone "persistence" persistences,
            alone "workload" workloads,
            alone "payload" payloads,
            alone "clients" clients,
            alone "net" nets,
            alone "place" places,
            alone "server" [\cell -> cell {cellServer = each} | each <- rest axesServers],
            -- The cost of a synchronised file depends on the number of clients that share one
            -- synchronisation, on the disk, and on the distance of the clients.
            together "persistence × clients" logs clients,
            together "persistence × place" logs places,
            together "persistence × net × clients" synchronised ((.) <$> nets <*> (id : clients)),
            together "persistence × payload" logs payloads,
            together "persistence × workload" logs workloads,
            together "workload × payload" workloads payloads
          ]
    alone name changes = [(ReasonAxis name, change base) | change <- changes]
    together name ones others = [(ReasonPair name, other (one base)) | one <- ones, other <- others]
    persistences = keeping <$> rest axesPersistence
    keeping persistence cell = cell {cellPersistence = persistence}
    workloads = [\cell -> cell {cellWorkload = each} | each <- rest axesWorkloads]
    payloads = [\cell -> cell {cellPayload = each} | each <- rest axesPayloads]
    clients = [\cell -> cell {cellClients = each} | each <- rest axesClients]
    nets = [\cell -> cell {cellNet = each} | each <- rest axesNets]
    places = [\cell -> cell {cellPlace = each} | each <- rest axesPlaces]
    logs =
      [ keeping each
        | each <- NonEmpty.toList (axesPersistence axes),
          each `elem` [PersistAofEverysec, PersistAofAlways]
      ]
    synchronised = [keeping PersistAofAlways | PersistAofAlways `elem` axesPersistence axes]
    rest :: (Axes -> NonEmpty a) -> [a]
    rest axis = NonEmpty.drop 1 (axis axes)

-- | Every combination, each once.
fullProduct :: (String -> Bool) -> Axes -> [(Reason, Cell)]
fullProduct carriesValue axes =
  firsts [(ReasonFull, settled carriesValue axes cell) | cell <- NonEmpty.toList (combinations axes)]

-- All of them, the baseline first.
combinations :: Axes -> NonEmpty Cell
combinations axes =
  Cell <$> axesServers axes <*> axesPersistence axes <*> axesPlaces axes
    <*> axesWorkloads axes
    <*> axesPayloads axes
    <*> axesClients axes
    <*> axesNets axes

baseline :: Axes -> Cell
baseline axes = let first :| _ = combinations axes in first

-- Cells that cannot differ become the same cell.
settled :: (String -> Bool) -> Axes -> Cell -> Cell
settled carriesValue axes cell
  | carriesValue (cellWorkload cell) = cell
  | otherwise = cell {cellPayload = cellPayload (baseline axes)}

firsts :: [(Reason, Cell)] -> [(Reason, Cell)]
firsts = nubOrdOn snd
