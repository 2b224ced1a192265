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
import Control.Monad (guard, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Internal qualified as Internal
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.ByteString.Unsafe (unsafeUseAsCStringLen)
import Data.IORef (atomicModifyIORef', newIORef, readIORef)
import Data.List qualified as List
import Data.Maybe (fromMaybe)
import Data.Text qualified as Text
import Foreign.Ptr (castPtr, plusPtr)
import Redis.Error (ConnectionCause (ConnectTimedOut), Delivery (NotSent), Endpoint (..), Error (ConnectionError))
import Redis.Internal.Config (Config (configConnectTimeout, configCredentials), Credentials (..), revealSecret)
import Redis.Internal.Network.Connect (connectWith, newConnector)
import Redis.Internal.Network.Transport
import Redis.TestKit.Command (encodeRequest)
import System.Directory (removePathForcibly, renameFile)
import System.Exit (ExitCode (..))
import System.FilePath (takeDirectory, (</>))
import System.IO (Handle, IOMode (WriteMode), withBinaryFile)
import System.IO.Temp (createTempDirectory)
import System.Timeout (timeout)
import Tool.Bench.Cpu (monotonic)
import Tool.Connect (Target (..), masters, quiet, targetConfig, targetNodeName, targetOf)
import Tool.Failure (invalidRun, unavailable)
import Tool.Options.Replay (RecordOptions (..))
import Tool.Span (renderSpan)
import Tool.Text (thousands)

-- | Records until the time or the number is reached, or Ctrl-C. The file is
-- there when it is whole.
record :: RecordOptions -> IO ExitCode
record options = beside (recordOut options) $ \folder -> do
  nodes <- masters (targetOf (recordConnection options))
  let parts = [(node, folder </> show number) | (number, node) <- zip [1 :: Int ..] nodes]
  counted <- newIORef 0
  full <- newEmptyMVar
  begun <- monotonic
  -- Ctrl-C ends the recording, not what was recorded.
  _ <- tryJust (\problem -> guard (problem == UserInterrupt)) . within (recordSeconds options) . race_ (readMVar full) $
    (`mapConcurrently_` parts) $ \(node, part) ->
      withBinaryFile part WriteMode $ \handle ->
        withConnected node $ \transport -> do
          ask transport ["MONITOR"]
          observe (targetNodeName' node) transport handle $ \found -> do
            (room, reached) <- atomicModifyIORef' counted (count (recordCount options) found)
            when reached $ void (tryPutMVar full ())
            pure room
  ended <- monotonic
  written <- readIORef counted
  whole <- case map snd parts of
    [part] -> pure part
    several -> do
      let merged = folder </> "merged"
      texts <- traverse Lazy.readFile several
      Lazy.writeFile merged (Lazy.unlines (mergeByTime (map Lazy.lines texts)))
      pure merged
  renameFile whole (recordOut options)
  putStrLn $
    thousands written <> " commands in " <> renderSpan (fromIntegral (ended - begun) / 1e9) <> ": " <> recordOut options
  pure ExitSuccess
  where
    within = maybe void (\seconds -> void . timeout (ceiling (seconds * 1e6)))
    targetNodeName' = Text.unpack . targetNodeName
    -- How many of so many there is room for, and whether that was the last.
    count limit found sofar =
      let room = maybe found (\most -> min found (most - sofar)) limit
       in (sofar + room, (room, maybe False (sofar + room >=) limit))

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

-- Authenticated.
withConnected :: Target -> (Transport -> IO a) -> IO a
withConnected target action = do
  connector <- newConnector config >>= either failed pure
  bracket (patiently (connectWith connector endpoint) >>= either failed pure) transportClose $ \transport -> do
    mapM_ (authenticate transport) (configCredentials config)
    action transport
  where
    config = targetConfig quiet target
    endpoint = maybe (TcpEndpoint (targetHost target) (targetPort target)) UnixEndpoint (targetSocket target)
    patiently = fmap (fromMaybe (Left (ConnectTimedOut (configConnectTimeout config)))) . timeout (ceiling (configConnectTimeout config * 1e6))
    failed :: ConnectionCause -> IO a
    failed = throwIO . ConnectionError NotSent endpoint
    authenticate transport credentials =
      ask transport (["AUTH"] <> maybe [] pure (credentialsUser credentials) <> [revealSecret (credentialsPassword credentials)])

-- A request that is answered with one line, and not with an error. Nothing may
-- be unread before it.
ask :: Transport -> [ByteString] -> IO ()
ask transport request = do
  send transport (encodeRequest request)
  answer <- line ""
  unless ("+" `ByteString.isPrefixOf` answer) $
    unavailable (Char8.unpack (Char8.takeWhile (/= '\r') (ByteString.drop 1 answer)))
  where
    -- A byte at a time, so that what follows stays unread.
    line sofar
      | "\r\n" `ByteString.isSuffixOf` sofar = pure sofar
      | otherwise = do
        byte <- receive transport 1
        if ByteString.null byte then pure (sofar <> "\r\n") else line (sofar <> byte)

-- Writes what comes until the server's end, as far as there is room; takes how
-- many came, and gives how many of them to write.
observe :: String -> Transport -> Handle -> (Int -> IO Int) -> IO ()
observe name transport handle room = go ByteString.empty (0 :: Int)
  where
    go unread seen = do
      bytes <- receive transport 65536
      if ByteString.null bytes
        then unless (seen > 0) (unavailable (name <> ": the server closed the connection"))
        else do
          let (complete, rest) = ByteString.breakEnd (== 10) (unread <> bytes)
              observed = [ByteString.drop 1 each | each <- Char8.lines (Char8.filter (/= '\r') complete), "+" `ByteString.isPrefixOf` each]
          -- What is counted is written, whenever the time is over.
          mask_ $ do
            taken <- room (length observed)
            ByteString.hPut handle (Char8.unlines (take taken observed))
          go rest (seen + length observed)

-- At least a byte, unless the peer has finished. Blocks.
receive :: Transport -> Int -> IO ByteString
receive transport most = Internal.createAndTrim most attempt
  where
    attempt memory = do
      got <- transportTryRead transport memory most
      if got >= 0 then pure got else awaited transport got >> attempt memory

send :: Transport -> ByteString -> IO ()
send transport bytes = unsafeUseAsCStringLen bytes $ \(memory, size) -> go (castPtr memory) size
  where
    go memory left = unless (left == 0) $ do
      sent <- transportTryWrite transport memory left
      if sent >= 0 then go (memory `plusPtr` sent) (left - sent) else awaited transport sent >> go memory left

awaited :: Transport -> Attempt -> IO ()
awaited transport attempt
  | attempt == attemptWouldWrite = transportWaitWritable transport
  | otherwise = transportWaitReadable transport

-- With a folder beside a file, which is gone in the end.
beside :: FilePath -> (FilePath -> IO a) -> IO a
beside path = bracket create removePathForcibly
  where
    create =
      try (createTempDirectory (takeDirectory path) "recording.part") >>= \case
        Left (_ :: IOError) -> invalidRun ("--out " <> path <> ": cannot be written")
        Right folder -> pure folder
