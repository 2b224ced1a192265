-- | Ids and entries of streams, as servers write them.
module Redis.Internal.Command.Stream
  ( StreamId (..),
    streamIdAt,
    streamIdTime,
    idWord,
    idArgument,
    countedIds,
    readId,
    idOrNone,
    StreamEntry (..),
    readEntry,
    readEntries,
    readFields,
    readStreams,
    StreamBound (..),
    bound,
    StreamWait (..),
    block,
    StreamReferences (..),
    referencesWord,
    EntryDeletion (..),
    readDeletions,
  )
where

import Control.Monad (mfilter)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Time.Clock.POSIX (posixSecondsToUTCTime, utcTimeToPOSIXSeconds)
import Data.Word (Word64)
import Redis.Decode qualified as Decode
import Redis.Duration (inMilliseconds)
import Redis.Internal.Command.Common

-- | The id of an entry, @milliseconds-sequence@. The entries of a stream are ordered by their
-- ids. An id that the server makes consists of its clock's milliseconds since 1970, and of a
-- number that distinguishes the ids of one millisecond.
data StreamId = StreamId
  { streamIdMilliseconds :: Word64,
    streamIdSequence :: Word64
  }
  deriving stock (Eq, Ord, Show)

-- | The lowest id of a point in time, rounded up to the millisecond; at the earliest of 1970.
--
-- > xtrim "events" (Minid TrimExactly (streamIdAt yesterday))
streamIdAt :: UTCTime -> StreamId
streamIdAt time = StreamId (fromInteger (max 0 (min longest (ceiling (utcTimeToPOSIXSeconds time * 1000))))) 0
  where
    longest = toInteger (maxBound :: Word64)

-- | The time at which the server made this id.
streamIdTime :: StreamId -> UTCTime
streamIdTime = posixSecondsToUTCTime . (/ 1000) . fromIntegral . streamIdMilliseconds

idWord :: StreamId -> ByteString
idWord StreamId {streamIdMilliseconds, streamIdSequence} =
  Lazy.toStrict (Builder.toLazyByteString (Builder.word64Dec streamIdMilliseconds <> Builder.char7 '-' <> Builder.word64Dec streamIdSequence))

idArgument :: StreamId -> Argument
idArgument = arg . idWord

countedIds :: NonEmpty StreamId -> [Argument]
countedIds ids = arg "IDS" : int (fromIntegral (length ids)) : map idArgument (toList ids)

readId :: Decoder StreamId
readId reply = do
  word <- Decode.bytes reply
  let (milliseconds, rest) = Char8.break (== '-') word
  case (digits milliseconds, digits (Char8.drop 1 rest)) of
    (Just one, Just other) -> Right (StreamId one other)
    _ -> Decode.mismatch "the id of an entry" reply

-- | Reads an id; servers write 0-0 where there is none.
idOrNone :: Decoder (Maybe StreamId)
idOrNone = fmap (mfilter (/= StreamId 0 0) . Just) . readId

-- | An entry of a stream.
data StreamEntry = StreamEntry
  { streamEntryId :: StreamId,
    -- | Fields and values in the order in which they were added. A field may occur twice.
    streamEntryFields :: [(ByteString, ByteString)]
  }
  deriving stock (Eq, Show)

readEntry :: Decoder StreamEntry
readEntry = fmap (uncurry StreamEntry) . Decode.pair readId readFields

readFields :: Decoder [(ByteString, ByteString)]
readFields = Decode.pairs Decode.bytes Decode.bytes

-- | Reads entries; a null means that there are none.
readEntries :: Decoder [StreamEntry]
readEntries = orNone (Decode.list readEntry)

-- | Reads streams with their keys; a null means that there are none.
readStreams :: Decoder entry -> Decoder [(ByteString, [entry])]
readStreams entry = orNone (Decode.pairs Decode.bytes (Decode.list entry))

-- | An end of a range of ids.
data StreamBound
  = -- | @-@: the lowest of all.
    LowestId
  | -- | @+@: the highest of all.
    HighestId
  | -- | This id, included. A range of all entries of one millisecond begins with
    -- @StreamId m 0@ and ends with @StreamId m maxBound@.
    IncludingId StreamId
  | -- | @(@ (since 6.2.0): this id, excluded.
    ExcludingId StreamId
  deriving stock (Eq, Show)

bound :: StreamBound -> Argument
bound = \case
  LowestId -> arg "-"
  HighestId -> arg "+"
  IncludingId one -> idArgument one
  ExcludingId one -> arg ("(" <> idWord one)

-- | Whether to wait if there are no entries yet.
data StreamWait
  = -- | Replies at once.
    DoNotWait
  | -- | BLOCK: waits at most this long, to the millisecond, and at least one millisecond.
    WaitFor Duration
  | -- | @BLOCK 0@: waits until an entry comes.
    WaitForever
  deriving stock (Eq, Show)

block :: StreamWait -> [Argument]
block = \case
  DoNotWait -> []
  -- Zero would mean no limit.
  WaitFor limit -> [arg "BLOCK", int (max 1 (inMilliseconds limit))]
  WaitForever -> [arg "BLOCK", int 0]

-- | What becomes of references to a deleted entry, by groups in which it is pending.
data StreamReferences
  = -- | KEEPREF: they stay, and the entry stays pending without its fields. Commands without this
    -- choice do the same.
    KeepReferences
  | -- | DELREF: they are deleted with the entry.
    DeleteReferences
  | -- | ACKED: the entry is deleted only if all groups have read and acknowledged it.
    OnlyAcknowledged
  deriving stock (Eq, Show)

referencesWord :: StreamReferences -> ByteString
referencesWord = \case
  KeepReferences -> "KEEPREF"
  DeleteReferences -> "DELREF"
  OnlyAcknowledged -> "ACKED"

-- | What became of an entry that was to be deleted.
data EntryDeletion
  = -- | There is no such entry or, for XACKDEL, it was not pending in the group.
    EntryAbsent
  | EntryDeleted
  | -- | It is still there, because a group has not acknowledged it.
    EntryKept
  deriving stock (Eq, Show)

readDeletions :: NonEmpty StreamId -> Decoder [EntryDeletion]
readDeletions ids =
  Decode.listOf (length ids) $
    oneOf Decode.integer "-1, 1 or 2" [(-1, EntryAbsent), (1, EntryDeleted), (2, EntryKept)]
