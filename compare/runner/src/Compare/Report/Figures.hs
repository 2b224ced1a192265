-- | The parts that all reports have in common: the lines of a cell's table, the losses, and the
-- format of numbers.
module Compare.Report.Figures
  ( Line (..),
    cellLines,
    cellsOf,
    losses,
    missing,
    invalidities,

    -- * Numbers
    thousands,
    micros,
    ratioText,
    spreadText,
    bytesText,

    -- * The manifest
    manifestText,
  )
where

import Compare.Cell
import Compare.Document
import Compare.Row
import Compare.Sample
import Data.Aeson (Value (..))
import Data.Aeson.Key qualified as Key
import Data.Aeson.KeyMap qualified as KeyMap
import Data.Foldable (toList)
import Data.List qualified as List
import Data.Maybe (isJust)
import Data.Ord (Down (..))
import Data.Text (Text)
import Data.Text qualified as Text
import Text.Printf (printf)
import Tool.Span (inMicros)

-- | One row at one cell.
data Line = Line
  { lineRow :: Text,
    lineFigures :: Figures,
    -- | Our throughput divided by the row's; 'Nothing' without ours.
    lineRatio :: Maybe Double
  }
  deriving stock (Eq, Show)

-- | All rows with numbers at a cell, the fastest first.
cellLines :: Document -> Cell -> [Line]
cellLines document cell =
  [ Line {lineRow = row, lineFigures = found, lineRatio = (/ figuresOps found) . figuresOps <$> ours}
    | (row, found) <- List.sortOn (Down . figuresOps . snd) known
  ]
  where
    known = [(row, found) | row <- names, Just found <- [figures document row cell]]
    names = referenceName : map rowName (documentRows document)
    ours = lookup ourName known

-- | The cells of a document, in their natural order.
cellsOf :: Document -> [Cell]
cellsOf = List.sort . List.nub . map sampleCell . documentSamples

-- | The cells at which another peer is faster, one line each, the worst first.
losses :: Document -> [Text]
losses document =
  map snd . List.sortOn fst $
    [ ( ratio,
        cellName cell <> ": " <> lineRow line <> " has " <> thousands (figuresOps (lineFigures line))
          <> ", redis-client "
          <> ratioText ratio
          <> " of it"
      )
      | cell <- cellsOf document,
        line <- cellLines document cell,
        lineRow line `notElem` [ourName, referenceName],
        Just ratio <- [lineRatio line],
        ratio < 1
    ]

-- | Rows that could not be built, and cells that a row does not support, one line each.
missing :: Document -> [Text]
missing document =
  [absentName absent <> ": " <> absentWhy absent | absent <- documentAbsent document]
    <> [ rowName row <> ": has no cluster mode here"
         | row <- documentRows document,
           not (rowCluster row),
           any (isCluster . cellPlace) (cellsOf document)
       ]
    <> [ rowName row <> ": cannot " <> (case style of Wait -> "wait for each reply"; Batch -> "send batches")
         | row <- documentRows document,
           style <- [Wait, Batch],
           style `notElem` rowStyles row
       ]

-- | The runs whose numbers are not used, one line for each row, cell and reason.
invalidities :: Document -> [Text]
invalidities document =
  List.nub
    [ sampleRow sample <> ", " <> cellName (sampleCell sample) <> ": " <> Text.intercalate "; " (sampleProblems sample)
      | sample <- invalid document
    ]

-- | @123.4 k/s@
thousands :: Double -> Text
thousands value = Text.pack (printf "%.1f k/s" (value / 1e3))

-- | Nanoseconds as microseconds.
micros :: Double -> Text
micros nanos
  | nanos <= 0 = "-"
  | nanos < 99950 = Text.pack (printf "%.2f" (inMicros nanos))
  | otherwise = Text.pack (printf "%.0f" (inMicros nanos))

-- | A ratio with two digits after the point.
ratioText :: Double -> Text
ratioText = Text.pack . printf "%.2f"

-- | Least and greatest throughput.
spreadText :: Figures -> Text
spreadText found =
  Text.pack (printf "%.1f..%.1f" (figuresOpsLeast found / 1e3) (figuresOpsMost found / 1e3))
    <> maybe "" (Text.pack . printf " (mean +- %.1f)" . (/ 1e3)) (figuresOpsConfidence found)

-- | Bytes per operation.
bytesText :: Maybe Double -> Text
bytesText = maybe "-" (Text.pack . printf "%.0f")

-- | The manifest's fields as text.
manifestText :: Value -> [(Text, Text)]
manifestText = \case
  Object fields ->
    [ (Text.map underscore (Key.toText key), shown)
      | (key, value) <- List.sortOn fst (KeyMap.toList fields),
        let shown = plain value,
        isJust (nonNull value),
        not (Text.null shown)
    ]
  _ -> []
  where
    underscore letter = if letter == '_' then ' ' else letter
    nonNull = \case
      Null -> Nothing
      value -> Just value
    plain = \case
      String text -> text
      Number value -> Text.pack (printf "%.0f" (realToFrac value :: Double))
      Bool True -> "yes"
      Bool False -> "no"
      Array values -> Text.unwords (map plain (toList values))
      Object _ -> ""
      Null -> ""
