-- | Finds the keys of a command, by the key specifications that servers give for their commands
-- (<https://redis.io/docs/latest/develop/reference/key-specs/>).
--
-- A specification has two halves: how to find the first argument of interest
-- ('BeginSearch') and which arguments from there are keys ('FindKeys'). The
-- rules follow the servers' own reading of them, so that the answer is that of
-- @COMMAND GETKEYS@, with one difference: the channel of SPUBLISH and its like
-- counts as a key here, because it decides over the slot.
--
-- Seven commands cannot be described by specifications; the servers have code for them and so has
-- this module. Servers say so of SORT, SORT_RO and MIGRATE, and since the security updates of 2026
-- (Redis 8.2.9 and its equivalents for older versions) of XREAD, XREADGROUP, GEORADIUS and
-- GEORADIUSBYMEMBER, whose keywords may also be the names of keys, groups and consumers.
module Redis.Internal.Protocol.KeySpec
  ( KeySpec (..),
    BeginSearch (..),
    FindKeys (..),
    keyPositions,
    keysAt,
    decimal,
    upper,

    -- * XREAD and XREADGROUP
    StreamOptions (..),
    streamOptions,
  )
where

import Control.Monad (guard)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isAsciiLower, toUpper)
import Data.Primitive.SmallArray (SmallArray)
import Data.Primitive.SmallArray qualified as SmallArray

-- | One specification. Positions count from the command's name, which is 0.
data KeySpec = KeySpec
  { keySpecBegin :: BeginSearch,
    keySpecFind :: FindKeys,
    -- | Whether it may miss keys.
    keySpecIncomplete :: Bool
  }
  deriving stock (Eq, Show)

-- | Where the arguments of interest begin.
data BeginSearch
  = -- | At this position.
    BeginAt Int
  | -- | After this word, looked for from a position: onwards if it is
    -- positive, backwards from the end if it is negative. No such word, no keys.
    BeginAfter ByteString Int
  | BeginUnknown
  deriving stock (Eq, Show)

-- | Which arguments are keys.
data FindKeys
  = -- | Last key (from the beginning; from the end if negative), step, and the
    -- part of the remaining arguments to look at (0 and 1: all; 2: a half).
    KeyRange Int Int Int
  | -- | Where the number of keys is, where the first key is (both from the
    -- beginning), and the step.
    KeyCount Int Int Int
  | FindUnknown
  deriving stock (Eq, Show)

-- | The positions of the keys, in the order of the specifications; keys that the command repeats are
-- repeated. 'Nothing' if the specifications do not tell, or the arguments do not fit them. Takes the name
-- in capitals, the specifications, and the words of the command, its name included. \(O(n)\) in the
-- number of words.
keyPositions :: ByteString -> [KeySpec] -> [ByteString] -> Maybe [Int]
keyPositions name specs commandArguments = case name of
  "SORT" -> sortPositions arguments
  "SORT_RO" -> guard (size > 1) >> pure [1]
  "MIGRATE" -> migratePositions arguments
  "XREAD" -> Just (streamPositions commandArguments)
  "XREADGROUP" -> Just (streamPositions commandArguments)
  "GEORADIUS" -> geoPositions 6 arguments
  "GEORADIUSBYMEMBER" -> geoPositions 5 arguments
  _ -> concat <$> traverse (specPositions arguments) specs
  where
    arguments = SmallArray.smallArrayFromList commandArguments
    size = SmallArray.sizeofSmallArray arguments

-- | The words at those positions. \(O(n)\) for ascending positions.
keysAt :: [Int] -> [ByteString] -> [ByteString]
keysAt positions commandArguments =
  [key | position <- positions, Just key <- [wordAt arguments position]]
  where
    arguments = SmallArray.smallArrayFromList commandArguments

specPositions :: SmallArray ByteString -> KeySpec -> Maybe [Int]
specPositions arguments KeySpec {keySpecBegin, keySpecFind, keySpecIncomplete} = do
  guard (not keySpecIncomplete)
  begin <- beginPosition arguments keySpecBegin
  maybe (Just []) (foundPositions arguments keySpecFind) begin

-- | Where the keys begin: 'Nothing' if that is not known, @Just Nothing@ if there are no keys.
beginPosition :: SmallArray ByteString -> BeginSearch -> Maybe (Maybe Int)
beginPosition arguments = \case
  BeginUnknown -> Nothing
  BeginAt position -> Just (Just position)
  BeginAfter word from -> Just (positionAfter word (candidates from))
  where
    size = SmallArray.sizeofSmallArray arguments
    -- The last argument cannot be the keyword: nothing would follow it.
    candidates from
      | from > 0 = [from .. size - 2]
      | otherwise = [size + from, size + from - 1 .. 1]
    positionAfter word positions =
      case filter (isWord arguments word) positions of
        position : _ -> Just (position + 1)
        [] -> Nothing

foundPositions :: SmallArray ByteString -> FindKeys -> Int -> Maybe [Int]
foundPositions arguments find begin = case find of
  FindUnknown -> Nothing
  KeyRange lastKey step limit
    | lastKey >= 0 -> positions step begin (begin + lastKey)
    | limit <= 1 -> positions step begin (size + lastKey)
    | otherwise -> positions step begin (begin + (size - begin) `quot` limit + lastKey)
  KeyCount countAt firstKey step -> do
    count <- wordAt arguments (begin + countAt) >>= decimal
    -- More keys than words is the caller's mistake, and would overflow below.
    guard (count >= 0 && count <= size)
    if count == 0
      then Just []
      else positions step (begin + firstKey) (begin + firstKey + (count - 1) * step)
  where
    size = SmallArray.sizeofSmallArray arguments
    positions step from to
      -- Nothing follows: the one key of PFMERGE is in another specification,
      -- SUNSUBSCRIBE needs none, and elsewhere the arity forbids it.
      | from == size && to == size - 1 = Just []
      | step < 1 || from < 1 || to >= size || to < from = Nothing
      | otherwise = Just [from, from + step .. to]

-- | @SORT key [BY p] [LIMIT o c] [GET p …] [STORE destination]@: the last STORE
-- counts, and the patterns after BY and GET are no keywords.
sortPositions :: SmallArray ByteString -> Maybe [Int]
sortPositions arguments
  | size < 2 = Nothing
  | otherwise = Just (1 : go 2 [])
  where
    size = SmallArray.sizeofSmallArray arguments
    go position destination
      | position >= size = destination
      | isWord arguments "LIMIT" position = go (position + 3) destination
      | isWord arguments "GET" position || isWord arguments "BY" position = go (position + 2) destination
      | isWord arguments "STORE" position && position + 1 < size = go (position + 2) [position + 1]
      | otherwise = go (position + 1) destination

-- | @MIGRATE host port key|"" db timeout … [KEYS key …]@.
migratePositions :: SmallArray ByteString -> Maybe [Int]
migratePositions arguments
  | size < 6 = Nothing
  | otherwise = Just (go 6)
  where
    size = SmallArray.sizeofSmallArray arguments
    go position
      | position >= size = [3]
      | isWord arguments "AUTH" position = go (position + 2)
      | isWord arguments "AUTH2" position = go (position + 3)
      | isWord arguments "KEYS" position && wordAt arguments 3 == Just "" = [position + 1 .. size - 1]
      | otherwise = go (position + 1)

-- | @… STREAMS key … id …@: as many keys as ids. The server refuses an odd number of words.
streamPositions :: [ByteString] -> [Int]
streamPositions commandArguments = case streamsAt (streamOptions commandArguments) of
  Just first | even count -> take (count `quot` 2) [first ..]
    where
      count = length commandArguments - first
  _ -> []

-- | @GEORADIUS key … [STORE key] [STOREDIST key]@, options from a position on: the last of the two counts.
geoPositions :: Int -> SmallArray ByteString -> Maybe [Int]
geoPositions from arguments
  | size < 2 = Nothing
  | otherwise = Just (1 : go from [])
  where
    size = SmallArray.sizeofSmallArray arguments
    go position destination
      | position + 1 >= size = destination
      | isWord arguments "STORE" position || isWord arguments "STOREDIST" position = go (position + 2) [position + 1]
      | otherwise = go (position + 1) destination

-- | Where the options of XREAD and XREADGROUP are, which stand in any order before the word STREAMS. Positions count from the command's name, which is 0.
data StreamOptions = StreamOptions
  { -- | The position of the milliseconds after BLOCK; the last BLOCK counts.
    blockMillisAt :: Maybe Int,
    -- | The position of the first key, which follows STREAMS.
    streamsAt :: Maybe Int
  }
  deriving stock (Eq, Show)

-- | Finds the options among the words of a command, its name included, as the servers do: a group or a
-- consumer may be called STREAMS or BLOCK, and GROUP need not come first. A word that is no option is
-- passed over: the server will refuse it, or is newer and knows it. \(O(n)\) in the number of words
-- before the keys.
streamOptions :: [ByteString] -> StreamOptions
streamOptions = go 1 Nothing . drop 1
  where
    go position block = \case
      [] -> StreamOptions {blockMillisAt = block, streamsAt = Nothing}
      word : rest -> case (upper word, rest) of
        ("STREAMS", _ : _) -> StreamOptions {blockMillisAt = block, streamsAt = Just (position + 1)}
        ("BLOCK", _ : after) -> go (position + 2) (Just (position + 1)) after
        (option, _ : after) | option `elem` ["COUNT", "MAXCOUNT", "MAXSIZE", "CLAIM"] -> go (position + 2) block after
        ("GROUP", _ : _ : after) -> go (position + 3) block after
        _ -> go (position + 1) block rest

wordAt :: SmallArray ByteString -> Int -> Maybe ByteString
wordAt arguments position
  | position >= 0 && position < SmallArray.sizeofSmallArray arguments =
    Just (SmallArray.indexSmallArray arguments position)
  | otherwise = Nothing

-- | Whether the word at a position, in capitals, is this one.
isWord :: SmallArray ByteString -> ByteString -> Int -> Bool
isWord arguments word position = (upper <$> wordAt arguments position) == Just word

-- | A whole word of digits.
decimal :: ByteString -> Maybe Int
decimal word = do
  (number, rest) <- Char8.readInt word
  guard (Char8.null rest)
  pure number

-- | In capitals. Servers do not distinguish the case of ASCII letters, and of no others.
upper :: ByteString -> ByteString
upper = Char8.map (\char -> if isAsciiLower char then toUpper char else char)
