-- | Streams: logs of entries, each of fields with values, in the order of their ids.
--
-- > first <- run client (Redis.xadd "example:streams" (("kind", "login") :| [("user", "ada")]))
-- > news <- run client (Redis.xread (("example:streams", Redis.ReadAfter first) :| []))
--
-- Groups of consumers, each of which gets its share, are in "Redis.Commands.StreamGroup",
-- what there is to know of a stream in "Redis.Commands.StreamInfo".
--
-- What the server says of them: <https://valkey.io/commands/#stream>.
module Redis.Commands.Stream
  ( -- * Ids and entries
    StreamId (..),
    streamIdAt,
    streamIdTime,
    StreamEntry (..),

    -- * Adding
    xadd,
    xaddWith,
    XaddOptions (xaddId, xaddNomkstream, xaddTrim),
    xaddDefaults,
    NewId (..),

    -- * Reading
    xrange,
    xrangeWith,
    xrevrange,
    xrevrangeWith,
    XrangeOptions (xrangeCount),
    xrangeDefaults,
    StreamBound (..),
    xlen,
    xread,
    xreadWith,
    XreadOptions (xreadCount, xreadBlock),
    xreadDefaults,
    ReadFrom (..),
    StreamWait (..),

    -- * Removing
    xdel,
    xtrim,
    StreamTrim (..),
    TrimPrecision (..),

    -- * The last id
    xsetid,
    xsetidWith,
    XsetidOptions (xsetidEntriesadded, xsetidMaxdeletedid),
    xsetidDefaults,
  )
where

import Data.ByteString (ByteString)
import Data.Foldable (toList)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Data.Word (Word64)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Stream

-- | @XADD key * field value …@: adds an entry at the end, and makes the stream if there is none;
-- the id that the server gave it. \(O(1)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/xadd/).
--
-- @since 0.1.0.0
xadd :: ByteString -> NonEmpty (ByteString, ByteString) -> Command StreamId
xadd name fields = command "XADD" (xaddArguments xaddDefaults name fields) readId

-- | How to add.
--
-- @since 0.1.0.0
data XaddOptions = XaddOptions
  { -- | The id it gets.
    xaddId :: NewId,
    -- | NOMKSTREAM (since 6.2.0): not if there is no stream.
    xaddNomkstream :: Bool,
    -- | What to drop afterwards.
    xaddTrim :: Maybe StreamTrim
  }
  deriving stock (Eq, Show)

-- | An id of the server's, in any case, and nothing is dropped.
--
-- @since 0.1.0.0
xaddDefaults :: XaddOptions
xaddDefaults = XaddOptions {xaddId = NextId, xaddNomkstream = False, xaddTrim = Nothing}

-- | The id of a new entry.
--
-- @since 0.1.0.0
data NewId
  = -- | @*@: by the server's clock, and greater than all before it.
    NextId
  | -- | @milliseconds-*@ (since 7.0.0): the next one of these milliseconds.
    NextIdAt Word64
  | -- | This one. The server refuses one that is not greater than all before it, and
    -- 0-0.
    GivenId StreamId
  deriving stock (Eq, Show)

-- | @XADD key [NOMKSTREAM] [MAXLEN|MINID …] *|id field value …@: as 'xadd'; 'Nothing' if there is
-- no stream and none was to be made. \(O(1)\) on the server and, if it drops entries, \(O(n)\) in
-- these; [since 5.0.0](https://valkey.io/commands/xadd/).
--
-- > xaddWith xaddDefaults {xaddTrim = Just (Maxlen (TrimRoughly Nothing) 1000)} "events" (("kind", "login") :| [])
--
-- @since 0.1.0.0
xaddWith :: XaddOptions -> ByteString -> NonEmpty (ByteString, ByteString) -> Command (Maybe StreamId)
xaddWith options name fields = command "XADD" (xaddArguments options name fields) (Decode.nullable readId)

xaddArguments :: XaddOptions -> ByteString -> NonEmpty (ByteString, ByteString) -> [Argument]
xaddArguments XaddOptions {xaddId, xaddNomkstream, xaddTrim} name fields =
  (key name : flag "NOMKSTREAM" xaddNomkstream)
    <> maybe [] trim xaddTrim
    <> (newId : concatMap (\(field, new) -> [arg field, arg new]) fields)
  where
    newId = case xaddId of
      NextId -> arg "*"
      NextIdAt milliseconds -> arg (decimalWord64 milliseconds <> "-*")
      GivenId given -> idArgument given

-- | What to keep; the oldest entries are dropped.
--
-- @since 0.1.0.0
data StreamTrim
  = -- | MAXLEN: so many.
    Maxlen TrimPrecision Int64
  | -- | MINID (since 6.2.0): those from this id on.
    Minid TrimPrecision StreamId
  deriving stock (Eq, Show)

-- | How exactly.
--
-- @since 0.1.0.0
data TrimPrecision
  = -- | Just so.
    TrimExactly
  | -- | @~@: maybe some more are kept, if that saves the server work; with a number, at most
    -- so many are dropped at once (LIMIT, since 6.2.0), without one 100 times what it
    -- stores together.
    TrimRoughly (Maybe Int64)
  deriving stock (Eq, Show)

trim :: StreamTrim -> [Argument]
trim = \case
  Maxlen precision most -> arg "MAXLEN" : keeping precision (natural most)
  Minid precision lowest -> arg "MINID" : keeping precision (idArgument lowest)
  where
    keeping precision threshold = case precision of
      TrimExactly -> [threshold]
      TrimRoughly limit -> [arg "~", threshold] <> option "LIMIT" natural limit

-- | @XTRIM key MAXLEN|MINID [~] threshold [LIMIT n]@: drops the oldest entries; how many. \(O(n)\)
-- on the server in these, [since 5.0.0](https://valkey.io/commands/xtrim/).
--
-- @since 0.1.0.0
xtrim :: ByteString -> StreamTrim -> Command Int64
xtrim name keeping = command "XTRIM" (key name : trim keeping) Decode.integer

-- | @XDEL key id …@: deletes entries; how many there were. What consumers have of them stays
-- pending. \(O(1)\) each on the server, [since 5.0.0](https://valkey.io/commands/xdel/).
--
-- @since 0.1.0.0
xdel :: ByteString -> NonEmpty StreamId -> Command Int64
xdel name ids = command "XDEL" (key name : map idArgument (toList ids)) Decode.integer

-- | @XLEN key@: how many entries there are; none without a stream. \(O(1)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/xlen/).
--
-- @since 0.1.0.0
xlen :: ByteString -> Command Int64
xlen name = command "XLEN" [key name] Decode.integer

-- | @XRANGE key start end@: the entries from one to the other. \(O(n)\) on the server in what it
-- gives, [since 5.0.0](https://valkey.io/commands/xrange/).
--
-- @since 0.1.0.0
xrange :: ByteString -> StreamBound -> StreamBound -> Command [StreamEntry]
xrange = xrangeWith xrangeDefaults

-- | How much of a range.
--
-- @since 0.1.0.0
newtype XrangeOptions = XrangeOptions
  { -- | COUNT: at most so many; 'Nothing' is all.
    xrangeCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | All of it.
--
-- @since 0.1.0.0
xrangeDefaults :: XrangeOptions
xrangeDefaults = XrangeOptions {xrangeCount = Nothing}

-- | @XRANGE key start end [COUNT n]@: as 'xrange'. To go on, start with 'ExcludingId' of
-- the last one.
--
-- @since 0.1.0.0
xrangeWith :: XrangeOptions -> ByteString -> StreamBound -> StreamBound -> Command [StreamEntry]
xrangeWith XrangeOptions {xrangeCount} name start end =
  command "XRANGE" ([key name, bound start, bound end] <> option "COUNT" int xrangeCount) readEntries

-- | @XREVRANGE key end start@: as 'xrange', from the higher id down to the lower one, which are
-- given in this order. [Since 5.0.0](https://valkey.io/commands/xrevrange/).
--
-- > xrevrangeWith xrangeDefaults {xrangeCount = Just 1} "events" HighestId LowestId
--
-- @since 0.1.0.0
xrevrange :: ByteString -> StreamBound -> StreamBound -> Command [StreamEntry]
xrevrange = xrevrangeWith xrangeDefaults

-- | @XREVRANGE key end start [COUNT n]@: as 'xrevrange'.
--
-- @since 0.1.0.0
xrevrangeWith :: XrangeOptions -> ByteString -> StreamBound -> StreamBound -> Command [StreamEntry]
xrevrangeWith XrangeOptions {xrangeCount} name end start =
  command "XREVRANGE" ([key name, bound end, bound start] <> option "COUNT" int xrangeCount) readEntries

-- | Where in a stream to begin.
--
-- @since 0.1.0.0
data ReadFrom
  = -- | After this id, which one has read; after 0-0 come all.
    ReadAfter StreamId
  | -- | @$@: with what is added from now on. It says so each time anew, so use it for the
    -- first read only.
    ReadNew
  | -- | @+@ (Redis since 7.4, Valkey since 8.0): with the last one there is.
    ReadLast
  deriving stock (Eq, Show)

-- | @XREAD STREAMS key … id …@: what the streams have after these ids, by their keys. Those that
-- have nothing are left out. In a cluster the keys must share a slot. \(O(n)\) on the server in
-- what it gives, [since 5.0.0](https://valkey.io/commands/xread/).
--
-- @since 0.1.0.0
xread :: NonEmpty (ByteString, ReadFrom) -> Command [(ByteString, [StreamEntry])]
xread = xreadWith xreadDefaults

-- | How to read.
--
-- @since 0.1.0.0
data XreadOptions = XreadOptions
  { -- | COUNT: at most so many of each stream; 'Nothing' is all.
    xreadCount :: Maybe Int64,
    xreadBlock :: StreamWait
  }
  deriving stock (Eq, Show)

-- | All that is there, without waiting.
--
-- @since 0.1.0.0
xreadDefaults :: XreadOptions
xreadDefaults = XreadOptions {xreadCount = Nothing, xreadBlock = DoNotWait}

-- | @XREAD [COUNT n] [BLOCK milliseconds] STREAMS key … id …@: as 'xread'. It waits until
-- one of the streams has something, and gives nothing if none has in that time.
--
-- @since 0.1.0.0
xreadWith :: XreadOptions -> NonEmpty (ByteString, ReadFrom) -> Command [(ByteString, [StreamEntry])]
xreadWith XreadOptions {xreadCount, xreadBlock} streams =
  command
    "XREAD"
    ( option "COUNT" int xreadCount
        <> block xreadBlock
        <> (arg "STREAMS" : keys (fmap fst streams))
        <> map (from . snd) (toList streams)
    )
    (readStreams readEntry)
  where
    from = \case
      ReadAfter one -> idArgument one
      ReadNew -> arg "$"
      ReadLast -> arg "+"

-- | @XSETID key id@: says which id was the last, for copies of streams; the next one must be
-- greater. The server refuses one that is less than that of an entry that is there. \(O(1)\) on the
-- server, [since 5.0.0](https://valkey.io/commands/xsetid/).
--
-- @since 0.1.0.0
xsetid :: ByteString -> StreamId -> Command ()
xsetid = xsetidWith xsetidDefaults

-- | What else to say of the stream's past.
--
-- @since 0.1.0.0
data XsetidOptions = XsetidOptions
  { -- | ENTRIESADDED (since 7.0.0): how many were ever added.
    xsetidEntriesadded :: Maybe Int64,
    -- | MAXDELETEDID (since 7.0.0): the highest id of those deleted.
    xsetidMaxdeletedid :: Maybe StreamId
  }
  deriving stock (Eq, Show)

-- | Nothing.
--
-- @since 0.1.0.0
xsetidDefaults :: XsetidOptions
xsetidDefaults = XsetidOptions {xsetidEntriesadded = Nothing, xsetidMaxdeletedid = Nothing}

-- | @XSETID key id [ENTRIESADDED n] [MAXDELETEDID id]@: as 'xsetid'.
--
-- @since 0.1.0.0
xsetidWith :: XsetidOptions -> ByteString -> StreamId -> Command ()
xsetidWith XsetidOptions {xsetidEntriesadded, xsetidMaxdeletedid} name lastId =
  command
    "XSETID"
    ( [key name, idArgument lastId]
        <> option "ENTRIESADDED" int xsetidEntriesadded
        <> option "MAXDELETEDID" idArgument xsetidMaxdeletedid
    )
    Decode.okay
