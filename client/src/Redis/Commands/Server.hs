-- | The server as a whole. In a cluster each of these concerns the one node
-- that is asked.
module Redis.Commands.Server
  ( dbsize,
    flushdb,
    flushall,
    FlushMode (..),
    info,
    time,
    waitReplicas,

    -- * Settings
    configGet,
    configSet,

    -- * What the server says of commands
    commandInfo,
    commandGetKeys,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Data.List.NonEmpty qualified as NonEmpty
import Redis.Command (Blocking (..), Command)
import Redis.Decode qualified as Decode
import Redis.Internal.Commands.Build
import Redis.Internal.Protocol.CommandTable (CommandEntry, entryFromReply)
import Redis.Internal.Protocol.Encode

-- | @DBSIZE@: how many keys there are. \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
dbsize :: Command Int64
dbsize = anyRead "DBSIZE" (request ["DBSIZE"]) Decode.integer

-- | How to give the memory back.
--
-- @since 0.1.0.0
data FlushMode
  = -- | While everybody waits.
    FlushSync
  | -- | In the background.
    FlushAsync
  deriving stock (Eq, Show)

-- | @FLUSHDB SYNC|ASYNC@: deletes all keys of the database. \(O(n)\) on the
-- server, since 1.0.0; ASYNC since 4.0.0, SYNC since 6.2.0.
--
-- @since 0.1.0.0
flushdb :: FlushMode -> Command ()
flushdb mode = anyWrite "FLUSHDB" (request ["FLUSHDB", flushMode mode]) Decode.okay

-- | @FLUSHALL SYNC|ASYNC@: deletes all keys of all databases. \(O(n)\) on the
-- server, since 1.0.0; ASYNC since 4.0.0, SYNC since 6.2.0.
--
-- @since 0.1.0.0
flushall :: FlushMode -> Command ()
flushall mode = anyWrite "FLUSHALL" (request ["FLUSHALL", flushMode mode]) Decode.okay

flushMode :: FlushMode -> ByteString
flushMode = \case
  FlushSync -> "SYNC"
  FlushAsync -> "ASYNC"

-- | @INFO [section …]@: its fields in order, the section headings left out. No
-- section means the default ones. \(O(1)\) on the server, since 1.0.0; several
-- sections since 7.0.0.
--
-- @since 0.1.0.0
info :: [ByteString] -> Command [(ByteString, ByteString)]
info sections = fmap fields (anyRead "INFO" (request ("INFO" : sections)) Decode.bytes)
  where
    fields text =
      [ (name, Char8.drop 1 rest)
        | line <- Char8.lines text,
          let (name, rest) = Char8.break (== ':') (Char8.takeWhile (/= '\r') line),
          not (Char8.null rest)
      ]

-- | @TIME@: seconds since 1970 and microseconds into the second. \(O(1)\) on
-- the server, since 2.6.0.
--
-- @since 0.1.0.0
time :: Command (Int64, Int64)
time = anyRead "TIME" (request ["TIME"]) $ \reply ->
  Decode.listOf 2 Decode.bytes reply >>= \case
    [whole, part]
      | Just (s, "") <- Char8.readInt whole,
        Just (us, "") <- Char8.readInt part ->
        Right (fromIntegral s, fromIntegral us)
    _ -> Decode.mismatch "seconds and microseconds" reply

-- | @WAIT replicas milliseconds@: how many replicas have all that was written
-- on this very connection, as soon as these many have, or after that time (0
-- for ever). Means something only on a connection of one's own. \(O(1)\) on the
-- server, since 3.0.0.
--
-- @since 0.1.0.0
waitReplicas :: Int64 -> Int64 -> Command Int64
waitReplicas replicas milliseconds =
  blockingOn blocking $
    connectionState "WAIT" (request ["WAIT", int replicas, int milliseconds]) Decode.integer
  where
    blocking
      | milliseconds == 0 = BlocksForever
      | otherwise = BlocksFor (fromIntegral milliseconds / 1000)

-- | @CONFIG GET pattern …@: settings whose names match one of the globs.
-- \(O(n)\) on the server, since 2.0.0; several patterns since 7.0.0.
--
-- @since 0.1.0.0
configGet :: NonEmpty ByteString -> Command [(ByteString, ByteString)]
configGet patterns =
  anyRead
    "CONFIG GET"
    (request ("CONFIG" : "GET" : NonEmpty.toList patterns))
    (Decode.pairs Decode.bytes Decode.bytes)

-- | @CONFIG SET name value …@: all or none. \(O(n)\) on the server, since
-- 2.0.0; several settings since 7.0.0.
--
-- @since 0.1.0.0
configSet :: NonEmpty (ByteString, ByteString) -> Command ()
configSet settings =
  anyWrite "CONFIG SET" (request ("CONFIG" : "SET" : concatMap both settings)) Decode.okay
  where
    both (name, value) = [name, value]

-- | @COMMAND INFO name …@: what the server says of each, 'Nothing' if it does
-- not know it. A subcommand is named as @config|get@ (since 7.0.0). \(O(n)\) on
-- the server, since 2.8.13.
--
-- @since 0.1.0.0
commandInfo :: NonEmpty ByteString -> Command [Maybe CommandEntry]
commandInfo names =
  anyRead "COMMAND INFO" (request ("COMMAND" : "INFO" : NonEmpty.toList names)) $
    Decode.listOf (length names) (Decode.nullable entry)
  where
    entry reply = maybe (Decode.mismatch "a description of a command" reply) Right (entryFromReply reply)

-- | @COMMAND GETKEYS name argument …@: the keys of that command. An error
-- reply if it has none, or if it is wrong. \(O(n)\) on the server, since 2.8.13.
--
-- @since 0.1.0.0
commandGetKeys :: NonEmpty ByteString -> Command [ByteString]
commandGetKeys commandWords =
  anyRead
    "COMMAND GETKEYS"
    (request ("COMMAND" : "GETKEYS" : NonEmpty.toList commandWords))
    (Decode.list Decode.bytes)
