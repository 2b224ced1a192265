-- | Commands that concern the server as a whole. In a cluster some of these cover the whole
-- cluster, as each says. The others concern one node, and are refused unless a node is named
-- ('Redis.Command.onNode', 'Redis.Command.onEvery').
--
-- > facts <- run client (onNode node (Redis.infoOf ("server" :| ["replication"])))
-- > count <- run client Redis.dbsize
--
-- The server's documentation: <https://valkey.io/commands/#server>.
module Redis.Commands.Server
  ( -- * Data
    dbsize,
    flushdb,
    flushdbWith,
    flushall,
    flushallWith,
    FlushOptions (flushMode),
    flushDefaults,
    FlushMode (..),
    swapdb,

    -- * Information
    info,
    infoOf,
    time,
    lolwut,
    lolwutVersion,

    -- * Waiting for replicas
    wait,
    waitaof,
    Fsynced (..),

    -- * Shutting down
    shutdown,
    shutdownWith,
    ShutdownOptions (shutdownSave, shutdownNow, shutdownForce, shutdownSafe, shutdownFailover),
    shutdownDefaults,
    ShutdownSave (..),
    shutdownAbort,
  )
where

import Data.ByteString.Char8 qualified as Char8
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Decode qualified as Decode
import Redis.Duration (inMilliseconds)
import Redis.Internal.Command.Common

-- | @DBSIZE@: the number of keys; in a cluster, on all primaries together. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/dbsize/).
dbsize :: Command Int64
dbsize = command "DBSIZE" [] Decode.integer

-- | @FLUSHDB@, @FLUSHALL@: delete all keys of the database, or of all databases; in a cluster, on
-- all primaries. \(O(n)\), since 1.0.0 ([FLUSHDB](https://valkey.io/commands/flushdb/),
-- [FLUSHALL](https://valkey.io/commands/flushall/)).
flushdb, flushall :: Command ()
flushdb = flushdbWith flushDefaults
flushall = flushallWith flushDefaults

-- | @FLUSHDB [SYNC|ASYNC]@, @FLUSHALL [SYNC|ASYNC]@: like 'flushdb' and 'flushall', with options.
-- ASYNC exists since 4.0.0, SYNC since 6.2.0.
flushdbWith, flushallWith :: FlushOptions -> Command ()
flushdbWith options = command "FLUSHDB" (flushArguments options) Decode.okay
flushallWith options = command "FLUSHALL" (flushArguments options) Decode.okay

-- | @INFO@: the fields of the default sections in order, without the headings. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/info/).
--
-- > run client (onEvery Primaries info)
info :: Command [(ByteString, ByteString)]
info = command "INFO" [] colonFields

-- | @INFO section …@: like 'info', for these sections. Since 2.4.0; several sections since 7.0.0.
infoOf :: NonEmpty ByteString -> Command [(ByteString, ByteString)]
infoOf sections = command "INFO" (args sections) colonFields

-- | @TIME@: the server's clock, to the microsecond. \(O(1)\),
-- [since 2.6.0](https://valkey.io/commands/time/).
time :: Command UTCTime
time = command "TIME" [] $ \reply ->
  Decode.listOf 2 Decode.bytes reply >>= \case
    [whole, part]
      | Just (s, "") <- Char8.readInteger whole,
        Just (us, "") <- Char8.readInteger part ->
        Right (posixSecondsToUTCTime (fromInteger s + fromInteger us / 1000000))
    _ -> Decode.mismatch "seconds and microseconds" reply

-- | @WAIT replicas milliseconds@: waits until this many replicas have received all earlier writes
-- of this very connection, or until the time is over ('Nothing': no limit); how many replicas have
-- received them. It is meaningful only on a dedicated connection, and is refused elsewhere.
-- \(O(1)\), [since 3.0.0](https://valkey.io/commands/wait/).
wait :: Int64 -> Maybe Duration -> Command Int64
wait replicas limit =
  -- A server takes zero for no limit.
  command "WAIT" [int replicas, maybe (int 0) (int . max 1 . inMilliseconds) limit] Decode.integer

-- | @SWAPDB one other@: exchanges the contents of two databases, for all clients. A cluster has one
-- database before Valkey 9.0. \(O(n)\) in the number of clients that watch or wait for keys of the
-- two databases, [since 4.0.0](https://valkey.io/commands/swapdb/).
swapdb :: Int -> Int -> Command ()
swapdb one other = command "SWAPDB" [int (fromIntegral one), int (fromIntegral other)] Decode.okay

-- | @LOLWUT@: a piece of art, and the server's version. In a cluster any node answers.
-- [Since 5.0.0](https://valkey.io/commands/lolwut/).
lolwut :: Command ByteString
lolwut = command "LOLWUT" [] Decode.bytes

-- | @LOLWUT VERSION version number …@: the piece of art of this version. The numbers are its
-- parameters: columns, rows and the like.
lolwutVersion :: Int64 -> [Int64] -> Command ByteString
lolwutVersion version numbers = command "LOLWUT" (arg "VERSION" : map int (version : numbers)) Decode.bytes

-- | @WAITAOF local replicas milliseconds@: waits until this many servers have all earlier writes of
-- this very connection on disk, or until the time is over ('Nothing': no limit); how many servers
-- have them there. The first number is 0 or 1, for the server itself, which refuses 1 if it keeps
-- no append-only file. Like 'wait', it is meaningful only on a dedicated connection. \(O(1)\),
-- [since 7.2.0](https://valkey.io/commands/waitaof/).
waitaof :: Int64 -> Int64 -> Maybe Duration -> Command Fsynced
waitaof local replicas limit =
  command "WAITAOF" [int local, int replicas, maybe (int 0) (int . max 1 . inMilliseconds) limit] $
    fmap (uncurry Fsynced) . Decode.pair Decode.integer Decode.integer

-- | How many servers have the writes on disk.
data Fsynced = Fsynced
  { -- | The server itself: 0 or 1.
    fsyncedLocally :: Int64,
    -- | The number of replicas.
    fsyncedReplicas :: Int64
  }
  deriving stock (Eq, Show)

-- | @SHUTDOWN@: the server saves its data, if it is configured to, and ends. If the server ends, it
-- does not answer, and the caller gets a connection error. The command has a connection of its own,
-- so 'shutdownAbort' does not queue behind it. [Since 1.0.0](https://valkey.io/commands/shutdown/).
shutdown :: Command ()
shutdown = command "SHUTDOWN" [] Decode.okay

-- | Whether the server writes its data to the disk first.
data ShutdownSave
  = -- | If the server is configured to save.
    SaveIfConfigured
  | -- | SAVE: in any case.
    SaveFirst
  | -- | NOSAVE: data that were not saved are lost.
    SaveNothing
  deriving stock (Eq, Show)

-- | How a server ends.
data ShutdownOptions = ShutdownOptions
  { shutdownSave :: ShutdownSave,
    -- | NOW: do not wait for replicas that lag behind. Since 7.0.0.
    shutdownNow :: Bool,
    -- | FORCE: end even if saving fails. Since 7.0.0.
    shutdownForce :: Bool,
    -- | SAFE: fail where it is not safe to end, as on a primary that votes in a cluster. Since
    -- Valkey 9.0.0.
    shutdownSafe :: Bool,
    -- | FAILOVER: on a primary of a cluster, let a replica take over first. Since Valkey 9.0.0.
    shutdownFailover :: Bool
  }
  deriving stock (Eq, Show)

-- | The options that 'shutdown' uses.
shutdownDefaults :: ShutdownOptions
shutdownDefaults =
  ShutdownOptions
    { shutdownSave = SaveIfConfigured,
      shutdownNow = False,
      shutdownForce = False,
      shutdownSafe = False,
      shutdownFailover = False
    }

-- | @SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [SAFE] [FAILOVER]@: like 'shutdown', with options. An
-- error if the server cannot save its data, unless 'shutdownForce' is set.
shutdownWith :: ShutdownOptions -> Command ()
shutdownWith ShutdownOptions {shutdownSave, shutdownNow, shutdownForce, shutdownSafe, shutdownFailover} =
  command "SHUTDOWN" (saving <> concat flags) Decode.okay
  where
    saving = case shutdownSave of
      SaveIfConfigured -> []
      SaveFirst -> [arg "SAVE"]
      SaveNothing -> [arg "NOSAVE"]
    flags =
      [ flag "NOW" shutdownNow,
        flag "FORCE" shutdownForce,
        flag "SAFE" shutdownSafe,
        flag "FAILOVER" shutdownFailover
      ]

-- | @SHUTDOWN ABORT@: stops a shutdown that still waits for replicas. An error if there is none.
-- [Since 7.0.0](https://valkey.io/commands/shutdown/).
shutdownAbort :: Command ()
shutdownAbort = command "SHUTDOWN" [arg "ABORT"] Decode.okay
