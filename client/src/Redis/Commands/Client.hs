-- | The connections that a server has, and commands that act on them.
--
-- > others <- run client (onNode node Redis.clientList)
-- > print [Redis.clientInfoAddress one | one <- others, Redis.clientInfoIdle one > minutes 5]
--
-- In a cluster all of these need the name of a node ('Redis.Command.onNode'), except 'clientHelp'.
-- More about the caller's own connection is in "Redis.Commands.Connection". The server's pages:
-- <https://valkey.io/commands/#connection>.
module Redis.Commands.Client
  ( -- * Listing connections
    clientInfo,
    clientList,
    clientListOf,
    ClientInfo (..),
    clientTrackinginfo,
    TrackingInfo (..),
    clientGetredir,
    Redirection (..),
    clientHelp,

    -- * Filters
    ClientFilter (..),
    ClientProperty (..),
    ClientType (..),

    -- * Ending, pausing and unblocking
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

import Redis.Decode qualified as Decode
import Redis.Internal.Command.ClientInfo
import Redis.Internal.Command.Common

-- | @CLIENT INFO@: the connection that carried the command. \(O(1)\),
-- [since 6.2.0](https://valkey.io/commands/client-info/).
clientInfo :: Command ClientInfo
clientInfo = command "CLIENT INFO" [] (\reply -> Decode.bytes reply >>= clientDescription)

-- | @CLIENT LIST@: all connections. \(O(n)\),
-- [since 2.4.0](https://valkey.io/commands/client-list/).
clientList :: Command [ClientInfo]
clientList = command "CLIENT LIST" [] clientInfos

-- | @CLIENT LIST filter …@: the connections that match all of these filters. Redis takes a single
-- filter, a type (since 5.0.0) or numbers (since 6.2.0). Valkey takes users, addresses,
-- 'ClientOlderThan' and 'ClientSkipMe' since 8.1.0, and the other filters since 9.0.0. \(O(n)\).
clientListOf :: NonEmpty ClientFilter -> Command [ClientInfo]
clientListOf filters = command "CLIENT LIST" (concatMap clientFilter filters) clientInfos

clientInfos :: Decoder [ClientInfo]
clientInfos reply = linesOf reply >>= traverse clientDescription

-- | The kind of a connection.
data ClientType
  = -- | A connection of none of the other kinds, MONITOR included.
    NormalClient
  | -- | This server's primary.
    PrimaryClient
  | -- | A replica of this server.
    ReplicaClient
  | -- | A connection that has subscriptions.
    PubsubClient
  deriving stock (Eq, Ord, Show)

-- | A property by which a filter selects connections.
data ClientProperty
  = -- | One of these numbers. For CLIENT KILL only Valkey takes several, since 9.0.0.
    HasId (NonEmpty Int64)
  | HasType ClientType
  | HasUser ByteString
  | -- | Address and port, as in @127.0.0.1:50000@.
    HasAddress ByteString
  | HasLocalAddress ByteString
  | HasName ByteString
  | -- | All of these flags, a letter each.
    HasFlags ByteString
  | HasLibName ByteString
  | HasLibVer ByteString
  | HasDatabase Int64
  | -- | All of these capabilities (see CLIENT CAPA), a letter each.
    HasCapa ByteString
  | -- | An address without its port.
    HasIp ByteString
  deriving stock (Eq, Show)

-- | A condition for CLIENT KILL and CLIENT LIST. Of two of the same kind the last one counts.
data ClientFilter
  = ClientWith ClientProperty
  | -- | All connections without this property, since Valkey 9.0.0.
    ClientWithout ClientProperty
  | -- | Connected for at least this long.
    ClientOlderThan Duration
  | -- | Silent for at least this long, since Valkey 9.0.0.
    ClientIdleFor Duration
  | -- | Not the connection that sends the command. CLIENT KILL assumes this.
    ClientSkipMe
  | -- | Also the connection that sends the command. CLIENT LIST assumes this.
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

-- | @CLIENT KILL address:port@: ends that connection; the error @ERR@ if there is none. It does not
-- wait behind running commands. \(O(n)\), [since 2.4.0](https://valkey.io/commands/client-kill/).
clientKill :: ByteString -> Command ()
clientKill address = command "CLIENT KILL" [arg address] Decode.okay

-- | @CLIENT KILL filter …@: ends the connections that match all of these filters; how many. It does
-- not wait behind running commands. \(O(n)\). Numbers, types, users, addresses and 'ClientSkipMe'
-- [since 2.8.12](https://valkey.io/commands/client-kill/), local addresses since 6.2.0,
-- 'ClientOlderThan' since Redis 7.4.0 and Valkey 8.0.0, the others since Valkey 9.0.0.
clientKillWith :: NonEmpty ClientFilter -> Command Int64
clientKillWith filters = command "CLIENT KILL" (concatMap clientFilter filters) Decode.integer

-- | Which commands a pause makes wait.
data PauseMode
  = -- | Every command.
    PauseAll
  | -- | Commands that may write, since 6.2.0.
    PauseWrites
  deriving stock (Eq, Show)

-- | Options of CLIENT PAUSE.
newtype PauseOptions = PauseOptions
  { -- | 'Nothing' is 'PauseAll', in the form that servers before 6.2.0 take, too.
    pauseMode :: Maybe PauseMode
  }
  deriving stock (Eq, Show)

-- | Every command waits.
pauseDefaults :: PauseOptions
pauseDefaults = PauseOptions {pauseMode = Nothing}

-- | @CLIENT PAUSE milliseconds@: makes the commands of all clients wait for this long, or until
-- 'clientUnpause'. \(O(1)\), [since 3.0.0](https://valkey.io/commands/client-pause/).
--
-- On Redis 7.0 only time ends a pause of every command: the server makes CLIENT UNPAUSE wait, too.
-- A pause of writes can be ended.
clientPause :: Duration -> Command ()
clientPause = clientPauseWith pauseDefaults

-- | @CLIENT PAUSE milliseconds [WRITE|ALL]@: like 'clientPause'. WRITE and ALL since 6.2.0.
clientPauseWith :: PauseOptions -> Duration -> Command ()
clientPauseWith PauseOptions {pauseMode} time = command "CLIENT PAUSE" (wholeMilliseconds time : mode) Decode.okay
  where
    mode = case pauseMode of
      Nothing -> []
      Just PauseAll -> [arg "ALL"]
      Just PauseWrites -> [arg "WRITE"]

-- | @CLIENT UNPAUSE@: ends a pause. It does not wait behind the paused commands. \(O(n)\) in the
-- clients that are paused, [since 6.2.0](https://valkey.io/commands/client-unpause/).
clientUnpause :: Command ()
clientUnpause = command "CLIENT UNPAUSE" [] Decode.okay

-- | Options of CLIENT UNBLOCK.
newtype UnblockOptions = UnblockOptions
  { -- | 'Nothing' is 'UnblockTimeout'.
    unblockMode :: Maybe UnblockMode
  }
  deriving stock (Eq, Show)

-- | The wait ends as if its timeout had passed.
unblockDefaults :: UnblockOptions
unblockDefaults = UnblockOptions {unblockMode = Nothing}

-- | @CLIENT UNBLOCK id@: ends the wait of the connection with this number as if its timeout had
-- passed; whether the connection waited. \(O(\log n)\),
-- [since 5.0.0](https://valkey.io/commands/client-unblock/).
clientUnblock :: Int64 -> Command Bool
clientUnblock = clientUnblockWith unblockDefaults

-- | How a wait ends.
data UnblockMode
  = -- | As if its timeout had passed.
    UnblockTimeout
  | -- | With the error @UNBLOCKED@.
    UnblockError
  deriving stock (Eq, Show)

-- | @CLIENT UNBLOCK id [TIMEOUT|ERROR]@: like 'clientUnblock'.
clientUnblockWith :: UnblockOptions -> Int64 -> Command Bool
clientUnblockWith UnblockOptions {unblockMode} connection = command "CLIENT UNBLOCK" (int connection : mode) Decode.boolean
  where
    mode = case unblockMode of
      Nothing -> []
      Just UnblockTimeout -> [arg "TIMEOUT"]
      Just UnblockError -> [arg "ERROR"]

-- | Where the server sends its notices of changed keys.
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

-- | @CLIENT GETREDIR@: where the server sends its notices of changes to the keys that the
-- connection has read. \(O(1)\), [since 6.0.0](https://valkey.io/commands/client-getredir/).
clientGetredir :: Command Redirection
clientGetredir = command "CLIENT GETREDIR" [] redirection

-- | How a connection tracks keys.
data TrackingInfo = TrackingInfo
  { -- | @off@, or @on@ and such as @bcast@, @optin@, @noloop@.
    trackingInfoFlags :: [ByteString],
    trackingInfoRedirect :: Redirection,
    -- | The prefixes of broadcasting mode.
    trackingInfoPrefixes :: [ByteString]
  }
  deriving stock (Eq, Show)

-- | @CLIENT TRACKINGINFO@: how the connection tracks keys. \(O(1)\),
-- [since 6.2.0](https://valkey.io/commands/client-trackinginfo/).
clientTrackinginfo :: Command TrackingInfo
clientTrackinginfo =
  command "CLIENT TRACKINGINFO" [] . recordOf $
    TrackingInfo <$> field "flags" texts <*> field "redirect" redirection <*> field "prefixes" texts
  where
    texts = Decode.list Decode.bytes

-- | @CLIENT HELP@: the server's help. \(O(1)\), [since 5.0.0](https://valkey.io/commands/client-help/).
clientHelp :: Command [ByteString]
clientHelp = command "CLIENT HELP" [] (Decode.list Decode.bytes)
