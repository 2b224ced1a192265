-- | Moving values to another key, another database or another server.
--
-- > payload <- run client (Redis.dump "example:{keys}:new")
-- > mapM_ (run client . Redis.restore "example:{keys}") payload
--
-- The servers' pages: <https://valkey.io/commands/#generic>,
-- <https://redis.io/docs/latest/commands/?group=generic>.
module Redis.Commands.Transfer
  ( -- * Dump and restore
    dump,
    restore,
    restoreWith,
    RestoreOptions (restoreExpiry, restoreReplace, restoreUse),
    restoreDefaults,
    RestoredUse (..),

    -- * From server to server
    migrate,
    migrateWith,
    MigrateOptions (migrateDatabase, migrateTimeout, migrateCopy, migrateReplace, migrateCredentials),
    migrateDefaults,

    -- * From database to database
    move,
    moveWith,
    MoveOptions (moveReplace),
    moveDefaults,
  )
where

import Redis.Decode qualified as Decode
import Redis.Duration (inMilliseconds, seconds)
import Redis.Error (Host, Port)
import Redis.Internal.Command.Common
import Redis.Internal.Config (Credentials (..), revealSecret)

-- | @DUMP key@: the value in the server's own format, for 'restore'; 'Nothing' if the key does not
-- exist. \(O(n)\) in the size of the value, [since 2.6.0](https://valkey.io/commands/dump/).
dump :: ByteString -> Command (Maybe ByteString)
dump name = command "DUMP" [key name] (Decode.nullable Decode.bytes)

-- | @RESTORE key 0 payload@: stores the result of a 'dump' at a key that does not exist, without an
-- expiry. \(O(n)\) in the size of the value, [since 2.6.0](https://valkey.io/commands/restore/).
restore :: ByteString -> ByteString -> Command ()
restore = restoreWith restoreDefaults

-- | The options of 'restoreWith'.
data RestoreOptions = RestoreOptions
  { -- | How long the value lives: for a time from now, to the millisecond, or until a point in time
    -- (ABSTTL, since 5.0.0). 'KeepExpiry' means no expiry here, since a dump does not contain one.
    restoreExpiry :: Expiry,
    -- | REPLACE (since 3.0.0): replaces an existing key, which is an error otherwise.
    restoreReplace :: Bool,
    -- | How the value was used before, for eviction (since 5.0.0). 'Nothing': it was just used.
    restoreUse :: Maybe RestoredUse
  }
  deriving stock (Eq, Show)

-- | How a value was used before it was restored. The server keeps what its eviction policy counts,
-- and ignores the other.
data RestoredUse
  = -- | IDLETIME: unused for this long, rounded up to seconds.
    IdleFor Duration
  | -- | FREQ: this often, by the server's logarithmic counter, from 0 to 255.
    UsedOften Int64
  deriving stock (Eq, Show)

-- | No expiry; replaces nothing.
restoreDefaults :: RestoreOptions
restoreDefaults = RestoreOptions {restoreExpiry = NoExpiry, restoreReplace = False, restoreUse = Nothing}

-- | @RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME s|FREQ n]@: like 'restore', with options.
restoreWith :: RestoreOptions -> ByteString -> ByteString -> Command ()
restoreWith RestoreOptions {restoreExpiry, restoreReplace, restoreUse} name payload =
  command
    "RESTORE"
    ([key name, lifetime, arg payload] <> flag "REPLACE" restoreReplace <> flag "ABSTTL" absolute <> maybe [] use restoreUse)
    Decode.okay
  where
    (lifetime, absolute) = case restoreExpiry of
      NoExpiry -> (int 0, False)
      KeepExpiry -> (int 0, False)
      -- To the server a lifetime of 0 means no expiry.
      ExpireIn duration
        | inMilliseconds duration == 0 -> (int 1, False)
        | otherwise -> (wholeMilliseconds duration, False)
      ExpireAt time -> case unixMilliseconds time of
        "0" -> (int 1, True)
        due -> (arg due, True)
    use = \case
      IdleFor time -> [arg "IDLETIME", wholeSeconds time]
      UsedOften count -> [arg "FREQ", int count]

-- | @MIGRATE host port key|"" 0 timeout [KEYS key …]@: moves keys to another server; returns
-- whether any of them existed. The two servers talk to each other: host and port must be those at
-- which the sending server reaches the other. The sending server serves nobody else meanwhile. In a
-- cluster the keys must share a slot. The cost is that of 'dump', 'restore' and the transfer;
-- [since 2.6.0](https://valkey.io/commands/migrate/), several keys since 3.0.6.
--
-- After an error with the code @IOERR@ a key may be on both servers.
migrate :: Host -> Port -> NonEmpty ByteString -> Command Bool
migrate = migrateWith migrateDefaults

-- | The options of 'migrateWith'.
data MigrateOptions = MigrateOptions
  { -- | The number of the database on the other server.
    migrateDatabase :: Int,
    -- | How long the other server may be silent at any point of the transfer.
    migrateTimeout :: Duration,
    -- | COPY (since 3.0.0): the keys stay on the sending server, too.
    migrateCopy :: Bool,
    -- | REPLACE (since 3.0.0): replaces existing keys, which are an error otherwise.
    migrateReplace :: Bool,
    -- | Credentials for the other server: AUTH (since 4.0.7), or AUTH2 with a user (since 6.0.0).
    migrateCredentials :: Maybe Credentials
  }
  deriving stock (Eq, Show)

-- | Database 0, a timeout of one second, no COPY, no REPLACE, and no credentials.
migrateDefaults :: MigrateOptions
migrateDefaults =
  MigrateOptions
    { migrateDatabase = 0,
      migrateTimeout = seconds 1,
      migrateCopy = False,
      migrateReplace = False,
      migrateCredentials = Nothing
    }

-- | @MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH password|AUTH2 user password] [KEYS
-- key …]@: like 'migrate', with options.
migrateWith :: MigrateOptions -> Host -> Port -> NonEmpty ByteString -> Command Bool
migrateWith MigrateOptions {migrateDatabase, migrateTimeout, migrateCopy, migrateReplace, migrateCredentials} host port names =
  command "MIGRATE" (arg host : int (fromIntegral port) : arguments) $
    oneOf Decode.bytes "OK or NOKEY" [("OK", True), ("NOKEY", False)]
  where
    arguments = case names of
      one :| [] -> key one : terms
      _ -> arg "" : terms <> (arg "KEYS" : keys names)
    terms =
      [int (fromIntegral migrateDatabase), wholeMilliseconds migrateTimeout]
        <> flag "COPY" migrateCopy
        <> flag "REPLACE" migrateReplace
        <> maybe [] authentication migrateCredentials
    authentication Credentials {credentialsUser, credentialsPassword} = case credentialsUser of
      Nothing -> [arg "AUTH", arg (revealSecret credentialsPassword)]
      Just user -> [arg "AUTH2", arg user, arg (revealSecret credentialsPassword)]

-- | @MOVE key db@: moves a key to another database of the same server; returns whether it was
-- moved, which needs the key here and none of that name there. A cluster's nodes have one database
-- only, except with Valkey [since 9.0.0](https://valkey.io/commands/move/). \(O(1)\), since 1.0.0.
move :: ByteString -> Int -> Command Bool
move = moveWith moveDefaults

-- | The options of 'moveWith'.
newtype MoveOptions = MoveOptions
  { -- | REPLACE (Valkey since 9.2.0): also in the place of a key of that name there. Other servers
    -- refuse the word.
    moveReplace :: Bool
  }
  deriving stock (Eq, Show)

-- | A key that is there stays.
moveDefaults :: MoveOptions
moveDefaults = MoveOptions {moveReplace = False}

-- | @MOVE key db [REPLACE]@: like 'move', with options.
moveWith :: MoveOptions -> ByteString -> Int -> Command Bool
moveWith MoveOptions {moveReplace} name database =
  command "MOVE" ([key name, int (fromIntegral database)] <> flag "REPLACE" moveReplace) Decode.boolean
