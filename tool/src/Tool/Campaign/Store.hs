-- | A campaign's directory:
--
-- > DIRECTORY/settings.json     how measurements are made
-- > DIRECTORY/runs/CELL/1.json  one measurement, a document of its own
--
-- A file gets its name when it is complete. So a campaign that was interrupted goes on with the
-- measurements that have no file, if the settings are the same.
module Tool.Campaign.Store
  ( openStore,
    keep,
    recall,
  )
where

import Control.Exception (try)
import Control.Monad (unless, when)
import Data.Aeson (Value, eitherDecodeStrict', encode)
import Data.ByteString qualified as ByteString
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import System.Directory (createDirectoryIfMissing, doesFileExist, listDirectory)
import System.FilePath (takeDirectory, (<.>), (</>))
import System.IO.Error (isFullError)
import Tool.Bench.Document (Document)
import Tool.Bench.Document.Json (checked, decodeWritten, documentValue)
import Tool.Bench.Sink (writeWhole)
import Tool.Failure (invalidRun)

-- | Opens a directory for a campaign with these settings, and creates it if it is missing. The flag
-- says whether the directory may have a campaign already. Throws 'Tool.Failure.Failure' with one
-- line if it has one that must not be continued, if the settings differ or are missing, and if the
-- directory cannot be written.
openStore :: Bool -> Map Text Text -> FilePath -> IO ()
openStore resume settings folder = do
  try (createDirectoryIfMissing True (folder </> "runs")) >>= either unwritable pure
  exists <- doesFileExist file
  if exists
    then do
      unless resume $
        refuse "has a campaign already; go on with it by --resume, or name another directory"
      bytes <- ByteString.readFile file
      before <- either (const unreadable) pure (eitherDecodeStrict' bytes)
      when (before /= settings) $
        refuse ("was measured with other settings: " <> differences before)
    else do
      kept <- listDirectory (folder </> "runs")
      unless (null kept) $
        refuse
          "has measurements, but no settings.json that says how they were made; \
          \name another directory"
      written <- try (writeWhole file (encode settings))
      either (\problem -> if isFullError problem then ioError problem else unwritable problem) pure written
  where
    file = folder </> "settings.json"
    refuse why = invalidRun ("--out " <> folder <> ": " <> why)
    unwritable :: IOError -> IO ()
    unwritable = refuse . (\why -> "cannot be written (" <> why <> ")") . lastLine . show
    lastLine = concat . take 1 . reverse . lines
    unreadable = invalidRun (file <> ": cannot be read")
    differences before =
      Text.unpack . Text.intercalate ", " $
        [ name <> " " <> at before <> ", now " <> at settings
          | name <- Map.keys (Map.union before settings),
            let at = Map.findWithDefault "-" name,
            Map.lookup name before /= Map.lookup name settings
        ]

-- The file of a measurement in a directory.
fileOf :: FilePath -> FilePath -> FilePath
fileOf folder name = folder </> "runs" </> name <.> "json"

-- | Writes a measurement of that name into a directory that was opened.
keep :: FilePath -> FilePath -> Document -> IO ()
keep folder name document = do
  createDirectoryIfMissing True (takeDirectory (fileOf folder name))
  writeWhole (fileOf folder name) (encode (documentValue document :: Value))

-- | The directory's measurement of that name, if there is one. It has a problem if its numbers contradict each
-- other. Throws 'Tool.Failure.Failure' if its file cannot be read.
recall :: FilePath -> FilePath -> IO (Maybe Document)
recall folder name = do
  exists <- doesFileExist file
  if exists
    then ByteString.readFile file >>= either bad (pure . Just . uncurry checked) . decodeWritten
    else pure Nothing
  where
    file = fileOf folder name
    bad problem = invalidRun (file <> ": " <> problem)
