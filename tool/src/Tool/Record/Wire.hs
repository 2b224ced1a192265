-- | Connections that a recording needs: the library's transports, without its
-- client, because nothing but @MONITOR@ is answered for ever.
module Tool.Record.Wire
  ( Wire (..),
    withConnected,
    blame,
    ask,
    answeredOn,
    receive,
  )
where

import Control.Exception (IOException, bracket, handle, throwIO)
import Control.Monad (unless)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Internal qualified as Internal
import Data.ByteString.Unsafe (unsafeUseAsCStringLen)
import Data.Maybe (fromMaybe)
import Data.Text qualified as Text
import Foreign.Ptr (castPtr, plusPtr)
import Redis.Error (ConnectionCause (ConnectTimedOut), Delivery (NotSent), Endpoint (..), Error (ConnectionError))
import Redis.Internal.Config (Config (configConnectTimeout, configCredentials), Credentials (..), fixedCredentials, revealSecret)
import Redis.Internal.Network.Connect (connectWith, newConnector)
import Redis.Internal.Network.Transport
import Redis.TestKit.Command (encodeRequest)
import System.IO.Error (ioeGetErrorString)
import System.Timeout (timeout)
import Tool.Connect (Target (..), quiet, targetConfig, targetNodeName)
import Tool.Failure (unavailable)

-- | A connection, and the name of the node for what goes wrong there.
data Wire = Wire
  { wireName :: String,
    wireTransport :: Transport
  }

-- | A connection for the length of an action, authenticated. Throws the
-- library's error where there is none or it breaks, and ends the program where
-- the server refuses.
withConnected :: Target -> (Wire -> IO a) -> IO a
withConnected target action = do
  connector <- newConnector config >>= either failed pure
  bracket (patiently (connectWith connector endpoint) >>= either failed pure) transportClose $ \transport -> do
    let wire = Wire {wireName = Text.unpack (targetNodeName target), wireTransport = transport}
    mapM_ (authenticate wire) (fixedCredentials (configCredentials config))
    action wire
  where
    config = targetConfig quiet target
    endpoint = maybe (TcpEndpoint (targetHost target) (targetPort target)) UnixEndpoint (targetSocket target)
    patiently = fmap (fromMaybe (Left (ConnectTimedOut (configConnectTimeout config)))) . timeout (ceiling (configConnectTimeout config * 1e6))
    failed :: ConnectionCause -> IO a
    failed = throwIO . ConnectionError NotSent endpoint
    authenticate wire credentials =
      ask wire (["AUTH"] <> maybe [] pure (credentialsUser credentials) <> [revealSecret (credentialsPassword credentials)])

-- | Ends the program because of what the node does.
blame :: Wire -> String -> IO a
blame wire problem = unavailable (wireName wire <> ": " <> problem)

-- | A request that is answered with one line, and not with an error. Nothing may
-- be unread before it, and nothing after that line is read. Blocks for it, for at
-- most ten seconds.
ask :: Wire -> [ByteString] -> IO ()
ask wire request = do
  answer <- request `answeredOn` wire
  unless ("+" `ByteString.isPrefixOf` answer) . blame wire $
    if "-" `ByteString.isPrefixOf` answer
      then "the server refuses: " <> Char8.unpack (ByteString.drop 1 answer)
      else "it does not speak as Redis does: " <> show (ByteString.take 40 answer)

-- | The first line of the answer to a request, of a kilobyte at most. Blocks for
-- it, for at most ten seconds.
answeredOn :: [ByteString] -> Wire -> IO ByteString
answeredOn request wire =
  timeout 10000000 (send wire (encodeRequest request) >> line "")
    >>= maybe (blame wire "does not answer") pure
  where
    -- A byte at a time, so that what follows stays unread.
    line sofar
      | "\r\n" `ByteString.isSuffixOf` sofar = pure (ByteString.take (ByteString.length sofar - 2) sofar)
      | ByteString.length sofar > 1024 = pure sofar
      | otherwise = do
        byte <- receive wire 1
        if ByteString.null byte then blame wire "the server closed the connection" else line (sofar <> byte)

-- | At least a byte, unless the peer has finished. Blocks.
receive :: Wire -> Int -> IO ByteString
receive wire most = mended wire (Internal.createAndTrim most attempt)
  where
    transport = wireTransport wire
    attempt memory = do
      got <- transportTryRead transport memory most
      if got >= 0 then pure got else awaited transport got >> attempt memory

-- | All of it. Blocks.
send :: Wire -> ByteString -> IO ()
send wire bytes = mended wire $ unsafeUseAsCStringLen bytes $ \(memory, size) -> go (castPtr memory) size
  where
    transport = wireTransport wire
    go memory left = unless (left == 0) $ do
      sent <- transportTryWrite transport memory left
      if sent >= 0 then go (memory `plusPtr` sent) (left - sent) else awaited transport sent >> go memory left

-- Says which connection broke.
mended :: Wire -> IO a -> IO a
mended wire = handle $ \problem -> blame wire ("the connection broke: " <> ioeGetErrorString (problem :: IOException))

awaited :: Transport -> Attempt -> IO ()
awaited transport attempt
  | attempt == attemptWouldWrite = transportWaitWritable transport
  | otherwise = transportWaitReadable transport
