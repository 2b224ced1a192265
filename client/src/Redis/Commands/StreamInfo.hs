-- | Descriptions of streams, of their groups, and of the consumers of a group.
--
-- > known <- run client (Redis.xinfoStream "example:streams")
-- > print (Redis.streamInfoLength known, Redis.streamInfoGroups known)
--
-- The servers' pages: <https://valkey.io/commands/xinfo/>.
module Redis.Commands.StreamInfo
  ( -- * A stream
    xinfoStream,
    StreamInfo (..),
    StreamIdempotence (..),

    -- * A stream in full
    xinfoStreamFull,
    xinfoStreamFullWith,
    XinfoStreamFullOptions (xinfoStreamFullCount),
    xinfoStreamFullDefaults,
    StreamDetails (..),
    GroupDetails (..),
    ConsumerDetails (..),
    PendingDelivery (..),

    -- * Groups and consumers
    xinfoGroups,
    GroupInfo (..),
    xinfoConsumers,
    ConsumerInfo (..),
    xinfoHelp,
  )
where

import Redis.Decode qualified as Decode
import Redis.Error (DecodeError)
import Redis.Internal.Command.Common
import Redis.Internal.Command.Stream

-- | The server's description of a stream.
data StreamInfo = StreamInfo
  { -- | The number of entries.
    streamInfoLength :: Int64,
    streamInfoRadixTreeKeys :: Int64,
    streamInfoRadixTreeNodes :: Int64,
    -- | The highest id that any entry has had; 0-0 if there has been none.
    streamInfoLastGeneratedId :: StreamId,
    -- | The highest id of a deleted entry, if any was deleted; since 7.0.0.
    streamInfoMaxDeletedEntryId :: Maybe StreamId,
    -- | The number of entries that were ever added; since 7.0.0.
    streamInfoEntriesAdded :: Maybe Int64,
    -- | The id of the first entry, if there is one; since 7.0.0.
    streamInfoRecordedFirstEntryId :: Maybe StreamId,
    -- | The number of groups.
    streamInfoGroups :: Int64,
    streamInfoFirstEntry :: Maybe StreamEntry,
    streamInfoLastEntry :: Maybe StreamEntry,
    -- | What the server remembers of entries that were added with an
    -- 'Redis.Commands.Stream.Idempotence'; Redis since 8.6.0.
    streamInfoIdempotence :: Maybe StreamIdempotence,
    streamInfoOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | What the server remembers of entries added with an 'Redis.Commands.Stream.Idempotence'.
data StreamIdempotence = StreamIdempotence
  { -- | How long it remembers an entry.
    idempotenceDuration :: Duration,
    -- | How many entries of each producer it remembers.
    idempotenceMaxsize :: Int64,
    -- | The number of producers of which it remembers something.
    idempotencePidsTracked :: Int64,
    -- | The number of entries that it remembers.
    idempotenceIidsTracked :: Int64,
    -- | The number of entries that were ever added so.
    idempotenceIidsAdded :: Int64,
    -- | The number of entries that were not added, because they were there.
    idempotenceIidsDuplicates :: Int64
  }
  deriving stock (Eq, Show)

streamIdempotence :: Fields (Maybe StreamIdempotence)
streamIdempotence =
  ifPresent "idmp-duration" $
    StreamIdempotence
      <$> field "idmp-duration" secondsReply
      <*> field "idmp-maxsize" Decode.integer
      <*> field "pids-tracked" Decode.integer
      <*> field "iids-tracked" Decode.integer
      <*> field "iids-added" Decode.integer
      <*> field "iids-duplicates" Decode.integer

-- | @XINFO STREAM key@: the description of a stream; an error if there is no such stream. \(O(1)\),
-- [since 5.0.0](https://valkey.io/commands/xinfo-stream/).
xinfoStream :: ByteString -> Command StreamInfo
xinfoStream name =
  command "XINFO STREAM" [key name] . recordOf $
    described StreamInfo
      <*> field "groups" Decode.integer
      <*> field "first-entry" (Decode.nullable readEntry)
      <*> field "last-entry" (Decode.nullable readEntry)
      <*> streamIdempotence
      <*> others Decode.value

-- | The fields with which both descriptions begin.
described ::
  (Int64 -> Int64 -> Int64 -> StreamId -> Maybe StreamId -> Maybe Int64 -> Maybe StreamId -> more) -> Fields more
described make =
  make
    <$> field "length" Decode.integer
    <*> field "radix-tree-keys" Decode.integer
    <*> field "radix-tree-nodes" Decode.integer
    <*> field "last-generated-id" readId
    <*> maybeField "max-deleted-entry-id" idOrNone
    <*> optionalField "entries-added" Decode.integer
    <*> maybeField "recorded-first-entry-id" idOrNone

-- | The server's full description of a stream. What is not explained is like the field of 'StreamInfo'.
data StreamDetails = StreamDetails
  { streamDetailsLength :: Int64,
    streamDetailsRadixTreeKeys :: Int64,
    streamDetailsRadixTreeNodes :: Int64,
    streamDetailsLastGeneratedId :: StreamId,
    streamDetailsMaxDeletedEntryId :: Maybe StreamId,
    streamDetailsEntriesAdded :: Maybe Int64,
    streamDetailsRecordedFirstEntryId :: Maybe StreamId,
    -- | The first entries, as many as the options say.
    streamDetailsEntries :: [StreamEntry],
    streamDetailsGroups :: [GroupDetails],
    streamDetailsIdempotence :: Maybe StreamIdempotence,
    streamDetailsOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | The server's full description of a group.
data GroupDetails = GroupDetails
  { groupDetailsName :: ByteString,
    groupDetailsLastDeliveredId :: StreamId,
    -- | The number of entries that the group has read, if the server can tell; since 7.0.0.
    groupDetailsEntriesRead :: Maybe Int64,
    -- | The number of entries that the group has not read yet, if the server can tell; since 7.0.0.
    groupDetailsLag :: Maybe Int64,
    -- | The number of pending entries.
    groupDetailsPelCount :: Int64,
    -- | The number of pending entries that were released ('Redis.Commands.StreamGroup.xnack');
    -- Redis since 8.8.0.
    groupDetailsNackedCount :: Maybe Int64,
    -- | The first pending entries, as many as the options say.
    groupDetailsPending :: [PendingDelivery],
    groupDetailsConsumers :: [ConsumerDetails],
    groupDetailsOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | The server's full description of a consumer.
data ConsumerDetails = ConsumerDetails
  { consumerDetailsName :: ByteString,
    -- | When the consumer last tried to read or to claim entries.
    consumerDetailsSeenTime :: UTCTime,
    -- | When the consumer last got entries, if ever; since 7.2.0.
    consumerDetailsActiveTime :: Maybe UTCTime,
    -- | The number of entries that are pending with this consumer.
    consumerDetailsPelCount :: Int64,
    -- | The first pending entries, as many as the options say.
    consumerDetailsPending :: [PendingDelivery],
    consumerDetailsOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | A pending entry.
data PendingDelivery = PendingDelivery
  { pendingDeliveryId :: StreamId,
    -- | The name of the consumer with which it is pending.
    pendingDeliveryConsumer :: ByteString,
    -- | When it was last delivered to that consumer.
    pendingDeliveryTime :: UTCTime,
    -- | How often it was delivered.
    pendingDeliveryCount :: Int64
  }
  deriving stock (Eq, Show)

-- | @XINFO STREAM key FULL@: the full description of a stream, with its groups and consumers, the
-- first ten entries, and the first ten pending entries of each group and consumer. \(O(n)\) in the
-- length of the reply, [since 6.0.0](https://valkey.io/commands/xinfo-stream/).
xinfoStreamFull :: ByteString -> Command StreamDetails
xinfoStreamFull = xinfoStreamFullWith xinfoStreamFullDefaults

-- | The options of 'xinfoStreamFullWith'.
newtype XinfoStreamFullOptions = XinfoStreamFullOptions
  { -- | COUNT: the number of entries and of pending entries; 0 means all, 'Nothing' means ten.
    xinfoStreamFullCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | Ten of each.
xinfoStreamFullDefaults :: XinfoStreamFullOptions
xinfoStreamFullDefaults = XinfoStreamFullOptions {xinfoStreamFullCount = Nothing}

-- | @XINFO STREAM key FULL [COUNT n]@: like 'xinfoStreamFull', with another number of entries.
xinfoStreamFullWith :: XinfoStreamFullOptions -> ByteString -> Command StreamDetails
xinfoStreamFullWith XinfoStreamFullOptions {xinfoStreamFullCount} name =
  command "XINFO STREAM" ([key name, arg "FULL"] <> option "COUNT" int xinfoStreamFullCount) . recordOf $
    described StreamDetails
      <*> field "entries" readEntries
      <*> field "groups" (Decode.list groupDetails)
      <*> streamIdempotence
      <*> others Decode.value

groupDetails :: Decoder GroupDetails
groupDetails =
  recordOf $
    GroupDetails
      <$> field "name" Decode.bytes
      <*> field "last-delivered-id" readId
      <*> maybeField "entries-read" (Decode.nullable Decode.integer)
      <*> maybeField "lag" (Decode.nullable Decode.integer)
      <*> field "pel-count" Decode.integer
      <*> optionalField "nacked-count" Decode.integer
      <*> field "pending" (Decode.list pendingInGroup)
      <*> field "consumers" (Decode.list consumerDetails)
      <*> others Decode.value

consumerDetails :: Decoder ConsumerDetails
consumerDetails reply = do
  name <- recordOf (field "name" Decode.bytes) reply
  flip recordOf reply $
    ConsumerDetails
      <$> field "name" Decode.bytes
      <*> field "seen-time" Decode.unixMilliseconds
      <*> maybeField "active-time" (numberWhere (>= 0) Decode.unixMilliseconds)
      <*> field "pel-count" Decode.integer
      <*> field "pending" (Decode.list (pendingWith name))
      <*> others Decode.value

-- | Reads a pending entry of a group's list, which names its consumer.
pendingInGroup :: Decoder PendingDelivery
pendingInGroup reply = do
  elements <- Decode.list Decode.value reply
  name <- Decode.element 1 Decode.bytes elements
  pendingDelivery name 2 elements

-- | Reads a pending entry of a consumer's list, which does not name the consumer.
pendingWith :: ByteString -> Decoder PendingDelivery
pendingWith name reply = Decode.list Decode.value reply >>= pendingDelivery name 1

pendingDelivery :: ByteString -> Int -> [Value] -> Either DecodeError PendingDelivery
pendingDelivery name timeAt elements = do
  entry <- Decode.element 0 readId elements
  PendingDelivery entry name
    <$> Decode.element timeAt Decode.unixMilliseconds elements
    <*> Decode.element (timeAt + 1) Decode.integer elements

-- | The server's description of a group.
data GroupInfo = GroupInfo
  { groupInfoName :: ByteString,
    -- | The number of consumers.
    groupInfoConsumers :: Int64,
    -- | The number of pending entries.
    groupInfoPending :: Int64,
    groupInfoLastDeliveredId :: StreamId,
    -- | The number of entries that the group has read, if the server can tell; since 7.0.0.
    groupInfoEntriesRead :: Maybe Int64,
    -- | The number of entries that the group has not read yet, if the server can tell; since 7.0.0.
    groupInfoLag :: Maybe Int64,
    groupInfoOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @XINFO GROUPS key@: the groups of a stream; an error if there is no such stream. \(O(n)\) in
-- the number of groups, [since 5.0.0](https://valkey.io/commands/xinfo-groups/).
xinfoGroups :: ByteString -> Command [GroupInfo]
xinfoGroups name =
  command "XINFO GROUPS" [key name] . Decode.list . recordOf $
    GroupInfo
      <$> field "name" Decode.bytes
      <*> field "consumers" Decode.integer
      <*> field "pending" Decode.integer
      <*> field "last-delivered-id" readId
      <*> maybeField "entries-read" (Decode.nullable Decode.integer)
      <*> maybeField "lag" (Decode.nullable Decode.integer)
      <*> others Decode.value

-- | The server's description of a consumer.
data ConsumerInfo = ConsumerInfo
  { consumerInfoName :: ByteString,
    -- | The number of entries that are pending with this consumer.
    consumerInfoPending :: Int64,
    -- | The time since the consumer last tried to read or to claim entries.
    consumerInfoIdle :: Duration,
    -- | The time since the consumer last got entries, if it ever did; since 7.2.0.
    consumerInfoInactive :: Maybe Duration,
    consumerInfoOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @XINFO CONSUMERS key group@: the consumers of a group; @NOGROUP@ if there is no such group.
-- \(O(n)\) in the number of consumers, [since 5.0.0](https://valkey.io/commands/xinfo-consumers/).
xinfoConsumers :: ByteString -> ByteString -> Command [ConsumerInfo]
xinfoConsumers name group =
  command "XINFO CONSUMERS" [key name, arg group] . Decode.list . recordOf $
    ConsumerInfo
      <$> field "name" Decode.bytes
      <*> field "pending" Decode.integer
      <*> field "idle" millisecondsReply
      <*> maybeField "inactive" (numberWhere (>= 0) millisecondsReply)
      <*> others Decode.value

-- | @XINFO HELP@: the server's help. [Since 5.0.0](https://valkey.io/commands/xinfo-help/).
xinfoHelp :: Command [ByteString]
xinfoHelp = command "XINFO HELP" [] (Decode.list Decode.bytes)
