-- | The descriptions of charts ("Tool.Chart" has the overview), and of their axes: where numbers are
-- on an axis, and its ticks. An axis is linear, logarithmic, or of nines, on which each further nine
-- of a percentile takes the same room.
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
    Axis (..),
    Kind (..),
    Unit (..),
    axis,
    usable,
    Scale (..),
    Tick (..),
    scaleOf,
    format,
  )
where

import Data.List qualified as List
import Data.Maybe (fromMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Text (fixedShort)

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

data Axis = Axis
  { axisLabel :: Text,
    axisKind :: Kind,
    axisUnit :: Unit,
    -- | The ends. 'Nothing' takes them from the data.
    axisLowest :: Maybe Double,
    axisHighest :: Maybe Double
  }
  deriving stock (Eq, Show)

-- | An axis whose ends come from the data. A linear axis begins at 0.
axis :: Text -> Kind -> Unit -> Axis
axis label kind unit = Axis label kind unit (if kind == Linear then Just 0 else Nothing) Nothing

-- | How numbers are distributed on an axis.
data Kind
  = Linear
  | -- | Numbers above 0.
    Logarithmic
  | -- | 1 over the share that is left above a percentile.
    Nines
  deriving stock (Eq, Show)

-- | How numbers are written.
data Unit
  = Plain
  | -- | With k and M.
    Thousands
  | -- | In nanoseconds; written as ns, µs, ms, s.
    Nanoseconds
  | Seconds
  | Bytes
  | -- | From 0 to 1; written as a percentage.
    Share
  deriving stock (Eq, Show)

-- | Whether an axis has a place for this value.
usable :: Axis -> Double -> Bool
usable about value = not (isNaN value || isInfinite value) && (axisKind about == Linear || value > 0)

-- | An axis with its ends.
data Scale = Scale
  { -- | Maps a value to its place: from 0, the lower end, to 1. Values outside the ends give places
    -- outside of that.
    scalePlace :: Double -> Double,
    scaleTicks :: [Tick],
    scaleEnds :: (Double, Double)
  }

-- | A line of the grid.
data Tick = Tick
  { -- | Its place, from 0 to 1.
    tickPlace :: Double,
    -- | Its label; empty for a line without one.
    tickText :: Text
  }
  deriving stock (Eq, Show)

-- | The scale for this data, with about this number of ticks. Total: for any data, the ends differ
-- and are finite.
scaleOf :: Int -> Axis -> [Double] -> Scale
scaleOf wanted about values = case axisKind about of
  Linear ->
    let step = niceStep wanted (lowest, highest)
        steps count = step * fromIntegral (count :: Int)
        low = fromMaybe (steps (floor (lowest / step + 1e-9))) (axisLowest about)
        high = fromMaybe (steps (ceiling (highest / step - 1e-9))) (axisHighest about)
        end = if high > low then high else low + step
        place value = (value - low) / (end - low)
        first = ceiling (low / step - 1e-9) :: Int
        final = floor (end / step + 1e-9) :: Int
     in Scale
          { scalePlace = place,
            scaleEnds = (low, end),
            scaleTicks =
              [ Tick (place value) (format (axisUnit about) value)
                | n <- [first .. min final (first + 100)],
                  let value = fromIntegral n * step
              ]
          }
  Logarithmic -> logarithmic (map (\value -> (value, format (axisUnit about) value)) . oneTwoFive)
  Nines -> logarithmic (\ends -> filter (within ends . fst) percentages)
  where
    within (low, high) value = value >= low * 0.999 && value <= high * 1.001
    (lowest, highest) = case filter (usable about) values of
      [] -> (fromMaybe 1 (axisLowest about), fromMaybe 2 (axisHighest about))
      some ->
        widened
          (fromMaybe (List.foldl' min (1 / 0) some) (axisLowest about))
          (fromMaybe (List.foldl' max (-1 / 0) some) (axisHighest about))
    widened low high
      | high > low = (low, high)
      | axisKind about == Linear = (low, low + max 1e-9 (abs low * 0.1))
      | otherwise = (low, low * 1.1)
    logarithmic ticks =
      let (low, high) = (max 1e-12 lowest, max 2e-12 highest)
          ends
            | axisKind about == Nines = (low, high)
            | otherwise =
              ( fromMaybe (floored low) (axisLowest about),
                fromMaybe (ceiled high) (axisHighest about)
              )
          place value =
            (log (max 1e-300 value) - log (fst ends)) / (log (snd ends) - log (fst ends))
       in Scale
            { scalePlace = place,
              scaleEnds = ends,
              scaleTicks = [Tick (place value) label | (value, label) <- thinned (ticks ends)]
            }
    -- Labels must not touch. Lines without a label stay.
    thinned ticks =
      let every = max 1 ((length ticks + wanted - 1) `div` max 1 wanted)
       in [ (value, if n `mod` every == 0 then label else "")
            | (n, (value, label)) <- zip [0 :: Int ..] ticks
          ]
    oneTwoFive (low, high)
      | high / low > 300 = candidates [1] (low, high)
      | high / low > 20 = candidates [1, 3] (low, high)
      | otherwise = candidates [1, 2, 5] (low, high)
    candidates multiples (low, high) =
      filter
        (within (low, high))
        [ multiple * 10 ^^ n
          | n <- [floor (logBase 10 low) .. ceiling (logBase 10 high) :: Int],
            multiple <- multiples
        ]
    floored low =
      List.foldl' max (10 ^^ (floor (logBase 10 low) :: Int)) (candidates [1, 2, 5] (low / 10, low))
    ceiled high =
      List.foldl' min (10 ^^ (ceiling (logBase 10 high + 1e-9) :: Int)) $
        filter (> high * 1.0000001) (candidates [1, 2, 5] (high, high * 10))

percentages :: [(Double, Text)]
percentages =
  [(1, "0 %"), (2, "50 %"), (10, "90 %"), (100, "99 %")]
    <> [(10 ^ (2 + n), "99." <> Text.replicate n "9" <> " %") | n <- [1 .. 6]]

-- The smallest of 1, 2, 2.5 and 5 times a power of ten that gives at most this number of steps.
niceStep :: Int -> (Double, Double) -> Double
niceStep wanted (low, high) = case filter (>= rough * 0.9999) steps of
  step : _ -> step
  [] -> 10 * base
  where
    steps = [m * base | m <- [1, 2, 2.5, 5, 10]]
    rough = max 1e-12 ((high - low) / fromIntegral (max 1 wanted))
    base = 10 ^^ (floor (logBase 10 rough) :: Int)

-- | A number for a tick or a table: at most four significant digits, and its unit.
format :: Unit -> Double -> Text
format unit value = case unit of
  Plain -> digits value
  Share -> digits (value * 100) <> " %"
  Seconds -> digits value <> " s"
  Thousands -> scaled [(1e9, " G"), (1e6, " M"), (1e3, " k")] ""
  Bytes -> scaled [(1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB")] " B"
  Nanoseconds -> scaled [(1e9, " s"), (1e6, " ms"), (1e3, " \181s")] " ns"
  where
    scaled units smallest = case filter (\(size, _) -> abs value >= size * 0.99995) units of
      (size, name) : _ -> digits (value / size) <> name
      [] -> digits value <> (if value == 0 then "" else smallest)

digits :: Double -> Text
digits value
  | value == 0 = "0"
  | otherwise = Text.pack (fixedShort places value)
  where
    places = max 0 (min 9 (3 - floor (logBase 10 (abs value) + 1e-9)))
