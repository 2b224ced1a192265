-- | One point of the comparison: the commands, how many of them are in flight, and where; and the
-- flags that tell a peer about it.
module Compare.Cell
  ( Cell (..),
    Common (..),
    defaultCommon,
    Operation (..),
    Style (..),
    Place (..),
    cellName,
    cellLoad,
    cellUnusual,
    operationText,
    styleText,
    placeText,
    isCluster,
    isPinned,
    serverCores,
    clientCores,
    expectsHits,

    -- * Telling a peer
    Window (..),
    peerArguments,
  )
where

import Data.Aeson (FromJSON (parseJSON), ToJSON (toJSON), Value, object, withObject, withText, (.:), (.=))
import Data.Aeson.Types (Parser)
import Data.List (find)
import Data.Text (Text)
import Data.Text qualified as Text

-- | A point of the comparison.
data Cell = Cell
  { cellPlace :: Place,
    cellOperation :: Operation,
    -- | Bytes.
    cellValueSize :: Int,
    cellStyle :: Style,
    -- | Commands in flight at any time.
    cellInFlight :: Int,
    cellCommon :: Common
  }
  deriving stock (Eq, Ord, Show)

-- | The settings that most cells have in common.
data Common = Common
  { commonKeys :: Int,
    -- | Bytes.
    commonKeySize :: Int,
    commonSeed :: Int,
    -- | Connections per server.
    commonConnections :: Int
  }
  deriving stock (Eq, Ord, Show)

-- | A hundred thousand keys of 16 bytes, seed 1, one connection.
defaultCommon :: Common
defaultCommon = Common {commonKeys = 100000, commonKeySize = 16, commonSeed = 1, commonConnections = 1}

-- | The commands of a cell.
data Operation
  = GetHit
  | GetMiss
  | Set
  | -- | One fifth are SETs.
    Mixed
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | Whether each caller waits for each reply, or for batches of 64 commands.
data Style
  = Wait
  | Batch
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The servers, and the cores of servers and client.
data Place
  = -- | One server on core 0, the client on core 1.
    Standalone
  | -- | Five primaries on core 0, the client on core 1.
    Cluster
  | -- | One server, which shares cores 0 and 1 with the client.
    StandaloneFree
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The name of a cell, for readers.
cellName :: Cell -> Text
cellName cell =
  placeText (cellPlace cell) <> ", " <> operationText (cellOperation cell) <> " "
    <> Text.pack (show (cellValueSize cell))
    <> " B, "
    <> cellLoad cell
    <> cellUnusual cell

-- | The number in flight, for readers: @256 waiting@, @16 x 64@.
cellLoad :: Cell -> Text
cellLoad cell = case cellStyle cell of
  Wait -> number (cellInFlight cell) <> " waiting"
  Batch -> number (cellInFlight cell `div` 64) <> " x 64"
  where
    number = Text.pack . show

-- | The settings in which a cell differs from most cells, for readers:
-- @, keys of 512 B, 4 connections@. Most cells have none.
cellUnusual :: Cell -> Text
cellUnusual cell =
  Text.concat
    [ ", " <> before <> Text.pack (show (part (cellCommon cell))) <> after
      | (part, before, after) <- [(commonKeys, "", " keys"), (commonKeySize, "keys of ", " B"), (commonSeed, "seed ", ""), (commonConnections, "", " connections")],
        part (cellCommon cell) /= part defaultCommon
    ]

-- | The name of the commands, for readers and in files.
operationText :: Operation -> Text
operationText = \case
  GetHit -> "GET hit"
  GetMiss -> "GET miss"
  Set -> "SET"
  Mixed -> "80/20"

-- | The name of the style, in flags and in files.
styleText :: Style -> Text
styleText = \case
  Wait -> "wait"
  Batch -> "batch"

-- | The name of the place, for readers and in files.
placeText :: Place -> Text
placeText = \case
  Standalone -> "standalone"
  Cluster -> "cluster"
  StandaloneFree -> "standalone, both cores free"

-- | Whether the servers form a cluster.
isCluster :: Place -> Bool
isCluster = (== Cluster)

-- | Whether servers and client have a core each.
isPinned :: Place -> Bool
isPinned = (/= StandaloneFree)

-- | The cores that the servers may use.
serverCores :: Place -> [Int]
serverCores place = if isPinned place then [0] else [0, 1]

-- | The cores that the client may use.
clientCores :: Place -> [Int]
clientCores place = if isPinned place then [1] else [0, 1]

-- | Whether every GET must find a value.
expectsHits :: Cell -> Bool
expectsHits cell = cellOperation cell /= GetMiss

instance FromJSON Operation where
  parseJSON = oneOf "operation" operationText

instance FromJSON Style where
  parseJSON = oneOf "style" styleText

instance FromJSON Place where
  parseJSON = oneOf "place" placeText

oneOf :: (Bounded a, Enum a) => String -> (a -> Text) -> Value -> Parser a
oneOf what name = withText what $ \text ->
  maybe (fail ("no such " <> what <> ": " <> Text.unpack text)) pure (find ((== text) . name) [minBound .. maxBound])

instance ToJSON Cell where
  toJSON cell =
    object
      [ "place" .= placeText (cellPlace cell),
        "operation" .= operationText (cellOperation cell),
        "value_size" .= cellValueSize cell,
        "style" .= styleText (cellStyle cell),
        "in_flight" .= cellInFlight cell,
        "keys" .= commonKeys common,
        "key_size" .= commonKeySize common,
        "seed" .= commonSeed common,
        "connections" .= commonConnections common
      ]
    where
      common = cellCommon cell

instance FromJSON Cell where
  parseJSON = withObject "cell" $ \cell ->
    Cell
      <$> cell .: "place"
      <*> cell .: "operation"
      <*> cell .: "value_size"
      <*> cell .: "style"
      <*> cell .: "in_flight"
      <*> (Common <$> cell .: "keys" <*> cell .: "key_size" <*> cell .: "seed" <*> cell .: "connections")

-- | The length of a run, in seconds.
data Window = Window
  { windowWarmup :: Double,
    windowDuration :: Double
  }
  deriving stock (Eq, Show)

-- | The flags of @compare/PROTOCOL.md@, for a server (or one node of the cluster) at this host and
-- port.
peerArguments :: (String, Int) -> Window -> Cell -> [String]
peerArguments (host, port) window cell =
  concat
    [ ["--host", host, "--port", show port],
      ["--cluster" | isCluster (cellPlace cell)],
      ["--operation", operation],
      ["--misses" | not (expectsHits cell)],
      ["--in-flight", show (cellInFlight cell)],
      ["--style", Text.unpack (styleText (cellStyle cell)), "--batch", "64"],
      ["--keys", show (commonKeys common), "--key-size", show (commonKeySize common)],
      ["--value-size", show (cellValueSize cell)],
      ["--warmup", show (windowWarmup window), "--duration", show (windowDuration window)],
      ["--seed", show (commonSeed common), "--connections", show (commonConnections common), "--json", "-"]
    ]
  where
    common = cellCommon cell
    operation = case cellOperation cell of
      GetHit -> "get"
      GetMiss -> "get"
      Set -> "set"
      Mixed -> "mixed"
