-- | @bench record@: asks a server to say what it does, and keeps it.
--
-- @MONITOR@ sends every command to whoever asked, which costs the server about
-- as much as answering it did. It is for a minute of a quiet server, not for a
-- day of a busy one.
--
-- In a cluster each node tells only what it did itself. So all masters are
-- asked at once, each into a file of its own; in the end the lines are merged
-- by the times that the nodes gave them, which are as good as their clocks.
module Tool.Record
  ( record,
    mergeByTime,
  )
where

import Control.Concurrent.Async (mapConcurrently_, race_)
import Control.Concurrent.MVar (newEmptyMVar, readMVar, tryPutMVar)
import Control.Exception (AsyncException (UserInterrupt), bracket, mask_, throwIO, try, tryJust)
import Control.Monad (guard, void, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.IORef (atomicModifyIORef', newIORef, readIORef, writeIORef)
import Data.List qualified as List
import System.Directory (getTemporaryDirectory, removePathForcibly, renameFile)
import System.Exit (ExitCode (..))
import System.FilePath (takeDirectory, (</>))
import System.IO
  ( Handle,
    IOMode (WriteMode),
    hClose,
    hFlush,
    hPutStrLn,
    openBinaryFile,
    stderr,
    stdout,
  )
import System.IO.Error (ioeSetFileName, modifyIOError, tryIOError)
import System.IO.Temp (createTempDirectory)
import System.Timeout (timeout)
import Tool.Bench.Cpu (monotonic)
import Tool.Bench.Sink (cannotWrite, isSpecial, refuseFolder)
import Tool.Connect (Target, targetNodes, targetOf)
import Tool.Failure (Failure, exitUnavailable)
import Tool.Options.Replay (RecordOptions (..))
import Tool.Record.Probe (probe)
import Tool.Record.Wire (Wire (wireName), ask, blame, receive, withConnected)
import Tool.Span (microsIn, renderSpan, secondsIn)
import Tool.Text (thousands)

-- | Records until the time or the number is reached, or Ctrl-C. The file is
-- there when it is whole; where a server ended first, with what it had said, and
-- the exit code tells. Ends the program where a server's lines could not be read
-- back ("Tool.Record.Probe").
record :: RecordOptions -> IO ExitCode
record options = withPlace (recordOut options) $ \place -> do
  nodes <- targetNodes (targetOf (recordConnection options))
  withEach (withMonitored place) (zip [1 ..] nodes) $ \parts -> do
    counted <- newIORef 0
    full <- newEmptyMVar
    cut <- newIORef False
    begun <- monotonic
    -- Ctrl-C ends the recording, not what was recorded.
    _ <- tryJust (\problem -> guard (problem == UserInterrupt))
      . within (recordSeconds options)
      . race_ (readMVar full)
      $ (`mapConcurrently_` parts) $ \part ->
        observe place part (writeIORef cut True) $ \found -> do
          (room, reached) <- atomicModifyIORef' counted (count (recordCount options) found)
          when reached $ void (tryPutMVar full ())
          pure room
    ended <- monotonic
    written <- readIORef counted
    -- Here, where a full disk is noticed.
    writing place $ mapM_ (hClose . partHandle) parts
    deliver place (map partFile parts)
    hPutStrLn (if placeOut place == "-" then stderr else stdout) $
      thousands written
        <> " commands in "
        <> renderSpan (secondsIn (ended - begun))
        <> ": "
        <> placeOut place
    short <- readIORef cut
    pure (if short then ExitFailure exitUnavailable else ExitSuccess)
  where
    within = maybe void (\seconds -> void . timeout (microsIn seconds))
    -- How many of so many there is room for, and whether that was the last.
    count limit found sofar =
      let room = maybe found (\most -> min found (most - sofar)) limit
       in (sofar + room, (room, maybe False (sofar + room >=) limit))

-- What one node says.
data Part = Part
  { partWire :: Wire,
    -- | What it has said already.
    partBegun :: ByteString,
    partFile :: FilePath,
    partHandle :: Handle
  }

-- With a node that says what it does, and says it well.
withMonitored :: Place -> (Int, Target) -> (Part -> IO a) -> IO a
withMonitored place (number, node) action =
  bracket (writing place (openBinaryFile file WriteMode)) (tryIOError . hClose) $ \handle ->
    -- Connected first, so that its log-in is not recorded.
    withConnected node $ \asking ->
      withConnected node $ \wire -> do
        ask wire ["MONITOR"]
        begun <- probe wire asking
        action Part {partWire = wire, partBegun = begun, partFile = file, partHandle = handle}
  where
    file = placeFolder place </> show number

-- All of them at once.
withEach :: (a -> (b -> IO c) -> IO c) -> [a] -> ([b] -> IO c) -> IO c
withEach with items action = case items of
  [] -> action []
  item : others -> with item $ \one -> withEach with others (action . (one :))

-- | Lines of several nodes as one, each of which begins with its time: seconds
-- and microseconds, of equal lengths. The order of each node's own lines stays
-- as it is. Lazy; \(O(n m)\) for \(n\) lines of \(m\) nodes.
mergeByTime :: [[Lazy.ByteString]] -> [Lazy.ByteString]
mergeByTime = List.foldl' merge []
  where
    merge ours@(one : rest) theirs@(other : others)
      | time other < time one = other : merge ours others
      | otherwise = one : merge rest theirs
    merge [] theirs = theirs
    merge ours [] = ours
    time = Lazy.takeWhile (/= ' ')

-- Writes what comes until the server's end, as far as there is room; the last
-- argument takes how many came, and gives how many of them to write. The one before
-- is done at that end, if anything came; if nothing did, it ends the program.
observe :: Place -> Part -> IO () -> (Int -> IO Int) -> IO ()
observe place part cut room = keep (partBegun part) (0 :: Int)
  where
    go unread seen = do
      received <- try (receive (partWire part) 65536)
      case received of
        Right bytes | not (ByteString.null bytes) -> keep (unread <> bytes) seen
        _ | seen > 0 -> do
          hPutStrLn
            stderr
            ( wireName (partWire part)
                <> ": the server closed the connection after "
                <> thousands seen
                <> " commands"
            )
          cut
        Left problem -> throwIO (problem :: Failure)
        Right _ -> blame (partWire part) "the server closed the connection"
    keep bytes seen = do
      let (complete, rest) = ByteString.breakEnd (== 10) bytes
          observed =
            [ ByteString.drop 1 each
              | each <- Char8.lines (Char8.filter (/= '\r') complete),
                "+" `ByteString.isPrefixOf` each
            ]
      -- What is counted is written, whenever the time is over.
      mask_ $ do
        taken <- room (length observed)
        writing place $ ByteString.hPut (partHandle part) (Char8.unlines (take taken observed))
      go rest (seen + length observed)

-- Where a recording goes, and the folder where it grows.
data Place = Place
  { placeOut :: FilePath,
    -- | Whether it is a device or the standard output, and not a file that
    -- another can be put in the place of.
    placeIsSpecial :: Bool,
    placeFolder :: FilePath
  }

-- What goes wrong is said of the file that was asked for.
writing :: Place -> IO a -> IO a
writing place = modifyIOError (`ioeSetFileName` placeOut place)

-- With a folder beside the file, on the same disk, which is gone in the end.
withPlace :: FilePath -> (Place -> IO a) -> IO a
withPlace out action = do
  refuseFolder "--out" out
  special <- if out == "-" then pure True else isSpecial out
  parent <- if special then getTemporaryDirectory else pure (takeDirectory out)
  bracket (create parent) removePathForcibly (action . Place out special)
  where
    create parent =
      tryIOError
        ( modifyIOError
            (`ioeSetFileName` parent)
            (createTempDirectory parent "recording.part")
        )
        >>= either (cannotWrite "--out" out) pure

-- Puts the parts together where they are wanted.
deliver :: Place -> [FilePath] -> IO ()
deliver place parts = writing place $ case parts of
  [part] | not (placeIsSpecial place) -> renameFile part (placeOut place)
  _ -> do
    texts <- traverse Lazy.readFile parts
    let merged = case texts of
          [text] -> text
          _ -> Lazy.unlines (mergeByTime (map Lazy.lines texts))
    put merged
  where
    put merged
      | placeOut place == "-" = Lazy.putStr merged >> hFlush stdout
      | placeIsSpecial place = Lazy.writeFile (placeOut place) merged
      | otherwise = do
        let file = placeFolder place </> "merged"
        Lazy.writeFile file merged
        renameFile file (placeOut place)
