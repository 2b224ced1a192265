-- | A campaign's cells, two axes at a time, for a table or a chart.
--
-- Every cell is a point in a space of seven axes. A view fixes five of them at the baseline (or, in
-- one question, at a log that is synchronised always) and varies the other two.
module Tool.Campaign.Views
  ( View (..),
    Row (..),
    views,
  )
where

import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust, mapMaybe)
import Data.Text (Text)
import Tool.Bench.Document

-- | Cells in rows and columns.
data View = View
  { viewTitle :: Text,
    viewAbout :: Text,
    -- | The axis of the rows, such as @payload@.
    viewAxis :: Text,
    -- | The axis of the columns.
    viewAcross :: Text,
    viewColumns :: [Text],
    viewRows :: [Row]
  }
  deriving stock (Eq, Show)

-- | One row: its value on the axis, and a cell for each column, if there is one.
data Row = Row
  { rowValue :: Text,
    rowCells :: [Maybe Run]
  }
  deriving stock (Eq, Show)

-- | The views with at least two cells in at least two rows. The first run is the baseline, or
-- another in its place if the baseline could not be measured. The runs must not include soaks.
views :: [Run] -> [View]
views runs = case runs of
  [] -> []
  base : _ -> filter worthwhile (map (viewOf base) questions)
    where
      viewOf origin (title, about, axis, across, overrides) =
        let fixed =
              [ (name, value)
                | (name, value) <- Map.toList (specAxes (runSpec origin)),
                  name /= axis,
                  name /= across
              ]
            wanted = [(name, fromMaybe value (lookup name overrides)) | (name, value) <- fixed]
            here = [run | run <- runs, all (\(name, value) -> axisOf name run == Just value) wanted]
            values name = List.nub (mapMaybe (axisOf name) here)
            columns = ordered across (values across)
            cell value column = List.find (stands value column) here
            stands value column run =
              axisOf axis run == Just value && axisOf across run == Just column
         in View
              { viewTitle = title,
                viewAbout = about,
                viewAxis = axis,
                viewAcross = across,
                viewColumns = columns,
                viewRows =
                  [ Row value (map (cell value) columns)
                    | value <- ordered axis (values axis)
                  ]
              }
      worthwhile view =
        length (filter isJust (concatMap rowCells (viewRows view))) > 1
          && length (viewRows view) > 1

-- Title, explanation, rows, columns, and the axes that are not at the baseline.
questions :: [(Text, Text, Text, Text, [(Text, Text)])]
questions =
  [ ( "Workloads and persistence",
      "What keeping the data costs each command. Reads should not care.",
      "workload",
      "persistence",
      []
    ),
    ( "Size of values and persistence",
      "Small values cost the command, large ones their bytes: where the lines bend.",
      "payload",
      "persistence",
      []
    ),
    ( "Size of values and workloads",
      "The same for what else carries a value.",
      "payload",
      "workload",
      []
    ),
    ( "Callers and persistence",
      "A log that is synchronised before each reply is shared by all who wait: \
      \one caller pays all of it.",
      "clients",
      "persistence",
      []
    ),
    ( "Distance and callers, every write synchronised",
      "A round trip is added to each reply: \
      \it divides the throughput of one caller, and hardly that of fifty.",
      "net",
      "clients",
      [("persistence", "aof-always")]
    ),
    ( "Distance and callers",
      "The same with the baseline's persistence.",
      "net",
      "clients",
      []
    ),
    ( "Directories and persistence",
      "The disk matters as much as the persistence waits for it.",
      "place",
      "persistence",
      []
    ),
    ( "Servers and persistence",
      "The same load, different programs.",
      "server",
      "persistence",
      []
    )
  ]

-- Numbers in order of size, persistences in their order, other values as they come.
ordered :: Text -> [Text] -> [Text]
ordered axis values
  | axis == "payload" || axis == "clients" =
    List.sortOn (\value -> (length (show value), value)) values
  | axis == "persistence" = List.sortOn (`List.elemIndex` persistences) values
  | otherwise = values
  where
    persistences = ["none", "rdb", "aof-no", "aof-everysec", "aof-always"]

axisOf :: Text -> Run -> Maybe Text
axisOf name = Map.lookup name . specAxes . runSpec
