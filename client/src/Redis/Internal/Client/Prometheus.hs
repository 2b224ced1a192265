-- | Renders metrics in Prometheus' text format, version 0.0.4.
module Redis.Internal.Client.Prometheus
  ( -- * Families
    Family (..),
    FamilyKind (..),
    Sample (..),
    renderFamilies,
    histogramSamples,
  )
where

import Data.ByteString.Builder (Builder)
import Data.ByteString.Builder qualified as Builder
import Data.Char (isDigit)
import Data.List (dropWhileEnd, intersperse)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Redis.Internal.Network.Counters

-- | All samples of one name.
data Family = Family
  { familyName :: Builder,
    familyKind :: FamilyKind,
    -- | One line without a backslash.
    familyHelp :: Builder,
    familySamples :: [Sample]
  }

data FamilyKind = GaugeFamily | CounterFamily | HistogramFamily

-- | One line: the suffix of the family's name, the labels, and the value.
data Sample = Sample
  { sampleSuffix :: Builder,
    sampleLabels :: [(Builder, String)],
    sampleValue :: Builder
  }

-- | Renders families one after the other; families without samples are left out.
renderFamilies :: [Family] -> Builder
renderFamilies = foldMap family

family :: Family -> Builder
family Family {familyName, familyKind, familyHelp, familySamples}
  | null familySamples = mempty
  | otherwise =
    "# HELP " <> familyName <> " " <> familyHelp <> "\n"
      <> ("# TYPE " <> familyName <> " " <> kind <> "\n")
      <> foldMap line familySamples
  where
    kind = case familyKind of
      GaugeFamily -> "gauge"
      CounterFamily -> "counter"
      HistogramFamily -> "histogram"
    line Sample {sampleSuffix, sampleLabels, sampleValue} =
      familyName <> sampleSuffix <> labels sampleLabels <> " " <> sampleValue <> "\n"

labels :: [(Builder, String)] -> Builder
labels = \case
  [] -> mempty
  pairs -> "{" <> mconcat (intersperse "," [name <> "=\"" <> utf8 (concatMap escaped value) <> "\"" | (name, value) <- pairs]) <> "}"
  where
    -- 'Text.pack' replaces what UTF-8 cannot say. A path may have such characters, and Prometheus would
    -- refuse the whole page.
    utf8 = Text.encodeUtf8Builder . Text.pack
    escaped char = case char of
      '\\' -> "\\\\"
      '"' -> "\\\""
      '\n' -> "\\n"
      _ -> [char]

-- | The samples of a histogram with these labels, in seconds. There is a bucket for each
-- doubling from 16 µs on.
histogramSamples :: [(Builder, String)] -> RoundTrips -> [Sample]
histogramSamples with trips =
  [ Sample {sampleSuffix = "_bucket", sampleLabels = with <> [("le", secondsText end)], sampleValue = Builder.intDec within}
    | (bucket, (Just end, within)) <- zip [0 :: Int ..] counts,
      bucket `rem` 8 == 0,
      end >= 16384
  ]
    <> [ Sample {sampleSuffix = "_bucket", sampleLabels = with <> [("le", "+Inf")], sampleValue = total},
         Sample {sampleSuffix = "_sum", sampleLabels = with, sampleValue = Builder.string7 (secondsText (totalNanos trips))},
         Sample {sampleSuffix = "_count", sampleLabels = with, sampleValue = total}
       ]
  where
    counts = cumulative trips
    total = Builder.intDec (roundTripCount trips)

-- | Nanoseconds as seconds, to the last digit.
secondsText :: Int -> String
secondsText nanos = case trimmed of
  "" -> show whole
  _ -> show whole <> "." <> trimmed
  where
    (whole, part) = nanos `quotRem` 1000000000
    trimmed = dropWhileEnd (== '0') (drop 1 (filter isDigit (show (1000000000 + abs part))))
