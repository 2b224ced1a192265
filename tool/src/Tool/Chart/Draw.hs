-- | Draws curves, bars and heat maps: the area and its grid, the legend, the bands, the data. Has
-- their colours, for a light and for a dark page.
module Tool.Chart.Draw
  ( draw,
    px,
    chartStyle,
  )
where

import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Chart.Types
import Tool.Markup (Markup, element, raw, text, (.=))
import Tool.Text (fixed, shown)

data Area = Area
  { areaLeft :: Double,
    areaTop :: Double,
    areaWidth :: Double,
    areaHeight :: Double
  }

right, bottom :: Area -> Double
right area = areaLeft area + areaWidth area
bottom area = areaTop area + areaHeight area

-- | Draws in a picture of this width; the flag says whether it is for a phone.
-- Returns the height, too.
draw :: (Double, Bool) -> Plot -> (Double, [Markup])
draw size plot = (bottom area + 42, content)
  where
    (area, content) = case plot of
      LinePlot curves -> drawLines size curves
      BarPlot bars -> drawBars size bars
      HeatPlot heats -> drawHeats size heats

-- From a place on a scale to a coordinate, kept inside the area.
atX, atY :: Area -> Double -> Double
atX area place = areaLeft area + areaWidth area * max 0 (min 1 place)
atY area place = bottom area - areaHeight area * max 0 (min 1 place)

-- The area of this height below this top, with room for the labels of the y axis.
areaFor :: Double -> Double -> Double -> Scale -> Area
areaFor width top height scaleY =
  Area {areaLeft = left, areaTop = top + 22, areaWidth = width - left - 14, areaHeight = height}
  where
    left = List.foldl' max 20 (map (textWidth . tickText) (scaleTicks scaleY)) + 10

-- Lines at the ticks, with the labels of the ticks and of the axes.
grid :: Area -> (Axis, Scale) -> (Axis, Scale) -> Markup
grid area (axisX, scaleX) (axisY, scaleY) =
  element "g" ["class" .= "grid"] $
    [ lineBetween (areaLeft area, y) (right area, y)
        <> labelled "end" (areaLeft area - 6) (y + 4) (tickText tick)
      | tick <- scaleTicks scaleY,
        let y = atY area (tickPlace tick)
    ]
      -- The last label must not stick out.
      <> uprights area (\place -> if place > 0.97 then "end" else "middle") scaleX
      <> [ label "axis" "start" (max 0 (areaLeft area - 40)) (areaTop area - 9) (axisLabel axisY),
           labelBelow area axisX
         ]

-- Lines at the ticks of the x axis, with their labels, anchored by their place.
uprights :: Area -> (Double -> Text) -> Scale -> [Markup]
uprights area anchor scaleX =
  [ lineBetween (x, areaTop area) (x, bottom area)
      <> labelled (anchor (tickPlace tick)) x (bottom area + 16) (tickText tick)
    | tick <- scaleTicks scaleX,
      let x = atX area (tickPlace tick)
  ]

labelled :: Text -> Double -> Double -> Text -> Markup
labelled anchor x y written = if written == "" then mempty else label "tick" anchor x y written

labelBelow :: Area -> Axis -> Markup
labelBelow area about = label "axis" "end" (right area) (bottom area + 34) (axisLabel about)

-- The entries of a legend, each with the classes of its mark, in as many rows as they need in this
-- width, and the height of these. The height is 0 if there are no entries.
legend :: Double -> Double -> [([Text], Text)] -> (Double, [Markup])
legend wide top marks = (if null marks then 0 else row * 20 + 20, drawn)
  where
    (_, row, drawn) = List.foldl' place (0, 0, []) marks
    place (x, y, before) mark =
      let width = textWidth (snd mark) + 32
          (x', y') = if x > 0 && x + width > wide then (0, y + 1) else (x, y)
       in (x' + width, y', before <> [entry x' (top + y' * 20) mark])
    entry x y (names, name) =
      element
        "g"
        []
        [rectangle names x (y + 4) (14, 10) [], label "name" "start" (x + 19) (y + 14) name]

-- The kinds of the bands, each once.
bandMarks :: [Band] -> [([Text], Text)]
bandMarks = zip (map bandClasses [0 ..]) . kinds

kinds :: [Band] -> [Text]
kinds = List.nub . map bandKind

bandClasses :: Int -> [Text]
bandClasses number = ["band", "b" <> shown (number `mod` 5)]

-- The bands behind the data.
bands :: Area -> Scale -> [Band] -> [Markup]
bands area scaleX all' =
  [ rectangle
      (bandClasses number)
      (at (bandFrom band))
      (areaTop area)
      (max 1.5 (at (bandTo band) - at (bandFrom band)), areaHeight area)
      [tip (bandKind band <> (if said == "" then "" else ": " <> said))]
    | band <- all',
      let said = bandText band,
      Just number <- [List.elemIndex (bandKind band) (kinds all')]
  ]
  where
    at = atX area . scalePlace scaleX

-- | A coordinate, rounded to a tenth.
px :: Double -> Text
px value = fromMaybe written (Text.stripSuffix ".0" written)
  where
    written = Text.pack (fixed 1 (if isNaN value || isInfinite value then 0 else value))

textWidth :: Text -> Double
textWidth = (7.1 *) . fromIntegral . Text.length

-- Text of a class, anchored at its start, middle or end.
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
    [classes names, "x" .= px x, "y" .= px y, "width" .= px width, "height" .= px height]

-- A path of these classes.
path :: [Text] -> Text -> Markup
path names places = element "path" [classes names, "d" .= places] []

-- What a browser shows beside the pointer.
tip :: Text -> Markup
tip written = element "title" [] [text written]

-- The attribute with these classes.
classes :: [Text] -> (Text, Text)
classes names = "class" .= Text.unwords names

-- * Curves

-- Draws the legend, the grid, bands, ribbons and lines.
drawLines :: (Double, Bool) -> Lines -> (Area, [Markup])
drawLines (width, narrow) chart =
  ( area,
    marks
      <> bands area scaleX (linesBands chart)
      <> [grid area (linesX chart, scaleX) (linesY chart, scaleY)]
      <> concatMap ribbon numbered
      <> concatMap curve numbered
  )
  where
    numbered =
      [(fromMaybe place (lineColour one), one) | (place, one) <- zip [0 ..] (linesAll chart)]
    named = [(filled number, lineName one) | (number, one) <- numbered, lineName one /= ""]
    (legendHeight, marks) = legend width 0 (named <> bandMarks (linesBands chart))
    good one = [(x, y) | (x, y) <- linePoints one, usable (linesX chart) x, usable (linesY chart) y]
    goodRibbon one =
      [ ends
        | ends@(x, low, high) <- lineRibbon one,
          all (usable (linesY chart)) [low, high],
          usable (linesX chart) x
      ]
    everything = concatMap good (linesAll chart)
    scaleX =
      scaleOf (if narrow then 4 else 8) (linesX chart) $
        map fst everything
          <> concat [[bandFrom band, bandTo band] | null everything, band <- linesBands chart]
    scaleY =
      scaleOf 6 (linesY chart) $
        map snd everything
          <> concat [[low, high] | one <- linesAll chart, (_, low, high) <- goodRibbon one]
    area = areaFor width legendHeight (if narrow then 200 else 240) scaleY
    place' (x, y) = (atX area (scalePlace scaleX x), atY area (scalePlace scaleY y))

    ribbon :: (Int, Line) -> [Markup]
    ribbon (number, one) =
      [ path [seriesClass number, "ribbon"] (way (map place' (upper <> reverse lower)) <> "Z")
        | let ends = goodRibbon one
              upper = [(x, high) | (x, _, high) <- ends]
              lower = [(x, low) | (x, low, _) <- ends],
          not (null ends)
      ]

    curve :: (Int, Line) -> [Markup]
    curve (number, one) =
      [ path
          (seriesClass number : "line" : ["dashed" | lineStyle one == Dashed])
          (way (map place' points))
        | not (null points)
      ]
        <> [ element
               "circle"
               [classes [seriesClass number, "dot"], "cx" .= px x, "cy" .= px y, "r" .= "3"]
               [tip (said one point)]
             | length points <= 40,
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

-- A straight line from point to point.
way :: [(Double, Double)] -> Text
way = Text.concat . zipWith onward ("M" : repeat "L")
  where
    onward command (x, y) = command <> px x <> " " <> px y

-- * Bars

-- Draws the legend, the grid, and the groups, one below the other. The names of the groups stand
-- beside them, or above them if there is little room.
drawBars :: (Double, Bool) -> Bars -> (Area, [Markup])
drawBars (width, narrow) chart =
  (area, marks <> [lines'] <> concat (zipWith group starts (barsGroups chart)))
  where
    named = zip (map filled [0 ..]) (barsSeries chart)
    (legendHeight, marks) = legend width 0 (if length named > 1 then named else [])
    bars = [held | each <- barsGroups chart, Just held <- groupBars each]
    ends (low, high) = [low, high]
    scale =
      scaleOf (if narrow then 3 else 6) (barsValue chart) $
        concat [barValue held : maybe [] ends (barWhisker held) | held <- bars]
    unit = axisUnit (barsValue chart)
    caption held =
      format unit (barValue held) <> (if barNote held == "" then "" else " " <> barNote held)
    widestName = List.foldl' max 0 (map (textWidth . groupName) (barsGroups chart))
    beside = not narrow && widestName < 260
    nameHeight = if beside || all ((== "") . groupName) (barsGroups chart) then 0 else 18
    left = if beside then widestName + 12 else 2
    -- Room for the number after the longest bar.
    after = List.foldl' max 40 (map (textWidth . caption) bars) + 10
    thick each = thickness * fromIntegral (length (groupBars each))
    heights = [nameHeight + thick each + 10 | each <- barsGroups chart]
    starts = scanl (+) (areaTop area + 4) heights
    thickness = 18
    area =
      Area
        { areaLeft = left,
          areaTop = legendHeight + 4,
          areaWidth = width - left - after,
          areaHeight = sum heights + 4
        }
    lines' =
      element "g" ["class" .= "grid"] $
        labelBelow area (barsValue chart) :
        uprights area (\place -> if place < 0.02 then "start" else "middle") scale

    group :: Double -> Group -> [Markup]
    group start each =
      [ if beside
          then label "group" "end" (left - 8) (start + thick each / 2 + 4) (groupName each)
          else label "group" "start" left (start + 13) (groupName each)
        | groupName each /= ""
      ]
        <> concat
          [ one number (start + nameHeight + fromIntegral number * thickness) held
            | (number, Just held) <- zip [0 ..] (groupBars each)
          ]

    one :: Int -> Double -> Bar -> [Markup]
    one number y held =
      [ rectangle
          (filled number)
          left
          (y + 2)
          (max 1 (end - left), thickness - 4)
          [tip (caption held <> maybe "" interval (barWhisker held))]
      ]
        <> maybe [] whisker (barWhisker held)
        <> [label "value" "start" (furthest + 6) (y + 13) (caption held)]
      where
        at = atX area . scalePlace scale
        end = at (barValue held)
        furthest = maybe end (max end . at . snd) (barWhisker held)
        middle = y + thickness / 2
        interval (low, high) = " (" <> format unit low <> " to " <> format unit high <> ")"
        whisker (low, high) =
          [ path ["whisker"] $
              Text.concat
                ["M", px (at low), " ", px middle, "H", px (at high), cap (at low), cap (at high)]
          ]
        cap x = Text.concat ["M", px x, " ", px (middle - 4), "V", px (middle + 4)]

-- * Heat maps

-- Draws the legend, the rectangles and the grid. There is one path for each of nine strengths,
-- because a thousand elements would be large.
drawHeats :: (Double, Bool) -> Heats -> (Area, [Markup])
drawHeats (width, narrow) chart =
  ( area,
    marks
      <> strengths
      <> bands area scaleX (heatsBands chart)
      <> map cells (Map.toList classified)
      <> [grid area (heatsX chart, scaleX) (heatsY chart, scaleY)]
  )
  where
    (legendHeight, marks) = legend width 20 (bandMarks (heatsBands chart))
    wide = width - 130
    strengths =
      [ label "tick" "end" (wide - 6) 13 "few",
        label "tick" "start" (wide + 96) 13 "many"
      ]
        <> [ rectangle (heatClasses strength) (wide + fromIntegral strength * 10) 3 (10, 12) []
             | strength <- [0 .. levels]
           ]
    held = filter ((> 0) . heatCount) (heatsCells chart)
    ends side = concat [[from, to] | (from, to) <- map side held]
    scaleX = scaleOf (if narrow then 4 else 8) (heatsX chart) (ends heatX)
    scaleY = scaleOf 6 (heatsY chart) (ends heatY)
    area = areaFor width (20 + legendHeight) (if narrow then 220 else 260) scaleY
    most = List.foldl' max 1 (map heatCount held)
    -- On a logarithmic scale, because readers look for a tail of a few.
    level :: Double -> Int
    level count =
      max 0 (min levels (round (fromIntegral levels * log (1 + count) / log (1 + most))))
    classified = Map.fromListWith (flip (<>)) [(level (heatCount one), [one]) | one <- held]
    cells (strength, these) = path (heatClasses strength) (Text.concat (map outline these))
    outline Heat {heatX = (x1, x2), heatY = (y1, y2)} =
      let left = atX area (scalePlace scaleX x1)
          top' = atY area (scalePlace scaleY y2)
          across = atX area (scalePlace scaleX x2) - left
          down = atY area (scalePlace scaleY y1) - top'
       in Text.concat
            ["M", px left, " ", px top', "h", px across, "v", px down, "h", px (negate across), "z"]

heatClasses :: Int -> [Text]
heatClasses strength = ["heat", "h" <> shown strength]

levels :: Int
levels = 8

-- * Colours

-- The ink, a fainter one, the grid, and seventeen colours for series. People with the usual kinds
-- of colour blindness can tell neighbours apart. All have a contrast of at least three to one
-- against their background.
light, dark :: (Text, Text, Text, [Text])
light =
  ( "#1c2330",
    "#5a6475",
    "#dfe3ea",
    Text.words "#2563b8 #c2560c #14795a #8a3fa8 #b8305f #6b6a00 #0d7887 #7a5230 #4a5568 #5b8a00 #d01c1c #4b3fd6 #00695c #96245f #9a6a00 #1f2937 #e0457b"
  )
dark =
  ( "#e6eaf2",
    "#9aa5b8",
    "#303846",
    Text.words "#6ea8ff #ff9d5c #4fcf9f #cf9bf5 #ff84b0 #cfce4a #4fcfe0 #d3a680 #b3bfd1 #a6e22e #ff7b72 #a5a0ff #2dd4bf #f0a6d0 #ffd166 #f1f5f9 #ffb8cc"
  )

-- The classes of a series' colour, by its number. The eighteenth colour is the first again.
seriesClass :: Int -> Text
seriesClass number = "s" <> shown (number `mod` length those)
  where
    (_, _, _, those) = light

filled :: Int -> [Text]
filled number = [seriesClass number, "fill"]

-- | The style sheet of all charts.
chartStyle :: Markup
chartStyle =
  raw . Text.concat $
    [ ".rc{",
      variables light,
      "font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;",
      "display:block;width:100%;height:auto}",
      "@media (prefers-color-scheme:dark){.rc{",
      variables dark,
      "}}",
      ".rc text{fill:var(--ink)}",
      ".rc .tick,.rc .axis{fill:var(--faint)}",
      ".rc .title{font-weight:600;font-size:15px}",
      ".rc .grid line{stroke:var(--grid);stroke-width:1;shape-rendering:crispEdges}",
      ".rc .fill,.rc .dot{fill:var(--c)}",
      ".rc .line{fill:none;stroke:var(--c);stroke-width:2;",
      "stroke-linejoin:round;stroke-linecap:round}",
      ".rc .dashed{stroke-dasharray:6 5}",
      ".rc .ribbon{fill:var(--c);opacity:.18}",
      ".rc .whisker{fill:none;stroke:var(--ink);stroke-width:1.5}",
      ".rc .band{fill:var(--c);opacity:.22}",
      ".rc .heat{fill:var(--k0);shape-rendering:crispEdges}"
    ]
      <> [rule ("s" <> shown n) ("--c:var(--k" <> shown n <> ")") | n <- [0 .. length series - 1]]
      <> [ rule ("b" <> shown n) ("--c:var(--k" <> shown place <> ")")
           | (n, place) <- zip [0 .. 4 :: Int] [1, 4, 5, 3, 6 :: Int]
         ]
      <> [ rule ("h" <> shown n) ("opacity:" <> strength)
           | (n, strength) <-
               zip [0 .. levels] [".08", ".15", ".24", ".34", ".46", ".59", ".72", ".86", "1"]
         ]
  where
    rule name what = ".rc ." <> name <> "{" <> what <> "}"
    (_, _, _, series) = light

variables :: (Text, Text, Text, [Text]) -> Text
variables (ink, faint, rules, colours) =
  Text.concat $
    ["--ink:", ink, ";--faint:", faint, ";--grid:", rules, ";"]
      <> ["--k" <> shown n <> ":" <> colour <> ";" | (n, colour) <- zip [0 :: Int ..] colours]
