-- | Where the JSON goes. Whether it can be written is found out before the run,
-- and a file appears only when it is whole: it is written beside its place and
-- moved there.
module Tool.Bench.Sink
  ( withSink,
  )
where

import Control.Exception (bracketOnError, toException)
import Control.Monad (void)
import Data.Aeson (Value, encode)
import Data.ByteString.Lazy.Char8 qualified as Lazy
import System.Directory (doesDirectoryExist, doesFileExist, doesPathExist, removePathForcibly, renameFile)
import System.FilePath (takeDirectory, takeFileName)
import System.IO (hClose, openBinaryTempFileWithDefaultPermissions, stdout)
import System.IO.Error (tryIOError)
import System.Posix.Files (getFileStatus, isRegularFile)
import Tool.Failure (describe, failureText, invalidRun)

-- | Hands the action a function that writes the document, once.
withSink :: Maybe FilePath -> ((Value -> IO ()) -> IO a) -> IO a
withSink Nothing action = action (\_ -> pure ())
withSink (Just "-") action = action (Lazy.hPutStrLn stdout . encode)
withSink (Just path) action = do
  special <- isSpecial
  if special
    then action (Lazy.writeFile path . encode)
    else bracketOnError create (\(temporary, handle) -> hClose handle >> removePathForcibly temporary) $
      \(temporary, handle) -> do
        result <- action $ \document -> do
          Lazy.hPutStrLn handle (encode document)
          hClose handle
          renameFile temporary path
        hClose handle
        void (tryIOError (removePathForcibly temporary))
        pure result
  where
    create = do
      folder <- doesDirectoryExist path
      if folder
        then invalidRun ("--json " <> path <> ": is a directory")
        else
          tryIOError (openBinaryTempFileWithDefaultPermissions (takeDirectory path) (takeFileName path <> ".part"))
            >>= either cannot pure
    cannot problem =
      invalidRun $
        "--json " <> path <> ": cannot be written"
          <> maybe "" ((" (" <>) . (<> ")") . failureText) (describe (toException problem))
    -- A device or a pipe is not to be replaced by a file.
    isSpecial = do
      exists <- doesPathExist path
      file <- doesFileExist path
      if exists && file then not . isRegularFile <$> getFileStatus path else pure False
