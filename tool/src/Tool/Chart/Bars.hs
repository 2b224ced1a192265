-- | Draws groups of horizontal bars with whiskers.
module Tool.Chart.Bars
  ( draw,
  )
where

import Data.List qualified as List
import Data.Text qualified as Text
import Tool.Chart.Frame
import Tool.Chart.Scale
import Tool.Chart.Style (seriesClass)
import Tool.Chart.Types
import Tool.Markup (Markup, element, text, (.=))

-- | Draws the legend, the grid, and the groups, one below the other. The names of the groups stand
-- beside them, or above them if there is little room.
draw :: Size -> Double -> Bars -> Drawing
draw size top chart =
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
    shown held =
      format unit (barValue held) <> (if barNote held == "" then "" else " " <> barNote held)
    widestName = List.foldl' max 0 (map (textWidth . groupName) (barsGroups chart))
    beside = not (sizeNarrow size) && widestName < 260
    nameHeight = if beside || all ((== "") . groupName) (barsGroups chart) then 0 else 18
    left = if beside then widestName + 12 else 2
    -- Room for the number after the longest bar.
    after = List.foldl' max 40 (map (textWidth . shown) bars) + 10
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
          [ element
              "line"
              [ "x1" .= px x,
                "y1" .= px (areaTop area),
                "x2" .= px x,
                "y2" .= px (bottom area)
              ]
              []
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
      [ element
          "rect"
          [ classes [seriesClass number, "fill"],
            "x" .= px (areaLeft area),
            "y" .= px (y + 2),
            "width" .= px (max 1 (end - areaLeft area)),
            "height" .= px (thickness - 4)
          ]
          [element "title" [] [text (shown held <> maybe "" interval (barWhisker held))]]
      ]
        <> maybe [] whisker (barWhisker held)
        <> [label "value" "start" (furthest + 6) (y + 13) (shown held)]
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
                    [ "M",
                      px (at low),
                      " ",
                      px middle,
                      "H",
                      px (at high),
                      cap (at low),
                      cap (at high)
                    ]
              ]
              []
          ]
        cap x = Text.concat ["M", px x, " ", px (middle - 4), "V", px (middle + 4)]
