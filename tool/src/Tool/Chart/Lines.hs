-- | Draws curves.
module Tool.Chart.Lines
  ( draw,
  )
where

import Data.Maybe (fromMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Chart.Frame
import Tool.Chart.Scale
import Tool.Chart.Style (seriesClass)
import Tool.Chart.Types
import Tool.Markup (Markup, element, text, (.=))

-- | Draws the legend, the grid, bands, ribbons and lines.
draw :: Size -> Double -> Lines -> Drawing
draw size top chart =
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
