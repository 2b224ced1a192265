-- | Groups of consumers, who share the entries of a stream: each entry goes to one of them
-- and is pending until that one acknowledges it.
--
-- > run client (Redis.xgroupCreate "example:streams" "mailers" (Redis.GroupAfter (Redis.StreamId 0 0)))
-- > let one = Redis.Consumer "mailers" "one"
-- > got <- run client (Redis.xreadgroupWith Redis.xreadgroupDefaults {Redis.xreadgroupCount = Just 1} one ("example:streams" :| []))
-- > run client (Redis.xack "example:streams" "mailers" ids)
--
-- What a consumer that is gone leaves pending others claim: 'xautoclaim'.
--
-- What the server says of them: <https://valkey.io/commands/#stream>.
module Redis.Commands.StreamGroup
  ( -- * Reading
    Consumer (..),
    xreadgroup,
    xreadgroupWith,
    XreadgroupOptions (xreadgroupCount, xreadgroupBlock, xreadgroupNoack),
    xreadgroupDefaults,
    xreadgroupFrom,
    xreadgroupFromWith,
    GroupRead (..),
    DeliveredEntry (..),
    xack,

    -- * What is pending
    xpending,
    PendingSummary (..),
    xpendingRange,
    xpendingRangeWith,
    XpendingRangeOptions (xpendingRangeIdle, xpendingRangeStart, xpendingRangeEnd, xpendingRangeConsumer),
    xpendingRangeDefaults,
    PendingEntry (..),

    -- * Taking over
    xclaim,
    xclaimWith,
    xclaimJustid,
    xclaimJustidWith,
    XclaimOptions (xclaimIdle, xclaimRetrycount, xclaimForce, xclaimLastid),
    xclaimDefaults,
    ClaimIdle (..),
    xautoclaim,
    xautoclaimWith,
    xautoclaimJustid,
    xautoclaimJustidWith,
    XautoclaimOptions (xautoclaimCount),
    xautoclaimDefaults,
    Autoclaimed (..),

    -- * Groups and consumers
    xgroupCreate,
    xgroupCreateWith,
    XgroupCreateOptions (xgroupCreateMkstream, xgroupCreateEntriesread),
    xgroupCreateDefaults,
    GroupFrom (..),
    xgroupSetid,
    xgroupSetidWith,
    XgroupSetidOptions (xgroupSetidEntriesread),
    xgroupSetidDefaults,
    xgroupDestroy,
    xgroupCreateconsumer,
    xgroupDelconsumer,
    xgroupHelp,
  )
where

import Data.ByteString (ByteString)
import Data.Foldable (toList)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Data.Maybe (catMaybes, fromMaybe)
import Data.Time.Clock (UTCTime)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, milliseconds)
import Redis.Internal.Command.Argument (unixMilliseconds)
import Redis.Internal.Command.Stream

-- | A consumer, by the names of its group and its own.
--
-- @since 0.1.0.0
data Consumer = Consumer
  { consumerGroup :: ByteString,
    consumerName :: ByteString
  }
  deriving stock (Eq, Ord, Show)

consumer :: Consumer -> [Argument]
consumer Consumer {consumerGroup, consumerName} = [arg consumerGroup, arg consumerName]

-- | @XREADGROUP GROUP group consumer STREAMS key … > …@: what no consumer of the group has had yet;
-- it is pending with this one from now on. The group must be there in each stream (@NOGROUP@
-- otherwise), the consumer is made when need be. In a cluster the keys must share a slot. \(O(n)\)
-- on the server in what it gives, [since 5.0.0](https://valkey.io/commands/xreadgroup/).
--
-- @since 0.1.0.0
xreadgroup :: Consumer -> NonEmpty ByteString -> Command [(ByteString, [StreamEntry])]
xreadgroup = xreadgroupWith xreadgroupDefaults

-- | How to read.
--
-- @since 0.1.0.0
data XreadgroupOptions = XreadgroupOptions
  { -- | COUNT: at most so many of each stream; 'Nothing' is all.
    xreadgroupCount :: Maybe Int64,
    -- | It counts for what nobody has had yet.
    xreadgroupBlock :: StreamWait,
    -- | NOACK: what is given does not become pending, and is lost if it gets lost.
    xreadgroupNoack :: Bool
  }
  deriving stock (Eq, Show)

-- | All that is there, without waiting, to be acknowledged.
--
-- @since 0.1.0.0
xreadgroupDefaults :: XreadgroupOptions
xreadgroupDefaults =
  XreadgroupOptions {xreadgroupCount = Nothing, xreadgroupBlock = DoNotWait, xreadgroupNoack = False}

-- | @XREADGROUP GROUP group consumer [COUNT n] [BLOCK milliseconds] [NOACK] STREAMS
-- key … > …@: as 'xreadgroup'.
--
-- @since 0.1.0.0
xreadgroupWith :: XreadgroupOptions -> Consumer -> NonEmpty ByteString -> Command [(ByteString, [StreamEntry])]
xreadgroupWith options reader names =
  command "XREADGROUP" (xreadgroupArguments options reader (fmap (\name -> (name, Undelivered)) names)) (readStreams readEntry)

-- | What to read of a stream.
--
-- @since 0.1.0.0
data GroupRead
  = -- | @>@: what no consumer has had yet.
    Undelivered
  | -- | What is pending with this consumer after that id, again: after 0-0 all of it.
    PendingAfter StreamId
  deriving stock (Eq, Show)

-- | What a consumer gets.
--
-- @since 0.1.0.0
data DeliveredEntry
  = Delivered StreamEntry
  | -- | One that is pending still, though it has been deleted from the stream.
    DeletedEntry StreamId
  deriving stock (Eq, Show)

-- | @XREADGROUP GROUP group consumer STREAMS key … id …@: as 'xreadgroup', or again what is pending
-- with this consumer, after it has started anew.
-- [Since 5.0.0](https://valkey.io/commands/xreadgroup/).
--
-- > xreadgroupFrom (Consumer "mailers" "one") (("events", PendingAfter (StreamId 0 0)) :| [])
--
-- @since 0.1.0.0
xreadgroupFrom :: Consumer -> NonEmpty (ByteString, GroupRead) -> Command [(ByteString, [DeliveredEntry])]
xreadgroupFrom = xreadgroupFromWith xreadgroupDefaults

-- | @XREADGROUP GROUP group consumer [COUNT n] [BLOCK milliseconds] [NOACK] STREAMS key …
-- id …@: as 'xreadgroupFrom'.
--
-- @since 0.1.0.0
xreadgroupFromWith ::
  XreadgroupOptions -> Consumer -> NonEmpty (ByteString, GroupRead) -> Command [(ByteString, [DeliveredEntry])]
xreadgroupFromWith options reader streams =
  command "XREADGROUP" (xreadgroupArguments options reader streams) (readStreams delivered)

delivered :: Decoder DeliveredEntry
delivered reply = do
  (entryId, fields) <- Decode.pair readId (Decode.nullable readFields) reply
  pure (maybe (DeletedEntry entryId) (Delivered . StreamEntry entryId) fields)

xreadgroupArguments :: XreadgroupOptions -> Consumer -> NonEmpty (ByteString, GroupRead) -> [Argument]
xreadgroupArguments XreadgroupOptions {xreadgroupCount, xreadgroupBlock, xreadgroupNoack} reader streams =
  (arg "GROUP" : consumer reader)
    <> option "COUNT" int xreadgroupCount
    <> block xreadgroupBlock
    <> flag "NOACK" xreadgroupNoack
    <> (arg "STREAMS" : keys (fmap fst streams))
    <> map (from . snd) (toList streams)
  where
    from = \case
      Undelivered -> arg ">"
      PendingAfter one -> idArgument one

-- | @XACK key group id …@: these are done; how many were pending. \(O(1)\) each on the server,
-- [since 5.0.0](https://valkey.io/commands/xack/).
--
-- @since 0.1.0.0
xack :: ByteString -> ByteString -> NonEmpty StreamId -> Command Int64
xack name group ids = command "XACK" (key name : arg group : map idArgument (toList ids)) Decode.integer

-- | What is pending in a group.
--
-- @since 0.1.0.0
data PendingSummary = PendingSummary
  { pendingSummaryCount :: Int64,
    -- | The lowest and the highest id.
    pendingSummaryRange :: Maybe (StreamId, StreamId),
    -- | How many each consumer has that has any.
    pendingSummaryConsumers :: [(ByteString, Int64)]
  }
  deriving stock (Eq, Show)

-- | @XPENDING key group@: what is pending in all. \(O(n)\) on the server in the group's consumers,
-- [since 5.0.0](https://valkey.io/commands/xpending/).
--
-- @since 0.1.0.0
xpending :: ByteString -> ByteString -> Command PendingSummary
xpending name group = command "XPENDING" [key name, arg group] $ \reply -> do
  elements <- Decode.list Decode.value reply
  pendingSummaryCount <- Decode.element 0 Decode.integer elements
  lowest <- Decode.element 1 (Decode.nullable readId) elements
  highest <- Decode.element 2 (Decode.nullable readId) elements
  consumers <- Decode.element 3 (Decode.nullable (Decode.pairs Decode.bytes Decode.integer)) elements
  pure
    PendingSummary
      { pendingSummaryCount,
        pendingSummaryRange = (,) <$> lowest <*> highest,
        pendingSummaryConsumers = fromMaybe [] consumers
      }

-- | An entry that is pending.
--
-- @since 0.1.0.0
data PendingEntry = PendingEntry
  { pendingEntryId :: StreamId,
    -- | The name of the consumer that has it.
    pendingEntryConsumer :: ByteString,
    -- | How long it has had it.
    pendingEntryIdle :: Duration,
    -- | How often it was given out.
    pendingEntryDeliveries :: Int64
  }
  deriving stock (Eq, Show)

-- | @XPENDING key group - + count@: so many of what is pending, the lowest ids first. \(O(n)\) on
-- the server in what it gives, [since 5.0.0](https://valkey.io/commands/xpending/).
--
-- @since 0.1.0.0
xpendingRange :: ByteString -> ByteString -> Int64 -> Command [PendingEntry]
xpendingRange = xpendingRangeWith xpendingRangeDefaults

-- | Which of what is pending.
--
-- @since 0.1.0.0
data XpendingRangeOptions = XpendingRangeOptions
  { -- | IDLE (since 6.2.0): what its consumer has had for so long at least.
    xpendingRangeIdle :: Maybe Duration,
    xpendingRangeStart :: StreamBound,
    xpendingRangeEnd :: StreamBound,
    -- | What the consumer of this name has; 'Nothing' is all.
    xpendingRangeConsumer :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | From the lowest id to the highest, whoever has it.
--
-- @since 0.1.0.0
xpendingRangeDefaults :: XpendingRangeOptions
xpendingRangeDefaults =
  XpendingRangeOptions
    { xpendingRangeIdle = Nothing,
      xpendingRangeStart = LowestId,
      xpendingRangeEnd = HighestId,
      xpendingRangeConsumer = Nothing
    }

-- | @XPENDING key group [IDLE milliseconds] start end count [consumer]@: as 'xpendingRange'.
-- With a time, \(O(n)\) on the server in what it looks at. To go on, start with 'ExcludingId'
-- of the last one.
--
-- @since 0.1.0.0
xpendingRangeWith :: XpendingRangeOptions -> ByteString -> ByteString -> Int64 -> Command [PendingEntry]
xpendingRangeWith options name group count =
  command
    "XPENDING"
    ( [key name, arg group]
        <> option "IDLE" wholeMilliseconds (xpendingRangeIdle options)
        <> [bound (xpendingRangeStart options), bound (xpendingRangeEnd options), int count]
        <> maybe [] (pure . arg) (xpendingRangeConsumer options)
    )
    (Decode.list pendingEntry)

pendingEntry :: Decoder PendingEntry
pendingEntry reply = do
  elements <- Decode.list Decode.value reply
  pendingEntryId <- Decode.element 0 readId elements
  pendingEntryConsumer <- Decode.element 1 Decode.bytes elements
  pendingEntryIdle <- milliseconds <$> Decode.element 2 Decode.integer elements
  pendingEntryDeliveries <- Decode.element 3 Decode.integer elements
  pure PendingEntry {pendingEntryId, pendingEntryConsumer, pendingEntryIdle, pendingEntryDeliveries}

-- | @XCLAIM key group consumer milliseconds id …@: gives this consumer those entries that another
-- has had for so long at least, and counts one more delivery; those that it gets. One that was
-- deleted from the stream is left out and, [since 7.0.0](https://valkey.io/commands/xclaim/), no
-- longer pending. \(O(\log n)\) each on the server in what is pending, since 5.0.0.
--
-- @since 0.1.0.0
xclaim :: ByteString -> Consumer -> Duration -> NonEmpty StreamId -> Command [StreamEntry]
xclaim = xclaimWith xclaimDefaults

-- | How to claim.
--
-- @since 0.1.0.0
data XclaimOptions = XclaimOptions
  { -- | Since when the new consumer counts as having them; 'Nothing' is now.
    xclaimIdle :: Maybe ClaimIdle,
    -- | RETRYCOUNT: they were given out so often; 'Nothing' is once more than before.
    xclaimRetrycount :: Maybe Int64,
    -- | FORCE: entries that are pending with nobody, too.
    xclaimForce :: Bool,
    -- | LASTID: the group has had all up to this id, if it has not had more.
    xclaimLastid :: Maybe StreamId
  }
  deriving stock (Eq, Show)

-- | How long an entry shall count as being with a consumer.
--
-- @since 0.1.0.0
data ClaimIdle
  = -- | IDLE: for so long.
    ClaimIdleFor Duration
  | -- | TIME: since then.
    ClaimIdleSince UTCTime
  deriving stock (Eq, Show)

-- | As if they were given out now for the first time to this consumer.
--
-- @since 0.1.0.0
xclaimDefaults :: XclaimOptions
xclaimDefaults =
  XclaimOptions {xclaimIdle = Nothing, xclaimRetrycount = Nothing, xclaimForce = False, xclaimLastid = Nothing}

-- | @XCLAIM key group consumer milliseconds id … [IDLE milliseconds|TIME time] [RETRYCOUNT n]
-- [FORCE] [LASTID id]@: as 'xclaim'.
--
-- @since 0.1.0.0
xclaimWith :: XclaimOptions -> ByteString -> Consumer -> Duration -> NonEmpty StreamId -> Command [StreamEntry]
xclaimWith options name claimer idle ids =
  command "XCLAIM" (xclaimArguments options name claimer idle ids) claimed

-- | Before 7.0 a null stood for what was deleted.
claimed :: Decoder [StreamEntry]
claimed = fmap catMaybes . Decode.list (Decode.nullable readEntry)

xclaimArguments :: XclaimOptions -> ByteString -> Consumer -> Duration -> NonEmpty StreamId -> [Argument]
xclaimArguments XclaimOptions {xclaimIdle, xclaimRetrycount, xclaimForce, xclaimLastid} name claimer idle ids =
  (key name : consumer claimer)
    <> (wholeMilliseconds idle : map idArgument (toList ids))
    <> maybe [] since xclaimIdle
    <> option "RETRYCOUNT" int xclaimRetrycount
    <> flag "FORCE" xclaimForce
    <> option "LASTID" idArgument xclaimLastid
  where
    since = \case
      ClaimIdleFor duration -> [arg "IDLE", wholeMilliseconds duration]
      ClaimIdleSince time -> [arg "TIME", arg (unixMilliseconds time)]

-- | @XCLAIM key group consumer milliseconds id … JUSTID@: as 'xclaim', but only the ids, and it
-- counts as no delivery. [Since 5.0.0](https://valkey.io/commands/xclaim/).
--
-- @since 0.1.0.0
xclaimJustid :: ByteString -> Consumer -> Duration -> NonEmpty StreamId -> Command [StreamId]
xclaimJustid = xclaimJustidWith xclaimDefaults

-- | @XCLAIM key group consumer milliseconds id … [IDLE milliseconds|TIME time] [RETRYCOUNT n]
-- [FORCE] [LASTID id] JUSTID@: as 'xclaimJustid'.
--
-- @since 0.1.0.0
xclaimJustidWith :: XclaimOptions -> ByteString -> Consumer -> Duration -> NonEmpty StreamId -> Command [StreamId]
xclaimJustidWith options name claimer idle ids =
  command "XCLAIM" (xclaimArguments options name claimer idle ids <> [arg "JUSTID"]) (Decode.list readId)

-- | A step of a walk over what is pending.
--
-- @since 0.1.0.0
data Autoclaimed entry = Autoclaimed
  { -- | Where to go on; 'Nothing' at the end.
    autoclaimedNext :: Maybe StreamId,
    -- | What the consumer has got; maybe nothing, though the walk goes on.
    autoclaimedEntries :: [entry],
    -- | What is no longer pending, because it was deleted from the stream (since 7.0.0).
    autoclaimedDeleted :: [StreamId]
  }
  deriving stock (Eq, Show)

-- | @XAUTOCLAIM key group consumer milliseconds start@: looks through what is pending from an id
-- on, and gives this consumer what another has had for so long at least. Start with 0-0. \(O(1)\)
-- per step on the server, [since 6.2.0](https://valkey.io/commands/xautoclaim/).
--
-- > xautoclaim "events" (Consumer "mailers" "two") (minutes 5) (StreamId 0 0)
--
-- @since 0.1.0.0
xautoclaim :: ByteString -> Consumer -> Duration -> StreamId -> Command (Autoclaimed StreamEntry)
xautoclaim = xautoclaimWith xautoclaimDefaults

-- | How much at once.
--
-- @since 0.1.0.0
newtype XautoclaimOptions = XautoclaimOptions
  { -- | COUNT: at most so many, having looked at ten times as many; 'Nothing' is 100.
    xautoclaimCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | As much as the server will.
--
-- @since 0.1.0.0
xautoclaimDefaults :: XautoclaimOptions
xautoclaimDefaults = XautoclaimOptions {xautoclaimCount = Nothing}

-- | @XAUTOCLAIM key group consumer milliseconds start [COUNT n]@: as 'xautoclaim'.
--
-- @since 0.1.0.0
xautoclaimWith ::
  XautoclaimOptions -> ByteString -> Consumer -> Duration -> StreamId -> Command (Autoclaimed StreamEntry)
xautoclaimWith options name claimer idle start =
  command "XAUTOCLAIM" (xautoclaimArguments options name claimer idle start) (autoclaimed claimed)

xautoclaimArguments :: XautoclaimOptions -> ByteString -> Consumer -> Duration -> StreamId -> [Argument]
xautoclaimArguments XautoclaimOptions {xautoclaimCount} name claimer idle start =
  (key name : consumer claimer) <> [wholeMilliseconds idle, idArgument start] <> option "COUNT" positive xautoclaimCount

autoclaimed :: Decoder [entry] -> Decoder (Autoclaimed entry)
autoclaimed entries reply = do
  elements <- Decode.list Decode.value reply
  next <- Decode.element 0 readId elements
  autoclaimedEntries <- Decode.element 1 entries elements
  deleted <- Decode.optionalElement 2 (Decode.list readId) elements
  pure
    Autoclaimed
      { autoclaimedNext = if next == StreamId 0 0 then Nothing else Just next,
        autoclaimedEntries,
        autoclaimedDeleted = fromMaybe [] deleted
      }

-- | @XAUTOCLAIM key group consumer milliseconds start JUSTID@: as 'xautoclaim', but only the ids,
-- and it counts as no delivery. [Since 6.2.0](https://valkey.io/commands/xautoclaim/).
--
-- @since 0.1.0.0
xautoclaimJustid :: ByteString -> Consumer -> Duration -> StreamId -> Command (Autoclaimed StreamId)
xautoclaimJustid = xautoclaimJustidWith xautoclaimDefaults

-- | @XAUTOCLAIM key group consumer milliseconds start [COUNT n] JUSTID@: as
-- 'xautoclaimJustid'.
--
-- @since 0.1.0.0
xautoclaimJustidWith ::
  XautoclaimOptions -> ByteString -> Consumer -> Duration -> StreamId -> Command (Autoclaimed StreamId)
xautoclaimJustidWith options name claimer idle start =
  command
    "XAUTOCLAIM"
    (xautoclaimArguments options name claimer idle start <> [arg "JUSTID"])
    (autoclaimed (Decode.list readId))

-- | Where a group begins.
--
-- @since 0.1.0.0
data GroupFrom
  = -- | After this id; after 0-0 comes all that is there.
    GroupAfter StreamId
  | -- | @$@: with what is added from now on.
    GroupAfterLast
  deriving stock (Eq, Show)

groupFrom :: GroupFrom -> Argument
groupFrom = \case
  GroupAfter one -> idArgument one
  GroupAfterLast -> arg "$"

-- | @XGROUP CREATE key group id|$@: makes a group. An error if there is no stream, and @BUSYGROUP@
-- if there is such a group. \(O(1)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/xgroup-create/).
--
-- @since 0.1.0.0
xgroupCreate :: ByteString -> ByteString -> GroupFrom -> Command ()
xgroupCreate = xgroupCreateWith xgroupCreateDefaults

-- | How to make a group.
--
-- @since 0.1.0.0
data XgroupCreateOptions = XgroupCreateOptions
  { -- | MKSTREAM: the stream, too, if there is none.
    xgroupCreateMkstream :: Bool,
    -- | ENTRIESREAD (since 7.0.0): so many entries lie before its begin, from which the server
    -- tells how far behind it is.
    xgroupCreateEntriesread :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | Of a stream that is there.
--
-- @since 0.1.0.0
xgroupCreateDefaults :: XgroupCreateOptions
xgroupCreateDefaults = XgroupCreateOptions {xgroupCreateMkstream = False, xgroupCreateEntriesread = Nothing}

-- | @XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD n]@: as 'xgroupCreate'.
--
-- @since 0.1.0.0
xgroupCreateWith :: XgroupCreateOptions -> ByteString -> ByteString -> GroupFrom -> Command ()
xgroupCreateWith XgroupCreateOptions {xgroupCreateMkstream, xgroupCreateEntriesread} name group from =
  command
    "XGROUP CREATE"
    ( [key name, arg group, groupFrom from]
        <> flag "MKSTREAM" xgroupCreateMkstream
        <> option "ENTRIESREAD" int xgroupCreateEntriesread
    )
    Decode.okay

-- | @XGROUP SETID key group id|$@: the group goes on from there. @NOGROUP@ if there is no such
-- group. \(O(1)\) on the server, [since 5.0.0](https://valkey.io/commands/xgroup-setid/).
--
-- @since 0.1.0.0
xgroupSetid :: ByteString -> ByteString -> GroupFrom -> Command ()
xgroupSetid = xgroupSetidWith xgroupSetidDefaults

-- | What else to say of where a group is.
--
-- @since 0.1.0.0
newtype XgroupSetidOptions = XgroupSetidOptions
  { -- | ENTRIESREAD (since 7.0.0): so many entries lie before that.
    xgroupSetidEntriesread :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | Nothing.
--
-- @since 0.1.0.0
xgroupSetidDefaults :: XgroupSetidOptions
xgroupSetidDefaults = XgroupSetidOptions {xgroupSetidEntriesread = Nothing}

-- | @XGROUP SETID key group id|$ [ENTRIESREAD n]@: as 'xgroupSetid'.
--
-- @since 0.1.0.0
xgroupSetidWith :: XgroupSetidOptions -> ByteString -> ByteString -> GroupFrom -> Command ()
xgroupSetidWith XgroupSetidOptions {xgroupSetidEntriesread} name group from =
  command
    "XGROUP SETID"
    ([key name, arg group, groupFrom from] <> option "ENTRIESREAD" int xgroupSetidEntriesread)
    Decode.okay

-- | @XGROUP DESTROY key group@: whether there was such a group; what was pending in it is
-- forgotten. \(O(n)\) on the server in that,
-- [since 5.0.0](https://valkey.io/commands/xgroup-destroy/).
--
-- @since 0.1.0.0
xgroupDestroy :: ByteString -> ByteString -> Command Bool
xgroupDestroy name group = command "XGROUP DESTROY" [key name, arg group] Decode.boolean

-- | @XGROUP CREATECONSUMER key group consumer@: whether there was none of that name. Reading makes
-- one, too. \(O(1)\) on the server,
-- [since 6.2.0](https://valkey.io/commands/xgroup-createconsumer/).
--
-- @since 0.1.0.0
xgroupCreateconsumer :: ByteString -> Consumer -> Command Bool
xgroupCreateconsumer name new = command "XGROUP CREATECONSUMER" (key name : consumer new) Decode.boolean

-- | @XGROUP DELCONSUMER key group consumer@: forgets a consumer and what was pending with it; how
-- many entries those were. Nobody can claim them any more. \(O(1)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/xgroup-delconsumer/).
--
-- @since 0.1.0.0
xgroupDelconsumer :: ByteString -> Consumer -> Command Int64
xgroupDelconsumer name old = command "XGROUP DELCONSUMER" (key name : consumer old) Decode.integer

-- | @XGROUP HELP@: what the server says of these commands, for people.
-- [Since 5.0.0](https://valkey.io/commands/xgroup-help/).
--
-- @since 0.1.0.0
xgroupHelp :: Command [ByteString]
xgroupHelp = command "XGROUP HELP" [] (Decode.list Decode.bytes)
