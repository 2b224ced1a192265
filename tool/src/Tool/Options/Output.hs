-- | The files for results, and their formats.
module Tool.Options.Output
  ( Outputs (..),
    Format (..),
    formatOption,
    outputOptions,
    outputProblem,
    sharedPath,
    toStandardOutput,
  )
where

import Data.Maybe (listToMaybe, maybeToList)
import Options.Applicative
import Tool.Options.Common

newtype Outputs = Outputs {outputsFiles :: [(Format, FilePath)]}
  deriving stock (Eq, Show)

data Format
  = FormatJson
  | FormatHtml
  | FormatCsv
  | FormatPrometheus
  | FormatHdrLog
  | -- | Several files. The path is the begin of their names.
    FormatHgrm
  | -- | An array of objects with four keys.
    FormatSeed
  | -- | The format of memtier_benchmark.
    FormatMemtier
  deriving stock (Eq, Ord, Show, Enum, Bounded)

formatOption :: Format -> String
formatOption format = case format of
  FormatSeed -> "--compat seed"
  FormatMemtier -> "--compat memtier"
  _ -> concat ["--" <> name | (one, name, _, _) <- formats, one == format]

-- The formats that have an option of their own: its name, the placeholder of its value, its help.
formats :: [(Format, String, String, String)]
formats =
  [ (FormatJson, "json", "FILE", "Write the results as JSON (-: to the standard output)"),
    (FormatHtml, "html", "FILE", "Write a report: one page of HTML with all charts"),
    (FormatCsv, "csv", "FILE", "Write CSV with the columns of redis-benchmark"),
    (FormatPrometheus, "prometheus", "FILE", "Write metrics as Prometheus reads them"),
    (FormatHdrLog, "hdr-log", "FILE", "Write a log of HDR histograms (V2)"),
    (FormatHgrm, "hgrm", "PREFIX", hgrm)
  ]
  where
    hgrm = "Write a table of percentiles for each run and command: PREFIX.RUN.COMMAND.hgrm"

-- | Parses the options for all formats, in any combination.
outputOptions :: Parser Outputs
outputOptions =
  (\named others -> Outputs (concat named <> others))
    <$> traverse file formats
    <*> many (option compat (described "compat" "KIND=FILE" kinds))
  where
    kinds = "Write the format of another tool; KIND: seed (four keys), rb-csv (redis-benchmark) or memtier"
    file (format, name, what, about) =
      map ((,) format) . maybeToList <$> optionalOption str name what about

compat :: ReadM (Format, FilePath)
compat = eitherReader $ \text -> case break (== '=') text of
  (kind, '=' : path)
    | Just format <- lookup kind kinds, path /= "" -> Right (format, path)
    | path == "" -> Left ("--compat " <> kind <> "= needs a file")
  (kind, "")
    | kind `elem` map fst kinds ->
      Left ("--compat " <> kind <> " needs a file: --compat " <> kind <> "=FILE")
  (kind, _) -> Left ("--compat knows seed, rb-csv and memtier, not " <> show kind)
  where
    kinds = [("seed", FormatSeed), ("rb-csv", FormatCsv), ("memtier", FormatMemtier)]

outputProblem :: Outputs -> Maybe String
outputProblem (Outputs files) =
  sharedPath (map snd files)
    <|> ((FormatHgrm, "-") `elem` files)
    `refused` "--hgrm writes several files and cannot go to the standard output"
    <|> listToMaybe [formatOption format <> " needs a file" | (format, "") <- files]

-- | The problem of two outputs with the same path, in one line.
sharedPath :: [FilePath] -> Maybe String
sharedPath = fmap (\case "-" -> once; path -> path <> " is named twice") . namedTwice
  where
    once = "the standard output can take only one form (-)"

toStandardOutput :: Outputs -> Bool
toStandardOutput = any ((== "-") . snd) . outputsFiles
