-- | The parts that charts share: the area and its grid, the legend, bands.
module Tool.Chart.Frame
  ( Size (..),
    Drawing (..),
    Area (..),
    right,
    bottom,
    atX,
    atY,
    areaFor,
    grid,
    legend,
    Mark (..),
    bandMarks,
    bands,
    px,
    textWidth,
    label,
    classes,
  )
where

import Data.List qualified as List
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Chart.Scale
import Tool.Chart.Style (seriesClass)
import Tool.Chart.Types (Band (..))
import Tool.Markup (Markup, element, text, (.=))
import Tool.Text (fixed)

-- | The width of a drawing.
data Size = Size
  { sizeWidth :: Double,
    -- | Whether it is for a phone.
    sizeNarrow :: Bool
  }

-- | A drawing and its height.
data Drawing = Drawing
  { drawingHeight :: Double,
    drawingContent :: [Markup]
  }

-- | The rectangle of the data.
data Area = Area
  { areaLeft :: Double,
    areaTop :: Double,
    areaWidth :: Double,
    areaHeight :: Double
  }

-- | The right and the bottom edge.
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
      [ [ lineAt (areaLeft area) y (right area) y
            <> labelled "end" (areaLeft area - 6) (y + 4) (tickText tick)
          | tick <- scaleTicks scaleY,
            let y = atY area (tickPlace tick)
        ],
        [ lineAt x (areaTop area) x (bottom area)
            <> labelled (anchor tick) x (bottom area + 16) (tickText tick)
          | tick <- scaleTicks scaleX,
            let x = atX area (tickPlace tick)
        ],
        [label "axis" "start" (max 0 (areaLeft area - 40)) (areaTop area - 9) (axisLabel axisY)],
        [label "axis" "end" (right area) (bottom area + 34) (axisLabel axisX)]
      ]
  where
    lineAt x1 y1 x2 y2 =
      element "line" ["x1" .= px x1, "y1" .= px y1, "x2" .= px x2, "y2" .= px y2] []
    labelled at x y shown = if shown == "" then mempty else label "tick" at x y shown
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
    name = \case
      MarkSeries _ shown -> shown
      MarkBand _ shown -> shown
    entry x y mark =
      element
        "g"
        []
        [ element
            "rect"
            [ "x" .= px x,
              "y" .= px (y + 4),
              "width" .= "14",
              "height" .= "10",
              case mark of
                MarkSeries number _ -> classes [seriesClass number, "fill"]
                MarkBand number _ -> classes ["band", "b" <> shown' (number `mod` 5)]
            ]
            [],
          label "name" "start" (x + 19) (y + 14) (name mark)
        ]
    shown' = Text.pack . show

-- | The kinds of the bands, each once.
bandMarks :: [Band] -> [Mark]
bandMarks = zipWith MarkBand [0 ..] . kinds

kinds :: [Band] -> [Text]
kinds = List.nub . map bandKind

-- | The bands behind the data.
bands :: Area -> Scale -> [Band] -> [Markup]
bands area scaleX all' =
  [ element
      "rect"
      [ classes ["band", "b" <> Text.pack (show (number `mod` 5 :: Int))],
        "x" .= px x1,
        "y" .= px (areaTop area),
        "width" .= px (max 1.5 (x2 - x1)),
        "height" .= px (areaHeight area)
      ]
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
  Text.pack (if drop (length shown - 2) shown == ".0" then take (length shown - 2) shown else shown)
  where
    shown = fixed 1 (if isNaN value || isInfinite value then 0 else value)

-- | The approximate width of a text.
textWidth :: Text -> Double
textWidth = (7.1 *) . fromIntegral . Text.length

-- | Text of a class, anchored at its start, middle or end.
label :: Text -> Text -> Double -> Double -> Text -> Markup
label class' anchor x y shown =
  element "text" [classes [class'], "x" .= px x, "y" .= px y, "text-anchor" .= anchor] [text shown]

-- | The attribute with these classes.
classes :: [Text] -> (Text, Text)
classes names = "class" .= Text.unwords names
