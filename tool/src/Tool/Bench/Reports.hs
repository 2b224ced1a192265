-- | The modes that read results and measure nothing.
module Tool.Bench.Reports
  ( showReport,
    compareReports,
    mergeReports,
    printSchema,
    conclude,
    readDocument,
    exitOf,
  )
where

import Control.Monad (when)
import Data.Aeson (encode)
import Data.ByteString qualified as ByteString
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.Foldable (for_)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Text qualified as Text
import System.Exit (ExitCode (..))
import System.FilePath (takeFileName)
import System.IO (hPutStrLn, stderr, stdout)
import Tool.Bench.Document
import Tool.Bench.Document.Json (checked, decodeWritten, documentSchema)
import Tool.Bench.Document.Totals (runValid)
import Tool.Bench.Report (report)
import Tool.Bench.Sink (withOutputs, withSinks)
import Tool.Compare (Cell (..), Comparison (..), compareDocuments)
import Tool.Compare.Rule (broken, parseRule)
import Tool.Compare.Show (comparisonLines, comparisonPage, comparisonValue)
import Tool.Failure (exitGateMissed, exitInvalid, invalidRun)
import Tool.Merge (mergeDocuments)
import Tool.Options.Modes
import Tool.Options.Output (Outputs, toStandardOutput)

-- | Prints the table of a document, and writes it in other formats.
showReport :: ReportOptions -> IO ExitCode
showReport options = withOutputs (reportOutputs options) $ \write -> do
  document <- readDocument (reportFile options)
  conclude (reportOutputs options) write (notesAndTable document) document

notesAndTable :: Document -> [String]
notesAndTable document = map Text.unpack (documentNotes document) <> report (documentRuns document)

-- | Prints these lines and writes the document. The lines go to standard error if a file goes to
-- standard output. The exit code says whether all runs are valid.
conclude :: Outputs -> (Document -> IO ()) -> [String] -> Document -> IO ExitCode
conclude outputs write said document = do
  mapM_ (hPutStrLn (if toStandardOutput outputs then stderr else stdout)) said
  write document
  pure (exitOf document)

-- | Prints a verdict for each run that both documents have, and the rules that are broken. Numbers
-- of invalid runs are not compared by rules: invalid runs decide the exit code first.
compareReports :: CompareOptions -> IO ExitCode
compareReports options = withSinks sinks $ \write -> do
  before <- readDocument (compareBefore options)
  after <- readDocument (compareAfter options)
  let comparison = compareDocuments before after
      cells = comparisonCells comparison
      rules = [rule | Right rule <- map parseRule (compareRules options)]
      failures =
        [ why
          | cell <- cells,
            rule <- rules,
            Just why <- [broken (compareSignificant options) rule cell]
        ]
      handle = if Just "-" `elem` [compareHtml options, compareJson options] then stderr else stdout
  for_ (comparisonLines comparison) (hPutStrLn handle)
  for_ failures (hPutStrLn handle . ("FAILED: " <>) . Text.unpack)
  let page = comparisonPage (map ("failed: " <>) failures) before after comparison
  write $
    [page | Just _ <- [compareHtml options]]
      <> [encode (comparisonValue failures comparison) <> "\n" | Just _ <- [compareJson options]]
  when (null cells) $ invalidRun "the two have no run in common"
  let covered = null rules || null (fst (comparisonMissing comparison))
  pure (verdict (all valid cells && covered) (null failures))
  where
    sinks =
      [("--html", path) | Just path <- [compareHtml options]]
        <> [("--json", path) | Just path <- [compareJson options]]
    valid cell = runValid (cellBefore cell) && runValid (cellAfter cell)
    verdict usable kept
      | not usable = ExitFailure exitInvalid
      | kept = ExitSuccess
      | otherwise = ExitFailure exitGateMissed

-- | Adds up the results of several generators.
mergeReports :: MergeOptions -> IO ExitCode
mergeReports options = withOutputs (mergeOutputs options) $ \write -> do
  documents <- traverse named (mergeFiles options)
  merged <- maybe nothing (either invalidRun pure . mergeDocuments) (NonEmpty.nonEmpty documents)
  conclude (mergeOutputs options) write (notesAndTable merged) merged
  where
    named path = (,) (Text.pack (takeFileName path)) <$> readDocument path
    nothing = invalidRun "there is nothing to merge"

-- | Reads a document from a file. Runs whose numbers contradict each other become invalid. Ends the
-- program if the file cannot be read.
readDocument :: FilePath -> IO Document
readDocument path = do
  bytes <- ByteString.readFile path
  either (invalidRun . ((path <> ": ") <>)) (pure . uncurry checked) (decodeWritten bytes)

-- | The exit code that says whether all runs are valid.
exitOf :: Document -> ExitCode
exitOf document
  | all runValid (documentRuns document) = ExitSuccess
  | otherwise = ExitFailure exitInvalid

-- | Prints the schema of the JSON to standard output.
printSchema :: IO ExitCode
printSchema = ExitSuccess <$ Lazy.putStrLn (encode documentSchema)
