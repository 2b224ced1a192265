-- | Who is connected: the connections that a server has, and what one may do to
-- those of others.
--
-- > others <- run client (onNode node Redis.clientList)
-- > print [Redis.clientInfoAddress one | one <- others, Redis.clientInfoIdle one > minutes 5]
--
-- In a cluster all of these are one node's own, but for 'clientHelp'. What a client
-- says of its own connection is in "Redis.Commands.Connection". The server's pages:
-- <https://valkey.io/commands/#connection>.
module Redis.Commands.Client
  ( -- * Looking
    clientInfo,
    clientList,
    clientListOf,
    ClientInfo (..),
    clientTrackinginfo,
    TrackingInfo (..),
    clientGetredir,
    Redirection (..),
    clientHelp,

    -- * Choosing
    ClientFilter (..),
    ClientProperty (..),
    ClientType (..),

    -- * Acting
    clientKill,
    clientKillWith,
    clientPause,
    clientPauseWith,
    PauseOptions (pauseMode),
    pauseDefaults,
    PauseMode (..),
    clientUnpause,
    clientUnblock,
    clientUnblockWith,
    UnblockOptions (unblockMode),
    unblockDefaults,
    UnblockMode (..),
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration)
import Redis.Internal.Command.ClientInfo
import Redis.Internal.Command.Lines (linesOf)

-- | @CLIENT INFO@: the connection that the command came on. \(O(1)\) on the server,
-- [since 6.2.0](https://valkey.io/commands/client-info/).
--
-- @since 0.1.0.0
clientInfo :: Command ClientInfo
clientInfo = command "CLIENT INFO" [] (\reply -> Decode.bytes reply >>= clientDescription)

-- | @CLIENT LIST@: every connection. \(O(n)\) on the server,
-- [since 2.4.0](https://valkey.io/commands/client-list/).
--
-- @since 0.1.0.0
clientList :: Command [ClientInfo]
clientList = command "CLIENT LIST" [] clientInfos

-- | @CLIENT LIST filter …@: those of which all of this is true. Redis takes one filter alone, a
-- type ([since 5.0.0](https://valkey.io/commands/client-list/)) or numbers (since 6.2.0); Valkey
-- takes users, addresses, 'ClientOlderThan' and 'ClientSkipMe' since 8.1.0, and the others since
-- 9.0.0. \(O(n)\) on the server.
--
-- @since 0.1.0.0
clientListOf :: NonEmpty ClientFilter -> Command [ClientInfo]
clientListOf filters = command "CLIENT LIST" (concatMap clientFilter filters) clientInfos

clientInfos :: Decoder [ClientInfo]
clientInfos reply = linesOf reply >>= traverse clientDescription

-- | What a connection is for.
--
-- @since 0.1.0.0
data ClientType
  = -- | Whoever is none of the others, MONITOR included.
    NormalClient
  | -- | This server's primary.
    PrimaryClient
  | -- | A replica of this server.
    ReplicaClient
  | -- | It has subscriptions.
    PubsubClient
  deriving stock (Eq, Ord, Show)

-- | One thing to tell connections by.
--
-- @since 0.1.0.0
data ClientProperty
  = -- | One of these numbers. CLIENT KILL takes several on Valkey, since 9.0.0, only.
    HasId (NonEmpty Int64)
  | HasType ClientType
  | HasUser ByteString
  | -- | Address and port, as in @127.0.0.1:50000@.
    HasAddress ByteString
  | HasLocalAddress ByteString
  | HasName ByteString
  | -- | All of these letters.
    HasFlags ByteString
  | HasLibName ByteString
  | HasLibVer ByteString
  | HasDatabase Int64
  | -- | All of these letters, of CLIENT CAPA.
    HasCapa ByteString
  | -- | An address without its port.
    HasIp ByteString
  deriving stock (Eq, Show)

-- | A condition for CLIENT KILL and CLIENT LIST. Of two that say the same thing the
-- last one counts.
--
-- @since 0.1.0.0
data ClientFilter
  = ClientWith ClientProperty
  | -- | All but these, since Valkey 9.0.0.
    ClientWithout ClientProperty
  | -- | Connected for at least so long.
    ClientOlderThan Duration
  | -- | Silent for at least so long, since Valkey 9.0.0.
    ClientIdleFor Duration
  | -- | Not the connection that says it, which CLIENT KILL assumes.
    ClientSkipMe
  | -- | That one, too, which CLIENT LIST assumes.
    ClientIncludeMe
  deriving stock (Eq, Show)

clientFilter :: ClientFilter -> [Argument]
clientFilter = \case
  ClientWith property -> clientProperty "" property
  ClientWithout property -> clientProperty "NOT-" property
  ClientOlderThan age -> [arg "MAXAGE", wholeSeconds age]
  ClientIdleFor silence -> [arg "IDLE", wholeSeconds silence]
  ClientSkipMe -> [arg "SKIPME", arg "yes"]
  ClientIncludeMe -> [arg "SKIPME", arg "no"]

clientProperty :: ByteString -> ClientProperty -> [Argument]
clientProperty prefix = \case
  HasId numbers -> word "ID" : map int (foldr (:) [] numbers)
  HasType kind -> [word "TYPE", arg (clientTypeWord kind)]
  HasUser user -> [word "USER", arg user]
  HasAddress address -> [word "ADDR", arg address]
  HasLocalAddress address -> [word "LADDR", arg address]
  HasName name -> [word "NAME", arg name]
  HasFlags letters -> [word "FLAGS", arg letters]
  HasLibName name -> [word "LIB-NAME", arg name]
  HasLibVer version -> [word "LIB-VER", arg version]
  HasDatabase database -> [word "DB", int database]
  HasCapa letters -> [word "CAPA", arg letters]
  HasIp address -> [word "IP", arg address]
  where
    word = arg . (prefix <>)

-- | The words that every server knows.
clientTypeWord :: ClientType -> ByteString
clientTypeWord = \case
  NormalClient -> "normal"
  PrimaryClient -> "master"
  ReplicaClient -> "replica"
  PubsubClient -> "pubsub"

-- | @CLIENT KILL address:port@: ends that connection; the error @ERR@ if there is none. Does not
-- wait behind what runs. \(O(n)\) on the server,
-- [since 2.4.0](https://valkey.io/commands/client-kill/).
--
-- @since 0.1.0.0
clientKill :: ByteString -> Command ()
clientKill address = command "CLIENT KILL" [arg address] Decode.okay

-- | @CLIENT KILL filter …@: ends the connections of which all of this is true; how many. Does not
-- wait behind what runs. \(O(n)\) on the server. Numbers, types, users, addresses and
-- 'ClientSkipMe' [since 2.8.12](https://valkey.io/commands/client-kill/), local addresses since
-- 6.2.0, 'ClientOlderThan' since Redis 7.4.0 and Valkey 8.0.0, the others since Valkey 9.0.0.
--
-- @since 0.1.0.0
clientKillWith :: NonEmpty ClientFilter -> Command Int64
clientKillWith filters = command "CLIENT KILL" (concatMap clientFilter filters) Decode.integer

-- | What is to wait.
--
-- @since 0.1.0.0
data PauseMode
  = -- | Every command.
    PauseAll
  | -- | Those that may write, since 6.2.0.
    PauseWrites
  deriving stock (Eq, Show)

-- | What CLIENT PAUSE takes.
--
-- @since 0.1.0.0
newtype PauseOptions = PauseOptions
  { -- | 'Nothing' is 'PauseAll', which servers before 6.2.0 know, too.
    pauseMode :: Maybe PauseMode
  }
  deriving stock (Eq, Show)

-- | Every command.
--
-- @since 0.1.0.0
pauseDefaults :: PauseOptions
pauseDefaults = PauseOptions {pauseMode = Nothing}

-- | @CLIENT PAUSE milliseconds@: makes the commands of all clients wait for so long, or until
-- 'clientUnpause'. \(O(1)\) on the server, [since 3.0.0](https://valkey.io/commands/client-pause/).
--
-- On Redis 7.0 nothing but time ends it: the server makes CLIENT UNPAUSE wait like the
-- others. A pause of writes can be ended.
--
-- @since 0.1.0.0
clientPause :: Duration -> Command ()
clientPause = clientPauseWith pauseDefaults

-- | @CLIENT PAUSE milliseconds [WRITE|ALL]@: as 'clientPause'. WRITE and ALL
-- [since 6.2.0](https://valkey.io/commands/client-pause/).
--
-- @since 0.1.0.0
clientPauseWith :: PauseOptions -> Duration -> Command ()
clientPauseWith PauseOptions {pauseMode} time = command "CLIENT PAUSE" (wholeMilliseconds time : mode) Decode.okay
  where
    mode = case pauseMode of
      Nothing -> []
      Just PauseAll -> [arg "ALL"]
      Just PauseWrites -> [arg "WRITE"]

-- | @CLIENT UNPAUSE@: undoes CLIENT PAUSE. Does not wait behind what is paused. \(O(n)\) on the
-- server in the clients that are paused, [since 6.2.0](https://valkey.io/commands/client-unpause/).
--
-- @since 0.1.0.0
clientUnpause :: Command ()
clientUnpause = command "CLIENT UNPAUSE" [] Decode.okay

-- | What CLIENT UNBLOCK takes.
--
-- @since 0.1.0.0
newtype UnblockOptions = UnblockOptions
  { -- | 'Nothing' is 'UnblockTimeout'.
    unblockMode :: Maybe UnblockMode
  }
  deriving stock (Eq, Show)

-- | As if its time were over.
--
-- @since 0.1.0.0
unblockDefaults :: UnblockOptions
unblockDefaults = UnblockOptions {unblockMode = Nothing}

-- | @CLIENT UNBLOCK id@: ends the wait of the connection with this number as if its time were over;
-- whether it waited. \(O(\log n)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/client-unblock/).
--
-- @since 0.1.0.0
clientUnblock :: Int64 -> Command Bool
clientUnblock = clientUnblockWith unblockDefaults

-- | How a wait ends.
--
-- @since 0.1.0.0
data UnblockMode
  = -- | As if its time were over.
    UnblockTimeout
  | -- | By the error @UNBLOCKED@.
    UnblockError
  deriving stock (Eq, Show)

-- | @CLIENT UNBLOCK id [TIMEOUT|ERROR]@: as 'clientUnblock'.
--
-- @since 0.1.0.0
clientUnblockWith :: UnblockOptions -> Int64 -> Command Bool
clientUnblockWith UnblockOptions {unblockMode} connection = command "CLIENT UNBLOCK" (int connection : mode) Decode.boolean
  where
    mode = case unblockMode of
      Nothing -> []
      Just UnblockTimeout -> [arg "TIMEOUT"]
      Just UnblockError -> [arg "ERROR"]

-- | Where what a server says of changed keys goes.
--
-- @since 0.1.0.0
data Redirection
  = -- | The connection does not track keys.
    NotTracking
  | -- | To the connection itself.
    NotRedirected
  | -- | To the connection with this number.
    RedirectedTo Int64
  deriving stock (Eq, Show)

redirection :: Decoder Redirection
redirection reply = convert <$> Decode.integer reply
  where
    convert = \case
      -1 -> NotTracking
      0 -> NotRedirected
      connection -> RedirectedTo connection

-- | @CLIENT GETREDIR@: where what is said of the keys goes that the connection has read. \(O(1)\)
-- on the server, [since 6.0.0](https://valkey.io/commands/client-getredir/).
--
-- @since 0.1.0.0
clientGetredir :: Command Redirection
clientGetredir = command "CLIENT GETREDIR" [] redirection

-- | How a connection tracks keys.
--
-- @since 0.1.0.0
data TrackingInfo = TrackingInfo
  { -- | @off@, or @on@ and such as @bcast@, @optin@, @noloop@.
    trackingInfoFlags :: [ByteString],
    trackingInfoRedirect :: Redirection,
    -- | Of broadcasting mode.
    trackingInfoPrefixes :: [ByteString]
  }
  deriving stock (Eq, Show)

-- | @CLIENT TRACKINGINFO@: how the connection tracks keys. \(O(1)\) on the server,
-- [since 6.2.0](https://valkey.io/commands/client-trackinginfo/).
--
-- @since 0.1.0.0
clientTrackinginfo :: Command TrackingInfo
clientTrackinginfo = command "CLIENT TRACKINGINFO" [] $ \reply -> do
  fields <- Decode.record reply
  trackingInfoFlags <- Decode.field "flags" (Decode.list Decode.bytes) fields
  trackingInfoRedirect <- Decode.field "redirect" redirection fields
  trackingInfoPrefixes <- Decode.field "prefixes" (Decode.list Decode.bytes) fields
  pure TrackingInfo {trackingInfoFlags, trackingInfoRedirect, trackingInfoPrefixes}

-- | @CLIENT HELP@: what CLIENT can do, in lines for people. \(O(1)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/client-help/).
--
-- @since 0.1.0.0
clientHelp :: Command [ByteString]
clientHelp = command "CLIENT HELP" [] (Decode.list Decode.bytes)
