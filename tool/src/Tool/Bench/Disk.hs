-- | The cost of a disk for a server that must not lose anything: how long it takes until the kernel
-- confirms that an append has reached the disk.
module Tool.Bench.Disk
  ( probeDisk,

    -- * Parts
    filesystemOf,
  )
where

import Control.Exception (IOException, bracket, try)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (isPrefixOf, maximumBy)
import Data.Ord (comparing)
import Data.Text (Text)
import Data.Text qualified as Text
import System.Directory (canonicalizePath, getPermissions, removeFile, writable)
import System.FilePath (addTrailingPathSeparator)
import System.IO (openBinaryTempFile)
import System.Posix.IO (closeFd, fdWrite, handleToFd)
import System.Posix.Types (Fd)
import System.Posix.Unistd (fileSynchroniseDataOnly)
import Tool.Bench.Document (Disk (..))
import Tool.Bench.Environment (contents)
import Tool.Bench.Histogram (fromValues)
import Tool.Bench.Time (Nanos, monotonic)

-- | Appends a hundred bytes and synchronises, up to two hundred times or for half a second, in a
-- file of its own in that folder. 'Nothing' if it cannot write there. Blocks for up to half a
-- second and one synchronisation.
probeDisk :: FilePath -> IO (Maybe Disk)
probeDisk folder = do
  mounts <- contents "/proc/self/mounts"
  outcome <- try @IOException $ do
    place <- canonicalizePath folder
    allowed <- writable <$> getPermissions place
    if allowed then Just . (,) place <$> measured place else pure Nothing
  pure $ case outcome of
    Right (Just (place, found)) ->
      Just Disk {diskFilesystem = filesystemOf mounts place, diskFsync = fromValues found}
    _ -> Nothing

measured :: FilePath -> IO [Nanos]
measured folder =
  bracket (openBinaryTempFile folder "fsync-probe") (removeFile . fst) $ \(_, handle) ->
    bracket (handleToFd handle) closeFd $ \file -> do
      -- Not counted: the first append allocates blocks and metadata.
      _ <- once file
      began <- monotonic
      repeated (began + 500000000) 200 file
  where
    repeated :: Nanos -> Int -> Fd -> IO [Nanos]
    repeated _ 0 _ = pure []
    repeated end left file = do
      took <- once file
      now <- monotonic
      if now >= end then pure [took] else (took :) <$> repeated end (left - 1) file
    once file = do
      before <- monotonic
      _ <- fdWrite file (replicate 100 'x')
      fileSynchroniseDataOnly file
      subtract before <$> monotonic

-- | The type and the options of the file system that a folder lies on, from the
-- text of @/proc/self/mounts@; the longest mount point wins.
filesystemOf :: ByteString -> FilePath -> Text
filesystemOf mounts folder = case mountPoints of
  [] -> "unknown"
  found ->
    let (_, kind, options) = maximumBy (comparing (\(size, _, _) -> size)) found
     in Text.pack (kind <> " (" <> options <> ")")
  where
    mountPoints =
      [ (length point, kind, options)
        | _ : point : kind : options : _ <- entries,
          within point
      ]
    entries = map (map Char8.unpack . Char8.words) (Char8.lines mounts)
    within point = addTrailingPathSeparator point `isPrefixOf` addTrailingPathSeparator folder
