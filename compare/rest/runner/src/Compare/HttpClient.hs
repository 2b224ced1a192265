-- | An HTTP/1.1 client that hides nothing: it sends the bytes that it gets, and returns the status
-- line, the headers and the body as they arrived.
module Compare.HttpClient
  ( Connection,
    withConnection,
    connect,
    disconnect,
    sendBytes,
    receive,
    receiveEnd,
    Response (..),
    header,
    exchange,
    requestBytes,
  )
where

import Control.Exception (bracket, throwIO)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toLower)
import Data.IORef (IORef, newIORef, readIORef, writeIORef)
import Network.Socket (Socket, SocketOption (NoDelay), close, setSocketOption)
import Network.Socket.ByteString (recv, sendAll)
import Redis.TestKit.Address (Address (..), connectTo)

-- | A connection, and the bytes that have arrived and were not used yet.
data Connection = Connection Socket (IORef ByteString)

-- | A response. Header names are in lower case, in the order in which they arrived.
data Response = Response
  { responseStatus :: Int,
    responseReason :: ByteString,
    responseHeaders :: [(ByteString, ByteString)],
    responseBody :: ByteString
  }
  deriving stock (Eq, Show)

-- | The value of a header, by its name in lower case.
header :: ByteString -> Response -> Maybe ByteString
header name = lookup name . responseHeaders

-- | Connects to a port of this machine for the duration of the action. Throws 'IOError'.
withConnection :: Int -> (Connection -> IO a) -> IO a
withConnection port = bracket (connect port) disconnect

-- | Connects to a port of this machine. Throws 'IOError'.
connect :: Int -> IO Connection
connect port = do
  socket <- connectTo (TcpAddress "127.0.0.1" port)
  setSocketOption socket NoDelay 1
  Connection socket <$> newIORef ByteString.empty

-- | Closes the connection.
disconnect :: Connection -> IO ()
disconnect (Connection socket _) = close socket

-- | Sends all bytes.
sendBytes :: Connection -> ByteString -> IO ()
sendBytes (Connection socket _) = sendAll socket

-- | A request as bytes: method, target, and an optional body.
requestBytes :: ByteString -> ByteString -> Maybe ByteString -> ByteString
requestBytes method target body =
  ByteString.concat $
    [method, " ", target, " HTTP/1.1\r\nHost: localhost\r\n"]
      <> maybe ["\r\n"] withLength body
  where
    withLength text =
      ["Content-Type: application/json\r\nContent-Length: ", Char8.pack (show (ByteString.length text)), "\r\n\r\n", text]

-- | Sends a request and waits for its answer.
exchange :: Connection -> ByteString -> IO Response
exchange connection bytes = sendBytes connection bytes >> receive connection

-- | Waits for a response, which must have a length. Throws 'IOError' if the connection ends, or the
-- bytes are not HTTP.
receive :: Connection -> IO Response
receive connection@(Connection _ left) = do
  responseHead <- upToBlankLine
  case Char8.lines (Char8.filter (/= '\r') responseHead) of
    statusLine : headerLines
      | (version, rest) <- Char8.break (== ' ') statusLine,
        version == "HTTP/1.1",
        Just (status, reason) <- Char8.readInt (Char8.drop 1 rest) -> do
        let headers = map splitHeader headerLines
        size <- case lookup "content-length" headers >>= Char8.readInt of
          Just (number, "") -> pure number
          _ -> broken ("no length: " <> show responseHead)
        body <- takeBytes size
        pure (Response status (Char8.drop 1 reason) headers body)
    _ -> broken ("not HTTP/1.1: " <> show responseHead)
  where
    splitHeader line =
      let (name, value) = Char8.break (== ':') line
       in (Char8.map toLower name, Char8.dropWhile (== ' ') (Char8.drop 1 value))
    upToBlankLine = do
      bytes <- readIORef left
      let (before, after) = ByteString.breakSubstring "\r\n\r\n" bytes
      if ByteString.null after
        then more >> upToBlankLine
        else before <$ writeIORef left (ByteString.drop 4 after)
    -- Joins the chunks once.
    takeBytes size = do
      bytes <- readIORef left
      writeIORef left ""
      chunks <- atLeast (size - ByteString.length bytes)
      let (body, rest) = ByteString.splitAt size (ByteString.concat (bytes : chunks))
      body <$ writeIORef left rest
    atLeast missing
      | missing <= 0 = pure []
      | otherwise = do
        more
        chunk <- readIORef left
        writeIORef left ""
        (chunk :) <$> atLeast (missing - ByteString.length chunk)
    more = do
      ended <- receiveMore connection
      if ended then broken "the peer closed the connection" else pure ()

-- | Waits until the peer has closed or broken the connection; discards all bytes before that.
receiveEnd :: Connection -> IO ()
receiveEnd connection = do
  ended <- receiveMore connection
  if ended then pure () else receiveEnd connection

receiveMore :: Connection -> IO Bool
receiveMore (Connection socket left) = do
  chunk <- recv socket 65536
  known <- readIORef left
  writeIORef left (known <> chunk)
  pure (ByteString.null chunk)

broken :: String -> IO a
broken = throwIO . userError
