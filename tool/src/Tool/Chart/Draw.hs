-- | Draws curves, bars and heat maps: the area and its grid, the legend, the bands, the data.
module Tool.Chart.Draw
  ( Size (..),
    Drawing (..),
    drawLines,
    drawBars,
    drawHeats,
    label,
    px,
  )
where

import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Chart.Scale
import Tool.Chart.Style (seriesClass)
import Tool.Chart.Types
import Tool.Markup (Markup, element, text, (.=))
import Tool.Text (fixed, shown)

-- | The width of a drawing.
data Size = Size
  { sizeWidth :: Double,
    -- | Whether it is for a phone.
    sizeNarrow :: Bool
  }

data Drawing = Drawing
  { drawingHeight :: Double,
    drawingContent :: [Markup]
  }

data Area = Area
  { areaLeft :: Double,
    areaTop :: Double,
    areaWidth :: Double,
    areaHeight :: Double
  }

right, bottom :: Area -> Double
right area = areaLeft area + areaWidth area
bottom area = areaTop area + areaHeight area

-- | From a place on a scale to a coordinate, kept inside the area.
atX, atY :: Area -> Double -> Double
atX area place = areaLeft area + areaWidth area * inside place
atY area place = bottom area - areaHeight area * inside place

inside :: Double -> Double
inside = max 0 . min 1

-- | The area below this top, with room for the labels of the y axis, and below for those of the x
-- axis. Also returns where everything ends at the bottom.
areaFor :: Size -> Double -> Double -> Scale -> (Area, Double)
areaFor size top height scaleY = (area, bottom area + 42)
  where
    widest = List.foldl' max 20 (map (textWidth . tickText) (scaleTicks scaleY))
    left = widest + 10
    area =
      Area
        { areaLeft = left,
          areaTop = top + 22,
          areaWidth = sizeWidth size - left - 14,
          areaHeight = height
        }

-- | Lines at the ticks, with the labels of the ticks and of the axes.
grid :: Area -> Axis -> Scale -> Axis -> Scale -> Markup
grid area axisX scaleX axisY scaleY =
  element "g" ["class" .= "grid"] $
    concat
      [ [ lineBetween (areaLeft area, y) (right area, y)
            <> labelled "end" (areaLeft area - 6) (y + 4) (tickText tick)
          | tick <- scaleTicks scaleY,
            let y = atY area (tickPlace tick)
        ],
        [ lineBetween (x, areaTop area) (x, bottom area)
            <> labelled (anchor tick) x (bottom area + 16) (tickText tick)
          | tick <- scaleTicks scaleX,
            let x = atX area (tickPlace tick)
        ],
        [label "axis" "start" (max 0 (areaLeft area - 40)) (areaTop area - 9) (axisLabel axisY)],
        [label "axis" "end" (right area) (bottom area + 34) (axisLabel axisX)]
      ]
  where
    labelled at x y written = if written == "" then mempty else label "tick" at x y written
    -- The last label must not stick out.
    anchor tick = if tickPlace tick > 0.97 then "end" else "middle"

-- | An entry of a legend.
data Mark
  = -- | A line or a bar of the colour with this number.
    MarkSeries Int Text
  | MarkBand Int Text

-- | The entries in as many rows as they need, and the height of these. The height is 0 if there are
-- no entries.
legend :: Size -> Double -> [Mark] -> (Double, [Markup])
legend size top marks = (if null marks then 0 else row * 20 + 20, drawn)
  where
    (_, row, drawn) = List.foldl' place (0, 0, []) marks
    place (x, y, before) mark =
      let width = textWidth (name mark) + 32
          (x', y') = if x > 0 && x + width > sizeWidth size then (0, y + 1) else (x, y)
       in (x' + width, y', before <> [entry x' (top + y' * 20) mark])
    colours = \case
      MarkSeries number _ -> [seriesClass number, "fill"]
      MarkBand number _ -> ["band", "b" <> shown (number `mod` 5)]
    name = \case
      MarkSeries _ written -> written
      MarkBand _ written -> written
    entry x y mark =
      element
        "g"
        []
        [ rectangle (colours mark) x (y + 4) (14, 10) [],
          label "name" "start" (x + 19) (y + 14) (name mark)
        ]

-- | The kinds of the bands, each once.
bandMarks :: [Band] -> [Mark]
bandMarks = zipWith MarkBand [0 ..] . kinds

kinds :: [Band] -> [Text]
kinds = List.nub . map bandKind

-- | The bands behind the data.
bands :: Area -> Scale -> [Band] -> [Markup]
bands area scaleX all' =
  [ rectangle
      ["band", "b" <> shown (number `mod` 5 :: Int)]
      x1
      (areaTop area)
      (max 1.5 (x2 - x1), areaHeight area)
      [element "title" [] [text (bandKind band <> (if said == "" then "" else ": " <> said))]]
    | band <- all',
      (number, kind) <- zip [0 ..] (kinds all'),
      kind == bandKind band,
      let said = bandText band,
      let x1 = atX area (scalePlace scaleX (bandFrom band))
          x2 = atX area (scalePlace scaleX (bandTo band))
  ]

-- | A coordinate, rounded to a tenth.
px :: Double -> Text
px value =
  Text.pack (if drop (length written - 2) written == ".0" then take (length written - 2) written else written)
  where
    written = fixed 1 (if isNaN value || isInfinite value then 0 else value)

textWidth :: Text -> Double
textWidth = (7.1 *) . fromIntegral . Text.length

-- | Text of a class, anchored at its start, middle or end.
label :: Text -> Text -> Double -> Double -> Text -> Markup
label class' anchor x y written =
  element "text" [classes [class'], "x" .= px x, "y" .= px y, "text-anchor" .= anchor] [text written]

lineBetween :: (Double, Double) -> (Double, Double) -> Markup
lineBetween (x1, y1) (x2, y2) =
  element "line" ["x1" .= px x1, "y1" .= px y1, "x2" .= px x2, "y2" .= px y2] []

-- A rectangle of these classes, by its left upper corner, its width and its height.
rectangle :: [Text] -> Double -> Double -> (Double, Double) -> [Markup] -> Markup
rectangle names x y (width, height) =
  element
    "rect"
    [ classes names,
      "x" .= px x,
      "y" .= px y,
      "width" .= px width,
      "height" .= px height
    ]

-- The attribute with these classes.
classes :: [Text] -> (Text, Text)
classes names = "class" .= Text.unwords names

-- * Curves

-- | Draws the legend, the grid, bands, ribbons and lines.
drawLines :: Size -> Double -> Lines -> Drawing
drawLines size top chart =
  Drawing
    { drawingHeight = whole,
      drawingContent =
        marks
          <> bands area scaleX (linesBands chart)
          <> [grid area (linesX chart) scaleX (linesY chart) scaleY]
          <> concatMap ribbon numbered
          <> concatMap curve numbered
    }
  where
    numbered =
      [(fromMaybe place (lineColour one), one) | (place, one) <- zip [0 ..] (linesAll chart)]
    named = [MarkSeries number (lineName one) | (number, one) <- numbered, lineName one /= ""]
    (legendHeight, marks) = legend size top (named <> bandMarks (linesBands chart))
    usable kind value =
      not (isNaN value || isInfinite value) && (axisKind kind == Linear || value > 0)
    good one = [(x, y) | (x, y) <- linePoints one, usable (linesX chart) x, usable (linesY chart) y]
    goodRibbon one =
      [ (x, low, high)
        | (x, low, high) <- lineRibbon one,
          all (usable (linesY chart)) [low, high],
          usable (linesX chart) x
      ]
    everything = concatMap good (linesAll chart)
    scaleX =
      scaleOf
        (if sizeNarrow size then 4 else 8)
        (linesX chart)
        ( map fst everything
            <> concat [[bandFrom band, bandTo band] | null everything, band <- linesBands chart]
        )
    scaleY =
      scaleOf 6 (linesY chart) $
        map snd everything
          <> concat [[low, high] | one <- linesAll chart, (_, low, high) <- goodRibbon one]
    (area, whole) = areaFor size (top + legendHeight) (if sizeNarrow size then 200 else 240) scaleY
    place' (x, y) = (atX area (scalePlace scaleX x), atY area (scalePlace scaleY y))

    ribbon :: (Int, Line) -> [Markup]
    ribbon (number, one) = case goodRibbon one of
      [] -> []
      ends ->
        [ element
            "path"
            [ colour number ["ribbon"],
              "d"
                .= ( path
                       False
                       ( [place' (x, high) | (x, _, high) <- ends]
                           <> reverse [place' (x, low) | (x, low, _) <- ends]
                       )
                       <> "Z"
                   )
            ]
            []
        ]

    curve :: (Int, Line) -> [Markup]
    curve (number, one) =
      [ element
          "path"
          [ colour number ("line" : ["dashed" | lineStyle one == Dashed]),
            "d" .= path (lineStyle one == Steps) (map place' points)
          ]
          []
        | lineStyle one /= Dots,
          not (null points)
      ]
        <> [ element
               "circle"
               [colour number ["dot"], "cx" .= px x, "cy" .= px y, "r" .= "3"]
               [element "title" [] [text (said one point)]]
             | lineStyle one == Dots || length points <= 40,
               point <- points,
               let (x, y) = place' point
           ]
      where
        points = good one
    said one (x, y) =
      (if lineName one == "" then "" else lineName one <> ": ")
        <> format (axisUnit (linesY chart)) y
        <> " at "
        <> ( if axisKind (linesX chart) == Nines
               then format Share (1 - 1 / x)
               else format (axisUnit (linesX chart)) x
           )
    colour number more = classes (seriesClass number : more)

-- A straight line from point to point, or, for steps, horizontal and then vertical.
path :: Bool -> [(Double, Double)] -> Text
path steps = \case
  [] -> ""
  (x, y) : rest -> "M" <> px x <> " " <> px y <> Text.concat (map onward rest)
  where
    onward (x, y)
      | steps = "H" <> px x <> "V" <> px y
      | otherwise = "L" <> px x <> " " <> px y

-- * Bars

-- | Draws the legend, the grid, and the groups, one below the other. The names of the groups stand
-- beside them, or above them if there is little room.
drawBars :: Size -> Double -> Bars -> Drawing
drawBars size top chart =
  Drawing
    { drawingHeight = bottom area + 42,
      drawingContent = marks <> [lines'] <> concat (zipWith group starts (barsGroups chart))
    }
  where
    named =
      [ MarkSeries number name
        | length (barsSeries chart) > 1,
          (number, name) <- zip [0 ..] (barsSeries chart)
      ]
    (legendHeight, marks) = legend size top named
    bars = [held | each <- barsGroups chart, Just held <- groupBars each]
    scale =
      scaleOf (if sizeNarrow size then 3 else 6) (barsValue chart) $
        concat
          [ barValue held : maybe [] (\(low, high) -> [low, high]) (barWhisker held)
            | held <- bars
          ]
    unit = axisUnit (barsValue chart)
    caption held =
      format unit (barValue held) <> (if barNote held == "" then "" else " " <> barNote held)
    widestName = List.foldl' max 0 (map (textWidth . groupName) (barsGroups chart))
    beside = not (sizeNarrow size) && widestName < 260
    nameHeight = if beside || all ((== "") . groupName) (barsGroups chart) then 0 else 18
    left = if beside then widestName + 12 else 2
    -- Room for the number after the longest bar.
    after = List.foldl' max 40 (map (textWidth . caption) bars) + 10
    heights =
      [ nameHeight + fromIntegral (length (groupBars each)) * thickness + 10
        | each <- barsGroups chart
      ]
    starts = scanl (+) (areaTop area + 4) heights
    thickness = 18
    area =
      Area
        { areaLeft = left,
          areaTop = top + legendHeight + 4,
          areaWidth = sizeWidth size - left - after,
          areaHeight = sum heights + 4
        }
    lines' =
      element "g" ["class" .= "grid"] $
        label "axis" "end" (right area) (bottom area + 34) (axisLabel (barsValue chart)) :
          [ lineBetween (x, areaTop area) (x, bottom area)
              <> label
                "tick"
                (if tickPlace tick < 0.02 then "start" else "middle")
                x
                (bottom area + 16)
                (tickText tick)
            | tick <- scaleTicks scale,
              let x = atX area (tickPlace tick)
          ]

    group :: Double -> Group -> [Markup]
    group start each =
      [ if beside
          then
            label
              "group"
              "end"
              (areaLeft area - 8)
              (start + thickness * fromIntegral (length (groupBars each)) / 2 + 4)
              (groupName each)
          else label "group" "start" (areaLeft area) (start + 13) (groupName each)
        | groupName each /= ""
      ]
        <> concat
          [ one number (start + nameHeight + fromIntegral number * thickness) held
            | (number, Just held) <- zip [0 ..] (groupBars each)
          ]

    one :: Int -> Double -> Bar -> [Markup]
    one number y held =
      [ rectangle
          [seriesClass number, "fill"]
          (areaLeft area)
          (y + 2)
          (max 1 (end - areaLeft area), thickness - 4)
          [element "title" [] [text (caption held <> maybe "" interval (barWhisker held))]]
      ]
        <> maybe [] whisker (barWhisker held)
        <> [label "value" "start" (furthest + 6) (y + 13) (caption held)]
      where
        at = atX area . scalePlace scale
        end = at (barValue held)
        furthest = List.foldl' max end (maybe [] ((: []) . at . snd) (barWhisker held))
        middle = y + thickness / 2
        interval (low, high) = " (" <> format unit low <> " to " <> format unit high <> ")"
        whisker (low, high) =
          [ element
              "path"
              [ classes ["whisker"],
                "d"
                  .= Text.concat
                    ["M", px (at low), " ", px middle, "H", px (at high), cap (at low), cap (at high)]
              ]
              []
          ]
        cap x = Text.concat ["M", px x, " ", px (middle - 4), "V", px (middle + 4)]

-- * Heat maps

-- | Draws the legend, the rectangles and the grid. There is one path for each of nine strengths,
-- because a thousand elements would be large.
drawHeats :: Size -> Double -> Heats -> Drawing
drawHeats size top chart =
  Drawing
    { drawingHeight = whole,
      drawingContent =
        marks
          <> strengths
          <> bands area scaleX (heatsBands chart)
          <> map cells (Map.toList classified)
          <> [grid area (heatsX chart) scaleX (heatsY chart) scaleY]
    }
  where
    (legendHeight, marks) = legend size (top + 20) (bandMarks (heatsBands chart))
    wide = sizeWidth size - 130
    strengths =
      [ label "tick" "end" (wide - 6) (top + 13) "few",
        label "tick" "start" (wide + 96) (top + 13) "many"
      ]
        <> [ rectangle (heatClasses strength) (wide + fromIntegral strength * 10) (top + 3) (10, 12) []
             | strength <- [0 .. levels]
           ]
    held = filter ((> 0) . heatCount) (heatsCells chart)
    scaleX =
      scaleOf
        (if sizeNarrow size then 4 else 8)
        (heatsX chart)
        (concat [[from, to] | Heat {heatX = (from, to)} <- held])
    scaleY = scaleOf 6 (heatsY chart) (concat [[from, to] | Heat {heatY = (from, to)} <- held])
    (area, whole) =
      areaFor size (top + 20 + legendHeight) (if sizeNarrow size then 220 else 260) scaleY
    most = List.foldl' max 1 (map heatCount held)
    -- On a logarithmic scale, because readers look for a tail of a few.
    level :: Double -> Int
    level count =
      max 0 (min levels (round (fromIntegral levels * log (1 + count) / log (1 + most))))
    classified = Map.fromListWith (flip (<>)) [(level (heatCount one), [one]) | one <- held]
    cells (strength, these) =
      element
        "path"
        [ classes (heatClasses strength),
          "d" .= Text.concat (map outline these)
        ]
        []
    outline Heat {heatX = (x1, x2), heatY = (y1, y2)} =
      let left = atX area (scalePlace scaleX x1)
          top' = atY area (scalePlace scaleY y2)
          width = atX area (scalePlace scaleX x2) - left
          height = atY area (scalePlace scaleY y1) - top'
       in Text.concat
            ["M", px left, " ", px top', "h", px width, "v", px height, "h", px (negate width), "z"]

heatClasses :: Int -> [Text]
heatClasses strength = ["heat", "h" <> shown strength]

levels :: Int
levels = 8
