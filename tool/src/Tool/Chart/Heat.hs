-- | Draws heat maps: the higher the count of a rectangle, the stronger its colour.
module Tool.Chart.Heat
  ( draw,
  )
where

import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import Tool.Chart.Frame
import Tool.Chart.Scale
import Tool.Chart.Types
import Tool.Markup (element, (.=))

-- | Draws the legend, the rectangles and the grid. There is one path for each of nine strengths,
-- because a thousand elements would be large.
draw :: Size -> Double -> Heats -> Drawing
draw size top chart =
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
        <> [ element
               "rect"
               [ classes ["heat", "h" <> Text.pack (show strength)],
                 "x" .= px (wide + fromIntegral strength * 10),
                 "y" .= px (top + 3),
                 "width" .= "10",
                 "height" .= "12"
               ]
               []
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
        [ classes ["heat", "h" <> Text.pack (show strength)],
          "d" .= Text.concat (map rectangle these)
        ]
        []
    rectangle Heat {heatX = (x1, x2), heatY = (y1, y2)} =
      let left = atX area (scalePlace scaleX x1)
          top' = atY area (scalePlace scaleY y2)
          width = atX area (scalePlace scaleX x2) - left
          height = atY area (scalePlace scaleY y1) - top'
       in Text.concat
            [ "M",
              px left,
              " ",
              px top',
              "h",
              px width,
              "v",
              px height,
              "h",
              px (negate width),
              "z"
            ]

levels :: Int
levels = 8
