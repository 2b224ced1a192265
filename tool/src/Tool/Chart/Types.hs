-- | What there is to draw. "Tool.Chart" has the whole picture.
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

-- | A chart, what it is called, and how to read it.
data Chart = Chart
  { chartTitle :: Text,
    -- | A sentence or two; may be empty.
    chartAbout :: Text,
    chartPlot :: Plot
  }
  deriving stock (Eq, Show)

-- | The kinds of charts.
data Plot
  = LinePlot Lines
  | BarPlot Bars
  | HeatPlot Heats
  deriving stock (Eq, Show)

-- | Curves over an axis.
data Lines = Lines
  { linesX :: Axis,
    linesY :: Axis,
    linesAll :: [Line],
    -- | Spans of the x axis that something explains.
    linesBands :: [Band]
  }
  deriving stock (Eq, Show)

-- | A curve.
data Line = Line
  { lineName :: Text,
    lineStyle :: LineStyle,
    -- | In the order in which they are joined. What is not a number, or not
    -- above 0 on a logarithmic axis, is left out.
    linePoints :: [(Double, Double)],
    -- | The lower and upper end of an uncertainty, by x.
    lineRibbon :: [(Double, Double, Double)],
    -- | The number of its colour; 'Nothing': its place among the lines.
    lineColour :: Maybe Int
  }
  deriving stock (Eq, Show)

-- | How points are joined.
data LineStyle
  = Solid
  | Dashed
  | -- | Each value holds until the next.
    Steps
  | -- | Not at all.
    Dots
  deriving stock (Eq, Show)

-- | A solid line.
line :: Text -> [(Double, Double)] -> Line
line name points =
  Line
    { lineName = name,
      lineStyle = Solid,
      linePoints = points,
      lineRibbon = [],
      lineColour = Nothing
    }

-- | Something that lasted from one x to another.
data Band = Band
  { bandFrom :: Double,
    bandTo :: Double,
    -- | Bands of one kind have one colour and one entry in the legend.
    bandKind :: Text,
    bandText :: Text
  }
  deriving stock (Eq, Show)

-- | Groups of bars that lie, so that their names have room.
data Bars = Bars
  { barsValue :: Axis,
    -- | What the first bar of each group is, the second, and so on.
    barsSeries :: [Text],
    barsGroups :: [Group]
  }
  deriving stock (Eq, Show)

-- | One bar for each series; 'Nothing' where there is none.
data Group = Group
  { groupName :: Text,
    groupBars :: [Maybe Bar]
  }
  deriving stock (Eq, Show)

-- | A bar, perhaps with a whisker.
data Bar = Bar
  { barValue :: Double,
    -- | The ends of an interval of confidence.
    barWhisker :: Maybe (Double, Double),
    -- | A word after the number; may be empty.
    barNote :: Text
  }
  deriving stock (Eq, Show)

-- | A bar that is only its length.
bar :: Double -> Bar
bar value = Bar {barValue = value, barWhisker = Nothing, barNote = ""}

-- | Counts over two axes.
data Heats = Heats
  { heatsX :: Axis,
    heatsY :: Axis,
    heatsCells :: [Heat],
    heatsBands :: [Band]
  }
  deriving stock (Eq, Show)

-- | A rectangle and how many fell into it.
data Heat = Heat
  { heatX :: (Double, Double),
    heatY :: (Double, Double),
    heatCount :: Double
  }
  deriving stock (Eq, Show)
