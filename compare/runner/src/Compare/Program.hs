-- | The runner: from a command line to results and an exit status.
--
-- 0: every goal was reached (or none was judged). 1: goals were missed; each is named. 2: the
-- measurement failed, or this library's own numbers are not valid, or the machine stayed busy.
module Compare.Program
  ( runProgram,
  )
where

import Compare.Cell
import Compare.Document
import Compare.Goals
import Compare.Manifest
import Compare.Measure
import Compare.Options
import Compare.Pair
import Compare.Plan (plannedCell)
import Compare.Quiet (whenQuiet)
import Compare.Report.Figures
import Compare.Report.Html
import Compare.Report.Markdown
import Compare.Row
import Compare.Sample
import Compare.Workload
import Control.Monad (unless)
import Data.Aeson (Value)
import Data.ByteString.Lazy qualified as Lazy
import Data.List (isInfixOf)
import Data.Text qualified as Text
import Data.Text.IO qualified as Text
import Options.Applicative
import Options.Applicative.Help (unChunk)
import System.Directory (createDirectoryIfMissing, doesFileExist, makeAbsolute)
import System.Environment (getArgs)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO (BufferMode (..), hPutStrLn, hSetBuffering, stderr, stdout)
import Tool.Startup (unwindOnSignals, useUtf8)

-- | Reads the command line and carries it out. Blocks for as long as that takes.
runProgram :: IO ExitCode
runProgram = do
  useUtf8
  unwindOnSignals
  hSetBuffering stdout LineBuffering
  arguments <- getArgs
  case execParserPure defaultPrefs described arguments of
    Success mode -> case modeProblem mode of
      Just problem -> cannot (problem <> " (try --help)")
      Nothing -> carryOut mode
    Failure failure -> case execFailure failure "redis-client-compare" of
      (_, ExitSuccess, _) -> ExitSuccess <$ putStrLn (fst (renderFailure failure "redis-client-compare"))
      -- One line: the error alone, without the usage text.
      (message, _, _) -> cannot (unwords (words (maybe "" show (unChunk (helpError message)))) <> " (try --help)")
    CompletionInvoked _ -> cannot "completion is not supported"
  where
    carryOut = \case
      CompareClients options -> compareClients options
      ComparePair options -> comparePair announce aboutThis options
      Sweep options -> sweep announce aboutThis options
    described = info (modeParser <**> helper) (fullDesc <> progDesc "Compare redis-client with its peers")

announce :: String -> IO ()
announce = hPutStrLn stderr

compareClients :: ClientOptions -> IO ExitCode
compareClients options
  | clientRender options =
    readDocument (raw options) >>= \case
      Left problem -> cannot problem
      Right document -> report options (cellsOf document) document
  | otherwise =
    readWorkloads (clientWorkloads options) >>= \case
      Left problem -> cannot problem
      Right planned -> do
        folder <- makeAbsolute (clientCompareFolder options)
        (absent, rows) <- buildPeers announce (const True) folder
        let cells = map plannedCell planned
            chosen = filter wanted rows
            measurement =
              Measurement
                { measurementRows = chosen,
                  measurementCells = planned,
                  measurementWindow = clientWindow options,
                  measurementIterations = [0 .. clientIterations options - 1],
                  measurementReference = True
                }
        mapM_ announce (measurementPlan measurement)
        if clientPlan options
          then pure ExitSuccess
          else
            earlier >>= \case
              Left problem -> cannot problem
              Right before -> whenQuiet (clientCompareFolder options) $ do
                -- Before the load, which would otherwise dominate the machine's facts.
                about <- aboutThis
                createDirectoryIfMissing True (clientOutput options)
                let whole server samples =
                      maybe
                        id
                        merge
                        before
                        Document
                          { documentManifest = about server,
                            documentWindow = clientWindow options,
                            documentRows = chosen,
                            documentAbsent = absent,
                            documentSamples = samples
                          }
                    keep server samples = writeDocument (raw options) (whole server samples)
                results <- uncurry whole <$> measure announce keep measurement
                report options (maybe cells (const (cellsOf results)) before) results
  where
    -- The results to add to, if there are any. Asked for before anything is measured, and not after
    -- hours.
    earlier :: IO (Either String (Maybe Document))
    earlier = do
      there <- doesFileExist (raw options)
      if there && clientAppend options
        then do
          about <- aboutThis
          (>>= \before -> maybe (Right (Just before)) Left (mergeProblem (clientWindow options) (about "") before)) <$> readDocument (raw options)
        else pure (Right Nothing)
    wanted row =
      null (clientRows options) || any (`isInfixOf` Text.unpack (rowName row)) (clientRows options)

-- The machine, the programs, and the options of this run.
aboutThis :: IO (String -> Value)
aboutThis = manifest . publicOptions =<< getArgs

raw :: ClientOptions -> FilePath
raw options = clientOutput options </> "raw.json"

cannot :: String -> IO ExitCode
cannot problem = do
  announce problem
  pure (ExitFailure 2)

-- Writes the files, prints losses and then the ratios, and judges.
report :: ClientOptions -> [Cell] -> Document -> IO ExitCode
report options cells document = do
  createDirectoryIfMissing True (clientOutput options)
  writeDocument (raw options) document
  let goals = judge cells document
  Text.writeFile (clientOutput options </> "COMPARISON-client.md") (markdown goals document)
  Lazy.writeFile (clientOutput options </> "COMPARISON-client.html") (html goals document)
  section "Not in the tables:" (missing document)
  section "Not used:" (invalidities document)
  section "Where redis-client loses:" (losses document)
  section "Goals:" (map goalLine (filter isReached goals) <> map goalLine (filter (not . isReached) goals))
  pure (verdict goals)
  where
    section heading found = unless (null found) $ do
      putStrLn ""
      putStrLn heading
      mapM_ (Text.putStrLn . ("  " <>)) found
    verdict goals
      | any ((== ourName) . sampleRow) (invalid document) = ExitFailure 2
      | not (any ((== ourName) . sampleRow) (documentSamples document)) = ExitFailure 2
      | clientJudge options && not (all isReached goals) = ExitFailure 1
      | otherwise = ExitSuccess
