-- | The table of the gate, for one run or for several runs side by side.
module Lab.Gate.Report
  ( reportLines,
    verdictText,
  )
where

import Data.List (nub)
import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import Lab.Gate.Document
import Lab.Gate.Table
import Tool.Bench.Document (Manifest (..))
import Tool.Span (dated, inMicros, inMillis)
import Tool.Text (Align (..), fixed, percent, table)

-- | The table in lines. For one run it has every figure; for several runs the ratio, its interval
-- and the verdict of each, in the given order.
reportLines :: [Measured] -> [String]
reportLines measured =
  concatMap about numbered
    <> rests
    <> legend
    <> [""]
    <> ( case measured of
           [one] -> table (AlignLeft : replicate 6 AlignRight <> [AlignLeft]) (heading : map wide (rowsOf one))
           _ -> beside (map rowsOf measured)
       )
    <> [ label number <> rowWhat row <> ": INVALID: " <> Text.unpack problem
         | (number, one) <- numbered,
           row <- rowsOf one,
           problem <- rowProblems row
       ]
  where
    numbered = zip [1 :: Int ..] measured
    label number = if length measured == 1 then "" else "run " <> show number <> ": "
    about (number, one) =
      let made = measuredManifest one
       in [ label number <> day (manifestStarted made) <> ", revision " <> maybe "unknown" Text.unpack (manifestRevision made) <> ", "
              <> Text.unpack (manifestCompiler made)
              <> ", "
              <> maybe "an unknown processor" Text.unpack (manifestCpu made)
              <> (if manifestVirtual made then " (virtual), " else ", ")
              <> show (manifestProcessors made)
              <> " processors, kernel "
              <> Text.unpack (manifestKernel made)
              <> ", "
              <> Text.unpack (measuredServer one)
              <> ", hiredis "
              <> Text.unpack (measuredHiredis one)
              <> "; "
              <> show (measuredIterations one)
              <> " interleaved runs of "
              <> fixed 1 (measuredDuration one)
              <> " s"
          ]
    day = dated "%Y-%m-%d %H:%M UTC"
    days = length (nub (map (dated "%Y-%m-%d" . manifestStarted . measuredManifest) measured))
    -- A committed table says how many runs it rests on.
    rests =
      [ counted "run" (length measured) <> " of " <> counted "day" days
          <> (if length measured < 3 || days < 2 then ": a table that is kept rests on three of two days at least" else "")
        | length measured > 1
      ]
    counted what count = show count <> " " <> what <> (if count == 1 then "" else "s")
    legend =
      [ "the server on core 0, the client on core 1, one connection, GETs that hit 100 000 keys of 512 bytes; ours, against: medians;",
        "measured: the geometric mean of the iterations' ratios; spread: the least and the greatest of them; 95 %: the interval of confidence",
        "of the mean (Student's t over logarithms); MISSED: the whole interval misses the bar; UNDECIDED: the bar lies within it; reached: the whole interval does;",
        "the program's own settings, and +RTS -A16m for 1024 threads;",
        "H: the better hiredis, by this figure, with as many commands on their way; R: redis-benchmark -c 16 -P 64; R1: -c 1 -P 1;",
        "RC: --cluster -c 20 -P 64; RT: --tls -c 16 -P 64",
        "*: the generator used more than 80 % of its core, which --allow saturation lets through: the figure is the client's own speed"
      ]

heading :: [String]
heading = ["what", "must", "measured", "spread", "95 %", "ours", "against", "verdict"]

wide :: Row -> [String]
wide row =
  [ rowWhat row,
    mustText row,
    fixed 2 (rowMeasured row) <> " " <> rowUnit row,
    range (rowSpread row),
    maybe "" range (rowInterval row),
    figure row (fst (rowFigures row)) <> saturationText row,
    figure row (snd (rowFigures row)),
    verdictText (rowVerdict row)
  ]

-- A line for each row that any run has, and a column for each run.
beside :: [[Row]] -> [String]
beside runs =
  table
    (AlignLeft : AlignRight : map (const AlignLeft) runs)
    ( (["what", "must"] <> ["run " <> show number | number <- [1 .. length runs]]) :
        [ rowWhat row : mustText row : map (maybe "-" narrow . Map.lookup (key row)) byKey
          | row <- distinct (concat runs)
        ]
    )
  where
    byKey = map (\found -> Map.fromList [(key row, row) | row <- found]) runs
    key row = (rowWhat row, rowUnit row)
    distinct found = [row | wanted <- nub (map key found), row : _ <- [filter ((== wanted) . key) found]]
    narrow row =
      fixed 2 (rowMeasured row) <> saturationText row <> maybe "" (\interval -> " (" <> range interval <> ")") (rowInterval row)
        <> (if rowVerdict row `elem` [Reached, Stated] then "" else " " <> verdictText (rowVerdict row))

mustText :: Row -> String
mustText row = case rowMust row of
  Nothing -> rowUnit row
  Just bar -> (if rowFigureUnit row == PerSecond then ">= " else "<= ") <> fixed 2 bar <> " " <> rowUnit row

saturationText :: Row -> String
saturationText row = case rowShare row of
  Just share | isSaturated row -> " * " <> percent share
  _ -> ""

range :: (Double, Double) -> String
range (low, high) = fixed 2 low <> ".." <> fixed 2 high

figure :: Row -> Double -> String
figure row number = case rowFigureUnit row of
  PerSecond -> fixed 1 (number / 1e3) <> " k/s"
  NanosPerCommand -> fixed 2 (inMicros number) <> " us"
  Nanos -> fixed 2 (inMillis number) <> " ms"
  Bytes -> fixed 1 (number / 1e6) <> " MB"

-- | The verdict in words.
verdictText :: Verdict -> String
verdictText = \case
  Missed -> "MISSED"
  Undecided -> "UNDECIDED"
  Reached -> "reached"
  Stated -> "stated"
  Incomplete -> "NOT MEASURED"
  Unsound -> "INVALID"
