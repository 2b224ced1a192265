-- | The colours of charts, for a light and for a dark page.
--
-- Seventeen colours for series. People with the usual kinds of colour blindness can tell neighbours
-- apart. All have a contrast of at least three to one against their background.
module Tool.Chart.Style
  ( chartStyle,
    seriesClass,
  )
where

import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Markup (Markup, raw)
import Tool.Text (shown)

-- | The class of a series' colour, by its number. The eighteenth colour is the first again.
seriesClass :: Int -> Text
seriesClass number = "s" <> shown (number `mod` length those)
  where
    (_, _, _, those) = light

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
      <> [ rule ("s" <> shown n) ("--c:var(--k" <> shown n <> ")")
           | n <- [0 .. length (colours light) - 1]
         ]
      <> [ rule ("b" <> shown n) ("--c:var(--k" <> shown place <> ")")
           | (n, place) <- zip [0 .. 4 :: Int] [1, 4, 5, 3, 6 :: Int]
         ]
      <> [ rule ("h" <> shown n) ("opacity:" <> strength)
           | (n, strength) <-
               zip
                 [0 .. 8 :: Int]
                 [".08", ".15", ".24", ".34", ".46", ".59", ".72", ".86", "1"]
         ]
  where
    rule name what = ".rc ." <> name <> "{" <> what <> "}"
    colours (_, _, _, those) = those

variables :: (Text, Text, Text, [Text]) -> Text
variables (ink, faint, grid, colours) =
  Text.concat $
    ["--ink:", ink, ";--faint:", faint, ";--grid:", grid, ";"]
      <> [ "--k" <> shown n <> ":" <> colour <> ";"
           | (n, colour) <- zip [0 :: Int ..] colours
         ]

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
