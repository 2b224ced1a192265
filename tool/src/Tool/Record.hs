-- | @bench record@: records the commands that a server runs, by @MONITOR@, which costs the server
-- about as much as answering them. In a cluster it records each primary into a file of its own,
-- and merges the lines by their times in the end.
module Tool.Record
  ( record,
  )
where

import Control.Concurrent.Async (mapConcurrently_, race_, wait, withAsync)
import Control.Concurrent.MVar (MVar, newEmptyMVar, putMVar, readMVar, tryPutMVar, tryReadMVar)
import Control.Exception (AsyncException (UserInterrupt), bracket, mask_, throwIO, try, tryJust)
import Control.Monad (filterM, guard, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.Foldable (for_)
import Data.IORef (atomicModifyIORef', newIORef, readIORef, writeIORef)
import Data.List qualified as List
import Data.Maybe (isJust)
import Redis.TestKit.Folder (createFolder, folderPath, removeFolder)
import System.Directory (getTemporaryDirectory, renameFile)
import System.Exit (ExitCode (..))
import System.FilePath (takeDirectory, (</>))
import System.IO
import System.IO.Error (ioeSetFileName, modifyIOError, tryIOError)
import System.Timeout (timeout)
import Tool.Bench.Sink (cannotWrite, isSpecial, refuseFolder)
import Tool.Bench.Time (monotonic)
import Tool.Connect (Target, targetNodes, targetOf)
import Tool.Failure (Failure, exitUnavailable)
import Tool.Options.Modes (RecordOptions (..))
import Tool.Record.Wire
import Tool.Span (microsIn, renderSpan, secondsIn)
import Tool.Text (thousands)

-- | Records until the time or the number is reached, or Ctrl-C. The file appears when it is
-- complete. If a server closes its connection earlier, the file has what it had shown by then, and
-- the exit code is a failure. Ends the program if a server's lines could not be read back
-- ("Tool.Record.Wire").
record :: RecordOptions -> IO ExitCode
record options = withPlace (recordOut options) $ \place -> do
  nodes <- targetNodes (targetOf (recordConnection options))
  withEach (withMonitored place) (zip [1 ..] nodes) $ \parts -> do
    counted <- newIORef 0
    full <- newEmptyMVar
    cut <- newIORef False
    begun <- monotonic
    let observing part = observe place part (writeIORef cut True) $ \found -> do
          (room, reached) <- atomicModifyIORef' counted (count (recordCount options) found)
          when reached $ void (tryPutMVar full ())
          pure room
    ended <- withAsync (mapConcurrently_ observing parts) $ \observers -> do
      -- Ctrl-C ends the recording, but keeps what was recorded.
      over <-
        tryJust (\problem -> guard (problem == UserInterrupt))
          . within (recordSeconds options)
          $ race_ (readMVar full) (wait observers)
      ended <- monotonic
      unless (over == Right (Just ())) $ do
        late <- filterM (fmap not . complete observers) parts
        for_ late $ \part -> do
          tell part "the recording fell behind and lacks the latest commands"
          writeIORef cut True
      pure ended
    written <- readIORef counted
    -- Closed here, where a full disk is noticed.
    writing place $ mapM_ (hClose . partHandle) parts
    deliver place (map partFile parts)
    hPutStrLn (if placeOut place == "-" then stderr else stdout) $
      thousands written <> " commands in " <> renderSpan (secondsIn (ended - begun))
        <> (": " <> placeOut place)
    short <- readIORef cut
    pure (if short then ExitFailure exitUnavailable else ExitSuccess)
  where
    within = maybe (fmap Just) (timeout . microsIn)
    -- Has the node show a mark, and waits until everything before it is written. Returns whether
    -- that was in time.
    complete observers part = do
      mark <- newMark
      putMVar (partMark part) mark
      -- If the connection is lost, the observers say so.
      _ <- try @Failure (sendWord (partAsking part) mark)
      isJust <$> timeout 5000000 (race_ (readMVar (partDone part)) (wait observers))
    -- How many of these there is room for, and whether the limit is reached.
    count limit found sofar =
      let room = maybe found (\most -> min found (most - sofar)) limit
       in (sofar + room, (room, maybe False (sofar + room >=) limit))

-- The recording of one node.
data Part = Part
  { partWire :: Wire,
    -- | Another connection to the same node.
    partAsking :: Wire,
    -- | What MONITOR has shown already: complete lines, and the beginning of one.
    partBegun :: (ByteString, Unfinished),
    -- | The word after which the recording ends, once there is one.
    partMark :: MVar ByteString,
    -- | Full when that word was shown.
    partDone :: MVar (),
    partFile :: FilePath,
    partHandle :: Handle
  }

tell :: Part -> String -> IO ()
tell part text = hPutStrLn stderr (wireName (partWire part) <> ": " <> text)

-- Runs an action with a node whose MONITOR is active and can be read back.
withMonitored :: Place -> (Int, Target) -> (Part -> IO a) -> IO a
withMonitored place (number, node) action =
  bracket (writing place (openBinaryFile file WriteMode)) (tryIOError . hClose) $ \handle ->
    -- Connects before MONITOR, so that its log-in is not recorded.
    withConnected node $ \asking ->
      withConnected node $ \wire -> do
        ask wire ["MONITOR"]
        begun <- probe wire asking
        mark <- newEmptyMVar
        done <- newEmptyMVar
        action (Part wire asking begun mark done file handle)
  where
    file = placeFolder place </> show number

-- Opens all of them at the same time.
withEach :: (a -> (b -> IO c) -> IO c) -> [a] -> ([b] -> IO c) -> IO c
withEach with items action = case items of
  [] -> action []
  item : others -> with item $ \one -> withEach with others (action . (one :))

-- Merges the lines of several nodes. Each line begins with its time: seconds and microseconds, of
-- equal length. The lines of one node stay in their order. Lazy; \(O(n m)\) for \(n\) lines of
-- \(m\) nodes.
mergeByTime :: [[Lazy.ByteString]] -> [Lazy.ByteString]
mergeByTime = List.foldl' merge []
  where
    merge ours@(one : rest) theirs@(other : others)
      | time other < time one = other : merge ours others
      | otherwise = one : merge rest theirs
    merge [] theirs = theirs
    merge ours [] = ours
    time = Lazy.takeWhile (/= ' ')

-- Writes the lines until the mark or the end of the connection, as far as there is room. The last
-- argument takes how many lines came and returns how many of them to write. The argument before it
-- runs when the connection ends, if there were lines; if there were none, the program ends.
observe :: Place -> Part -> IO () -> (Int -> IO Int) -> IO ()
observe place part cut room = uncurry keep (partBegun part) (0 :: Int)
  where
    go begun seen = do
      received <- try (receive (partWire part) 65536)
      case received of
        Right bytes | not (ByteString.null bytes) -> uncurry keep (feed begun bytes) seen
        _ | seen > 0 -> do
          tell part ("the server closed the connection after " <> thousands seen <> " commands")
          cut
        Left problem -> throwIO (problem :: Failure)
        Right _ -> blame (partWire part) "the server closed the connection"
    keep complete rest seen = do
      mark <- tryReadMVar (partMark part)
      let shown =
            [ ByteString.drop 1 each
              | each <- Char8.lines (Char8.filter (/= '\r') complete),
                "+" `ByteString.isPrefixOf` each
            ]
          (observed, following) = break (\line -> any (`isMark` line) mark) shown
      -- The lines that are counted are also written, even if the time ends just then.
      mask_ $ do
        taken <- room (length observed)
        writing place $ ByteString.hPut (partHandle part) (Char8.unlines (take taken observed))
      if null following then go rest (seen + length observed) else putMVar (partDone part) ()

-- The file of a recording, and the folder where its parts grow.
data Place = Place
  { placeOut :: FilePath,
    -- | Whether the file is a device or standard output, which cannot be replaced by another file.
    placeIsSpecial :: Bool,
    placeFolder :: FilePath
  }

-- An error names the file that the user requested.
writing :: Place -> IO a -> IO a
writing place = modifyIOError (`ioeSetFileName` placeOut place)

-- Makes a folder beside the file, on the same disk, for the length of an action.
withPlace :: FilePath -> (Place -> IO a) -> IO a
withPlace out action = do
  refuseFolder "--out" out
  special <- if out == "-" then pure True else isSpecial out
  parent <- if special then getTemporaryDirectory else pure (takeDirectory out)
  bracket (create parent) removeFolder (action . Place out special . folderPath)
  where
    create parent =
      tryIOError (modifyIOError (`ioeSetFileName` parent) (createFolder parent "recording.part"))
        >>= either (cannotWrite "--out" out) pure

-- Puts the parts together into the file.
deliver :: Place -> [FilePath] -> IO ()
deliver place parts = writing place $ case parts of
  [part] | not (placeIsSpecial place) -> renameFile part (placeOut place)
  _ -> do
    texts <- traverse Lazy.readFile parts
    put $ case texts of
      [text] -> text
      _ -> Lazy.unlines (mergeByTime (map Lazy.lines texts))
  where
    put merged
      | placeOut place == "-" = Lazy.putStr merged >> hFlush stdout
      | placeIsSpecial place = Lazy.writeFile (placeOut place) merged
      | otherwise = do
        let file = placeFolder place </> "merged"
        Lazy.writeFile file merged
        renameFile file (placeOut place)
