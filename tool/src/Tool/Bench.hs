-- | The mode @bench@: one run, the standard suite, or the speed gate.
module Tool.Bench
  ( bench,
  )
where

import Data.Aeson (Value)
import Data.Foldable (for_)
import Data.Maybe (isJust)
import System.Exit (ExitCode (..))
import System.IO (hPutStrLn, stderr, stdout)
import Tool.Bench.Document
import Tool.Bench.Document.Json (documentValue)
import Tool.Bench.Document.Totals (runValid)
import Tool.Bench.Environment (manifest)
import Tool.Bench.Gate (gate)
import Tool.Bench.Private (PrivateOptions (..), withPrivate)
import Tool.Bench.Progress (newProgress)
import Tool.Bench.Report (details, report)
import Tool.Bench.Run (measure)
import Tool.Bench.Sink (withSink)
import Tool.Bench.Suite (suite)
import Tool.Campaign (campaign)
import Tool.Connect (Target, targetOf)
import Tool.Failure (exitInvalid)
import Tool.Options.Bench
import Tool.Options.Connection (ConnectionOptions (..), TlsOptions (..))

-- | Does it, prints what it found, and says how to exit.
bench :: BenchMode -> IO ExitCode
bench = \case
  BenchOnce options -> once options
  BenchSuite options -> standard options
  BenchCampaign options -> campaign options
  BenchGate options -> do
    progress <- newProgress
    withSink (gateJson options) $ \write -> gate progress options write

once :: BenchOptions -> IO ExitCode
once options = withSink (benchJson options) $ \write -> do
  progress <- newProgress
  result <- withTargetOf (benchConnection options) $ \target ->
    measure progress target (benchOperation options) (benchLoad options)
  conclude (benchJson options) write (details result) [result]

standard :: SuiteOptions -> IO ExitCode
standard options = withSink (suiteJson options) $ \write -> do
  progress <- newProgress
  (notes, results) <- suite progress options
  conclude (suiteJson options) write notes results

-- The server that is named, or a private one.
withTargetOf :: ConnectionOptions -> (Target -> IO a) -> IO a
withTargetOf options action
  | isJust (connectionHost options) = action (targetOf options)
  | otherwise =
    withPrivate
      PrivateOptions
        { privateKind = if connectionCluster options then TargetCluster else TargetStandalone,
          privateTls = tlsWanted (connectionTls options),
          privateCores = []
        }
      action

-- Prints and writes the results; one that is not valid makes the exit code.
-- The table leaves the standard output to the JSON if that goes there.
conclude :: Maybe FilePath -> (Value -> IO ()) -> [String] -> [Run] -> IO ExitCode
conclude json write notes results = do
  about <- manifest
  for_ (notes <> [""] <> report results) (hPutStrLn handle)
  write . documentValue $
    Document {documentManifest = about, documentRuns = results, documentNotes = [], documentOrigins = []}
  pure $
    if all runValid results
      then ExitSuccess
      else ExitFailure exitInvalid
  where
    handle = if json == Just "-" then stderr else stdout
