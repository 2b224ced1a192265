{-# LANGUAGE DeriveGeneric #-}

-- | What is measured, and what came of it, as it stands in the raw results.
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

-- | What Redis is.
data Topology
  = -- | One server.
    Standalone
  | -- | Five masters.
    Cluster
  deriving stock (Eq, Ord, Show, Enum, Bounded, Generic)

instance ToJSON Topology

instance FromJSON Topology

-- | Who runs where.
data Layout
  = -- | Redis and the generator on core 0, the service on core 1.
    Pinned
  | -- | All of them on both.
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
    -- | From 1.
    iteration :: Int
  }
  deriving stock (Eq, Ord, Show, Generic)

instance ToJSON Cell

instance FromJSON Cell

-- | What cells have in common that may be compared.
cellGroup :: Cell -> (Topology, Layout, Scenario, Int)
cellGroup cell = (topology cell, layout cell, scenario cell, connections cell)

-- | What was seen.
data Outcome = Outcome
  { requestsPerSecond :: Double,
    -- | Of the service, in microseconds.
    cpuPerRequest :: Double,
    -- | How much of one core the service, wrk and each core were busy: 0 to 1
    -- (the service may use more than one core where it has them).
    serviceBusy :: Double,
    generatorBusy :: Double,
    coresBusy :: [Double],
    -- | Of the closed loop, in microseconds; it says how long the queue was.
    closedLoopP50 :: Double,
    closedLoopP99 :: Double,
    served :: Int,
    statusErrors :: Int,
    -- | Of the GETs that reached Redis.
    hitRatio :: Maybe Double,
    -- | Largest resident memory of the service, in bytes.
    memory :: Int,
    -- | Requests per second in the last seconds of the warm-up: as many as
    -- afterwards if the service was warm.
    warmRate :: Maybe Double,
    -- | Answers in the open loop.
    openLoop :: Maybe LoadResult,
    -- | Why the cell does not count; empty if it does.
    problems :: [Text]
  }
  deriving stock (Eq, Show, Generic)

instance ToJSON Outcome

instance FromJSON Outcome

-- | A line of the raw results.
data Result = Result
  { cell :: Cell,
    outcome :: Outcome,
    -- | The settings that the service got, and others that matter.
    facts :: Map Text Text
  }
  deriving stock (Eq, Show, Generic)

instance ToJSON Result

instance FromJSON Result

-- | All results of a file, a line each.
readResults :: FilePath -> IO [Result]
readResults = readLines

-- | What a file has, a line of JSON each; nothing if there is no file. Throws 'IOError'
-- for a line that is something else.
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
