-- | Which cells a campaign measures.
--
-- A campaign asks how the speed depends on several things: the axes. Every
-- combination of them all is soon a thousand cells and days of time, most of it
-- spent on questions nobody has. So the design is a star unless the full product
-- is asked for: a baseline cell, each axis varied alone, and those pairs of axes
-- that are known to act together. The first value of each axis is the
-- baseline's.
--
-- Pure; the order of the cells is by importance, so that whoever has less time
-- leaves out the last ones ("Tool.Campaign.Plan").
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
    cellName,
    Reason (..),
    reasonText,
    star,
    fullProduct,
  )
where

import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Set qualified as Set
import Tool.Span (renderSpan, secondsIn)

-- | What is varied. The first of each is the baseline's.
data Axes = Axes
  { axesServers :: NonEmpty Named,
    axesPersistence :: NonEmpty Persistence,
    axesPlaces :: NonEmpty Place,
    axesWorkloads :: NonEmpty String,
    -- | Bytes of a value.
    axesPayloads :: NonEmpty Int,
    -- | Callers, each with one command in flight.
    axesClients :: NonEmpty Int,
    axesNets :: NonEmpty Net
  }
  deriving stock (Eq, Show)

-- | A server program and what to call it.
data Named = Named
  { namedLabel :: String,
    namedPath :: FilePath
  }
  deriving stock (Eq, Ord, Show)

-- | A directory for the server's files and what to call it.
data Place = Place
  { placeLabel :: String,
    placePath :: FilePath
  }
  deriving stock (Eq, Ord, Show)

-- | How the server keeps its data.
data Persistence
  = -- | Not at all.
    PersistNone
  | -- | Snapshots, by the server's own usual rules.
    PersistRdb
  | -- | A log that the system writes back when it likes.
    PersistAofNo
  | -- | A log that is synchronised every second.
    PersistAofEverysec
  | -- | A log that is synchronised before each reply.
    PersistAofAlways
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | As on the command line.
persistenceName :: Persistence -> String
persistenceName = \case
  PersistNone -> "none"
  PersistRdb -> "rdb"
  PersistAofNo -> "aof-no"
  PersistAofEverysec -> "aof-everysec"
  PersistAofAlways -> "aof-always"

-- | How far away the server is.
data Net
  = -- | The loopback as it is.
    NetLocal
  | -- | A round trip of so many nanoseconds is added.
    NetRoundTrip Int
  deriving stock (Eq, Ord, Show)

-- | As on the command line.
netName :: Net -> String
netName = \case
  NetLocal -> "local"
  NetRoundTrip nanos -> "rtt=" <> renderSpan (secondsIn nanos)

-- | Seconds of the round trip that is added.
netSeconds :: Net -> Double
netSeconds = \case
  NetLocal -> 0
  NetRoundTrip nanos -> secondsIn nanos

-- | How often a server is asked how far away it is, before it is measured.
netPings :: Int
netPings = 100

-- | One combination.
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

-- | Says all of it, and is a good name for a directory.
cellName :: Cell -> String
cellName cell =
  concat
    [ cellWorkload cell,
      ".",
      persistenceName (cellPersistence cell),
      ".",
      placeLabel (cellPlace cell),
      ".",
      show (cellPayload cell),
      "B.",
      show (cellClients cell),
      "c.",
      map (\character -> if character == '=' then '-' else character) (netName (cellNet cell)),
      ".",
      namedLabel (cellServer cell)
    ]

-- | Why a cell is in the design.
data Reason
  = ReasonBaseline
  | -- | This axis alone differs from the baseline.
    ReasonAxis String
  | -- | A combination that is known to matter.
    ReasonPair String
  | -- | Everything with everything.
    ReasonFull
  deriving stock (Eq, Show)

-- | For the plan.
reasonText :: Reason -> String
reasonText = \case
  ReasonBaseline -> "baseline"
  ReasonAxis axis -> axis
  ReasonPair pair -> pair
  ReasonFull -> "full product"

-- | The star: each cell once, with the first reason for it. The function says
-- whether a workload carries a value at all; the payload of one that does not
-- is the baseline's.
star :: (String -> Bool) -> Axes -> [(Reason, Cell)]
star carriesValue axes = firsts (map (fmap (settled carriesValue axes)) cells)
  where
    base = baseline axes
    cells =
      concat
        [ [(ReasonBaseline, base)],
          [ (ReasonAxis "persistence", base {cellPersistence = each})
            | each <- rest axesPersistence
          ],
          [(ReasonAxis "workload", base {cellWorkload = each}) | each <- rest axesWorkloads],
          [(ReasonAxis "payload", base {cellPayload = each}) | each <- rest axesPayloads],
          [(ReasonAxis "clients", base {cellClients = each}) | each <- rest axesClients],
          [(ReasonAxis "net", base {cellNet = each}) | each <- rest axesNets],
          [(ReasonAxis "place", base {cellPlace = each}) | each <- rest axesPlaces],
          [(ReasonAxis "server", base {cellServer = each}) | each <- rest axesServers],
          -- What a synchronised log costs depends on how many callers share one
          -- synchronisation, on the disk, and on how far away they are.
          [ ( ReasonPair "persistence × clients",
              base {cellPersistence = persistence, cellClients = clients}
            )
            | persistence <- logs,
              clients <- rest axesClients
          ],
          [ ( ReasonPair "persistence × place",
              base {cellPersistence = persistence, cellPlace = place}
            )
            | persistence <- logs,
              place <- rest axesPlaces
          ],
          [ ( ReasonPair "persistence × net × clients",
              base
                { cellPersistence = PersistAofAlways,
                  cellNet = net,
                  cellClients = clients
                }
            )
            | PersistAofAlways `elem` axesPersistence axes,
              net <- rest axesNets,
              clients <- NonEmpty.toList (axesClients axes)
          ],
          [ ( ReasonPair "persistence × payload",
              base {cellPersistence = persistence, cellPayload = payload}
            )
            | persistence <- logs,
              payload <- rest axesPayloads
          ],
          [ ( ReasonPair "persistence × workload",
              base {cellPersistence = persistence, cellWorkload = workload}
            )
            | persistence <- logs,
              workload <- rest axesWorkloads
          ],
          [ ( ReasonPair "workload × payload",
              base {cellWorkload = workload, cellPayload = payload}
            )
            | workload <- rest axesWorkloads,
              payload <- rest axesPayloads
          ]
        ]
    rest :: (Axes -> NonEmpty a) -> [a]
    rest axis = NonEmpty.drop 1 (axis axes)
    logs =
      [ each
        | each <- NonEmpty.toList (axesPersistence axes),
          each `elem` [PersistAofEverysec, PersistAofAlways]
      ]

-- | Every combination, each once.
fullProduct :: (String -> Bool) -> Axes -> [(Reason, Cell)]
fullProduct carriesValue axes =
  firsts
    [ (ReasonFull, settled carriesValue axes cell)
      | server <- every axesServers,
        persistence <- every axesPersistence,
        place <- every axesPlaces,
        workload <- every axesWorkloads,
        payload <- every axesPayloads,
        clients <- every axesClients,
        net <- every axesNets,
        let cell = Cell server persistence place workload payload clients net
    ]
  where
    every :: (Axes -> NonEmpty a) -> [a]
    every axis = NonEmpty.toList (axis axes)

baseline :: Axes -> Cell
baseline axes =
  Cell
    { cellServer = first axesServers,
      cellPersistence = first axesPersistence,
      cellPlace = first axesPlaces,
      cellWorkload = first axesWorkloads,
      cellPayload = first axesPayloads,
      cellClients = first axesClients,
      cellNet = first axesNets
    }
  where
    first :: (Axes -> NonEmpty a) -> a
    first axis = let value :| _ = axis axes in value

-- Cells that cannot differ are the same cell.
settled :: (String -> Bool) -> Axes -> Cell -> Cell
settled carriesValue axes cell
  | carriesValue (cellWorkload cell) = cell
  | otherwise = cell {cellPayload = cellPayload (baseline axes)}

firsts :: [(Reason, Cell)] -> [(Reason, Cell)]
firsts = go Set.empty
  where
    go _ [] = []
    go seen ((reason, cell) : others)
      | cell `Set.member` seen = go seen others
      | otherwise = (reason, cell) : go (Set.insert cell seen) others
