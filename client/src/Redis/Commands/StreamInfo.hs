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

import Control.Monad (join)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.Time.Clock (UTCTime)
import Data.Traversable (for)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, milliseconds, seconds)
import Redis.Error (DecodeError)
import Redis.Internal.Command.Lines (otherThan)
import Redis.Internal.Command.Stream
import Redis.Value (Value)

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
    -- | Fields that this library does not know.
    streamInfoOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | What a server remembers of the entries that were added with an
-- 'Redis.Commands.Stream.Idempotence'.
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

streamIdempotence :: [(ByteString, Value)] -> Either DecodeError (Maybe StreamIdempotence)
streamIdempotence fields = do
  duration <- Decode.optionalField "idmp-duration" Decode.integer fields
  for duration $ \lifetime -> do
    idempotenceMaxsize <- Decode.field "idmp-maxsize" Decode.integer fields
    idempotencePidsTracked <- Decode.field "pids-tracked" Decode.integer fields
    idempotenceIidsTracked <- Decode.field "iids-tracked" Decode.integer fields
    idempotenceIidsAdded <- Decode.field "iids-added" Decode.integer fields
    idempotenceIidsDuplicates <- Decode.field "iids-duplicates" Decode.integer fields
    pure
      StreamIdempotence
        { idempotenceDuration = seconds (fromIntegral lifetime),
          idempotenceMaxsize,
          idempotencePidsTracked,
          idempotenceIidsTracked,
          idempotenceIidsAdded,
          idempotenceIidsDuplicates
        }

-- | @XINFO STREAM key@: the description of a stream; an error if there is no such stream. \(O(1)\)
-- on the server, [since 5.0.0](https://valkey.io/commands/xinfo-stream/).
xinfoStream :: ByteString -> Command StreamInfo
xinfoStream name = command "XINFO STREAM" [key name] $ \reply -> do
  fields <- Decode.record reply
  streamInfoLength <- Decode.field "length" Decode.integer fields
  streamInfoRadixTreeKeys <- Decode.field "radix-tree-keys" Decode.integer fields
  streamInfoRadixTreeNodes <- Decode.field "radix-tree-nodes" Decode.integer fields
  streamInfoLastGeneratedId <- Decode.field "last-generated-id" readId fields
  streamInfoMaxDeletedEntryId <- maybeField "max-deleted-entry-id" idOrNone fields
  streamInfoEntriesAdded <- Decode.optionalField "entries-added" Decode.integer fields
  streamInfoRecordedFirstEntryId <- maybeField "recorded-first-entry-id" idOrNone fields
  streamInfoGroups <- Decode.field "groups" Decode.integer fields
  streamInfoFirstEntry <- Decode.field "first-entry" (Decode.nullable readEntry) fields
  streamInfoLastEntry <- Decode.field "last-entry" (Decode.nullable readEntry) fields
  streamInfoIdempotence <- streamIdempotence fields
  pure
    StreamInfo
      { streamInfoLength,
        streamInfoRadixTreeKeys,
        streamInfoRadixTreeNodes,
        streamInfoLastGeneratedId,
        streamInfoMaxDeletedEntryId,
        streamInfoEntriesAdded,
        streamInfoRecordedFirstEntryId,
        streamInfoGroups,
        streamInfoFirstEntry,
        streamInfoLastEntry,
        streamInfoIdempotence,
        streamInfoOthers = otherThan (streamFields <> ["first-entry", "last-entry"]) fields
      }

streamFields :: [ByteString]
streamFields =
  [ "length",
    "radix-tree-keys",
    "radix-tree-nodes",
    "last-generated-id",
    "max-deleted-entry-id",
    "entries-added",
    "recorded-first-entry-id",
    "groups",
    "idmp-duration",
    "idmp-maxsize",
    "pids-tracked",
    "iids-tracked",
    "iids-added",
    "iids-duplicates"
  ]

-- | Reads an id; servers write 0-0 where there is none.
idOrNone :: Decoder (Maybe StreamId)
idOrNone reply = do
  found <- readId reply
  pure (if found == StreamId 0 0 then Nothing else Just found)

-- | A field that may be absent, or present without a value.
maybeField :: ByteString -> Decoder (Maybe a) -> [(ByteString, Value)] -> Either DecodeError (Maybe a)
maybeField name decoder = fmap join . Decode.optionalField name decoder

-- | The server's full description of a stream.
data StreamDetails = StreamDetails
  { streamDetailsLength :: Int64,
    streamDetailsRadixTreeKeys :: Int64,
    streamDetailsRadixTreeNodes :: Int64,
    -- | Like the field of 'StreamInfo'.
    streamDetailsLastGeneratedId :: StreamId,
    -- | Like the field of 'StreamInfo'.
    streamDetailsMaxDeletedEntryId :: Maybe StreamId,
    -- | Like the field of 'StreamInfo'.
    streamDetailsEntriesAdded :: Maybe Int64,
    -- | Like the field of 'StreamInfo'.
    streamDetailsRecordedFirstEntryId :: Maybe StreamId,
    -- | The first entries, as many as the options say.
    streamDetailsEntries :: [StreamEntry],
    streamDetailsGroups :: [GroupDetails],
    -- | Like the field of 'StreamInfo'.
    streamDetailsIdempotence :: Maybe StreamIdempotence,
    -- | Fields that this library does not know.
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
    -- | The number of pending entries that were released ('Redis.Commands.StreamGroup.xnack'); Redis since
    -- 8.8.0.
    groupDetailsNackedCount :: Maybe Int64,
    -- | The first pending entries, as many as the options say.
    groupDetailsPending :: [PendingDelivery],
    groupDetailsConsumers :: [ConsumerDetails],
    -- | Fields that this library does not know.
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
    -- | Fields that this library does not know.
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
-- first ten entries, and the first ten pending entries of each group and consumer. \(O(n)\) on the
-- server in the length of the reply, [since 6.0.0](https://valkey.io/commands/xinfo-stream/).
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
  command "XINFO STREAM" ([key name, arg "FULL"] <> option "COUNT" int xinfoStreamFullCount) streamDetails

streamDetails :: Decoder StreamDetails
streamDetails reply = do
  fields <- Decode.record reply
  streamDetailsLength <- Decode.field "length" Decode.integer fields
  streamDetailsRadixTreeKeys <- Decode.field "radix-tree-keys" Decode.integer fields
  streamDetailsRadixTreeNodes <- Decode.field "radix-tree-nodes" Decode.integer fields
  streamDetailsLastGeneratedId <- Decode.field "last-generated-id" readId fields
  streamDetailsMaxDeletedEntryId <- maybeField "max-deleted-entry-id" idOrNone fields
  streamDetailsEntriesAdded <- Decode.optionalField "entries-added" Decode.integer fields
  streamDetailsRecordedFirstEntryId <- maybeField "recorded-first-entry-id" idOrNone fields
  streamDetailsEntries <- Decode.field "entries" readEntries fields
  streamDetailsGroups <- Decode.field "groups" (Decode.list groupDetails) fields
  streamDetailsIdempotence <- streamIdempotence fields
  pure
    StreamDetails
      { streamDetailsLength,
        streamDetailsRadixTreeKeys,
        streamDetailsRadixTreeNodes,
        streamDetailsLastGeneratedId,
        streamDetailsMaxDeletedEntryId,
        streamDetailsEntriesAdded,
        streamDetailsRecordedFirstEntryId,
        streamDetailsEntries,
        streamDetailsGroups,
        streamDetailsIdempotence,
        streamDetailsOthers = otherThan ("entries" : streamFields) fields
      }

groupDetails :: Decoder GroupDetails
groupDetails reply = do
  fields <- Decode.record reply
  groupDetailsName <- Decode.field "name" Decode.bytes fields
  groupDetailsLastDeliveredId <- Decode.field "last-delivered-id" readId fields
  groupDetailsEntriesRead <- maybeField "entries-read" (Decode.nullable Decode.integer) fields
  groupDetailsLag <- maybeField "lag" (Decode.nullable Decode.integer) fields
  groupDetailsPelCount <- Decode.field "pel-count" Decode.integer fields
  groupDetailsNackedCount <- Decode.optionalField "nacked-count" Decode.integer fields
  groupDetailsPending <- Decode.field "pending" (Decode.list pendingInGroup) fields
  groupDetailsConsumers <- Decode.field "consumers" (Decode.list consumerDetails) fields
  pure
    GroupDetails
      { groupDetailsName,
        groupDetailsLastDeliveredId,
        groupDetailsEntriesRead,
        groupDetailsLag,
        groupDetailsPelCount,
        groupDetailsNackedCount,
        groupDetailsPending,
        groupDetailsConsumers,
        groupDetailsOthers =
          otherThan ["name", "last-delivered-id", "entries-read", "lag", "pel-count", "nacked-count", "pending", "consumers"] fields
      }

consumerDetails :: Decoder ConsumerDetails
consumerDetails reply = do
  fields <- Decode.record reply
  consumerDetailsName <- Decode.field "name" Decode.bytes fields
  consumerDetailsSeenTime <- Decode.field "seen-time" Decode.unixMilliseconds fields
  consumerDetailsActiveTime <- maybeField "active-time" (unlessNegative Decode.unixMilliseconds) fields
  consumerDetailsPelCount <- Decode.field "pel-count" Decode.integer fields
  consumerDetailsPending <- Decode.field "pending" (Decode.list (pendingWith consumerDetailsName)) fields
  pure
    ConsumerDetails
      { consumerDetailsName,
        consumerDetailsSeenTime,
        consumerDetailsActiveTime,
        consumerDetailsPelCount,
        consumerDetailsPending,
        consumerDetailsOthers = otherThan ["name", "seen-time", "active-time", "pel-count", "pending"] fields
      }

-- | Reads a number that is not negative; servers write -1 where there is none.
unlessNegative :: Decoder a -> Decoder (Maybe a)
unlessNegative decoder reply = do
  number <- Decode.integer reply
  if number < 0 then Right Nothing else Just <$> decoder reply

-- | Reads a pending entry of a group's list, which names its consumer.
pendingInGroup :: Decoder PendingDelivery
pendingInGroup reply = do
  elements <- Decode.list Decode.value reply
  pendingDeliveryConsumer <- Decode.element 1 Decode.bytes elements
  pendingDelivery pendingDeliveryConsumer 2 elements

-- | Reads a pending entry of a consumer's list, which does not name the consumer.
pendingWith :: ByteString -> Decoder PendingDelivery
pendingWith name reply = Decode.list Decode.value reply >>= pendingDelivery name 1

pendingDelivery :: ByteString -> Int -> [Value] -> Either DecodeError PendingDelivery
pendingDelivery pendingDeliveryConsumer timeAt elements = do
  pendingDeliveryId <- Decode.element 0 readId elements
  pendingDeliveryTime <- Decode.element timeAt Decode.unixMilliseconds elements
  pendingDeliveryCount <- Decode.element (timeAt + 1) Decode.integer elements
  pure PendingDelivery {pendingDeliveryId, pendingDeliveryConsumer, pendingDeliveryTime, pendingDeliveryCount}

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
    -- | Fields that this library does not know.
    groupInfoOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @XINFO GROUPS key@: the groups of a stream; an error if there is no such stream. \(O(n)\) on
-- the server in the number of groups, [since 5.0.0](https://valkey.io/commands/xinfo-groups/).
xinfoGroups :: ByteString -> Command [GroupInfo]
xinfoGroups name = command "XINFO GROUPS" [key name] . Decode.list $ \reply -> do
  fields <- Decode.record reply
  groupInfoName <- Decode.field "name" Decode.bytes fields
  groupInfoConsumers <- Decode.field "consumers" Decode.integer fields
  groupInfoPending <- Decode.field "pending" Decode.integer fields
  groupInfoLastDeliveredId <- Decode.field "last-delivered-id" readId fields
  groupInfoEntriesRead <- maybeField "entries-read" (Decode.nullable Decode.integer) fields
  groupInfoLag <- maybeField "lag" (Decode.nullable Decode.integer) fields
  pure
    GroupInfo
      { groupInfoName,
        groupInfoConsumers,
        groupInfoPending,
        groupInfoLastDeliveredId,
        groupInfoEntriesRead,
        groupInfoLag,
        groupInfoOthers = otherThan ["name", "consumers", "pending", "last-delivered-id", "entries-read", "lag"] fields
      }

-- | The server's description of a consumer.
data ConsumerInfo = ConsumerInfo
  { consumerInfoName :: ByteString,
    -- | The number of entries that are pending with this consumer.
    consumerInfoPending :: Int64,
    -- | The time since the consumer last tried to read or to claim entries.
    consumerInfoIdle :: Duration,
    -- | The time since the consumer last got entries, if it ever did; since 7.2.0.
    consumerInfoInactive :: Maybe Duration,
    -- | Fields that this library does not know.
    consumerInfoOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @XINFO CONSUMERS key group@: the consumers of a group; @NOGROUP@ if there is no such group.
-- \(O(n)\) on the server in the number of consumers,
-- [since 5.0.0](https://valkey.io/commands/xinfo-consumers/).
xinfoConsumers :: ByteString -> ByteString -> Command [ConsumerInfo]
xinfoConsumers name group = command "XINFO CONSUMERS" [key name, arg group] . Decode.list $ \reply -> do
  fields <- Decode.record reply
  consumerInfoName <- Decode.field "name" Decode.bytes fields
  consumerInfoPending <- Decode.field "pending" Decode.integer fields
  consumerInfoIdle <- milliseconds <$> Decode.field "idle" Decode.integer fields
  consumerInfoInactive <- fmap milliseconds <$> maybeField "inactive" (unlessNegative Decode.integer) fields
  pure
    ConsumerInfo
      { consumerInfoName,
        consumerInfoPending,
        consumerInfoIdle,
        consumerInfoInactive,
        consumerInfoOthers = otherThan ["name", "pending", "idle", "inactive"] fields
      }

-- | @XINFO HELP@: the server's help text for these commands.
-- [Since 5.0.0](https://valkey.io/commands/xinfo-help/).
xinfoHelp :: Command [ByteString]
xinfoHelp = command "XINFO HELP" [] (Decode.list Decode.bytes)
