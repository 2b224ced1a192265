-- | Commands about the connection that carries them: whether the server answers, and the
-- connection's user, name and state.
--
-- > withDedicated client (AtNode node) $ \connection -> do
-- >   runOn connection (Redis.clientSetname "example:access")
-- >   name <- runOn connection Redis.clientGetname
--
-- Commands that change the state of a connection are refused where callers share one. The handshake
-- sends them, and so may a caller that holds a dedicated connection ('Redis.Client.withDedicated').
-- Commands about all connections of a server are in "Redis.Commands.Client". The server's
-- pages: <https://valkey.io/commands/#connection>.
module Redis.Commands.Connection
  ( -- * On any connection
    ping,
    pingMessage,
    echo,
    clientId,
    clientGetname,

    -- * On a dedicated connection
    hello,
    HelloOptions (..),
    ServerHello (..),
    auth,
    select,
    clientSetname,
    clientSetinfo,
    clientNoTouch,
    clientNoEvict,
    clientCapa,
    clientImportSource,
    readonly,
    readwrite,
    asking,
    reset,
    quit,
  )
where

import Control.Monad (mfilter)
import Data.Maybe (fromMaybe)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common
import Redis.Internal.Config (Credentials (..), revealSecret)
import Redis.Value (Value (..))

-- | @PING@: succeeds if the server answers. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/ping/).
ping :: Command ()
ping = command "PING" [] $ \case
  SimpleString "PONG" -> Right ()
  -- RESP2 on a connection that has subscriptions.
  Array (BulkString "pong" : _) -> Right ()
  reply -> Decode.mismatch "PONG" reply

-- | @PING message@: the message. \(O(1)\), [since 2.8.0](https://valkey.io/commands/ping/).
pingMessage :: ByteString -> Command ByteString
pingMessage message = command "PING" [arg message] $ \case
  -- RESP2 on a connection that has subscriptions.
  Array [BulkString "pong", told] -> Decode.bytes told
  reply -> Decode.bytes reply

-- | @ECHO message@: the message. \(O(1)\), [since 1.0.0](https://valkey.io/commands/echo/).
echo :: ByteString -> Command ByteString
echo message = command "ECHO" [arg message] Decode.bytes

-- | @CLIENT ID@: the server's number for the connection. \(O(1)\),
-- [since 5.0.0](https://valkey.io/commands/client-id/).
clientId :: Command Int64
clientId = command "CLIENT ID" [] Decode.integer

-- | @CLIENT GETNAME@: the connection's name, if it has one. \(O(1)\),
-- [since 2.6.9](https://valkey.io/commands/client-getname/).
clientGetname :: Command (Maybe ByteString)
clientGetname = mfilter (/= "") <$> command "CLIENT GETNAME" [] (Decode.nullable Decode.bytes)

-- | The arguments of HELLO.
data HelloOptions = HelloOptions
  { -- | The version of the protocol: 2 or 3.
    helloProtocol :: Int64,
    -- | AUTH. The user is @default@ if the credentials name none.
    helloCredentials :: Maybe Credentials,
    -- | SETNAME: the name in CLIENT LIST, without spaces.
    helloClientName :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | A server's reply to HELLO.
data ServerHello = ServerHello
  { -- | Such as @redis@ or @valkey@.
    helloServer :: ByteString,
    -- | The server's version, such as @7.0.15@.
    helloVersion :: ByteString,
    -- | The protocol from here on.
    helloProto :: Int64,
    -- | The server's number for the connection.
    helloConnectionId :: Int64,
    -- | @standalone@, @cluster@ or @sentinel@.
    helloMode :: ByteString,
    -- | @master@ or @replica@; 'Nothing' for a sentinel.
    helloRole :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | @HELLO protocol [AUTH user password] [SETNAME name]@: sets the protocol, and gives facts about
-- the server. \(O(1)\), [since 6.0.0](https://valkey.io/commands/hello/); an older server calls it
-- an unknown command.
hello :: HelloOptions -> Command ServerHello
hello HelloOptions {helloProtocol, helloCredentials, helloClientName} =
  command "HELLO" (int helloProtocol : maybe [] credentials helloCredentials <> name) . recordOf $
    ServerHello
      <$> field "server" Decode.bytes
      <*> field "version" Decode.bytes
      <*> field "proto" Decode.integer
      <*> field "id" Decode.integer
      <*> field "mode" Decode.bytes
      <*> optionalField "role" Decode.bytes
  where
    credentials Credentials {credentialsUser, credentialsPassword} =
      [arg "AUTH", arg (fromMaybe "default" credentialsUser), arg (revealSecret credentialsPassword)]
    name = option "SETNAME" arg helloClientName

-- | @AUTH [user] password@: logs in. \(O(n)\) in the passwords of the user,
-- [since 1.0.0](https://valkey.io/commands/auth/); a user since 6.0.0.
auth :: Credentials -> Command ()
auth Credentials {credentialsUser, credentialsPassword} =
  command "AUTH" (user <> [arg (revealSecret credentialsPassword)]) Decode.okay
  where
    user = maybe [] (pure . arg) credentialsUser

-- | @SELECT database@: changes the database of the connection. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/select/).
select :: Int -> Command ()
select database =
  command "SELECT" [int (fromIntegral database)] Decode.okay

-- | @CLIENT SETNAME name@: names the connection, with printable characters and no spaces. \(O(1)\),
-- [since 2.6.9](https://valkey.io/commands/client-setname/).
clientSetname :: ByteString -> Command ()
clientSetname name =
  command "CLIENT SETNAME" [arg name] Decode.okay

-- | @CLIENT SETINFO attribute value@: tells the server about the client library; the attribute is
-- @LIB-NAME@ or @LIB-VER@. \(O(1)\), [since 7.2.0](https://valkey.io/commands/client-setinfo/).
clientSetinfo :: ByteString -> ByteString -> Command ()
clientSetinfo attribute value =
  command "CLIENT SETINFO" [arg attribute, arg value] Decode.okay

-- | @CLIENT NO-TOUCH ON|OFF@: whether the connection's commands leave the keys' time of last use as
-- it is. \(O(1)\), [since 7.2.0](https://valkey.io/commands/client-no-touch/).
clientNoTouch :: Bool -> Command ()
clientNoTouch on =
  command "CLIENT NO-TOUCH" [arg (if on then "ON" else "OFF")] Decode.okay

-- | @CLIENT NO-EVICT ON|OFF@: whether the server spares the connection when it closes connections
-- for lack of memory (@maxmemory-clients@). \(O(1)\),
-- [since 7.0.0](https://valkey.io/commands/client-no-evict/).
clientNoEvict :: Bool -> Command ()
clientNoEvict on =
  command "CLIENT NO-EVICT" [arg (if on then "ON" else "OFF")] Decode.okay

-- | @CLIENT CAPA capability …@: what the client can do, such as @redirect@: follow a primary that
-- has moved, on a server that is not a cluster. The server ignores capabilities that it does not
-- know. \(O(1)\), [since Valkey 8.0.0](https://valkey.io/commands/client-capa/); Redis lacks it.
clientCapa :: NonEmpty ByteString -> Command ()
clientCapa capabilities = command "CLIENT CAPA" (args capabilities) Decode.okay

-- | @CLIENT IMPORT-SOURCE ON|OFF@: whether the client brings data from another server. Keys do not
-- expire while it does. An error if the server is not set up for that (@import-mode@). \(O(1)\),
-- [since Valkey 8.1.0](https://valkey.io/commands/client-import-source/); Redis lacks it.
clientImportSource :: Bool -> Command ()
clientImportSource on =
  command "CLIENT IMPORT-SOURCE" [arg (if on then "ON" else "OFF")] Decode.okay

-- | @READONLY@: the replica of a cluster answers reads on this connection itself. @READWRITE@
-- undoes that. \(O(1)\), since 3.0.0 ([READONLY](https://valkey.io/commands/readonly/),
-- [READWRITE](https://valkey.io/commands/readwrite/)).
readonly, readwrite :: Command ()
readonly = command "READONLY" [] Decode.okay
readwrite = command "READWRITE" [] Decode.okay

-- | @ASKING@: the next command may touch a slot that is being imported. \(O(1)\),
-- [since 3.0.0](https://valkey.io/commands/asking/).
asking :: Command ()
asking = command "ASKING" [] Decode.okay

-- | @RESET@: makes the connection like a new one, before any handshake: not authenticated, in
-- database 0, with RESP2. \(O(1)\), [since 6.2.0](https://valkey.io/commands/reset/).
reset :: Command ()
reset = command "RESET" [] (oneOf Decode.bytes "RESET" [("RESET", ())])

-- | @QUIT@: the server replies and then closes the connection. Servers call it deprecated
-- [since 7.2.0](https://valkey.io/commands/quit/): the client can close the connection just as
-- well, as the end of 'Redis.Client.withDedicated' does. \(O(1)\), since 1.0.0.
quit :: Command ()
quit = command "QUIT" [] Decode.okay
