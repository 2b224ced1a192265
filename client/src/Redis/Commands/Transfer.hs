-- | Values on their way to another key, another database or another server.
--
-- > payload <- run client (Redis.dump "example:{keys}:new")
-- > mapM_ (run client . Redis.restore "example:{keys}") payload
--
-- The servers' pages: <https://valkey.io/commands/#generic>,
-- <https://redis.io/docs/latest/commands/?group=generic>.
module Redis.Commands.Transfer
  ( -- * In the server's own form
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
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Commands.String (Expiry (..))
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, seconds)
import Redis.Error (Host, Port)
import Redis.Internal.Command.Argument (unixMilliseconds)
import Redis.Internal.Config (Credentials (..), revealSecret)

-- | @DUMP key@: its value in the server's own form, for 'restore'. \(O(n)\) on the server in the
-- size of the value, [since 2.6.0](https://valkey.io/commands/dump/).
--
-- @since 0.1.0.0
dump :: ByteString -> Command (Maybe ByteString)
dump name = command "DUMP" [key name] (Decode.nullable Decode.bytes)

-- | @RESTORE key 0 payload@: puts what 'dump' gave at a key that does not exist, for ever. \(O(n)\)
-- on the server in the size of the value, [since 2.6.0](https://valkey.io/commands/restore/).
--
-- @since 0.1.0.0
restore :: ByteString -> ByteString -> Command ()
restore = restoreWith restoreDefaults

-- | How to restore.
--
-- @since 0.1.0.0
data RestoreOptions = RestoreOptions
  { -- | How long it shall live: from now (to the millisecond), or until a time
    -- (ABSTTL, since 5.0.0). There is nothing to keep: 'KeepExpiry' is for ever.
    restoreExpiry :: Expiry,
    -- | REPLACE (since 3.0.0): whatever is there, which otherwise is an error.
    restoreReplace :: Bool,
    -- | What eviction shall know of it (since 5.0.0). 'Nothing': it was just used.
    restoreUse :: Maybe RestoredUse
  }
  deriving stock (Eq, Show)

-- | How a value was used before it came here. The server keeps what its policy of
-- eviction counts, and forgets the other.
--
-- @since 0.1.0.0
data RestoredUse
  = -- | IDLETIME: not for so long, rounded up to seconds.
    IdleFor Duration
  | -- | FREQ: so often, by the server's logarithmic counter; 0 to 255.
    UsedOften Int64
  deriving stock (Eq, Show)

-- | Lives for ever and replaces nothing.
--
-- @since 0.1.0.0
restoreDefaults :: RestoreOptions
restoreDefaults = RestoreOptions {restoreExpiry = NoExpiry, restoreReplace = False, restoreUse = Nothing}

-- | @RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME s|FREQ n]@: as 'restore'.
--
-- @since 0.1.0.0
restoreWith :: RestoreOptions -> ByteString -> ByteString -> Command ()
restoreWith RestoreOptions {restoreExpiry, restoreReplace, restoreUse} name payload =
  command
    "RESTORE"
    ([key name, lifetime, arg payload] <> flag "REPLACE" restoreReplace <> flag "ABSTTL" absolute <> use)
    Decode.okay
  where
    (lifetime, absolute) = case restoreExpiry of
      NoExpiry -> (int 0, False)
      KeepExpiry -> (int 0, False)
      ExpireIn duration -> (wholeMilliseconds duration, False)
      ExpireAt time -> (arg (unixMilliseconds time), True)
    use = case restoreUse of
      Nothing -> []
      Just (IdleFor time) -> [arg "IDLETIME", wholeSeconds time]
      Just (UsedOften count) -> [arg "FREQ", int count]

-- | @MIGRATE host port key|"" 0 timeout [KEYS key …]@: moves keys to another server; whether there
-- was one of them. The two servers talk to each other: the name and the port are what the sending
-- one can reach. It serves nobody else meanwhile. In a cluster the keys must share a slot. Costs
-- what 'dump' and 'restore' do, and the way; [since 2.6.0](https://valkey.io/commands/migrate/),
-- several keys since 3.0.6.
--
-- An error of code @IOERR@ leaves a doubt: a key may then be on both servers.
--
-- @since 0.1.0.0
migrate :: Host -> Port -> NonEmpty ByteString -> Command Bool
migrate = migrateWith migrateDefaults

-- | How to move keys to another server.
--
-- @since 0.1.0.0
data MigrateOptions = MigrateOptions
  { -- | To which database there.
    migrateDatabase :: Int,
    -- | For how long the other server may stay silent, at any point of it.
    migrateTimeout :: Duration,
    -- | COPY (since 3.0.0): the keys stay here, too.
    migrateCopy :: Bool,
    -- | REPLACE (since 3.0.0): whatever is there, which otherwise is an error.
    migrateReplace :: Bool,
    -- | AUTH (since 4.0.7), or AUTH2 with a user (since 6.0.0).
    migrateCredentials :: Maybe Credentials
  }
  deriving stock (Eq, Show)

-- | To database 0, with a second of patience, over nothing, and without a password.
--
-- @since 0.1.0.0
migrateDefaults :: MigrateOptions
migrateDefaults =
  MigrateOptions
    { migrateDatabase = 0,
      migrateTimeout = seconds 1,
      migrateCopy = False,
      migrateReplace = False,
      migrateCredentials = Nothing
    }

-- | @MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH password|AUTH2 user
-- password] [KEYS key …]@: as 'migrate'.
--
-- @since 0.1.0.0
migrateWith :: MigrateOptions -> Host -> Port -> NonEmpty ByteString -> Command Bool
migrateWith MigrateOptions {migrateDatabase, migrateTimeout, migrateCopy, migrateReplace, migrateCredentials} host port names =
  command "MIGRATE" (arg host : int (fromIntegral port) : arguments) $ \reply ->
    Decode.bytes reply >>= \case
      "OK" -> Right True
      "NOKEY" -> Right False
      _ -> Decode.mismatch "OK or NOKEY" reply
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

-- | @MOVE key db@: moves it to another database of the server; whether it did, which is if there
-- was one here and none there. Nodes of a cluster have one database, but for Valkey
-- [since 9.0.0](https://valkey.io/commands/move/). \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
move :: ByteString -> Int -> Command Bool
move name database = command "MOVE" [key name, int (fromIntegral database)] Decode.boolean
