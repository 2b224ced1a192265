-- | A minimal client that can set up a server and ask it questions.
--
-- It shares nothing with the library under test, so that a bug there cannot hide itself: one
-- blocking request at a time, RESP2, no optimisations.
module Redis.TestKit.Command
  ( -- * Connections
    Connection,
    withConnection,
    openConnection,
    closeConnection,

    -- * Requests
    Reply (..),
    request,
    requestOk,
    sendRaw,
    receiveReply,
    encodeRequest,

    -- * The other side
    Protocol (..),
    encodeReply,
    encodePush,
    takeRequest,
    receiveAtLeast,

    -- * Reading replies
    replyText,
    infoFields,
    nameAndVersion,
    CommandCalls (..),
    commandCalls,
  )
where

import Control.Applicative ((<|>))
import Control.Exception (bracket, bracketOnError)
import Control.Monad (replicateM)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (IORef, newIORef, readIORef, writeIORef)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, mapMaybe)
import GHC.Stack (HasCallStack)
import Network.Socket (Socket)
import Network.Socket.ByteString qualified as Socket.ByteString
import Redis.TestKit.Address (Address, closeSocket, connectTo)
import Redis.TestKit.Wait (failure, within)

-- | One connection, for one thread at a time.
data Connection = Connection
  { connectionSocket :: Socket,
    connectionUnread :: IORef ByteString
  }

-- | A reply: the types of RESP2, and some of RESP3. A 'Connection' of this module only receives the
-- former.
data Reply
  = Status ByteString
  | Failed ByteString
  | Number Integer
  | Text ByteString
  | Nil
  | List [Reply]
  | -- | In RESP2 a list of alternating keys and values.
    Mapping [(Reply, Reply)]
  | -- | In RESP2 1 or 0.
    Truth Bool
  | -- | In RESP2 a text.
    Decimal Double
  deriving stock (Eq, Show)

-- | A connection for the duration of an action. Throws 'IOException' if no server listens there.
withConnection :: Address -> (Connection -> IO a) -> IO a
withConnection address = bracket (openConnection address) closeConnection

-- | Connects. The caller must call 'closeConnection'.
openConnection :: Address -> IO Connection
openConnection address =
  bracketOnError (connectTo address) closeSocket $ \socket ->
    Connection socket <$> newIORef ByteString.empty

-- | Closes. Idempotent.
closeConnection :: Connection -> IO ()
closeConnection = closeSocket . connectionSocket

-- | Sends a command and blocks for its reply, for at most 10 seconds. An error reply is returned as
-- a value; a broken connection is an exception.
request :: HasCallStack => Connection -> [ByteString] -> IO Reply
request connection arguments = do
  sendRaw connection (encodeRequest arguments)
  receiveReply connection

-- | Like 'request', for a command that must not fail: an error reply is thrown as a
-- 'Redis.TestKit.Wait.TestKitFailure'.
requestOk :: HasCallStack => Connection -> [ByteString] -> IO Reply
requestOk connection arguments =
  request connection arguments >>= \case
    Failed text ->
      failure (Char8.unpack (Char8.unwords arguments <> ": " <> text))
    reply -> pure reply

-- | Sends bytes as they are.
sendRaw :: Connection -> ByteString -> IO ()
sendRaw = Socket.ByteString.sendAll . connectionSocket

-- | A command as bytes.
encodeRequest :: [ByteString] -> ByteString
encodeRequest arguments =
  ByteString.concat (header '*' (length arguments) : concatMap bulk arguments)
  where
    header mark size = Char8.cons mark (Char8.pack (show size) <> "\r\n")
    bulk argument = [header '$' (ByteString.length argument), argument, "\r\n"]

-- | The protocol of a connection.
data Protocol = Resp2 | Resp3
  deriving stock (Eq, Ord, Show)

-- | A reply as bytes.
encodeReply :: Protocol -> Reply -> ByteString
encodeReply protocol = \case
  Status text -> "+" <> text <> "\r\n"
  Failed text -> "-" <> text <> "\r\n"
  Number value -> ":" <> shown value <> "\r\n"
  Text text -> "$" <> shown (size text) <> "\r\n" <> text <> "\r\n"
  Nil -> if protocol == Resp3 then "_\r\n" else "$-1\r\n"
  List items -> several '*' items
  Mapping pairs
    | protocol == Resp3 -> "%" <> shown (toInteger (length pairs)) <> "\r\n" <> foldMap (\(key, value) -> encodeReply protocol key <> encodeReply protocol value) pairs
    | otherwise -> several '*' (concatMap (\(key, value) -> [key, value]) pairs)
  Truth value
    | protocol == Resp3 -> if value then "#t\r\n" else "#f\r\n"
    | otherwise -> encodeReply protocol (Number (if value then 1 else 0))
  Decimal value
    | protocol == Resp3 -> "," <> Char8.pack (show value) <> "\r\n"
    | otherwise -> encodeReply protocol (Text (Char8.pack (show value)))
  where
    several mark items = Char8.cons mark (shown (toInteger (length items))) <> "\r\n" <> foldMap (encodeReply protocol) items
    size = toInteger . ByteString.length
    shown = Char8.pack . show @Integer

-- | A push message as bytes. In RESP2, which has none, it looks like a list.
encodePush :: Protocol -> [Reply] -> ByteString
encodePush protocol items
  | protocol == Resp3 = ">" <> ByteString.drop 1 (encodeReply protocol (List items))
  | otherwise = encodeReply protocol (List items)

-- | The first command in the bytes that a client has sent, and the bytes after it. If the command is not
-- complete yet, how many bytes are missing at least; whoever waits for so many before looking again takes
-- linear time for a long command.
takeRequest :: ByteString -> Either Int ([ByteString], ByteString)
takeRequest bytes = do
  (count, rest) <- header '*' bytes
  go count rest []
  where
    go :: Int -> ByteString -> [ByteString] -> Either Int ([ByteString], ByteString)
    go 0 rest found = Right (reverse found, rest)
    go left rest found = do
      (size, body) <- header '$' rest
      if ByteString.length body < size + 2
        then -- Each later word takes six bytes or more.
          Left (size + 2 - ByteString.length body + 6 * (left - 1))
        else go (left - 1) (ByteString.drop (size + 2) body) (ByteString.take size body : found)
    header mark = maybe (Left 1) Right . headerOf mark
    headerOf mark text = do
      ('\r', _) <- Char8.uncons (Char8.dropWhile (/= '\r') text)
      (found, body) <- Char8.uncons text
      (value, rest) <- Char8.readInt body
      if found == mark && ByteString.length rest >= 2 then Just (value, ByteString.drop 2 rest) else Nothing

-- | Blocks for the next reply, for at most 10 seconds.
receiveReply :: HasCallStack => Connection -> IO Reply
receiveReply connection = within 10 parse
  where
    parse = do
      line <- takeLine connection
      case Char8.uncons line of
        Just ('+', text) -> pure (Status text)
        Just ('-', text) -> pure (Failed text)
        Just (':', digits) -> Number <$> number digits
        Just ('$', digits) -> number digits >>= bulk . fromInteger
        Just ('*', digits) -> number digits >>= list . fromInteger
        _ -> failure ("not RESP2: " <> show line)
    bulk size
      | size < 0 = pure Nil
      | otherwise = do
        bytes <- takeBytes connection (size + 2)
        pure (Text (ByteString.take size bytes))
    list count
      | count < 0 = pure Nil
      | otherwise = List <$> replicateM count parse
    number digits = case Char8.readInteger digits of
      Just (value, "") -> pure value
      _ -> failure ("not a number: " <> show digits)

takeLine :: Connection -> IO ByteString
takeLine connection = do
  unread <- readIORef (connectionUnread connection)
  case ByteString.breakSubstring "\r\n" unread of
    (line, rest)
      | ByteString.null rest -> receiveMore connection >> takeLine connection
      | otherwise -> do
        writeIORef (connectionUnread connection) $! ByteString.drop 2 rest
        pure line

takeBytes :: Connection -> Int -> IO ByteString
takeBytes connection size = do
  unread <- readIORef (connectionUnread connection)
  if ByteString.length unread < size
    then do
      -- Joined once: joining each chunk to all before it would take quadratic time.
      more <- receiveAtLeast (receiveSome connection) (size - ByteString.length unread)
      writeIORef (connectionUnread connection) $! ByteString.concat (unread : more)
      takeBytes connection size
    else do
      writeIORef (connectionUnread connection) $! ByteString.drop size unread
      pure (ByteString.take size unread)

receiveMore :: Connection -> IO ()
receiveMore connection = do
  bytes <- receiveSome connection
  unread <- readIORef (connectionUnread connection)
  writeIORef (connectionUnread connection) $! unread <> bytes

receiveSome :: Connection -> IO ByteString
receiveSome connection = do
  bytes <- Socket.ByteString.recv (connectionSocket connection) 65536
  if ByteString.null bytes
    then ioError (userError "the server closed the connection")
    else pure bytes

-- | Chunks of this many bytes or more in all, or up to the first empty one.
receiveAtLeast :: IO ByteString -> Int -> IO [ByteString]
receiveAtLeast receive missing
  | missing <= 0 = pure []
  | otherwise = do
    bytes <- receive
    if ByteString.null bytes then pure [] else (bytes :) <$> receiveAtLeast receive (missing - ByteString.length bytes)

-- | The text of a status or a bulk string.
replyText :: Reply -> Maybe ByteString
replyText = \case
  Status text -> Just text
  Text text -> Just text
  _ -> Nothing

-- | The fields of an @INFO@ or @CLUSTER INFO@ text.
infoFields :: ByteString -> Map ByteString ByteString
infoFields = Map.fromList . mapMaybe field . Char8.lines
  where
    field line = case Char8.break (== ':') line of
      (name, value)
        | ByteString.null value -> Nothing
        | otherwise -> Just (name, Char8.filter (/= '\r') (ByteString.drop 1 value))

-- | The server's name and version, such as @redis 7.0.15@, from the fields of @INFO server@;
-- 'Nothing' if they do not contain it. Valkey also reports the version of Redis that it is
-- compatible with, which is not its own.
nameAndVersion :: Map ByteString ByteString -> Maybe ByteString
nameAndVersion fields = named "valkey" <|> named "redis"
  where
    named name = ((name <> " ") <>) <$> Map.lookup (name <> "_version") fields

-- | One line of @INFO commandstats@: how often a command ran, was refused
-- before it ran, and failed while it ran.
data CommandCalls = CommandCalls
  { callsRun :: Int,
    callsRejected :: Int,
    callsFailed :: Int
  }
  deriving stock (Eq, Show)

-- | Reads @INFO commandstats@, by lower-case command name (@get@, @config|set@).
commandCalls :: ByteString -> Map ByteString CommandCalls
commandCalls = Map.fromList . mapMaybe line . Map.toList . infoFields
  where
    line (name, statistics) = do
      command <- ByteString.stripPrefix "cmdstat_" name
      let value key = do
            found <- lookup key (pairs statistics)
            fst <$> Char8.readInt found
      run <- value "calls"
      pure
        ( command,
          CommandCalls
            { callsRun = run,
              callsRejected = fromMaybe 0 (value "rejected_calls"),
              callsFailed = fromMaybe 0 (value "failed_calls")
            }
        )
    pairs = map (fmap (ByteString.drop 1) . Char8.break (== '=')) . Char8.split ','
