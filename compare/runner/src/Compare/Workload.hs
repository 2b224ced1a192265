-- | The files of @compare/workloads@: grids of cells that all rows are measured at.
module Compare.Workload
  ( Workload (..),
    readWorkloads,
    gridCells,
  )
where

import Compare.Cell
import Compare.Plan
import Data.Aeson (FromJSON (parseJSON), eitherDecodeFileStrict', withObject, (.!=), (.:), (.:?))
import Data.Text (Text)

-- | A grid: each place with each operation, each value size, each style and
-- each number in flight.
data Workload = Workload
  { -- | The purpose of the grid.
    workloadWhy :: Text,
    workloadPlaces :: [Place],
    workloadOperations :: [Operation],
    workloadValueSizes :: [Int],
    -- | The numbers of callers that wait for each reply.
    workloadWaiting :: [Int],
    -- | The numbers of commands in flight in batches of 64.
    workloadBatches :: [Int],
    -- | The prefixes of the names of the rows that are measured; empty: all rows.
    workloadRows :: [Text],
    workloadCommon :: Common
  }
  deriving stock (Eq, Show)

instance FromJSON Workload where
  parseJSON = withObject "workload" $ \grid ->
    Workload
      <$> grid .: "why"
      <*> grid .: "places"
      <*> grid .: "operations"
      <*> grid .: "value_sizes"
      <*> grid .: "waiting"
      <*> grid .: "batches"
      <*> grid .:? "rows" .!= []
      <*> ( Common
              <$> grid .:? "keys" .!= commonKeys defaultCommon
              <*> grid .:? "key_size" .!= commonKeySize defaultCommon
              <*> grid .:? "seed" .!= commonSeed defaultCommon
              <*> grid .:? "connections" .!= commonConnections defaultCommon
          )

-- | The cells of several files, each once, with the rows that are measured at them. 'Left' names
-- the file that cannot be read.
readWorkloads :: [FilePath] -> IO (Either String [Planned])
readWorkloads files = do
  found <- mapM (\file -> either (Left . ((file <> ": ") <>)) Right <$> eitherDecodeFileStrict' file) files
  pure (together . concatMap planned <$> sequence found)
  where
    planned grid = [Planned {plannedCell = cell, plannedNames = workloadRows grid} | cell <- gridCells grid]

-- | All cells of a grid.
gridCells :: Workload -> [Cell]
gridCells grid =
  [ Cell
      { cellPlace = place,
        cellOperation = operation,
        cellValueSize = size,
        cellStyle = style,
        cellInFlight = inFlight,
        cellCommon = workloadCommon grid
      }
    | place <- workloadPlaces grid,
      size <- workloadValueSizes grid,
      operation <- workloadOperations grid,
      (style, inFlight) <- map ((,) Wait) (workloadWaiting grid) <> map ((,) Batch) (workloadBatches grid)
  ]
