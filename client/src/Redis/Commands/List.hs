-- | Lists: queues with two ends, and elements by their place.
--
-- > run client (Redis.rpush "example:{lists}" ("first" :| ["second", "third"]))
-- > run client (Redis.lpop "example:{lists}")
--
-- A list without elements does not exist: taking the last one deletes the key, and
-- each command that puts an element makes it, unless it says otherwise. An index
-- counts from 0 at the left end, and from -1 at the right one.
--
-- What the server says of them: <https://valkey.io/commands/#list>.
module Redis.Commands.List
  ( -- * Putting
    lpush,
    rpush,
    lpushx,
    rpushx,
    linsert,
    InsertPlace (..),
    Inserted (..),
    lset,

    -- * Taking
    lpop,
    rpop,
    lpopCount,
    rpopCount,
    lmpop,
    lmpopWith,
    LmpopOptions (lmpopCount),
    lmpopDefaults,
    lrem,
    LremCount (..),
    ltrim,

    -- * Looking
    lrange,
    llen,
    lindex,
    lpos,
    lposWith,
    lposCount,
    lposCountWith,
    LposOptions (lposRank, lposMaxlen),
    lposDefaults,

    -- * From one list to another
    lmove,
    rpoplpush,
    ListEnd (..),

    -- * Waiting for an element
    blpop,
    brpop,
    blmpop,
    blmpopWith,
    blmove,
    brpoplpush,
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Data.Maybe (fromMaybe)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration)

-- | @LPUSH key element …@: puts them before the first, one after the other; the length after it.
-- \(O(1)\) per element on the server, [since 1.0.0](https://valkey.io/commands/lpush/); several
-- elements since 2.4.0.
--
-- @since 0.1.0.0
lpush :: ByteString -> NonEmpty ByteString -> Command Int64
lpush name elements = command "LPUSH" (key name : args elements) Decode.integer

-- | @RPUSH key element …@: puts them after the last; the length after it. \(O(1)\) per element on
-- the server, [since 1.0.0](https://valkey.io/commands/rpush/); several elements since 2.4.0.
--
-- @since 0.1.0.0
rpush :: ByteString -> NonEmpty ByteString -> Command Int64
rpush name elements = command "RPUSH" (key name : args elements) Decode.integer

-- | @LPUSHX key element …@: as 'lpush', if the list is there; without it nothing happens and the
-- length is 0. \(O(1)\) per element on the server,
-- [since 2.2.0](https://valkey.io/commands/lpushx/); several elements since 4.0.0.
--
-- @since 0.1.0.0
lpushx :: ByteString -> NonEmpty ByteString -> Command Int64
lpushx name elements = command "LPUSHX" (key name : args elements) Decode.integer

-- | @RPUSHX key element …@: as 'rpush', if the list is there; without it nothing happens and the
-- length is 0. \(O(1)\) per element on the server,
-- [since 2.2.0](https://valkey.io/commands/rpushx/); several elements since 4.0.0.
--
-- @since 0.1.0.0
rpushx :: ByteString -> NonEmpty ByteString -> Command Int64
rpushx name elements = command "RPUSHX" (key name : args elements) Decode.integer

-- | Where to insert: beside the first element, from the left, that is this one.
--
-- @since 0.1.0.0
data InsertPlace
  = -- | BEFORE: to its left.
    BeforeElement ByteString
  | -- | AFTER: to its right.
    AfterElement ByteString
  deriving stock (Eq, Show)

-- | What came of an insertion.
--
-- @since 0.1.0.0
data Inserted
  = -- | It is in the list, which is now so long.
    Inserted Int64
  | -- | The list lacks the element beside which it should be.
    NoSuchElement
  | -- | There is no list.
    NoSuchList
  deriving stock (Eq, Show)

-- | @LINSERT key BEFORE|AFTER pivot element@: puts an element beside another. \(O(n)\) on the
-- server in the elements left of that, [since 2.2.0](https://valkey.io/commands/linsert/).
--
-- @since 0.1.0.0
linsert :: ByteString -> InsertPlace -> ByteString -> Command Inserted
linsert name place new =
  command "LINSERT" (key name : beside <> [arg new]) $ \reply -> do
    size <- Decode.integer reply
    case size of
      -1 -> Right NoSuchElement
      0 -> Right NoSuchList
      _
        | size > 0 -> Right (Inserted size)
        | otherwise -> Decode.mismatch "a length, 0 or -1" reply
  where
    beside = case place of
      BeforeElement pivot -> [arg "BEFORE", arg pivot]
      AfterElement pivot -> [arg "AFTER", arg pivot]

-- | @LSET key index element@: puts another element in the place of this one. An error if there is
-- no list, or none so long. \(O(n)\) on the server in the distance from the nearer end,
-- [since 1.0.0](https://valkey.io/commands/lset/).
--
-- @since 0.1.0.0
lset :: ByteString -> Int64 -> ByteString -> Command ()
lset name index new = command "LSET" [key name, int index, arg new] Decode.okay

-- | @LPOP key@: takes the first. \(O(1)\) on the server,
-- [since 1.0.0](https://valkey.io/commands/lpop/).
--
-- @since 0.1.0.0
lpop :: ByteString -> Command (Maybe ByteString)
lpop name = command "LPOP" [key name] (Decode.nullable Decode.bytes)

-- | @RPOP key@: takes the last. \(O(1)\) on the server,
-- [since 1.0.0](https://valkey.io/commands/rpop/).
--
-- @since 0.1.0.0
rpop :: ByteString -> Command (Maybe ByteString)
rpop name = command "RPOP" [key name] (Decode.nullable Decode.bytes)

-- | @LPOP key count@: takes the first so many, or as many as there are, from the left; none without
-- a list. The server refuses a negative count. \(O(n)\) on the server in the elements taken,
-- [since 6.2.0](https://valkey.io/commands/lpop/).
--
-- @since 0.1.0.0
lpopCount :: ByteString -> Int64 -> Command [ByteString]
lpopCount name count = command "LPOP" [key name, natural count] elementsOrNone

-- | @RPOP key count@: as 'lpopCount', from the right: the last comes first.
-- [Since 6.2.0](https://valkey.io/commands/rpop/).
--
-- @since 0.1.0.0
rpopCount :: ByteString -> Int64 -> Command [ByteString]
rpopCount name count = command "RPOP" [key name, natural count] elementsOrNone

elementsOrNone :: Decoder [ByteString]
elementsOrNone = fmap (fromMaybe []) . Decode.nullable (Decode.list Decode.bytes)

-- | @LMPOP numkeys key … LEFT|RIGHT@: takes an element of the first list that has one: that list's
-- key and the element, or 'Nothing' if all are empty. In a cluster the keys must share a slot.
-- \(O(n+m)\) on the server in keys and elements taken,
-- [since 7.0.0](https://valkey.io/commands/lmpop/).
--
-- @since 0.1.0.0
lmpop :: NonEmpty ByteString -> ListEnd -> Command (Maybe (ByteString, [ByteString]))
lmpop = lmpopWith lmpopDefaults

-- | How much to take.
--
-- @since 0.1.0.0
newtype LmpopOptions = LmpopOptions
  { -- | COUNT: at most so many, all of one list; 'Nothing' is one.
    lmpopCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | One element.
--
-- @since 0.1.0.0
lmpopDefaults :: LmpopOptions
lmpopDefaults = LmpopOptions {lmpopCount = Nothing}

-- | @LMPOP numkeys key … LEFT|RIGHT [COUNT n]@: as 'lmpop'. A
-- count is at least 1.
--
-- @since 0.1.0.0
lmpopWith :: LmpopOptions -> NonEmpty ByteString -> ListEnd -> Command (Maybe (ByteString, [ByteString]))
lmpopWith options names from =
  command "LMPOP" (lmpopArguments options names from) (Decode.nullable keyAndElements)

lmpopArguments :: LmpopOptions -> NonEmpty ByteString -> ListEnd -> [Argument]
lmpopArguments LmpopOptions {lmpopCount} names from =
  (int (fromIntegral (length names)) : keys names) <> [listEnd from] <> option "COUNT" positive lmpopCount

keyAndElements :: Decoder (ByteString, [ByteString])
keyAndElements = Decode.pair Decode.bytes (Decode.list Decode.bytes)

-- | Which of the elements that are equal. Numbers are at least 1; others are refused
-- before they are sent, because a server reads 0 as all of them.
--
-- @since 0.1.0.0
data LremCount
  = -- | Every one.
    RemoveAll
  | -- | The first so many, from the left.
    RemoveFirst Int64
  | -- | The last so many, from the right.
    RemoveLast Int64
  deriving stock (Eq, Show)

-- | @LREM key count element@: takes out what equals this; how many there were. \(O(n+m)\) on the
-- server in the list's length and in those taken out,
-- [since 1.0.0](https://valkey.io/commands/lrem/).
--
-- @since 0.1.0.0
lrem :: ByteString -> LremCount -> ByteString -> Command Int64
lrem name which element = command "LREM" [key name, count, arg element] Decode.integer
  where
    count = case which of
      RemoveAll -> int 0
      RemoveFirst most -> positive most
      RemoveLast most
        | most >= 1 -> int (negate most)
        | otherwise -> positive most

-- | @LTRIM key start stop@: keeps what is from element to element, both included, negative from the
-- end, and drops the rest; an empty range deletes the list. \(O(n)\) on the server in the elements
-- dropped, [since 1.0.0](https://valkey.io/commands/ltrim/).
--
-- > lpush "latest" ("news" :| []) *> ltrim "latest" 0 99
--
-- @since 0.1.0.0
ltrim :: ByteString -> Int64 -> Int64 -> Command ()
ltrim name start stop = command "LTRIM" [key name, int start, int stop] Decode.okay

-- | @LRANGE key start stop@: from element to element, both included, negative from the end.
-- \(O(s+n)\) on the server for a distance s from the nearer end and n elements,
-- [since 1.0.0](https://valkey.io/commands/lrange/).
--
-- @since 0.1.0.0
lrange :: ByteString -> Int64 -> Int64 -> Command [ByteString]
lrange name start stop =
  command "LRANGE" [key name, int start, int stop] (Decode.list Decode.bytes)

-- | @LLEN key@. \(O(1)\) on the server, [since 1.0.0](https://valkey.io/commands/llen/).
--
-- @since 0.1.0.0
llen :: ByteString -> Command Int64
llen name = command "LLEN" [key name] Decode.integer

-- | @LINDEX key index@: the element there, if there is one. \(O(n)\) on the server in the distance
-- from the nearer end, [since 1.0.0](https://valkey.io/commands/lindex/).
--
-- @since 0.1.0.0
lindex :: ByteString -> Int64 -> Command (Maybe ByteString)
lindex name index = command "LINDEX" [key name, int index] (Decode.nullable Decode.bytes)

-- | @LPOS key element@: the index of the first that equals this. \(O(n)\) on the server in the
-- elements before it, [since 6.0.6](https://valkey.io/commands/lpos/).
--
-- @since 0.1.0.0
lpos :: ByteString -> ByteString -> Command (Maybe Int64)
lpos = lposWith lposDefaults

-- | Where to look.
--
-- @since 0.1.0.0
data LposOptions = LposOptions
  { -- | RANK: from the second or third match on; negative ones look from the right end,
    -- -1 being the last match. The server refuses 0.
    lposRank :: Maybe Int64,
    -- | MAXLEN: after comparing so many elements, stop. 0 compares all.
    lposMaxlen :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | From the first on, through the whole list.
--
-- @since 0.1.0.0
lposDefaults :: LposOptions
lposDefaults = LposOptions {lposRank = Nothing, lposMaxlen = Nothing}

-- | @LPOS key element [RANK n] [MAXLEN n]@: as 'lpos'. An index counts from the left
-- end, wherever the search begins.
--
-- @since 0.1.0.0
lposWith :: LposOptions -> ByteString -> ByteString -> Command (Maybe Int64)
lposWith options name element =
  command "LPOS" (key name : arg element : lposArguments options) (Decode.nullable Decode.integer)

-- | @LPOS key element COUNT n@: the indices of so many that equal this, or, with 0, of all of them.
-- [Since 6.0.6](https://valkey.io/commands/lpos/).
--
-- @since 0.1.0.0
lposCount :: Int64 -> ByteString -> ByteString -> Command [Int64]
lposCount = lposCountWith lposDefaults

-- | @LPOS key element COUNT n [RANK n] [MAXLEN n]@: as 'lposCount', in the order
-- in which the search comes to them.
--
-- @since 0.1.0.0
lposCountWith :: LposOptions -> Int64 -> ByteString -> ByteString -> Command [Int64]
lposCountWith options count name element =
  command
    "LPOS"
    ([key name, arg element, arg "COUNT", natural count] <> lposArguments options)
    (Decode.list Decode.integer)

lposArguments :: LposOptions -> [Argument]
lposArguments LposOptions {lposRank, lposMaxlen} =
  option "RANK" int lposRank <> option "MAXLEN" natural lposMaxlen

-- | @LMOVE source destination LEFT|RIGHT LEFT|RIGHT@: takes from one end of the source and puts it
-- at one end of the destination, which may be the same list; the element, or 'Nothing' if there was
-- none. In a cluster both must share a slot. \(O(1)\) on the server,
-- [since 6.2.0](https://valkey.io/commands/lmove/).
--
-- @since 0.1.0.0
lmove :: (ByteString, ListEnd) -> (ByteString, ListEnd) -> Command (Maybe ByteString)
lmove (source, from) (destination, to) =
  command
    "LMOVE"
    [key source, key destination, listEnd from, listEnd to]
    (Decode.nullable Decode.bytes)

-- | @RPOPLPUSH source destination@: what 'lmove' does from the right end of one to the left end of
-- the other. \(O(1)\) on the server, [since 1.2.0](https://valkey.io/commands/rpoplpush/); Redis
-- calls it deprecated since 6.2.0.
--
-- @since 0.1.0.0
rpoplpush :: ByteString -> ByteString -> Command (Maybe ByteString)
rpoplpush source destination =
  command "RPOPLPUSH" [key source, key destination] (Decode.nullable Decode.bytes)

-- | @BLPOP key … seconds@: takes the first element of the first list that has one and waits for it
-- if need be, for so long or, with 'Nothing', until there is one. The answer is 'Nothing' after
-- that time, else the key and the element. In a cluster the keys must share a slot. \(O(n)\) on the
-- server in the number of keys, [since 2.0.0](https://valkey.io/commands/blpop/); fractions of
-- seconds since 6.0.0.
--
-- @since 0.1.0.0
blpop :: NonEmpty ByteString -> Maybe Duration -> Command (Maybe (ByteString, ByteString))
blpop names limit = command "BLPOP" (keys names <> [timeout limit]) (Decode.nullable keyAndElement)

-- | @BRPOP key … seconds@: as 'blpop', with the last element.
-- <https://valkey.io/commands/brpop/>
--
-- @since 0.1.0.0
brpop :: NonEmpty ByteString -> Maybe Duration -> Command (Maybe (ByteString, ByteString))
brpop names limit = command "BRPOP" (keys names <> [timeout limit]) (Decode.nullable keyAndElement)

keyAndElement :: Decoder (ByteString, ByteString)
keyAndElement reply =
  Decode.listOf 2 Decode.bytes reply >>= \case
    [from, element] -> Right (from, element)
    _ -> Decode.mismatch "a key and an element" reply

-- | @BLMPOP seconds numkeys key … LEFT|RIGHT@: as 'lmpop', waiting as 'blpop' does.
-- [Since 7.0.0](https://valkey.io/commands/blmpop/).
--
-- @since 0.1.0.0
blmpop :: NonEmpty ByteString -> ListEnd -> Maybe Duration -> Command (Maybe (ByteString, [ByteString]))
blmpop = blmpopWith lmpopDefaults

-- | @BLMPOP seconds numkeys key … LEFT|RIGHT [COUNT n]@: as 'lmpopWith', waiting as
-- 'blpop' does, for one element: it does not wait for more.
--
-- @since 0.1.0.0
blmpopWith ::
  LmpopOptions -> NonEmpty ByteString -> ListEnd -> Maybe Duration -> Command (Maybe (ByteString, [ByteString]))
blmpopWith options names from limit =
  command "BLMPOP" (timeout limit : lmpopArguments options names from) (Decode.nullable keyAndElements)

-- | An end of a list.
--
-- @since 0.1.0.0
data ListEnd
  = -- | The first element, at index 0.
    LeftEnd
  | -- | The last element.
    RightEnd
  deriving stock (Eq, Show)

-- | @BLMOVE source destination LEFT|RIGHT LEFT|RIGHT seconds@: takes from one end of the source,
-- waiting as 'blpop' does, and puts it at one end of the destination; 'Nothing' after that time. In
-- a cluster both must share a slot. \(O(1)\) on the server,
-- [since 6.2.0](https://valkey.io/commands/blmove/).
--
-- @since 0.1.0.0
blmove :: (ByteString, ListEnd) -> (ByteString, ListEnd) -> Maybe Duration -> Command (Maybe ByteString)
blmove (source, from) (destination, to) limit =
  command
    "BLMOVE"
    [key source, key destination, listEnd from, listEnd to, timeout limit]
    (Decode.nullable Decode.bytes)

-- | @BRPOPLPUSH source destination seconds@: what 'blmove' does from the right end of one to the
-- left end of the other. \(O(1)\) on the server,
-- [since 2.2.0](https://valkey.io/commands/brpoplpush/); Redis calls it deprecated since 6.2.0.
--
-- @since 0.1.0.0
brpoplpush :: ByteString -> ByteString -> Maybe Duration -> Command (Maybe ByteString)
brpoplpush source destination limit =
  command "BRPOPLPUSH" [key source, key destination, timeout limit] (Decode.nullable Decode.bytes)

listEnd :: ListEnd -> Argument
listEnd = \case
  LeftEnd -> arg "LEFT"
  RightEnd -> arg "RIGHT"
