-- | @bench record@: asks a server to say what it does, and keeps it.
--
-- @MONITOR@ sends every command to whoever asked, which costs the server about
-- as much as answering it did. It is for a minute of a quiet server, not for a
-- day of a busy one.
module Tool.Record
  ( record,
  )
where

import Control.Exception (AsyncException (UserInterrupt), bracket, bracketOnError, try, tryJust)
import Control.Monad (guard, unless)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (newIORef, readIORef, writeIORef)
import Data.Maybe (fromMaybe)
import Network.Socket (Socket)
import Network.Socket qualified as Socket
import Network.Socket.ByteString qualified as Socket.ByteString
import Redis.TestKit.Command (encodeRequest)
import System.Directory (removePathForcibly, renameFile)
import System.Exit (ExitCode (..))
import System.FilePath (takeDirectory, takeFileName)
import System.IO (Handle, hClose, openBinaryTempFileWithDefaultPermissions)
import System.Timeout (timeout)
import Tool.Bench.Cpu (Nanos, monotonic)
import Tool.Failure (invalidRun, unavailable)
import Tool.Options.Connection (ConnectionOptions (..))
import Tool.Options.Replay (RecordOptions (..))
import Tool.Span (renderSpan)
import Tool.Text (thousands)

-- | Records until the time or the number is reached, or Ctrl-C. The file is
-- there when it is whole.
record :: RecordOptions -> IO ExitCode
record options = do
  begun <- monotonic
  written <- withConnected (recordConnection options) $ \socket ->
    withTemporary (recordOut options) $ \handle -> do
      counted <- newIORef 0
      let until' = (\seconds -> begun + round (seconds * 1e9)) <$> recordSeconds options
      -- Ctrl-C ends the recording, not what was recorded.
      _ <- tryJust (\problem -> guard (problem == UserInterrupt)) $ do
        ask socket ["MONITOR"]
        observe socket handle until' (recordCount options) (writeIORef counted)
      readIORef counted
  ended <- monotonic
  putStrLn $
    thousands written <> " commands in " <> renderSpan (fromIntegral (ended - begun) / 1e9) <> ": " <> recordOut options
  pure ExitSuccess

withConnected :: ConnectionOptions -> (Socket -> IO a) -> IO a
withConnected options action = do
  found <- try (Socket.getAddrInfo (Just hints) (Just host) (Just port))
  case found of
    Right (address : _) ->
      bracket (Socket.openSocket address) Socket.close $ \socket -> do
        connected <- try (Socket.connect socket (Socket.addrAddress address))
        case connected of
          Left (_ :: IOError) -> unavailable (host <> ":" <> port <> ": nobody answers")
          Right () -> pure ()
        mapM_ (authenticate socket) (connectionPassword options)
        action socket
    Right [] -> unavailable (host <> ": is not known")
    Left (_ :: IOError) -> unavailable (host <> ": is not known")
  where
    host = Char8.unpack (fromMaybe "127.0.0.1" (connectionHost options))
    port = show (fromMaybe 6379 (connectionPort options))
    hints = Socket.defaultHints {Socket.addrSocketType = Socket.Stream}
    authenticate socket password = ask socket (["AUTH"] <> maybe [] pure (connectionUser options) <> [password])

-- A request that is answered with one line, and not with an error. Nothing may
-- be unread before it.
ask :: Socket -> [ByteString] -> IO ()
ask socket request = do
  Socket.ByteString.sendAll socket (encodeRequest request)
  answer <- line ""
  unless ("+" `ByteString.isPrefixOf` answer) $
    unavailable (Char8.unpack (Char8.takeWhile (/= '\r') (ByteString.drop 1 answer)))
  where
    -- A byte at a time, so that what follows stays unread.
    line sofar
      | "\r\n" `ByteString.isSuffixOf` sofar = pure sofar
      | otherwise = do
        byte <- Socket.ByteString.recv socket 1
        if ByteString.null byte then pure (sofar <> "\r\n") else line (sofar <> byte)

-- Writes what comes until the time, the number, or the server's end.
observe :: Socket -> Handle -> Maybe Nanos -> Maybe Int -> (Int -> IO ()) -> IO ()
observe socket handle until' limit counted = go ByteString.empty 0
  where
    go unread seen = do
      now <- monotonic
      let left = (\end -> max 0 ((end - now) `div` 1000)) <$> until'
          enough = maybe False (seen >=) limit || left == Just 0
      unless enough $
        maybe (Just <$>) timeout left (Socket.ByteString.recv socket 65536) >>= \case
          Nothing -> pure ()
          Just bytes
            | ByteString.null bytes -> unless (seen > 0) (unavailable "the server closed the connection")
            | otherwise -> do
              let (complete, rest) = ByteString.breakEnd (== 10) (unread <> bytes)
                  observed = [ByteString.drop 1 each | each <- Char8.lines (Char8.filter (/= '\r') complete), "+" `ByteString.isPrefixOf` each]
                  taken = maybe observed (\most -> take (most - seen) observed) limit
              ByteString.hPut handle (Char8.unlines taken)
              counted (seen + length taken)
              go rest (seen + length taken)

-- A file that appears when the action has ended well.
withTemporary :: FilePath -> (Handle -> IO a) -> IO a
withTemporary path action =
  bracketOnError create (\(temporary, handle) -> hClose handle >> removePathForcibly temporary) $ \(temporary, handle) -> do
    result <- action handle
    hClose handle
    renameFile temporary path
    pure result
  where
    create =
      try (openBinaryTempFileWithDefaultPermissions (takeDirectory path) (takeFileName path <> ".part")) >>= \case
        Left (_ :: IOError) -> invalidRun ("--out " <> path <> ": cannot be written")
        Right opened -> pure opened
