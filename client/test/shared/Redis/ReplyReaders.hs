-- | Decoders for the replies in "Redis.ReplyShapes", like those of the commands. They leave out
-- every field that differs from one run to the next.
module Redis.ReplyReaders
  ( infinity,
    near,
    whole,
    entries,
    claimed,
    pendingEntries,
    streamInfo,
    groupInfo,
    commandInfo,
    userFlags,
    library,
    tracking,
    memory,
    lcs,
  )
where

import Control.Monad ((>=>))
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode

infinity :: Double
infinity = 1 / 0

-- | A rounded position, because servers store positions with limited precision.
near :: Decoder (Int64, Int64)
near = Decode.pair Decode.double Decode.double >=> \(x, y) -> Right (whole x, whole y)

whole :: Double -> Int64
whole = round

entries :: Decoder [(ByteString, [(ByteString, ByteString)])]
entries = Decode.pairs Decode.bytes (Decode.pairs Decode.bytes Decode.bytes)

claimed :: Decoder (ByteString, [(ByteString, [(ByteString, ByteString)])])
claimed reply = do
  elements <- Decode.list Decode.value reply
  (,) <$> Decode.element 0 Decode.bytes elements <*> Decode.element 1 entries elements

pendingEntries :: Decoder (Int64, Maybe [(ByteString, Int64)])
pendingEntries reply = do
  elements <- Decode.list Decode.value reply
  consumers <- Decode.element 3 (Decode.nullable (Decode.pairs Decode.bytes Decode.integer)) elements
  (\count -> (count, consumers)) <$> Decode.element 0 Decode.integer elements

streamInfo :: Decoder (Int64, ByteString, Maybe (ByteString, [(ByteString, ByteString)]))
streamInfo reply = do
  fields <- Decode.record reply
  (,,)
    <$> Decode.field "length" Decode.integer fields
    <*> Decode.field "last-generated-id" Decode.bytes fields
    <*> Decode.field "first-entry" (Decode.nullable (Decode.pair Decode.bytes (Decode.pairs Decode.bytes Decode.bytes))) fields

groupInfo :: Decoder (ByteString, Int64)
groupInfo reply = do
  fields <- Decode.record reply
  (,) <$> Decode.field "name" Decode.bytes fields <*> Decode.field "pending" Decode.integer fields

commandInfo :: Decoder (ByteString, Int64, Bool)
commandInfo reply = do
  elements <- Decode.list Decode.value reply
  (,,)
    <$> Decode.element 0 Decode.bytes elements
    <*> Decode.element 1 Decode.integer elements
    <*> (elem "readonly" <$> Decode.element 2 (Decode.list Decode.bytes) elements)

userFlags :: Decoder (Bool, [ByteString])
userFlags reply = do
  fields <- Decode.record reply
  (,)
    <$> (elem "nopass" <$> Decode.field "flags" (Decode.list Decode.bytes) fields)
    <*> Decode.field "passwords" (Decode.list Decode.bytes) fields

library :: Decoder (ByteString, ByteString, [(ByteString, Maybe ByteString, [ByteString])])
library reply = do
  fields <- Decode.record reply
  (,,)
    <$> Decode.field "library_name" Decode.bytes fields
    <*> Decode.field "engine" Decode.bytes fields
    <*> Decode.field "functions" (Decode.list function) fields
  where
    function described = do
      fields <- Decode.record described
      (,,)
        <$> Decode.field "name" Decode.bytes fields
        <*> Decode.field "description" (Decode.nullable Decode.bytes) fields
        <*> Decode.field "flags" (Decode.list Decode.bytes) fields

tracking :: Decoder ([ByteString], Int64, [ByteString])
tracking reply = do
  fields <- Decode.record reply
  (,,)
    <$> Decode.field "flags" (Decode.list Decode.bytes) fields
    <*> Decode.field "redirect" Decode.integer fields
    <*> Decode.field "prefixes" (Decode.list Decode.bytes) fields

-- | The number of keys, and whether their share of the memory is positive.
memory :: Decoder (Int64, Bool)
memory reply = do
  fields <- Decode.record reply
  (,)
    <$> Decode.field "keys.count" Decode.integer fields
    <*> ((> 0) <$> Decode.field "dataset.percentage" Decode.double fields)

lcs :: Decoder (Int64, [((Int64, Int64), (Int64, Int64))])
lcs reply = do
  fields <- Decode.record reply
  (,) <$> Decode.field "len" Decode.integer fields <*> Decode.field "matches" (Decode.list match) fields
  where
    match found = do
      elements <- Decode.list Decode.value found
      (,) <$> Decode.element 0 range elements <*> Decode.element 1 range elements
    range = Decode.pair Decode.integer Decode.integer
