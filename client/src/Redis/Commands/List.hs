-- | Lists: queues with two ends, whose elements also have an index.
--
-- > run client (Redis.rpush "example:{lists}" ("first" :| ["second", "third"]))
-- > run client (Redis.lpop "example:{lists}")
--
-- A list without elements does not exist: removing the last element deletes the key, and each
-- command that adds an element creates the list if need be, except where its documentation says
-- otherwise. An index counts from 0 at the left end, and from -1 at the right end.
--
-- The server's documentation: <https://valkey.io/commands/#list>.
module Redis.Commands.List
  ( -- * Adding
    lpush,
    rpush,
    lpushx,
    rpushx,
    linsert,
    InsertPlace (..),
    Inserted (..),
    lset,

    -- * Removing
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

    -- * Reading
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
    lmovem,
    LmovemCount (..),
    LmovemOrder (..),
    rpoplpush,
    ListEnd (..),

    -- * Blocking until there is an element
    blpop,
    brpop,
    blmpop,
    blmpopWith,
    blmove,
    blmovem,
    brpoplpush,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @LPUSH key element …@, @RPUSH key element …@: add the elements at the left or at the right end;
-- the new length. LPUSH adds one after the other, so that the last of them becomes the first of the
-- list. \(O(1)\) per element, since 1.0.0 ([LPUSH](https://valkey.io/commands/lpush/),
-- [RPUSH](https://valkey.io/commands/rpush/)); several elements since 2.4.0.
lpush, rpush :: ByteString -> NonEmpty ByteString -> Command Int64
lpush name elements = command "LPUSH" (key name : args elements) Decode.integer
rpush name elements = command "RPUSH" (key name : args elements) Decode.integer

-- | @LPUSHX key element …@, @RPUSHX key element …@: like 'lpush' and 'rpush', if the list exists;
-- otherwise they do nothing and return 0. \(O(1)\) per element, since 2.2.0
-- ([LPUSHX](https://valkey.io/commands/lpushx/), [RPUSHX](https://valkey.io/commands/rpushx/));
-- several elements since 4.0.0.
lpushx, rpushx :: ByteString -> NonEmpty ByteString -> Command Int64
lpushx name elements = command "LPUSHX" (key name : args elements) Decode.integer
rpushx name elements = command "RPUSHX" (key name : args elements) Decode.integer

-- | Where to insert an element: beside the first element, from the left, that equals the given one.
data InsertPlace
  = -- | BEFORE: to the left of it.
    BeforeElement ByteString
  | -- | AFTER: to the right of it.
    AfterElement ByteString
  deriving stock (Eq, Show)

-- | The result of an insertion.
data Inserted
  = -- | The element was inserted; the new length of the list.
    Inserted Int64
  | -- | The list has no element that equals the given one.
    NoSuchElement
  | -- | There is no list.
    NoSuchList
  deriving stock (Eq, Show)

-- | @LINSERT key BEFORE|AFTER pivot element@: inserts an element beside another one. \(O(n)\) in
-- the number of elements left of that one, [since 2.2.0](https://valkey.io/commands/linsert/).
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

-- | @LSET key index element@: replaces the element at this index. An error if there is no list, or
-- no such index. \(O(n)\) in the distance from the nearer end,
-- [since 1.0.0](https://valkey.io/commands/lset/).
lset :: ByteString -> Int64 -> ByteString -> Command ()
lset name index new = command "LSET" [key name, int index, arg new] Decode.okay

-- | @LPOP key@, @RPOP key@: remove the first or the last element and return it, if there is one.
-- \(O(1)\), since 1.0.0 ([LPOP](https://valkey.io/commands/lpop/),
-- [RPOP](https://valkey.io/commands/rpop/)).
lpop, rpop :: ByteString -> Command (Maybe ByteString)
lpop name = command "LPOP" [key name] (Decode.nullable Decode.bytes)
rpop name = command "RPOP" [key name] (Decode.nullable Decode.bytes)

-- | @LPOP key count@, @RPOP key count@: remove this many elements from the left or the right
-- end, or all if there are fewer, and return them in the order of removal: RPOP returns the last
-- element of the list first; none if there is no list. A negative count is refused before it is sent. \(O(n)\) in the number of elements removed, since 6.2.0.
lpopCount, rpopCount :: ByteString -> Int64 -> Command [ByteString]
lpopCount name count = command "LPOP" [key name, natural count] (orNone (Decode.list Decode.bytes))
rpopCount name count = command "RPOP" [key name, natural count] (orNone (Decode.list Decode.bytes))

-- | @LMPOP numkeys key … LEFT|RIGHT@: removes an element from the first list that has one; the key
-- of that list and the element, or 'Nothing' if all lists are empty. In a cluster the keys must
-- share a slot. \(O(n+m)\) in the numbers of keys and of elements removed,
-- [since 7.0.0](https://valkey.io/commands/lmpop/).
lmpop :: NonEmpty ByteString -> ListEnd -> Command (Maybe (ByteString, [ByteString]))
lmpop = lmpopWith lmpopDefaults

-- | How many elements to remove.
newtype LmpopOptions = LmpopOptions
  { -- | COUNT: at most this many, all from one list; 'Nothing' is one. Numbers below 1 are refused
    -- before they are sent.
    lmpopCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | One element.
lmpopDefaults :: LmpopOptions
lmpopDefaults = LmpopOptions {lmpopCount = Nothing}

-- | @LMPOP numkeys key … LEFT|RIGHT [COUNT n]@: like 'lmpop', with options.
lmpopWith :: LmpopOptions -> NonEmpty ByteString -> ListEnd -> Command (Maybe (ByteString, [ByteString]))
lmpopWith options names from =
  command "LMPOP" (lmpopArguments options names from) (Decode.nullable keyAndElements)

lmpopArguments :: LmpopOptions -> NonEmpty ByteString -> ListEnd -> [Argument]
lmpopArguments LmpopOptions {lmpopCount} names from =
  countedKeys names <> [listEnd from] <> option "COUNT" positive lmpopCount

keyAndElements :: Decoder (ByteString, [ByteString])
keyAndElements = Decode.pair Decode.bytes (Decode.list Decode.bytes)

-- | How many of several equal elements to remove. Numbers below 1 are refused before they are sent,
-- because a server reads 0 as all of them.
data LremCount
  = -- | All of them.
    RemoveAll
  | -- | This many, from the left.
    RemoveFirst Int64
  | -- | This many, from the right.
    RemoveLast Int64
  deriving stock (Eq, Show)

-- | @LREM key count element@: removes elements that equal the given one; how many were removed.
-- \(O(n+m)\) in the length of the list and the number of elements removed,
-- [since 1.0.0](https://valkey.io/commands/lrem/).
lrem :: ByteString -> LremCount -> ByteString -> Command Int64
lrem name which element = command "LREM" [key name, count, arg element] Decode.integer
  where
    count = case which of
      RemoveAll -> int 0
      RemoveFirst most -> positive most
      RemoveLast most
        | most >= 1 -> int (negate most)
        | otherwise -> positive most

-- | @LTRIM key start stop@: keeps the elements from @start@ to @stop@, both included, and drops the
-- rest. Negative indices count from the right end. An empty range deletes the list. \(O(n)\) in the
-- number of elements dropped, [since 1.0.0](https://valkey.io/commands/ltrim/).
--
-- > lpush "latest" ("news" :| []) *> ltrim "latest" 0 99
ltrim :: ByteString -> Int64 -> Int64 -> Command ()
ltrim name start stop = command "LTRIM" [key name, int start, int stop] Decode.okay

-- | @LRANGE key start stop@: the elements from @start@ to @stop@, both included. Negative indices
-- count from the right end. \(O(s+n)\) for a distance s from the nearer end and n elements,
-- [since 1.0.0](https://valkey.io/commands/lrange/).
lrange :: ByteString -> Int64 -> Int64 -> Command [ByteString]
lrange name start stop =
  command "LRANGE" [key name, int start, int stop] (Decode.list Decode.bytes)

-- | @LLEN key@: the number of elements. \(O(1)\), [since 1.0.0](https://valkey.io/commands/llen/).
llen :: ByteString -> Command Int64
llen name = command "LLEN" [key name] Decode.integer

-- | @LINDEX key index@: the element at this index, if there is one. \(O(n)\) in the distance from
-- the nearer end, [since 1.0.0](https://valkey.io/commands/lindex/).
lindex :: ByteString -> Int64 -> Command (Maybe ByteString)
lindex name index = command "LINDEX" [key name, int index] (Decode.nullable Decode.bytes)

-- | @LPOS key element@: the index of the first element that equals the given one. \(O(n)\) in the
-- number of elements before it, [since 6.0.6](https://valkey.io/commands/lpos/).
lpos :: ByteString -> ByteString -> Command (Maybe Int64)
lpos = lposWith lposDefaults

-- | Where to begin a search, and how far to search.
data LposOptions = LposOptions
  { -- | RANK: the match to begin with; 2 is the second match. Negative ranks search from the right
    -- end, and -1 is the last match. The server refuses 0.
    lposRank :: Maybe Int64,
    -- | MAXLEN: stop after comparing this many elements. 0 compares all.
    lposMaxlen :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | From the first match on, through the whole list.
lposDefaults :: LposOptions
lposDefaults = LposOptions {lposRank = Nothing, lposMaxlen = Nothing}

-- | @LPOS key element [RANK n] [MAXLEN n]@: like 'lpos', with options. The index counts from the
-- left end, wherever the search begins.
lposWith :: LposOptions -> ByteString -> ByteString -> Command (Maybe Int64)
lposWith options name element =
  command "LPOS" (key name : arg element : lposArguments options) (Decode.nullable Decode.integer)

-- | @LPOS key element COUNT n@: the indices of this many elements that equal the given one, or,
-- with 0, of all of them. [Since 6.0.6](https://valkey.io/commands/lpos/).
lposCount :: Int64 -> ByteString -> ByteString -> Command [Int64]
lposCount = lposCountWith lposDefaults

-- | @LPOS key element COUNT n [RANK n] [MAXLEN n]@: like 'lposCount', with options. The indices
-- come in the order in which the search finds them.
lposCountWith :: LposOptions -> Int64 -> ByteString -> ByteString -> Command [Int64]
lposCountWith options count name element =
  command
    "LPOS"
    ([key name, arg element, arg "COUNT", natural count] <> lposArguments options)
    (Decode.list Decode.integer)

lposArguments :: LposOptions -> [Argument]
lposArguments LposOptions {lposRank, lposMaxlen} =
  option "RANK" int lposRank <> option "MAXLEN" natural lposMaxlen

-- | @LMOVE source destination LEFT|RIGHT LEFT|RIGHT@: moves an element from one end of the source
-- to one end of the destination, which may be the same list; the element, or 'Nothing' if the
-- source has none. In a cluster both keys must share a slot. \(O(1)\),
-- [since 6.2.0](https://valkey.io/commands/lmove/).
lmove :: (ByteString, ListEnd) -> (ByteString, ListEnd) -> Command (Maybe ByteString)
lmove source destination = command "LMOVE" (ends source destination) (Decode.nullable Decode.bytes)

ends :: (ByteString, ListEnd) -> (ByteString, ListEnd) -> [Argument]
ends (source, from) (destination, to) = [key source, key destination, listEnd from, listEnd to]

-- | How many elements to move. Numbers below 1 are refused before they are sent.
data LmovemCount
  = -- | COUNT: at most this many.
    LmovemAtMost Int64
  | -- | EXACTLY: this many, or none if there are fewer.
    LmovemExactly Int64
  deriving stock (Eq, Show)

-- | The order in which elements arrive.
data LmovemOrder
  = -- | OBO: one after the other, as with so many 'lmove's.
    LmovemOneByOne
  | -- | BULK: all at once, in the order that they had.
    LmovemBulk
  deriving stock (Eq, Show)

-- | @LMOVEM source destination LEFT|RIGHT LEFT|RIGHT COUNT|EXACTLY n OBO|BULK@: moves elements from
-- one end of the source to one end of the destination, which may be the same list; those elements,
-- in the order in which they stand at the destination, or none. In a cluster both keys must share a
-- slot. \(O(n)\) in the number of elements moved,
-- [since Redis 8.10.0](https://redis.io/docs/latest/commands/lmovem/); Valkey lacks it.
lmovem :: (ByteString, ListEnd) -> (ByteString, ListEnd) -> LmovemCount -> LmovemOrder -> Command [ByteString]
lmovem source destination count order =
  command "LMOVEM" (ends source destination <> lmovemArguments count order) (orNone (Decode.list Decode.bytes))

lmovemArguments :: LmovemCount -> LmovemOrder -> [Argument]
lmovemArguments count order = howMany <> [inOrder]
  where
    howMany = case count of
      LmovemAtMost most -> [arg "COUNT", positive most]
      LmovemExactly number -> [arg "EXACTLY", positive number]
    inOrder = case order of
      LmovemOneByOne -> arg "OBO"
      LmovemBulk -> arg "BULK"

-- | @RPOPLPUSH source destination@: like 'lmove' from the right end of the source to the left end
-- of the destination. \(O(1)\), [since 1.2.0](https://valkey.io/commands/rpoplpush/); Redis calls
-- it deprecated since 6.2.0.
rpoplpush :: ByteString -> ByteString -> Command (Maybe ByteString)
rpoplpush source destination =
  command "RPOPLPUSH" [key source, key destination] (Decode.nullable Decode.bytes)

-- | @BLPOP key … seconds@, @BRPOP key … seconds@: remove the first or the last element of the first
-- list that has one. If none has, they wait for an element: for the given time, or, with 'Nothing',
-- without limit. The result is the key and the element, or 'Nothing' when the time is over. In a
-- cluster the keys must share a slot. \(O(n)\) in the number of keys, since 2.0.0
-- ([BLPOP](https://valkey.io/commands/blpop/), [BRPOP](https://valkey.io/commands/brpop/));
-- fractions of seconds since 6.0.0.
blpop, brpop :: NonEmpty ByteString -> Maybe Duration -> Command (Maybe (ByteString, ByteString))
blpop names limit = command "BLPOP" (keys names <> [timeout limit]) (Decode.nullable keyAndElement)
brpop names limit = command "BRPOP" (keys names <> [timeout limit]) (Decode.nullable keyAndElement)

keyAndElement :: Decoder (ByteString, ByteString)
keyAndElement = Decode.pair Decode.bytes Decode.bytes

-- | @BLMPOP seconds numkeys key … LEFT|RIGHT@: like 'lmpop', but waits for an element like 'blpop'.
-- [Since 7.0.0](https://valkey.io/commands/blmpop/).
blmpop :: NonEmpty ByteString -> ListEnd -> Maybe Duration -> Command (Maybe (ByteString, [ByteString]))
blmpop = blmpopWith lmpopDefaults

-- | @BLMPOP seconds numkeys key … LEFT|RIGHT [COUNT n]@: like 'lmpopWith', but waits like 'blpop'.
-- It waits for the first element only, not for as many as the count allows.
blmpopWith ::
  LmpopOptions -> NonEmpty ByteString -> ListEnd -> Maybe Duration -> Command (Maybe (ByteString, [ByteString]))
blmpopWith options names from limit =
  command "BLMPOP" (timeout limit : lmpopArguments options names from) (Decode.nullable keyAndElements)

-- | An end of a list.
data ListEnd
  = -- | The first element, at index 0.
    LeftEnd
  | -- | The last element.
    RightEnd
  deriving stock (Eq, Show)

-- | @BLMOVE source destination LEFT|RIGHT LEFT|RIGHT seconds@: like 'lmove', but waits for an
-- element like 'blpop'; 'Nothing' when the time is over. In a cluster both keys must share a slot.
-- \(O(1)\), [since 6.2.0](https://valkey.io/commands/blmove/).
blmove :: (ByteString, ListEnd) -> (ByteString, ListEnd) -> Maybe Duration -> Command (Maybe ByteString)
blmove source destination limit =
  command "BLMOVE" (ends source destination <> [timeout limit]) (Decode.nullable Decode.bytes)

-- | @BLMOVEM source destination LEFT|RIGHT LEFT|RIGHT seconds COUNT|EXACTLY n OBO|BULK@: like 'lmovem',
-- but waits like 'blpop': for one element or, with EXACTLY, for as many as that; none when the time is
-- over. [Since Redis 8.10.0](https://redis.io/docs/latest/commands/blmovem/); Valkey lacks it.
blmovem ::
  (ByteString, ListEnd) -> (ByteString, ListEnd) -> LmovemCount -> LmovemOrder -> Maybe Duration -> Command [ByteString]
blmovem source destination count order limit =
  command "BLMOVEM" (ends source destination <> (timeout limit : lmovemArguments count order)) (orNone (Decode.list Decode.bytes))

-- | @BRPOPLPUSH source destination seconds@: like 'blmove' from the right end of the source to the
-- left end of the destination. \(O(1)\), [since 2.2.0](https://valkey.io/commands/brpoplpush/);
-- Redis calls it deprecated since 6.2.0.
brpoplpush :: ByteString -> ByteString -> Maybe Duration -> Command (Maybe ByteString)
brpoplpush source destination limit =
  command "BRPOPLPUSH" [key source, key destination, timeout limit] (Decode.nullable Decode.bytes)

listEnd :: ListEnd -> Argument
listEnd = \case
  LeftEnd -> arg "LEFT"
  RightEnd -> arg "RIGHT"
