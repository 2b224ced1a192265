{-# LANGUAGE DeriveGeneric #-}

-- | One measurement and its result, as they are stored in the raw results.
module Compare.Cell
  ( Topology (..),
    Layout (..),
    Cell (..),
    cellGroup,
    Outcome (..),
    Result (..),
    readResults,
    readLines,
    appendResult,
  )
where

import Compare.Load (LoadResult, Scenario)
import Data.Aeson (FromJSON, ToJSON, eitherDecodeStrict, encode)
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Map.Strict (Map)
import Data.Text (Text)
import GHC.Generics (Generic)
import System.Directory (doesFileExist)

-- | The kind of Redis deployment.
data Topology
  = -- | One server.
    Standalone
  | -- | Five primaries.
    Cluster
  deriving stock (Eq, Ord, Show, Enum, Bounded, Generic)

instance ToJSON Topology

instance FromJSON Topology

-- | The cores for each program.
data Layout
  = -- | Redis and the generator on core 0, the service on core 1.
    Pinned
  | -- | All programs on both cores.
    Free
  deriving stock (Eq, Ord, Show, Enum, Bounded, Generic)

instance ToJSON Layout

instance FromJSON Layout

-- | One measurement.
data Cell = Cell
  { topology :: Topology,
    layout :: Layout,
    scenario :: Scenario,
    connections :: Int,
    -- | The service, by the name of its row.
    row :: Text,
    -- | The number of the round, from 1.
    iteration :: Int
  }
  deriving stock (Eq, Ord, Show, Generic)

instance ToJSON Cell

instance FromJSON Cell

-- | The key of a group: cells may be compared if they have the same one.
cellGroup :: Cell -> (Topology, Layout, Scenario, Int)
cellGroup cell = (topology cell, layout cell, scenario cell, connections cell)

-- | The result of a measurement.
data Outcome = Outcome
  { requestsPerSecond :: Double,
    -- | The service's processor time, in microseconds.
    cpuPerRequest :: Double,
    -- | How busy the service, wrk and each core were, as parts of one core: 0 to 1 (the service may
    -- use more than one core if it has them).
    serviceBusy :: Double,
    generatorBusy :: Double,
    coresBusy :: [Double],
    -- | Latency in the closed loop, in microseconds; it tells how long the queue was.
    closedLoopP50 :: Double,
    closedLoopP99 :: Double,
    served :: Int,
    statusErrors :: Int,
    -- | The part of hits among the GETs that reached Redis.
    hitRatio :: Maybe Double,
    -- | The largest resident memory of the service, in bytes.
    memory :: Int,
    -- | Requests per second in the last seconds of the warm-up: the same as later if the service
    -- was warm.
    warmRate :: Maybe Double,
    -- | The result in the open loop.
    openLoop :: Maybe LoadResult,
    -- | The reasons why the cell is not used; empty if it is used.
    problems :: [Text]
  }
  deriving stock (Eq, Show, Generic)

instance ToJSON Outcome

instance FromJSON Outcome

-- | A line of the raw results.
data Result = Result
  { cell :: Cell,
    outcome :: Outcome,
    -- | The settings of the service, and other facts that matter.
    facts :: Map Text Text
  }
  deriving stock (Eq, Show, Generic)

instance ToJSON Result

instance FromJSON Result

-- | All results of a file, one a line.
readResults :: FilePath -> IO [Result]
readResults = readLines

-- | The contents of a file with one JSON value a line; empty if there is no file. Throws 'IOError'
-- for any other line.
readLines :: FromJSON a => FilePath -> IO [a]
readLines path = do
  there <- doesFileExist path
  if there
    then Char8.readFile path >>= mapM parsed . filter (not . Char8.null) . Char8.lines
    else pure []
  where
    parsed line = either (ioError . userError . ((path <> ": ") <>)) pure (eitherDecodeStrict line)

-- | Adds a line.
appendResult :: FilePath -> Result -> IO ()
appendResult path result = Lazy.appendFile path (encode result <> "\n")
