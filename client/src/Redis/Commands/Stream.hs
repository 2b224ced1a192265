-- | Streams: logs of entries, in the order of their ids. An entry is a list of fields with values.
--
-- > first <- run client (Redis.xadd "example:streams" (("kind", "login") :| [("user", "ada")]))
-- > news <- run client (Redis.xread (("example:streams", Redis.ReadAfter first) :| []))
--
-- "Redis.Commands.StreamGroup" has consumer groups, whose consumers share the entries of a stream.
-- "Redis.Commands.StreamInfo" has the commands that describe a stream.
--
-- The servers' pages: <https://valkey.io/commands/#stream>.
module Redis.Commands.Stream
  ( -- * Ids and entries
    StreamId (..),
    streamIdAt,
    streamIdTime,
    StreamEntry (..),

    -- * Adding
    xadd,
    xaddWith,
    XaddOptions (xaddId, xaddNomkstream, xaddTrim, xaddReferences, xaddIdempotence),
    xaddDefaults,
    NewId (..),
    Idempotence (..),
    xcfgsetWith,
    XcfgsetOptions (xcfgsetIdmpDuration, xcfgsetIdmpMaxsize),
    xcfgsetDefaults,

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
    XreadOptions (xreadCount, xreadMaxcount, xreadMaxsize, xreadBlock),
    xreadDefaults,
    ReadFrom (..),
    StreamWait (..),

    -- * Removing
    xdel,
    xdelex,
    EntryDeletion (..),
    StreamReferences (..),
    xtrim,
    xtrimWith,
    XtrimOptions (xtrimReferences),
    xtrimDefaults,
    StreamTrim (..),
    TrimPrecision (..),

    -- * The last id
    xsetid,
    xsetidWith,
    XsetidOptions (xsetidEntriesadded, xsetidMaxdeletedid),
    xsetidDefaults,
  )
where

import Data.Word (Word64)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common
import Redis.Internal.Command.Stream

-- | @XADD key * field value …@: adds an entry at the end, and creates the stream if there is none;
-- returns the entry's id. \(O(1)\), [since 5.0.0](https://valkey.io/commands/xadd/).
xadd :: ByteString -> NonEmpty (ByteString, ByteString) -> Command StreamId
xadd name fields = command "XADD" (xaddArguments xaddDefaults name fields) readId

-- | The options of 'xaddWith'.
data XaddOptions = XaddOptions
  { -- | The id of the new entry.
    xaddId :: NewId,
    -- | NOMKSTREAM (since 6.2.0): do not create the stream; without one nothing is added.
    xaddNomkstream :: Bool,
    -- | The entries that are dropped afterwards; 'Nothing' drops none.
    xaddTrim :: Maybe StreamTrim,
    -- | What becomes of the groups' references to entries that are dropped (Redis since 8.2.0).
    xaddReferences :: StreamReferences,
    -- | IDMP or IDMPAUTO: an entry that was added before is not added again (Redis since 8.6.0).
    xaddIdempotence :: Maybe Idempotence
  }
  deriving stock (Eq, Show)

-- | The server chooses the id, creates the stream if need be, adds every entry, drops nothing.
xaddDefaults :: XaddOptions
xaddDefaults =
  XaddOptions
    { xaddId = NextId,
      xaddNomkstream = False,
      xaddTrim = Nothing,
      xaddReferences = KeepReferences,
      xaddIdempotence = Nothing
    }

-- | How the server knows that an entry was added before. It then adds nothing, and returns the id of
-- the entry that is there. It remembers the entries of each producer for a time, and at most a
-- number of them ('xcfgsetWith'). The id of the new entry must be the server's choice.
data Idempotence
  = -- | IDMP: by the names of the producer and of the entry, in this order.
    Idmp ByteString ByteString
  | -- | IDMPAUTO: by the name of the producer, and the fields with their values.
    Idmpauto ByteString
  deriving stock (Eq, Show)

-- | The id of a new entry.
data NewId
  = -- | @*@: the server chooses it, by its clock and greater than all ids before.
    NextId
  | -- | @milliseconds-*@ (since 7.0.0): the next id of these milliseconds.
    NextIdAt Word64
  | -- | This id. The server refuses 0-0, and an id that is not greater than all ids before.
    GivenId StreamId
  deriving stock (Eq, Show)

-- | @XADD key [NOMKSTREAM] [DELREF|ACKED] [IDMP|IDMPAUTO …] [MAXLEN|MINID …] *|id field value …@:
-- like 'xadd', with options; 'Nothing' if there is no stream and NOMKSTREAM kept the server from
-- creating it. \(O(1)\) and, if it drops entries, \(O(n)\) in their number; since 5.0.0.
--
-- > xaddWith xaddDefaults {xaddTrim = Just (Maxlen (TrimRoughly Nothing) 1000)} "events" (("kind", "login") :| [])
xaddWith :: XaddOptions -> ByteString -> NonEmpty (ByteString, ByteString) -> Command (Maybe StreamId)
xaddWith options name fields = command "XADD" (xaddArguments options name fields) (Decode.nullable readId)

xaddArguments :: XaddOptions -> ByteString -> NonEmpty (ByteString, ByteString) -> [Argument]
xaddArguments XaddOptions {xaddId, xaddNomkstream, xaddTrim, xaddReferences, xaddIdempotence} name fields =
  (key name : flag "NOMKSTREAM" xaddNomkstream)
    <> references xaddReferences
    <> maybe [] once xaddIdempotence
    <> maybe [] trim xaddTrim
    <> (newId : fieldsWithValues fields)
  where
    newId = case xaddId of
      NextId -> arg "*"
      NextIdAt milliseconds -> arg (decimalWord64 milliseconds <> "-*")
      GivenId given -> idArgument given
    once = \case
      Idmp producer entry -> [arg "IDMP", arg producer, arg entry]
      Idmpauto producer -> [arg "IDMPAUTO", arg producer]

-- | The word, unless servers do the same without it: older ones do not know it.
references :: StreamReferences -> [Argument]
references = \case
  KeepReferences -> []
  other -> [arg (referencesWord other)]

-- | The options of 'xcfgsetWith', at least one of which is needed.
data XcfgsetOptions = XcfgsetOptions
  { -- | IDMP-DURATION: how long an entry is remembered, in whole seconds, rounded up; one second to
    -- one day.
    xcfgsetIdmpDuration :: Maybe Duration,
    -- | IDMP-MAXSIZE: how many entries of each producer are remembered; 1 to 10000.
    xcfgsetIdmpMaxsize :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | Changes nothing.
xcfgsetDefaults :: XcfgsetOptions
xcfgsetDefaults = XcfgsetOptions {xcfgsetIdmpDuration = Nothing, xcfgsetIdmpMaxsize = Nothing}

-- | @XCFGSET key [IDMP-DURATION seconds] [IDMP-MAXSIZE n]@: how long, and how many of, the entries
-- are remembered that were added with an 'Idempotence'. An error if there is no stream. If a value
-- changes, the server forgets all entries. \(O(1)\),
-- [since Redis 8.6.0](https://redis.io/docs/latest/commands/xcfgset/); Valkey lacks it.
xcfgsetWith :: XcfgsetOptions -> ByteString -> Command ()
xcfgsetWith XcfgsetOptions {xcfgsetIdmpDuration, xcfgsetIdmpMaxsize} name =
  command
    "XCFGSET"
    ( [key name]
        <> option "IDMP-DURATION" wholeSeconds xcfgsetIdmpDuration
        <> option "IDMP-MAXSIZE" int xcfgsetIdmpMaxsize
    )
    Decode.okay

-- | The entries that a stream keeps; older ones are dropped.
data StreamTrim
  = -- | MAXLEN: the newest entries, this many.
    Maxlen TrimPrecision Int64
  | -- | MINID (since 6.2.0): the entries from this id on.
    Minid TrimPrecision StreamId
  deriving stock (Eq, Show)

-- | How exactly the server trims a stream.
data TrimPrecision
  = -- | Exactly.
    TrimExactly
  | -- | @~@: the server may keep some more entries, if that saves it work. With a number it drops
    -- at most so many at once (LIMIT, since 6.2.0); without one, at most 100 times its
    -- setting @stream-node-max-entries@.
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

-- | @XTRIM key MAXLEN|MINID [~] threshold [LIMIT n]@: drops the oldest entries; returns how many it
-- dropped. \(O(n)\) in that number, [since 5.0.0](https://valkey.io/commands/xtrim/).
xtrim :: ByteString -> StreamTrim -> Command Int64
xtrim = xtrimWith xtrimDefaults

-- | The options of 'xtrimWith'.
newtype XtrimOptions = XtrimOptions
  { -- | What becomes of the groups' references to entries that are dropped (Redis since 8.2.0).
    xtrimReferences :: StreamReferences
  }
  deriving stock (Eq, Show)

-- | References stay.
xtrimDefaults :: XtrimOptions
xtrimDefaults = XtrimOptions {xtrimReferences = KeepReferences}

-- | @XTRIM key MAXLEN|MINID [~] threshold [LIMIT n] [DELREF|ACKED]@: like 'xtrim', with options.
xtrimWith :: XtrimOptions -> ByteString -> StreamTrim -> Command Int64
xtrimWith XtrimOptions {xtrimReferences} name keeping =
  command "XTRIM" (key name : trim keeping <> references xtrimReferences) Decode.integer

-- | @XDEL key id …@: deletes entries; returns how many existed. Those that are pending in a group
-- stay pending. \(O(1)\) per entry, [since 5.0.0](https://valkey.io/commands/xdel/).
xdel :: ByteString -> NonEmpty StreamId -> Command Int64
xdel name ids = command "XDEL" (key name : map idArgument (toList ids)) Decode.integer

-- | @XDELEX key KEEPREF|DELREF|ACKED IDS n id …@: deletes entries, and says what becomes of the
-- groups' references to them; the outcome for each id. \(O(1)\) per entry,
-- [since Redis 8.2.0](https://redis.io/docs/latest/commands/xdelex/), Valkey since 9.2.0.
xdelex :: ByteString -> StreamReferences -> NonEmpty StreamId -> Command [EntryDeletion]
xdelex name refs ids =
  command "XDELEX" (key name : arg (referencesWord refs) : countedIds ids) (readDeletions ids)

-- | @XLEN key@: the number of entries; 0 if there is no stream. \(O(1)\),
-- [since 5.0.0](https://valkey.io/commands/xlen/).
xlen :: ByteString -> Command Int64
xlen name = command "XLEN" [key name] Decode.integer

-- | @XRANGE key start end@: the entries between two ids, both included. @XREVRANGE key end start@:
-- from the higher id down to the lower one; it takes the higher id first. \(O(n)\) in the length of
-- the reply, since 5.0.0 ([XRANGE](https://valkey.io/commands/xrange/),
-- [XREVRANGE](https://valkey.io/commands/xrevrange/)).
--
-- > xrevrangeWith xrangeDefaults {xrangeCount = Just 1} "events" HighestId LowestId
xrange, xrevrange :: ByteString -> StreamBound -> StreamBound -> Command [StreamEntry]
xrange = xrangeWith xrangeDefaults
xrevrange = xrevrangeWith xrangeDefaults

-- | The options of 'xrangeWith' and 'xrevrangeWith'.
newtype XrangeOptions = XrangeOptions
  { -- | COUNT: at most this many entries; 'Nothing' means all.
    xrangeCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | The whole range.
xrangeDefaults :: XrangeOptions
xrangeDefaults = XrangeOptions {xrangeCount = Nothing}

-- | @XRANGE key start end [COUNT n]@, @XREVRANGE key end start [COUNT n]@: like 'xrange' and
-- 'xrevrange', but at most so many entries. To continue, start with 'ExcludingId' of the last id.
xrangeWith, xrevrangeWith :: XrangeOptions -> ByteString -> StreamBound -> StreamBound -> Command [StreamEntry]
xrangeWith = rangeBy "XRANGE"
xrevrangeWith = rangeBy "XREVRANGE"

rangeBy :: Name -> XrangeOptions -> ByteString -> StreamBound -> StreamBound -> Command [StreamEntry]
rangeBy commandName XrangeOptions {xrangeCount} name from to =
  command commandName ([key name, bound from, bound to] <> option "COUNT" int xrangeCount) readEntries

-- | The position in a stream from which to read.
data ReadFrom
  = -- | After this id, usually that of the last entry that was read; after 0-0 for all entries.
    ReadAfter StreamId
  | -- | @$@: the entries that are added from now on. Use it for the first read only: in each read
    -- it means the stream's end at that time, so entries added in between would be missed. So a
    -- read that waits for them is not sent again if its connection is lost; its error is
    -- 'Redis.Error.MaybeExecuted'. If the server turns it away (MOVED, LOADING, UNBLOCKED), it is
    -- sent again, and misses what was added before.
    ReadNew
  | -- | @+@ (Redis since 7.4, Valkey since 8.0): the last entry.
    ReadLast
  deriving stock (Eq, Show)

-- | @XREAD STREAMS key … id …@: the entries of each stream after the given id, with the stream's
-- key. Streams without such entries are left out. In a cluster the keys must share a slot. \(O(n)\)
-- in the length of the reply, [since 5.0.0](https://valkey.io/commands/xread/).
xread :: NonEmpty (ByteString, ReadFrom) -> Command [(ByteString, [StreamEntry])]
xread = xreadWith xreadDefaults

-- | The options of 'xreadWith'.
data XreadOptions = XreadOptions
  { -- | COUNT: at most this many entries of each stream; 'Nothing' or a number below 1 means all.
    xreadCount :: Maybe Int64,
    -- | MAXCOUNT (Redis since 8.10.0): at most this many entries of all streams together, those of the
    -- first streams first; not fewer than 'xreadCount'. A number below 1 is refused before it is sent.
    xreadMaxcount :: Maybe Int64,
    -- | MAXSIZE (Redis since 8.10.0): at most so many bytes of all streams together, but at least one
    -- entry. A number below 1 is refused before it is sent.
    xreadMaxsize :: Maybe Int64,
    xreadBlock :: StreamWait
  }
  deriving stock (Eq, Show)

-- | All entries that are there, without waiting.
xreadDefaults :: XreadOptions
xreadDefaults = XreadOptions {xreadCount = Nothing, xreadMaxcount = Nothing, xreadMaxsize = Nothing, xreadBlock = DoNotWait}

-- | @XREAD [COUNT n] [MAXCOUNT n] [MAXSIZE bytes] [BLOCK milliseconds] STREAMS key … id …@: like 'xread', with options. With
-- BLOCK the server waits until one of the streams has an entry; the result is empty if none has one
-- within the time.
xreadWith :: XreadOptions -> NonEmpty (ByteString, ReadFrom) -> Command [(ByteString, [StreamEntry])]
xreadWith XreadOptions {xreadCount, xreadMaxcount, xreadMaxsize, xreadBlock} streams =
  command
    "XREAD"
    ( option "COUNT" int xreadCount
        <> option "MAXCOUNT" positive xreadMaxcount
        <> option "MAXSIZE" positive xreadMaxsize
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

-- | @XSETID key id@: sets the last id of a stream, for programs that copy streams; the next entry's
-- id must be greater. The server refuses an id that is less than that of an existing entry.
-- \(O(1)\), [since 5.0.0](https://valkey.io/commands/xsetid/).
xsetid :: ByteString -> StreamId -> Command ()
xsetid = xsetidWith xsetidDefaults

-- | The options of 'xsetidWith': more about the stream's past.
data XsetidOptions = XsetidOptions
  { -- | ENTRIESADDED (since 7.0.0): the number of entries that were ever added.
    xsetidEntriesadded :: Maybe Int64,
    -- | MAXDELETEDID (since 7.0.0): the highest id of a deleted entry.
    xsetidMaxdeletedid :: Maybe StreamId
  }
  deriving stock (Eq, Show)

-- | No options.
xsetidDefaults :: XsetidOptions
xsetidDefaults = XsetidOptions {xsetidEntriesadded = Nothing, xsetidMaxdeletedid = Nothing}

-- | @XSETID key id [ENTRIESADDED n] [MAXDELETEDID id]@: like 'xsetid', with options.
xsetidWith :: XsetidOptions -> ByteString -> StreamId -> Command ()
xsetidWith XsetidOptions {xsetidEntriesadded, xsetidMaxdeletedid} name lastId =
  command
    "XSETID"
    ( [key name, idArgument lastId]
        <> option "ENTRIESADDED" int xsetidEntriesadded
        <> option "MAXDELETEDID" idArgument xsetidMaxdeletedid
    )
    Decode.okay
