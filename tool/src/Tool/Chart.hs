-- | Charts as data, drawn as SVG and nothing else: no script, no network, no fonts. In a page each
-- chart is drawn twice, wide and narrow, and the style sheet shows the one that fits: letters of
-- a chart that is only shrunk to a phone cannot be read.
module Tool.Chart
  ( module Tool.Chart.Types,
    lineChart,
    barChart,
    figure,
    styleSheet,
  )
where

import Data.Text (Text)
import Tool.Chart.Draw
import Tool.Chart.Types
import Tool.Markup (Markup, element, raw, text, (.=))

-- | Curves over two axes. Takes title and explanation.
lineChart :: Text -> Text -> (Axis, Axis) -> [Line] -> Chart
lineChart title about (x, y) curves = Chart title about (LinePlot (Lines x y curves []))

-- | Bars in groups. Takes title and explanation, the axis, and the names of the bars of each group.
barChart :: Text -> Text -> Axis -> [Text] -> [Group] -> Chart
barChart title about value series = Chart title about . BarPlot . Bars value series

-- | A chart for a page that has the 'styleSheet': title, explanation, and the drawing in two
-- widths.
figure :: Chart -> Markup
figure chart =
  element
    "figure"
    ["class" .= "chart"]
    [ element "figcaption" [] $
        element "strong" [] [text (chartTitle chart)] :
          [element "span" [] [text (" " <> chartAbout chart)] | chartAbout chart /= ""],
      element "div" ["class" .= "wide"] [svg wide chart],
      element "div" ["class" .= "narrow"] [svg narrow chart]
    ]

-- | The style sheet of all charts of a page.
styleSheet :: Markup
styleSheet =
  chartStyle
    <> raw
      ".narrow{display:none}@media (max-width:560px){.wide{display:none}\
      \.narrow{display:block}}"

-- Widths, and whether the drawing is for a phone.
wide, narrow :: (Double, Bool)
wide = (760, False)
narrow = (360, True)

svg :: (Double, Bool) -> Chart -> Markup
svg size chart =
  element
    "svg"
    [ "xmlns" .= "http://www.w3.org/2000/svg",
      "class" .= "rc",
      "role" .= "img",
      "aria-label" .= chartTitle chart,
      "viewBox" .= ("0 0 " <> px (fst size) <> " " <> px height)
    ]
    content
  where
    (height, content) = draw size (chartPlot chart)
