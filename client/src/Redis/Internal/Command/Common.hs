-- | What the modules of commands share: the types in their signatures, the functions that build
-- commands and read replies, and the arguments and options of commands of several groups.
module Redis.Internal.Command.Common
  ( ByteString,
    Command,
    Decoder,
    Duration,
    Int64,
    NonEmpty (..),
    UTCTime,
    Value,
    toList,
    module Redis.Command.Build,
    module Redis.Internal.Command.Argument,
    module Redis.Internal.Command.Record,

    -- * Groups of arguments
    countedKeys,
    fieldsWithValues,
    program,

    -- * Random elements
    Draw (..),
    drawCount,

    -- * Ranges of members
    LexBound (..),
    lexBound,

    -- * Types of values
    KeyType (..),
    keyTypeWord,

    -- * Deleting everything
    FlushMode (..),
    FlushOptions (..),
    flushDefaults,
    flushArguments,

    -- * Expiries
    Expiry (..),
    newLifetime,
    changedLifetime,
    ExpireCondition (..),
    expireConditionWord,
    expiryReply,

    -- * Walks
    ScanCursor (..),
    scanStart,
    ScanPage (..),
    scanPage,
    scanArguments,
  )
where

import Data.ByteString (ByteString)
import Data.Foldable (toList)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty (..))
import Data.Time.Clock (UTCTime)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, inMilliseconds, inWholeSeconds)
import Redis.Internal.Command (Command)
import Redis.Internal.Command.Argument
import Redis.Internal.Command.Record
import Redis.Value (Value)

-- | The number of keys, then the keys.
countedKeys :: Foldable f => f ByteString -> [Argument]
countedKeys names = int (fromIntegral (length names)) : keys names

-- | Fields, each followed by its value.
fieldsWithValues :: Foldable f => f (ByteString, ByteString) -> [Argument]
fieldsWithValues = concatMap (\(name, new) -> [arg name, arg new])

-- | Runs a program, given its text, digest or name, then its keys and its other arguments.
program :: Name -> ByteString -> [ByteString] -> [ByteString] -> Command Value
program name which names arguments =
  command name (arg which : countedKeys names <> args arguments) Decode.value

-- | How many elements to draw at random. A negative number counts as 0.
data Draw
  = -- | This many different elements, or all if there are fewer. Sent as a positive count.
    Distinct Int64
  | -- | Exactly this many elements, each drawn from all, so that one may come several
    -- times. Sent as a negative count.
    Repeated Int64
  deriving stock (Eq, Show)

-- | The count as an argument; its sign distinguishes the two.
drawCount :: Draw -> Argument
drawCount = \case
  Distinct count -> int (max 0 count)
  Repeated count -> int (negate (max 0 count))

-- | The bound at which a range of members begins or ends.
data LexBound
  = -- | At these bytes, included.
    LexInclusive ByteString
  | -- | At these bytes, excluded.
    LexExclusive ByteString
  | -- | @-@: before all members.
    LexLowest
  | -- | @+@: after all members.
    LexHighest
  deriving stock (Eq, Show)

lexBound :: LexBound -> Argument
lexBound = \case
  LexInclusive member -> arg ("[" <> member)
  LexExclusive member -> arg ("(" <> member)
  LexLowest -> arg "-"
  LexHighest -> arg "+"

-- | The type of a key's value.
data KeyType
  = -- | Bytes, a number, a bitmap, or a HyperLogLog.
    StringKey
  | ListKey
  | SetKey
  | -- | A sorted set, which is also what geo commands store.
    SortedSetKey
  | HashKey
  | StreamKey
  | -- | A type of a module, with the server's word for it.
    OtherKey ByteString
  deriving stock (Eq, Ord, Show)

-- | The server's word for a type, as TYPE returns it and SCAN takes it.
keyTypeWord :: KeyType -> ByteString
keyTypeWord = \case
  StringKey -> "string"
  ListKey -> "list"
  SetKey -> "set"
  SortedSetKey -> "zset"
  HashKey -> "hash"
  StreamKey -> "stream"
  OtherKey word -> word

-- | How the server frees the memory.
data FlushMode
  = -- | SYNC: at once, while all other clients wait.
    FlushSync
  | -- | ASYNC: in the background.
    FlushAsync
  deriving stock (Eq, Show)

-- | The options of commands that delete everything: keys, scripts or functions.
newtype FlushOptions = FlushOptions
  { -- | 'Nothing' means as the server is configured.
    flushMode :: Maybe FlushMode
  }
  deriving stock (Eq, Show)

-- | As the server is configured.
flushDefaults :: FlushOptions
flushDefaults = FlushOptions {flushMode = Nothing}

-- | The arguments for these options.
flushArguments :: FlushOptions -> [Argument]
flushArguments FlushOptions {flushMode} = case flushMode of
  Nothing -> []
  Just FlushSync -> [arg "SYNC"]
  Just FlushAsync -> [arg "ASYNC"]

-- | How long a value lives after it is set.
data Expiry
  = -- | Without an expiry, whatever expiry the replaced value had.
    NoExpiry
  | -- | KEEPTTL (since 6.0.0): with the expiry that the replaced value had.
    KeepExpiry
  | -- | EX, or PX if the time is not a whole number of seconds.
    ExpireIn Duration
  | -- | PXAT (since 6.2.0).
    ExpireAt UTCTime
  deriving stock (Eq, Show)

-- | The arguments for the expiry of a value that the command sets.
newLifetime :: Expiry -> [Argument]
newLifetime = lifetime [] [arg "KEEPTTL"]

-- | The arguments for the expiry of a value that the command leaves as it is.
changedLifetime :: Expiry -> [Argument]
changedLifetime = lifetime [arg "PERSIST"] []

-- | Takes the arguments for no expiry, and those for keeping the expiry.
lifetime :: [Argument] -> [Argument] -> Expiry -> [Argument]
lifetime none same = \case
  NoExpiry -> none
  KeepExpiry -> same
  ExpireIn duration -> case inWholeSeconds duration of
    Just whole -> [arg "EX", int whole]
    Nothing -> [arg "PX", int (inMilliseconds duration)]
  ExpireAt time -> [arg "PXAT", arg (unixMilliseconds time)]

-- | The condition under which an expiry is changed. GT and LT treat a value without an
-- expiry as one that expires later than any other.
data ExpireCondition
  = -- | NX: only if there is no expiry.
    OnlyIfNoExpiry
  | -- | XX: only if there is an expiry.
    OnlyIfExpiry
  | -- | GT: only if there is an expiry, and the new one is later.
    OnlyIfLater
  | -- | LT: only if the new expiry is sooner, or there is none yet.
    OnlyIfSooner
  deriving stock (Eq, Show)

expireConditionWord :: Maybe ExpireCondition -> [Argument]
expireConditionWord = \case
  Nothing -> []
  Just OnlyIfNoExpiry -> [arg "NX"]
  Just OnlyIfExpiry -> [arg "XX"]
  Just OnlyIfLater -> [arg "GT"]
  Just OnlyIfSooner -> [arg "LT"]

-- | Reads -2 for what is not there, -1 for what has no expiry, and otherwise its time.
expiryReply :: a -> a -> Decoder a -> Decoder a
expiryReply absent stays time reply =
  Decode.integer reply >>= \case
    -2 -> Right absent
    -1 -> Right stays
    number
      | number >= 0 -> time reply
      | otherwise -> Decode.mismatch "a time, -1 or -2" reply

-- | The position of a walk. Only the server that issued a cursor understands it.
newtype ScanCursor = ScanCursor ByteString
  deriving stock (Eq, Show)

-- | The beginning of a walk.
scanStart :: ScanCursor
scanStart = ScanCursor "0"

-- | The result of one step of a walk: of 'Redis.Commands.Keys.scan' over keys, of
-- 'Redis.Commands.Hash.hscan' over fields and values, and so on.
data ScanPage item = ScanPage
  { -- | The cursor of the next step; 'Nothing' at the end of the walk.
    scanNext :: Maybe ScanCursor,
    -- | The items that this step found; may be empty although the walk goes on.
    scanFound :: [item]
  }
  deriving stock (Eq, Show)

-- | Reads a cursor and the items found.
scanPage :: Decoder [item] -> Decoder (ScanPage item)
scanPage found reply = do
  (next, scanFound) <- Decode.pair Decode.bytes found reply
  pure ScanPage {scanNext = if next == "0" then Nothing else Just (ScanCursor next), scanFound}

-- | The cursor, MATCH and COUNT.
scanArguments :: ScanCursor -> Maybe ByteString -> Maybe Int64 -> [Argument]
scanArguments (ScanCursor cursor) glob count =
  arg cursor : option "MATCH" arg glob <> option "COUNT" positive count
