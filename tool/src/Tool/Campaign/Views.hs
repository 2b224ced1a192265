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
import Data.Text qualified as Text
import Tool.Bench.Document
import Tool.Campaign.Design (persistenceName)

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
    viewOf base ((title, axis, across, overrides), about) =
      View title about axis across columns [Row value (map (cell value) columns) | value <- values axis]
      where
        wanted =
          [ (name, fromMaybe value (lookup name overrides))
            | (name, value) <- Map.toList (specAxes (runSpec base)),
              name /= axis,
              name /= across
          ]
        here = [run | run <- runs, all (\(name, value) -> axisOf name run == Just value) wanted]
        values name = ordered name (List.nub (mapMaybe (axisOf name) here))
        columns = values across
        cell value column =
          List.find (\run -> axisOf axis run == Just value && axisOf across run == Just column) here
    worthwhile view =
      length (filter isJust (concatMap rowCells (viewRows view))) > 1
        && length (viewRows view) > 1

-- Title, rows, columns, the axes that are not at the baseline, and explanation.
questions :: [((Text, Text, Text, [(Text, Text)]), Text)]
questions =
  [ ("Workloads and persistence", "workload", "persistence", [])
      `explained` "What keeping the data costs each command. Reads should not care.",
    ("Size of values and persistence", "payload", "persistence", [])
      `explained` "Small values cost the command, large ones their bytes: where the lines bend.",
    ("Size of values and workloads", "payload", "workload", [])
      `explained` "The same for what else carries a value.",
    ("Callers and persistence", "clients", "persistence", [])
      `explained` "A log that is synchronised before each reply is shared by all who wait: \
                  \one caller pays all of it.",
    ("Distance and callers, every write synchronised", "net", "clients", [("persistence", "aof-always")])
      `explained` "A round trip is added to each reply: \
                  \it divides the throughput of one caller, and hardly that of fifty.",
    ("Distance and callers", "net", "clients", [])
      `explained` "The same with the baseline's persistence.",
    ("Directories and persistence", "place", "persistence", [])
      `explained` "The disk matters as much as the persistence waits for it.",
    ("Servers and persistence", "server", "persistence", [])
      `explained` "The same load, different programs."
  ]

explained :: a -> Text -> (a, Text)
explained = (,)

-- Numbers in order of size, persistences in their order, other values as they come.
ordered :: Text -> [Text] -> [Text]
ordered axis values
  | axis == "payload" || axis == "clients" =
    List.sortOn (\value -> (length (show value), value)) values
  | axis == "persistence" =
    List.sortOn (`List.elemIndex` map (Text.pack . persistenceName) [minBound ..]) values
  | otherwise = values

axisOf :: Text -> Run -> Maybe Text
axisOf name = Map.lookup name . specAxes . runSpec
