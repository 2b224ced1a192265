-- | The server as a whole. In a cluster some of these speak for all of it, as
-- each says; the others are one node's own and refused unless a node is named
-- ('Redis.Command.onNode', 'Redis.Command.onEvery').
module Redis.Commands.Server
  ( dbsize,
    flushdb,
    flushdbWith,
    flushall,
    flushallWith,
    FlushOptions (flushMode),
    flushDefaults,
    FlushMode (..),
    info,
    infoOf,
    time,
    wait,
    waitaof,
    Fsynced (..),
    shutdown,

    -- * Settings
    configGet,
    configSet,

    -- * The slow log
    slowlogGet,
    slowlogLen,
    slowlogReset,
    SlowlogEntry (..),

    -- * Other clients
    clientUnpause,
    clientUnblock,

    -- * What the server says of commands
    commandInfo,
    CommandInfo (..),
    commandGetkeys,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Time.Clock (UTCTime)
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, inMilliseconds, seconds)
import Redis.Internal.Command.Flush

-- | @DBSIZE@: how many keys there are; in a cluster, on all primaries. \(O(1)\) on
-- the server, since 1.0.0.
--
-- @since 0.1.0.0
dbsize :: Command Int64
dbsize = command "DBSIZE" [] Decode.integer

-- | @FLUSHDB@: deletes all keys of the database; in a cluster, on all primaries.
-- \(O(n)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
flushdb :: Command ()
flushdb = flushdbWith flushDefaults

-- | @FLUSHDB [SYNC|ASYNC]@: as 'flushdb'. ASYNC since 4.0.0, SYNC since 6.2.0.
--
-- @since 0.1.0.0
flushdbWith :: FlushOptions -> Command ()
flushdbWith options = command "FLUSHDB" (flushArguments options) Decode.okay

-- | @FLUSHALL@: deletes all keys of all databases; in a cluster, on all
-- primaries. \(O(n)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
flushall :: Command ()
flushall = flushallWith flushDefaults

-- | @FLUSHALL [SYNC|ASYNC]@: as 'flushall'. ASYNC since 4.0.0, SYNC since 6.2.0.
--
-- @since 0.1.0.0
flushallWith :: FlushOptions -> Command ()
flushallWith options = command "FLUSHALL" (flushArguments options) Decode.okay

-- | @INFO@: the fields of the default sections in order, the headings left out.
-- One node's own. \(O(1)\) on the server, since 1.0.0.
--
-- > run client (onEvery Primaries info)
--
-- @since 0.1.0.0
info :: Command [(ByteString, ByteString)]
info = command "INFO" [] infoFields

-- | @INFO section …@: as 'info', of these sections. Since 2.4.0; several since
-- 7.0.0.
--
-- @since 0.1.0.0
infoOf :: NonEmpty ByteString -> Command [(ByteString, ByteString)]
infoOf sections = command "INFO" (args sections) infoFields

infoFields :: Decoder [(ByteString, ByteString)]
infoFields = fmap fields . Decode.bytes
  where
    fields text =
      [ (name, Char8.drop 1 rest)
        | line <- Char8.lines text,
          let (name, rest) = Char8.break (== ':') (Char8.takeWhile (/= '\r') line),
          not (Char8.null rest)
      ]

-- | @TIME@: the server's clock, to the microsecond. \(O(1)\) on the server,
-- since 2.6.0.
--
-- @since 0.1.0.0
time :: Command UTCTime
time = command "TIME" [] $ \reply ->
  Decode.listOf 2 Decode.bytes reply >>= \case
    [whole, part]
      | Just (s, "") <- Char8.readInteger whole,
        Just (us, "") <- Char8.readInteger part ->
        Right (posixSecondsToUTCTime (fromInteger s + fromInteger us / 1000000))
    _ -> Decode.mismatch "seconds and microseconds" reply

-- | @WAIT replicas milliseconds@: how many replicas have all that was written
-- on this very connection, as soon as these many have, or after that time, if
-- there is one. Means something only on a connection of one's own, and is
-- refused elsewhere. \(O(1)\) on the server, since 3.0.0.
--
-- @since 0.1.0.0
wait :: Int64 -> Maybe Duration -> Command Int64
wait replicas limit =
  -- Zero is for ever.
  command "WAIT" [int replicas, maybe (int 0) (int . max 1 . inMilliseconds) limit] Decode.integer

-- | @WAITAOF local replicas milliseconds@: how many have on disk what was written on this
-- very connection, as soon as these many have, or after that time, if there is one. The
-- first number is 0 or 1: the server itself, which refuses 1 if it keeps no append-only
-- file. Means something only on a connection of one's own, as 'wait'. \(O(1)\) on the
-- server, since 7.2.0.
--
-- @since 0.1.0.0
waitaof :: Int64 -> Int64 -> Maybe Duration -> Command Fsynced
waitaof local replicas limit =
  command "WAITAOF" [int local, int replicas, maybe (int 0) (int . max 1 . inMilliseconds) limit] $
    fmap (uncurry Fsynced) . Decode.pair Decode.integer Decode.integer

-- | Who has on disk what was written.
--
-- @since 0.1.0.0
data Fsynced = Fsynced
  { -- | The server itself: 0 or 1.
    fsyncedLocally :: Int64,
    -- | How many replicas.
    fsyncedReplicas :: Int64
  }
  deriving stock (Eq, Show)

-- | @SHUTDOWN@: the server saves, if it is set up to, and ends. One node's own. It
-- does not answer: the connection ends, which is the success. Does not wait behind
-- what runs. Since 1.0.0.
--
-- @since 0.1.0.0
shutdown :: Command ()
shutdown = command "SHUTDOWN" [] Decode.okay

-- | @CONFIG GET pattern …@: settings whose names match one of the globs. One
-- node's own. \(O(n)\) on the server, since 2.0.0; several patterns since 7.0.0.
--
-- @since 0.1.0.0
configGet :: NonEmpty ByteString -> Command [(ByteString, ByteString)]
configGet patterns = command "CONFIG GET" (args patterns) (Decode.pairs Decode.bytes Decode.bytes)

-- | @CONFIG SET name value …@: all or none; in a cluster, on every node.
-- \(O(n)\) on the server, since 2.0.0; several settings since 7.0.0.
--
-- @since 0.1.0.0
configSet :: NonEmpty (ByteString, ByteString) -> Command ()
configSet settings = command "CONFIG SET" (concatMap both settings) Decode.okay
  where
    both (name, new) = [arg name, arg new]

-- | One command that took long.
--
-- @since 0.1.0.0
data SlowlogEntry = SlowlogEntry
  { -- | The server counts them.
    slowlogId :: Int64,
    -- | When it was run, to the second.
    slowlogTime :: UTCTime,
    -- | How long it ran, without waiting.
    slowlogDuration :: Duration,
    -- | Its words; the server leaves some out where there are many.
    slowlogCommand :: [ByteString],
    -- | Whose it was, since 4.0.0: address and port.
    slowlogClient :: Maybe ByteString,
    -- | The name of that client, if it has one, since 4.0.0.
    slowlogClientName :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | @SLOWLOG GET count@: the latest entries, the newest first; in a cluster those
-- of every node, so many of each. \(O(n)\) on the server, since 2.2.12.
--
-- > run client (onNode node (slowlogGet 10))
--
-- @since 0.1.0.0
slowlogGet :: Int64 -> Command [SlowlogEntry]
slowlogGet count = command "SLOWLOG GET" [int count] (Decode.list slowlogEntry)

slowlogEntry :: Decoder SlowlogEntry
slowlogEntry reply =
  Decode.list Decode.value reply >>= \case
    number : at : micros : commandWords : rest -> do
      slowlogId <- Decode.integer number
      slowlogTime <- posixSecondsToUTCTime . fromIntegral <$> Decode.integer at
      slowlogDuration <- seconds . (/ 1e6) . fromIntegral <$> Decode.integer micros
      slowlogCommand <- Decode.list Decode.bytes commandWords
      from <- traverse Decode.bytes (take 2 rest)
      let (slowlogClient, slowlogClientName) = case from of
            [address, name] -> (Just address, if Char8.null name then Nothing else Just name)
            _ -> (Nothing, Nothing)
      pure SlowlogEntry {slowlogId, slowlogTime, slowlogDuration, slowlogCommand, slowlogClient, slowlogClientName}
    _ -> Decode.mismatch "an entry of the slow log" reply

-- | @SLOWLOG LEN@: how many entries there are; in a cluster, on all nodes.
-- \(O(1)\) on the server, since 2.2.12.
--
-- @since 0.1.0.0
slowlogLen :: Command Int64
slowlogLen = command "SLOWLOG LEN" [] Decode.integer

-- | @SLOWLOG RESET@: forgets all entries; in a cluster, on every node. \(O(n)\) on
-- the server, since 2.2.12.
--
-- @since 0.1.0.0
slowlogReset :: Command ()
slowlogReset = command "SLOWLOG RESET" [] Decode.okay

-- | @CLIENT UNPAUSE@: undoes CLIENT PAUSE. One node's own. Does not wait behind
-- what is paused. \(O(n)\) on the server in the clients that are paused, since
-- 6.2.0.
--
-- @since 0.1.0.0
clientUnpause :: Command ()
clientUnpause = command "CLIENT UNPAUSE" [] Decode.okay

-- | @CLIENT UNBLOCK id@: ends the wait of the connection with this number as if
-- its time were over; whether it waited. One node's own. \(O(\log n)\) on the
-- server, since 5.0.0.
--
-- @since 0.1.0.0
clientUnblock :: Int64 -> Command Bool
clientUnblock connection = command "CLIENT UNBLOCK" [int connection] Decode.boolean

-- | What a server says of one of its commands.
--
-- @since 0.1.0.0
data CommandInfo = CommandInfo
  { -- | In small letters; a subcommand after a bar, as in @config|get@.
    commandInfoName :: ByteString,
    -- | How many words it has, the name included; negative for at least so many.
    commandInfoArity :: Int64,
    -- | Such as @readonly@ or @blocking@.
    commandInfoFlags :: [ByteString],
    -- | Of the server's access rules, such as @\@write@; none before 6.0.0.
    commandInfoCategories :: [ByteString]
  }
  deriving stock (Eq, Show)

-- | @COMMAND INFO name …@: what the server says of each, 'Nothing' if it does
-- not know it. A subcommand is named as @config|get@ (since 7.0.0). \(O(n)\) on
-- the server, since 2.8.13.
--
-- @since 0.1.0.0
commandInfo :: NonEmpty ByteString -> Command [Maybe CommandInfo]
commandInfo names =
  command "COMMAND INFO" (args names) (Decode.listOf (length names) (Decode.nullable description))
  where
    description reply =
      Decode.list Decode.value reply >>= \case
        name : arity : flags : _first : _last : _step : rest -> do
          commandInfoName <- Decode.bytes name
          commandInfoArity <- Decode.integer arity
          commandInfoFlags <- Decode.list Decode.bytes flags
          commandInfoCategories <- maybe (Right []) (Decode.list Decode.bytes) (firstOf rest)
          pure CommandInfo {commandInfoName, commandInfoArity, commandInfoFlags, commandInfoCategories}
        _ -> Decode.mismatch "a description of a command" reply
    firstOf = \case
      [] -> Nothing
      one : _ -> Just one

-- | @COMMAND GETKEYS name argument …@: the keys of that command. An error
-- reply if it has none, or if it is wrong. \(O(n)\) on the server, since 2.8.13.
--
-- @since 0.1.0.0
commandGetkeys :: NonEmpty ByteString -> Command [ByteString]
commandGetkeys commandWords =
  command "COMMAND GETKEYS" (map arg (NonEmpty.toList commandWords)) (Decode.list Decode.bytes)
