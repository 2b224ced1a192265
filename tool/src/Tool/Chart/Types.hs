-- | The descriptions of charts. "Tool.Chart" has the overview.
module Tool.Chart.Types
  ( Chart (..),
    Plot (..),
    Lines (..),
    Line (..),
    LineStyle (..),
    line,
    Band (..),
    Bars (..),
    Group (..),
    Bar (..),
    bar,
    Heats (..),
    Heat (..),
  )
where

import Data.Text (Text)
import Tool.Chart.Scale (Axis)

-- | A chart, with its title and how to read it.
data Chart = Chart
  { chartTitle :: Text,
    -- | A sentence or two; may be empty.
    chartAbout :: Text,
    chartPlot :: Plot
  }
  deriving stock (Eq, Show)

data Plot
  = LinePlot Lines
  | BarPlot Bars
  | HeatPlot Heats
  deriving stock (Eq, Show)

data Lines = Lines
  { linesX :: Axis,
    linesY :: Axis,
    linesAll :: [Line],
    -- | Spans of the x axis that an event explains.
    linesBands :: [Band]
  }
  deriving stock (Eq, Show)

data Line = Line
  { lineName :: Text,
    lineStyle :: LineStyle,
    -- | The points in the order in which they are joined. Values that are not numbers, or not above
    -- 0 on a logarithmic axis, are left out.
    linePoints :: [(Double, Double)],
    -- | The lower and the upper end of an uncertainty at each x.
    lineRibbon :: [(Double, Double, Double)],
    -- | The number of its colour. 'Nothing' means the line's place among the lines.
    lineColour :: Maybe Int
  }
  deriving stock (Eq, Show)

data LineStyle
  = Solid
  | Dashed
  | -- | Each value holds until the next.
    Steps
  | -- | The points are not joined.
    Dots
  deriving stock (Eq, Show)

line :: Text -> [(Double, Double)] -> Line
line name points = Line name Solid points [] Nothing

-- | An event that lasted from one x to another.
data Band = Band
  { bandFrom :: Double,
    bandTo :: Double,
    -- | Bands of one kind have one colour and one entry in the legend.
    bandKind :: Text,
    bandText :: Text
  }
  deriving stock (Eq, Show)

-- | Groups of horizontal bars, so that their names have room.
data Bars = Bars
  { barsValue :: Axis,
    -- | The names of the first bar of each group, of the second, and so on.
    barsSeries :: [Text],
    barsGroups :: [Group]
  }
  deriving stock (Eq, Show)

-- | A group with one bar for each series; 'Nothing' where there is none.
data Group = Group
  { groupName :: Text,
    groupBars :: [Maybe Bar]
  }
  deriving stock (Eq, Show)

-- | A bar, with a whisker or without.
data Bar = Bar
  { barValue :: Double,
    -- | The ends of an interval of confidence.
    barWhisker :: Maybe (Double, Double),
    -- | A word after the number; may be empty.
    barNote :: Text
  }
  deriving stock (Eq, Show)

-- | A bar without a whisker and a note.
bar :: Double -> Bar
bar value = Bar {barValue = value, barWhisker = Nothing, barNote = ""}

data Heats = Heats
  { heatsX :: Axis,
    heatsY :: Axis,
    heatsCells :: [Heat],
    heatsBands :: [Band]
  }
  deriving stock (Eq, Show)

data Heat = Heat
  { heatX :: (Double, Double),
    heatY :: (Double, Double),
    heatCount :: Double
  }
  deriving stock (Eq, Show)
