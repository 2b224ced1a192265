-- | The modes that read results: they measure nothing.
module Tool.Bench.Reports
  ( showReport,
    printSchema,
    readDocument,
    exitOf,
  )
where

import Data.Aeson (encode)
import Data.ByteString qualified as ByteString
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.Foldable (for_)
import Data.Text qualified as Text
import System.Exit (ExitCode (..))
import System.IO (hPutStrLn, stderr, stdout)
import Tool.Bench.Document
import Tool.Bench.Document.Json (decodeDocument, documentSchema)
import Tool.Bench.Document.Totals (runValid)
import Tool.Bench.Report (report)
import Tool.Bench.Sink (withOutputs)
import Tool.Failure (exitInvalid, invalidRun)
import Tool.Options.Output (toStandardOutput)
import Tool.Options.Results

-- | Prints the table of a document, and writes it in other forms.
showReport :: ReportOptions -> IO ExitCode
showReport options = withOutputs outputs $ \write -> do
  document <- readDocument (reportFile options)
  for_ (map Text.unpack (documentNotes document) <> report (documentRuns document)) (hPutStrLn handle)
  write document
  pure (exitOf document)
  where
    outputs = reportOutputs options
    handle = if toStandardOutput outputs then stderr else stdout

-- | A document from a file. Ends the program if it cannot be read.
readDocument :: FilePath -> IO Document
readDocument path = do
  bytes <- ByteString.readFile path
  either (\problem -> invalidRun (path <> ": " <> problem)) pure (decodeDocument bytes)

-- | Whether all runs are valid.
exitOf :: Document -> ExitCode
exitOf document
  | all runValid (documentRuns document) = ExitSuccess
  | otherwise = ExitFailure exitInvalid

-- | The schema of the JSON, to the standard output.
printSchema :: IO ExitCode
printSchema = ExitSuccess <$ Lazy.putStrLn (encode documentSchema)
