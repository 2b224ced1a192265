-- | Consumer groups, whose consumers share the entries of a stream: each entry is delivered to one
-- consumer, and is pending until that consumer acknowledges it.
--
-- > run client (Redis.xgroupCreate "example:streams" "mailers" (Redis.GroupAfter (Redis.StreamId 0 0)))
-- > let one = Redis.Consumer "mailers" "one"
-- > got <- run client (Redis.xreadgroupWith Redis.xreadgroupDefaults {Redis.xreadgroupCount = Just 1} one ("example:streams" :| []))
-- > run client (Redis.xack "example:streams" "mailers" ids)
--
-- Other consumers can claim the pending entries of a consumer that is gone: 'xautoclaim'.
--
-- The servers' pages: <https://valkey.io/commands/#stream>.
module Redis.Commands.StreamGroup
  ( -- * Reading
    Consumer (..),
    xreadgroup,
    xreadgroupWith,
    XreadgroupOptions (xreadgroupCount, xreadgroupMaxcount, xreadgroupMaxsize, xreadgroupBlock, xreadgroupNoack),
    xreadgroupDefaults,
    xreadgroupFrom,
    xreadgroupFromWith,
    GroupRead (..),
    DeliveredEntry (..),
    xreadgroupClaim,
    xreadgroupClaimWith,
    ClaimedEntry (..),
    xack,
    xackdel,
    xnack,
    xnackWith,
    XnackMode (..),
    XnackOptions (xnackRetrycount, xnackForce),
    xnackDefaults,

    -- * Pending entries
    xpending,
    PendingSummary (..),
    xpendingRange,
    xpendingRangeWith,
    XpendingRangeOptions (xpendingRangeIdle, xpendingRangeStart, xpendingRangeEnd, xpendingRangeConsumer),
    xpendingRangeDefaults,
    PendingEntry (..),

    -- * Claiming entries
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

import Control.Applicative (liftA2)
import Data.Maybe (catMaybes)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common
import Redis.Internal.Command.Stream

-- | A consumer: the name of its group, and its own name.
data Consumer = Consumer
  { consumerGroup :: ByteString,
    consumerName :: ByteString
  }
  deriving stock (Eq, Ord, Show)

consumer :: Consumer -> [Argument]
consumer Consumer {consumerGroup, consumerName} = [arg consumerGroup, arg consumerName]

-- | @XREADGROUP GROUP group consumer STREAMS key … > …@: the entries that no consumer of the group
-- has read yet; from now on they are pending with this consumer. The streams must have the group
-- (else @NOGROUP@); the server creates the consumer if needed. In a cluster the keys must share a
-- slot. \(O(n)\) in the length of the reply, [since 5.0.0](https://valkey.io/commands/xreadgroup/).
xreadgroup :: Consumer -> NonEmpty ByteString -> Command [(ByteString, [StreamEntry])]
xreadgroup = xreadgroupWith xreadgroupDefaults

-- | The options of 'xreadgroupWith' and 'xreadgroupFromWith'.
data XreadgroupOptions = XreadgroupOptions
  { -- | COUNT: like 'Redis.Commands.Stream.xreadCount'.
    xreadgroupCount :: Maybe Int64,
    -- | MAXCOUNT: like 'Redis.Commands.Stream.xreadMaxcount'.
    xreadgroupMaxcount :: Maybe Int64,
    -- | MAXSIZE: like 'Redis.Commands.Stream.xreadMaxsize'; what is left out is not delivered.
    xreadgroupMaxsize :: Maybe Int64,
    -- | BLOCK: whether to wait for entries; only where undelivered entries are read.
    xreadgroupBlock :: StreamWait,
    -- | NOACK: the entries do not become pending; one that gets lost on its way is lost for good.
    xreadgroupNoack :: Bool
  }
  deriving stock (Eq, Show)

-- | All entries that are there, without waiting; they become pending.
xreadgroupDefaults :: XreadgroupOptions
xreadgroupDefaults =
  XreadgroupOptions
    { xreadgroupCount = Nothing,
      xreadgroupMaxcount = Nothing,
      xreadgroupMaxsize = Nothing,
      xreadgroupBlock = DoNotWait,
      xreadgroupNoack = False
    }

-- | @XREADGROUP GROUP group consumer [COUNT n] [MAXCOUNT n] [MAXSIZE bytes] [BLOCK milliseconds] [NOACK] STREAMS key … > …@:
-- like 'xreadgroup', with options.
xreadgroupWith :: XreadgroupOptions -> Consumer -> NonEmpty ByteString -> Command [(ByteString, [StreamEntry])]
xreadgroupWith options reader names =
  command "XREADGROUP" (xreadgroupArguments options Nothing reader (fmap (\name -> (name, Undelivered)) names)) (readStreams readEntry)

-- | The entries of a stream that a consumer reads.
data GroupRead
  = -- | @>@: the entries that no consumer of the group has read yet.
    Undelivered
  | -- | The entries after this id that are pending with this consumer; after 0-0 for all of them.
    PendingAfter StreamId
  deriving stock (Eq, Show)

-- | An entry that a consumer reads.
data DeliveredEntry
  = Delivered StreamEntry
  | -- | An entry that is still pending, although it has been deleted from the stream.
    DeletedEntry StreamId
  deriving stock (Eq, Show)

-- | @XREADGROUP GROUP group consumer STREAMS key … id …@: like 'xreadgroup', but can also read
-- again the entries that are pending with this consumer, for example after a restart. Since 5.0.0.
--
-- > xreadgroupFrom (Consumer "mailers" "one") (("events", PendingAfter (StreamId 0 0)) :| [])
xreadgroupFrom :: Consumer -> NonEmpty (ByteString, GroupRead) -> Command [(ByteString, [DeliveredEntry])]
xreadgroupFrom = xreadgroupFromWith xreadgroupDefaults

-- | @XREADGROUP GROUP group consumer [COUNT n] [MAXCOUNT n] [MAXSIZE bytes] [BLOCK milliseconds] [NOACK] STREAMS key … id …@:
-- like 'xreadgroupFrom', with options.
xreadgroupFromWith ::
  XreadgroupOptions -> Consumer -> NonEmpty (ByteString, GroupRead) -> Command [(ByteString, [DeliveredEntry])]
xreadgroupFromWith options reader streams =
  command "XREADGROUP" (xreadgroupArguments options Nothing reader streams) (readStreams delivered)

-- | An entry that 'xreadgroupClaim' delivers.
data ClaimedEntry = ClaimedEntry
  { claimedEntry :: StreamEntry,
    -- | The time since it was last delivered; zero if it never was.
    claimedEntryIdle :: Duration,
    -- | How often it was delivered before, to any consumer; 0 for an entry that nobody has read yet.
    claimedEntryDeliveries :: Int64
  }
  deriving stock (Eq, Show)

-- | @XREADGROUP GROUP group consumer CLAIM milliseconds STREAMS key … > …@: the entries that are
-- pending with any consumer and were last delivered at least this long ago, and then those that no
-- consumer has read yet; all of them are pending with this consumer from now on. It does in one
-- command what 'xautoclaim' and 'xreadgroup' do in two. Redis
-- [since 8.4.0](https://redis.io/docs/latest/commands/xreadgroup/); Valkey lacks it.
xreadgroupClaim :: Duration -> Consumer -> NonEmpty ByteString -> Command [(ByteString, [ClaimedEntry])]
xreadgroupClaim = xreadgroupClaimWith xreadgroupDefaults

-- | @XREADGROUP GROUP group consumer [COUNT n] [MAXCOUNT n] [MAXSIZE bytes] [BLOCK milliseconds] [CLAIM milliseconds] [NOACK] STREAMS key … > …@:
-- like 'xreadgroupClaim', with options. BLOCK also ends when an entry has been pending for long
-- enough. NOACK concerns the unread entries only: a claimed one stays pending.
xreadgroupClaimWith ::
  XreadgroupOptions -> Duration -> Consumer -> NonEmpty ByteString -> Command [(ByteString, [ClaimedEntry])]
xreadgroupClaimWith options idle reader names =
  command "XREADGROUP" (xreadgroupArguments options (Just idle) reader (fmap (\name -> (name, Undelivered)) names)) (readStreams readClaimed)
  where
    readClaimed reply = do
      elements <- Decode.list Decode.value reply
      entry <- StreamEntry <$> Decode.element 0 readId elements <*> Decode.element 1 readFields elements
      ClaimedEntry entry <$> Decode.element 2 millisecondsReply elements <*> Decode.element 3 Decode.integer elements

delivered :: Decoder DeliveredEntry
delivered reply = do
  (entryId, fields) <- Decode.pair readId (Decode.nullable readFields) reply
  pure (maybe (DeletedEntry entryId) (Delivered . StreamEntry entryId) fields)

xreadgroupArguments :: XreadgroupOptions -> Maybe Duration -> Consumer -> NonEmpty (ByteString, GroupRead) -> [Argument]
xreadgroupArguments XreadgroupOptions {xreadgroupCount, xreadgroupMaxcount, xreadgroupMaxsize, xreadgroupBlock, xreadgroupNoack} claim reader streams =
  (arg "GROUP" : consumer reader)
    <> option "COUNT" int xreadgroupCount
    <> option "MAXCOUNT" positive xreadgroupMaxcount
    <> option "MAXSIZE" positive xreadgroupMaxsize
    <> block xreadgroupBlock
    <> option "CLAIM" wholeMilliseconds claim
    <> flag "NOACK" xreadgroupNoack
    <> (arg "STREAMS" : keys (fmap fst streams))
    <> map (from . snd) (toList streams)
  where
    from = \case
      Undelivered -> arg ">"
      PendingAfter one -> idArgument one

-- | @XACK key group id …@: acknowledges entries, which are then no longer pending; returns how many
-- were pending. \(O(1)\) per entry, [since 5.0.0](https://valkey.io/commands/xack/).
xack :: ByteString -> ByteString -> NonEmpty StreamId -> Command Int64
xack name group ids = command "XACK" (key name : arg group : map idArgument (toList ids)) Decode.integer

-- | @XACKDEL key group KEEPREF|DELREF|ACKED IDS n id …@: acknowledges entries and deletes them, and
-- says what becomes of the references of other groups; the outcome for each id. An entry that is
-- kept is acknowledged, too. \(O(1)\) per entry,
-- [since Redis 8.2.0](https://redis.io/docs/latest/commands/xackdel/), Valkey since 9.2.0.
xackdel :: ByteString -> ByteString -> StreamReferences -> NonEmpty StreamId -> Command [EntryDeletion]
xackdel name group refs ids =
  command "XACKDEL" (key name : arg group : arg (referencesWord refs) : countedIds ids) (readDeletions ids)

-- | What a released entry says of its deliveries.
data XnackMode
  = -- | SILENT: the last delivery does not count. For a consumer that stops.
    XnackSilent
  | -- | FAIL: it counts. For a consumer that could not handle the entry.
    XnackFail
  | -- | FATAL: the entry has been delivered as often as can be counted. For an entry that no consumer
    -- will handle.
    XnackFatal
  deriving stock (Eq, Show)

-- | @XNACK key group SILENT|FAIL|FATAL IDS n id …@: releases pending entries, so that they are
-- pending with no consumer, and whoever claims entries gets them first, however short the time
-- since their delivery; returns how many were pending. \(O(1)\) per entry,
-- [since Redis 8.8.0](https://redis.io/docs/latest/commands/xnack/); Valkey lacks it.
xnack :: ByteString -> ByteString -> XnackMode -> NonEmpty StreamId -> Command Int64
xnack = xnackWith xnackDefaults

-- | The options of 'xnackWith', which servers send to each other.
data XnackOptions = XnackOptions
  { -- | RETRYCOUNT: how often the entries count as delivered, whatever the mode says.
    xnackRetrycount :: Maybe Int64,
    -- | FORCE: also entries of the stream that are not pending.
    xnackForce :: Bool
  }
  deriving stock (Eq, Show)

-- | No options.
xnackDefaults :: XnackOptions
xnackDefaults = XnackOptions {xnackRetrycount = Nothing, xnackForce = False}

-- | @XNACK key group SILENT|FAIL|FATAL IDS n id … [RETRYCOUNT n] [FORCE]@: like 'xnack', with options.
xnackWith :: XnackOptions -> ByteString -> ByteString -> XnackMode -> NonEmpty StreamId -> Command Int64
xnackWith XnackOptions {xnackRetrycount, xnackForce} name group mode ids =
  command
    "XNACK"
    ( [key name, arg group, arg modeWord]
        <> countedIds ids
        <> option "RETRYCOUNT" int xnackRetrycount
        <> flag "FORCE" xnackForce
    )
    Decode.integer
  where
    modeWord = case mode of
      XnackSilent -> "SILENT"
      XnackFail -> "FAIL"
      XnackFatal -> "FATAL"

-- | A summary of a group's pending entries.
data PendingSummary = PendingSummary
  { pendingSummaryCount :: Int64,
    -- | The lowest and the highest id, if any entry is pending.
    pendingSummaryRange :: Maybe (StreamId, StreamId),
    -- | The number of pending entries of each consumer that has any.
    pendingSummaryConsumers :: [(ByteString, Int64)]
  }
  deriving stock (Eq, Show)

-- | @XPENDING key group@: a summary of the pending entries. \(O(n)\) in the number of consumers,
-- [since 5.0.0](https://valkey.io/commands/xpending/).
xpending :: ByteString -> ByteString -> Command PendingSummary
xpending name group = command "XPENDING" [key name, arg group] $ \reply -> do
  elements <- Decode.list Decode.value reply
  let idAt place = Decode.element place (Decode.nullable readId) elements
  PendingSummary
    <$> Decode.element 0 Decode.integer elements
    <*> liftA2 (liftA2 (,)) (idAt 1) (idAt 2)
    <*> Decode.element 3 (orNone (Decode.pairs Decode.bytes Decode.integer)) elements

-- | A pending entry.
data PendingEntry = PendingEntry
  { pendingEntryId :: StreamId,
    -- | The name of the consumer with which it is pending; empty after 'xnack'.
    pendingEntryConsumer :: ByteString,
    -- | The time since it was last delivered to that consumer; negative after 'xnack'.
    pendingEntryIdle :: Duration,
    -- | How often it was delivered.
    pendingEntryDeliveries :: Int64
  }
  deriving stock (Eq, Show)

-- | @XPENDING key group - + count@: at most that many pending entries, the lowest ids first.
-- \(O(n)\) in the length of the reply, [since 5.0.0](https://valkey.io/commands/xpending/).
xpendingRange :: ByteString -> ByteString -> Int64 -> Command [PendingEntry]
xpendingRange = xpendingRangeWith xpendingRangeDefaults

-- | The options of 'xpendingRangeWith': a selection of the pending entries.
data XpendingRangeOptions = XpendingRangeOptions
  { -- | IDLE (since 6.2.0): entries that were last delivered at least this long ago.
    xpendingRangeIdle :: Maybe Duration,
    xpendingRangeStart :: StreamBound,
    xpendingRangeEnd :: StreamBound,
    -- | Entries that are pending with the consumer of this name; 'Nothing' means all consumers.
    xpendingRangeConsumer :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | All ids and all consumers.
xpendingRangeDefaults :: XpendingRangeOptions
xpendingRangeDefaults =
  XpendingRangeOptions
    { xpendingRangeIdle = Nothing,
      xpendingRangeStart = LowestId,
      xpendingRangeEnd = HighestId,
      xpendingRangeConsumer = Nothing
    }

-- | @XPENDING key group [IDLE milliseconds] start end count [consumer]@: like 'xpendingRange', for
-- a selection of the pending entries. With IDLE, \(O(n)\) in the number of entries that it looks
-- at. To continue, start with 'ExcludingId' of the last entry's id.
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
  PendingEntry
    <$> Decode.element 0 readId elements
    <*> Decode.element 1 Decode.bytes elements
    <*> Decode.element 2 millisecondsReply elements
    <*> Decode.element 3 Decode.integer elements

-- | @XCLAIM key group consumer milliseconds id …@: assigns pending entries to this consumer, if
-- they were last delivered at least this long ago, and counts one more delivery; returns the
-- entries that it assigned. Entries that were deleted from the stream are left out and,
-- [since 7.0.0](https://valkey.io/commands/xclaim/), are no longer pending. \(O(\log n)\) per entry
-- in the number of pending entries, since 5.0.0.
xclaim :: ByteString -> Consumer -> Duration -> NonEmpty StreamId -> Command [StreamEntry]
xclaim = xclaimWith xclaimDefaults

-- | The options of 'xclaimWith' and 'xclaimJustidWith'.
data XclaimOptions = XclaimOptions
  { -- | The time at which the entries count as delivered to the new consumer; 'Nothing' means now.
    xclaimIdle :: Maybe ClaimIdle,
    -- | RETRYCOUNT: how often the entries count as delivered; 'Nothing' means one more.
    xclaimRetrycount :: Maybe Int64,
    -- | FORCE: also entries that are not pending with any consumer.
    xclaimForce :: Bool,
    -- | LASTID: raises the group's last delivered id to this one, if it is lower.
    xclaimLastid :: Maybe StreamId
  }
  deriving stock (Eq, Show)

-- | The time at which a claimed entry counts as delivered.
data ClaimIdle
  = -- | IDLE: this long ago.
    ClaimIdleFor Duration
  | -- | TIME: at this time.
    ClaimIdleSince UTCTime
  deriving stock (Eq, Show)

-- | The entries count as delivered now; one more delivery is counted.
xclaimDefaults :: XclaimOptions
xclaimDefaults =
  XclaimOptions {xclaimIdle = Nothing, xclaimRetrycount = Nothing, xclaimForce = False, xclaimLastid = Nothing}

-- | @XCLAIM key group consumer milliseconds id … [IDLE milliseconds|TIME time] [RETRYCOUNT n]
-- [FORCE] [LASTID id]@: like 'xclaim', with options.
xclaimWith :: XclaimOptions -> ByteString -> Consumer -> Duration -> NonEmpty StreamId -> Command [StreamEntry]
xclaimWith options name claimer idle ids =
  command "XCLAIM" (xclaimArguments options name claimer idle ids) claimed

-- | Before 7.0 servers send a null in the place of a deleted entry.
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

-- | @XCLAIM key group consumer milliseconds id … JUSTID@: like 'xclaim', but returns only the ids,
-- and counts no delivery. [Since 5.0.0](https://valkey.io/commands/xclaim/).
xclaimJustid :: ByteString -> Consumer -> Duration -> NonEmpty StreamId -> Command [StreamId]
xclaimJustid = xclaimJustidWith xclaimDefaults

-- | @XCLAIM key group consumer milliseconds id … [IDLE milliseconds|TIME time] [RETRYCOUNT n]
-- [FORCE] [LASTID id] JUSTID@: like 'xclaimJustid', with options.
xclaimJustidWith :: XclaimOptions -> ByteString -> Consumer -> Duration -> NonEmpty StreamId -> Command [StreamId]
xclaimJustidWith options name claimer idle ids =
  command "XCLAIM" (xclaimArguments options name claimer idle ids <> [arg "JUSTID"]) (Decode.list readId)

-- | One step of a walk over the pending entries.
data Autoclaimed entry = Autoclaimed
  { -- | The id at which to continue; 'Nothing' at the end of the walk.
    autoclaimedNext :: Maybe StreamId,
    -- | The entries that the consumer has claimed; may be empty although the walk goes on.
    autoclaimedEntries :: [entry],
    -- | Entries no longer pending, because they were deleted from the stream (since 7.0.0).
    autoclaimedDeleted :: [StreamId]
  }
  deriving stock (Eq, Show)

-- | @XAUTOCLAIM key group consumer milliseconds start@: walks over the pending entries from an id
-- on, and assigns to this consumer those that were last delivered at least this long ago. Start
-- with 0-0. \(O(1)\) per step, [since 6.2.0](https://valkey.io/commands/xautoclaim/).
--
-- > xautoclaim "events" (Consumer "mailers" "two") (minutes 5) (StreamId 0 0)
xautoclaim :: ByteString -> Consumer -> Duration -> StreamId -> Command (Autoclaimed StreamEntry)
xautoclaim = xautoclaimWith xautoclaimDefaults

-- | The options of 'xautoclaimWith' and 'xautoclaimJustidWith'.
newtype XautoclaimOptions = XautoclaimOptions
  { -- | COUNT: at most this many entries in one step, in which the server looks at no more than ten
    -- times as many; 'Nothing' means 100. A count below 1 is refused before the command is sent.
    xautoclaimCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | The server's default count.
xautoclaimDefaults :: XautoclaimOptions
xautoclaimDefaults = XautoclaimOptions {xautoclaimCount = Nothing}

-- | @XAUTOCLAIM key group consumer milliseconds start [COUNT n]@: like 'xautoclaim', with another
-- count.
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
  Autoclaimed
    <$> Decode.element 0 idOrNone elements
    <*> Decode.element 1 entries elements
    <*> (concat <$> Decode.optionalElement 2 (Decode.list readId) elements)

-- | @XAUTOCLAIM key group consumer milliseconds start JUSTID@: like 'xautoclaim', but returns only
-- the ids, and counts no delivery. [Since 6.2.0](https://valkey.io/commands/xautoclaim/).
xautoclaimJustid :: ByteString -> Consumer -> Duration -> StreamId -> Command (Autoclaimed StreamId)
xautoclaimJustid = xautoclaimJustidWith xautoclaimDefaults

-- | @XAUTOCLAIM key group consumer milliseconds start [COUNT n] JUSTID@: like 'xautoclaimJustid',
-- with another count.
xautoclaimJustidWith ::
  XautoclaimOptions -> ByteString -> Consumer -> Duration -> StreamId -> Command (Autoclaimed StreamId)
xautoclaimJustidWith options name claimer idle start =
  command
    "XAUTOCLAIM"
    (xautoclaimArguments options name claimer idle start <> [arg "JUSTID"])
    (autoclaimed (Decode.list readId))

-- | The position in a stream from which a group reads.
data GroupFrom
  = -- | After this id; after 0-0 for all entries.
    GroupAfter StreamId
  | -- | @$@: the entries that are added from now on.
    GroupAfterLast
  deriving stock (Eq, Show)

groupFrom :: GroupFrom -> Argument
groupFrom = \case
  GroupAfter one -> idArgument one
  GroupAfterLast -> arg "$"

-- | @XGROUP CREATE key group id|$@: creates a group. An error if there is no stream; @BUSYGROUP@ if
-- the group exists. \(O(1)\), [since 5.0.0](https://valkey.io/commands/xgroup-create/).
xgroupCreate :: ByteString -> ByteString -> GroupFrom -> Command ()
xgroupCreate = xgroupCreateWith xgroupCreateDefaults

-- | The options of 'xgroupCreateWith'.
data XgroupCreateOptions = XgroupCreateOptions
  { -- | MKSTREAM: also creates the stream if there is none.
    xgroupCreateMkstream :: Bool,
    -- | ENTRIESREAD (since 7.0.0): the number of entries before the group's position, from which
    -- the server computes the group's lag.
    xgroupCreateEntriesread :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | Only for an existing stream.
xgroupCreateDefaults :: XgroupCreateOptions
xgroupCreateDefaults = XgroupCreateOptions {xgroupCreateMkstream = False, xgroupCreateEntriesread = Nothing}

-- | @XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD n]@: like 'xgroupCreate', with options.
xgroupCreateWith :: XgroupCreateOptions -> ByteString -> ByteString -> GroupFrom -> Command ()
xgroupCreateWith XgroupCreateOptions {xgroupCreateMkstream, xgroupCreateEntriesread} name group from =
  command
    "XGROUP CREATE"
    ( [key name, arg group, groupFrom from]
        <> flag "MKSTREAM" xgroupCreateMkstream
        <> option "ENTRIESREAD" int xgroupCreateEntriesread
    )
    Decode.okay

-- | @XGROUP SETID key group id|$@: sets the position from which the group reads on; @NOGROUP@ if
-- there is no such group. \(O(1)\), [since 5.0.0](https://valkey.io/commands/xgroup-setid/).
xgroupSetid :: ByteString -> ByteString -> GroupFrom -> Command ()
xgroupSetid = xgroupSetidWith xgroupSetidDefaults

-- | The options of 'xgroupSetidWith'.
newtype XgroupSetidOptions = XgroupSetidOptions
  { -- | ENTRIESREAD (since 7.0.0): the number of entries before the new position.
    xgroupSetidEntriesread :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | No options.
xgroupSetidDefaults :: XgroupSetidOptions
xgroupSetidDefaults = XgroupSetidOptions {xgroupSetidEntriesread = Nothing}

-- | @XGROUP SETID key group id|$ [ENTRIESREAD n]@: like 'xgroupSetid', with options.
xgroupSetidWith :: XgroupSetidOptions -> ByteString -> ByteString -> GroupFrom -> Command ()
xgroupSetidWith XgroupSetidOptions {xgroupSetidEntriesread} name group from =
  command
    "XGROUP SETID"
    ([key name, arg group, groupFrom from] <> option "ENTRIESREAD" int xgroupSetidEntriesread)
    Decode.okay

-- | @XGROUP DESTROY key group@: deletes a group with its pending entries; returns whether it
-- existed. \(O(n)\) in the number of pending entries,
-- [since 5.0.0](https://valkey.io/commands/xgroup-destroy/).
xgroupDestroy :: ByteString -> ByteString -> Command Bool
xgroupDestroy name group = command "XGROUP DESTROY" [key name, arg group] Decode.boolean

-- | @XGROUP CREATECONSUMER key group consumer@: creates a consumer; whether it is new. Reading
-- creates one as well. \(O(1)\), [since 6.2.0](https://valkey.io/commands/xgroup-createconsumer/).
xgroupCreateconsumer :: ByteString -> Consumer -> Command Bool
xgroupCreateconsumer name new = command "XGROUP CREATECONSUMER" (key name : consumer new) Decode.boolean

-- | @XGROUP DELCONSUMER key group consumer@: deletes a consumer with its pending entries, which can
-- then no longer be claimed; returns their number. \(O(1)\),
-- [since 5.0.0](https://valkey.io/commands/xgroup-delconsumer/).
xgroupDelconsumer :: ByteString -> Consumer -> Command Int64
xgroupDelconsumer name old = command "XGROUP DELCONSUMER" (key name : consumer old) Decode.integer

-- | @XGROUP HELP@: the server's help. [Since 5.0.0](https://valkey.io/commands/xgroup-help/).
xgroupHelp :: Command [ByteString]
xgroupHelp = command "XGROUP HELP" [] (Decode.list Decode.bytes)
