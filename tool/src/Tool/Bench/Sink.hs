-- | Files for results. Before the run this module checks that each can be written. A file appears
-- only when it is complete: it is written beside its place and moved there.
module Tool.Bench.Sink
  ( withSinks,
    withOutputs,
    writeWhole,
    isSpecial,
    refuseFolder,
    cannotWrite,
  )
where

import Control.Exception (bracketOnError, toException)
import Control.Monad (forM_, unless, void, when)
import Data.Aeson (encode)
import Data.ByteString.Lazy.Char8 qualified as Lazy
import System.Directory hiding (isSymbolicLink)
import System.FilePath (takeDirectory, takeFileName)
import System.IO (Handle, hClose, hFlush, openBinaryTempFileWithDefaultPermissions, stdout)
import System.IO.Error (ioeSetFileName, modifyIOError, tryIOError)
import System.Posix.Files (getFileStatus, isRegularFile)
import Tool.Bench.Document (Document)
import Tool.Bench.Document.Json (documentValue)
import Tool.Bench.Format
import Tool.Bench.Html (report)
import Tool.Failure (describe, failureText, invalidRun)
import Tool.Options.Output

-- | Gives the action a function that writes the document to all outputs, to be called once.
withOutputs :: Outputs -> ((Document -> IO ()) -> IO a) -> IO a
withOutputs outputs action =
  withSinks [(formatOption format, path) | (format, path) <- single] $ \write -> do
    forM_ prefixes $ \prefix -> do
      -- Nothing is written yet. This only checks that the folder exists.
      folder <- doesDirectoryExist (takeDirectory prefix)
      unless folder . invalidRun $
        "--hgrm " <> prefix <> ": cannot be written (" <> takeDirectory prefix <> ": does not exist)"
    action $ \document -> do
      write [formatted format document | (format, _) <- single]
      forM_ prefixes $ \prefix ->
        forM_ (hgrmFiles document) $ \(suffix, content) ->
          withSink "--hgrm" (prefix <> suffix) ($ content)
  where
    single = filter ((/= FormatHgrm) . fst) (outputsFiles outputs)
    prefixes = [path | (FormatHgrm, path) <- outputsFiles outputs]

-- A document in a format that consists of one file.
formatted :: Format -> Document -> Lazy.ByteString
formatted format document = case format of
  FormatJson -> encode (documentValue document) <> "\n"
  FormatHtml -> report document
  FormatCsv -> csv document
  FormatPrometheus -> prometheus document
  FormatHdrLog -> hdrLog document
  FormatHgrm -> Lazy.concat (map snd (hgrmFiles document))
  FormatSeed -> seedJson document
  FormatMemtier -> memtierJson document

-- | Gives the action a function that writes to these files in their order (@-@ is standard output),
-- to be called once. Each file comes with the option that named it.
withSinks :: [(String, FilePath)] -> (([Lazy.ByteString] -> IO ()) -> IO a) -> IO a
withSinks files action = case files of
  [] -> action (\_ -> pure ())
  (named, path) : rest ->
    withSink named path $ \write ->
      withSinks rest $ \writeRest ->
        action $ \case
          content : others -> write content >> writeRest others
          [] -> pure ()

withSink :: String -> FilePath -> ((Lazy.ByteString -> IO ()) -> IO a) -> IO a
withSink named path action
  -- Content left in the buffer would be written after the last place that can report an error.
  | path == "-" = action (\content -> Lazy.hPutStr stdout content >> hFlush stdout)
  | otherwise = do
    special <- isSpecial path
    if special
      then action (Lazy.writeFile path)
      else bracketOnError create discardPart $ \part -> do
        result <- action (completePart path part)
        result <$ discardPart part
  where
    create = do
      refuseFolder named path
      tryIOError (partBeside path) >>= either (cannotWrite named path) pure

-- | Writes a file completely or not at all. Throws an 'IOException' that names the file.
writeWhole :: FilePath -> Lazy.ByteString -> IO ()
writeWhole path content =
  modifyIOError (`ioeSetFileName` path) $
    bracketOnError (partBeside path) discardPart $ \part -> completePart path part content

-- A file that grows beside its place.
partBeside :: FilePath -> IO (FilePath, Handle)
partBeside path =
  openBinaryTempFileWithDefaultPermissions (takeDirectory path) (takeFileName path <> ".part")

-- Moves it to its place. An error names the file that the user requested.
completePart :: FilePath -> (FilePath, Handle) -> Lazy.ByteString -> IO ()
completePart path (temporary, handle) content = modifyIOError (`ioeSetFileName` path) $ do
  Lazy.hPutStr handle content
  hClose handle
  renameFile temporary path

-- On a full disk closing fails, too.
discardPart :: (FilePath, Handle) -> IO ()
discardPart (temporary, handle) = do
  void (tryIOError (hClose handle))
  void (tryIOError (removePathForcibly temporary))

-- | Whether the path exists and is not a regular file: a device or a pipe must not be replaced by a
-- file.
isSpecial :: FilePath -> IO Bool
isSpecial path = do
  exists <- doesPathExist path
  file <- doesFileExist path
  if exists && file then not . isRegularFile <$> getFileStatus path else pure False

-- | Ends the program if the path of an option is a directory.
refuseFolder :: String -> FilePath -> IO ()
refuseFolder named path = do
  folder <- doesDirectoryExist path
  when folder $ invalidRun (named <> " " <> path <> ": is a directory")

-- | Ends the program because the path of an option cannot be written.
cannotWrite :: String -> FilePath -> IOError -> IO a
cannotWrite named path problem =
  invalidRun $
    named <> " " <> path <> ": cannot be written"
      <> maybe "" ((" (" <>) . (<> ")") . failureText) (describe (toException problem))
