-- | What servers say of their commands: arity, flags, where the keys are.
--
-- The table is the union of what several servers answer to @COMMAND@, made by
-- a program and kept as text; it becomes a map when it is first asked. For a
-- command that it lacks, 'entryFromReply' reads the server's own description.
--
-- @COMMAND@ does not tell which commands change a connection, where a blocking
-- command has its timeout, or which of the commands that are neither reads nor
-- writes are harmless. Those three lists are written by hand below.
module Redis.Internal.Protocol.CommandTable
  ( CommandEntry (..),
    lookupCommand,
    allCommands,

    -- * What it says of a given command
    commandKeys,
    commandWordsName,
    entryBlocks,
    withTimeout,
    changesConnection,
    changesNothing,
    staysWithPrimary,

    -- * Other sources
    entryFromReply,
    parseEntry,
  )
where

import Control.Monad (guard)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toUpper)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (mapMaybe)
import Data.Set qualified as Set
import Redis.Internal.Protocol.CommandTable.Generated (tableText)
import Redis.Internal.Protocol.KeySpec
  ( BeginSearch (..),
    FindKeys (..),
    KeyPositions (..),
    KeySpec (..),
    keyPositions,
    keysAt,
  )
import Redis.Internal.Protocol.StreamOptions
import Redis.Value (Value (..), withoutAttributes)
import Text.Read (readMaybe)

-- | One command, or one subcommand (@CONFIG|GET@).
data CommandEntry = CommandEntry
  { -- | In capitals, a subcommand's after a bar.
    entryName :: ByteString,
    -- | How many words, the name included; negative for at least so many.
    entryArity :: Int,
    entryReadOnly :: Bool,
    -- | Whether it can keep a caller waiting.
    entryBlocking :: Bool,
    -- | Whether it has subcommands.
    entryContainer :: Bool,
    entryKeySpecs :: [KeySpec]
  }
  deriving stock (Eq, Show)

-- | Everything there is, by name. Its first use parses it, in about a
-- millisecond.
table :: Map ByteString CommandEntry
table =
  Map.fromList [(entryName entry, entry) | entry <- mapMaybe parseEntry (Char8.lines tableText)]

-- | Every entry, by name.
allCommands :: [CommandEntry]
allCommands = Map.elems table

-- | The entry for a command, given as its words: that of the subcommand if
-- there is one. 'Nothing' for a subcommand that is not known. \(O(\log n)\).
lookupCommand :: [ByteString] -> Maybe CommandEntry
lookupCommand = \case
  [] -> Nothing
  name : rest -> do
    entry <- Map.lookup (upper name) table
    case rest of
      subcommand : _
        | entryContainer entry -> Map.lookup (upper name <> "|" <> upper subcommand) table
      _ -> Just entry

-- | A name for messages and metrics: capitals, two words for a subcommand.
-- Empty for no words.
commandWordsName :: [ByteString] -> ByteString
commandWordsName = \case
  name : subcommand : _
    | maybe False entryContainer (Map.lookup (upper name) table) -> upper name <> " " <> upper subcommand
  name : _ -> upper name
  [] -> ""

-- | The keys of a command given as its words. 'Nothing' if they cannot be
-- told. \(O(n)\).
commandKeys :: CommandEntry -> [ByteString] -> Maybe [ByteString]
commandKeys CommandEntry {entryName, entryArity, entryKeySpecs} commandWords
  -- Every server will refuse it, and say why.
  | tooShort = Just []
  | otherwise =
    case keyPositions entryName entryKeySpecs commandWords of
      KeysAt positions -> Just (keysAt positions commandWords)
      KeysUnknown -> Nothing
  where
    tooShort = length commandWords < abs entryArity

-- | For how many seconds a command can keep its caller waiting: 'Nothing' if
-- it does not wait, @Just Nothing@ if it waits until something happens.
--
-- A timeout that is not a number counts as no timeout: the server will refuse
-- it, and until then nothing is promised.
entryBlocks :: CommandEntry -> [ByteString] -> Maybe (Maybe Double)
entryBlocks entry commandWords = case waitingOf entry commandWords of
  NoWait -> Nothing
  Waits -> Just Nothing
  WaitsAt position unit -> Just ((* unitSeconds unit) <$> (at position >>= seconds))
  where
    at position = case drop position commandWords of
      word : _ -> Just word
      [] -> Nothing

-- | The same words with so many seconds for their timeout; 'Nothing' if it is
-- not known where that is, or there is none. Never zero, which would be for
-- ever; fractions of a second are understood since 6.0.0, and until 7.0.8 a
-- millisecond of them was taken for zero.
withTimeout :: CommandEntry -> Double -> [ByteString] -> Maybe [ByteString]
withTimeout entry left commandWords = case waitingOf entry commandWords of
  WaitsAt position unit
    | (before, _ : after) <- splitAt position commandWords -> Just (before <> (rendered unit : after))
  _ -> Nothing
  where
    millis = max 1 (ceiling (min 1e12 left * 1000)) :: Integer
    rendered = \case
      Milliseconds -> Char8.pack (show millis)
      Seconds -> Char8.pack (show whole <> "." <> drop 1 (show (1000 + part)))
    (whole, part) = max 2 millis `quotRem` 1000

-- | Whether a command waits, and which of its words, counted from 0, limits it.
data Waiting = NoWait | Waits | WaitsAt Int TimeUnit

data TimeUnit = Seconds | Milliseconds

unitSeconds :: TimeUnit -> Double
unitSeconds = \case
  Seconds -> 1
  Milliseconds -> 0.001

waitingOf :: CommandEntry -> [ByteString] -> Waiting
waitingOf CommandEntry {entryName, entryBlocking} commandWords
  | not entryBlocking = NoWait
  | entryName `Set.member` timeoutLast = WaitsAt lastPosition Seconds
  | entryName `Set.member` timeoutFirst = WaitsAt 1 Seconds
  | entryName `Set.member` millisLast = WaitsAt lastPosition Milliseconds
  | entryName `Set.member` blockOption =
    maybe NoWait (`WaitsAt` Milliseconds) (blockMillisAt (streamOptions commandWords))
  | otherwise = Waits
  where
    timeoutLast = Set.fromList ["BLMOVE", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZPOPMAX", "BZPOPMIN"]
    timeoutFirst = Set.fromList ["BLMPOP", "BZMPOP"]
    millisLast = Set.fromList ["WAIT", "WAITAOF"]
    blockOption = Set.fromList ["XREAD", "XREADGROUP"]
    lastPosition = max 0 (length commandWords - 1)

-- | Seconds from a server's notation; zero is for ever.
seconds :: ByteString -> Maybe Double
seconds word = do
  -- Haskell's reader wants a digit on both sides of the point.
  number <- readMaybe (padded (Char8.unpack word))
  guard (number > 0 && not (isInfinite number))
  pure number
  where
    padded digits = case span (/= '.') digits of
      (whole, '.' : fraction) -> orZero whole <> "." <> orZero fraction
      _ -> digits
    orZero part = if null part then "0" else part

-- | Whether a command changes what later commands on its connection mean, or
-- depends on the earlier ones (WAIT), so that it must not run on a connection
-- that others share.
changesConnection :: [ByteString] -> Bool
changesConnection commandWords = case map upper (take 2 commandWords) of
  ["CLIENT", subcommand] -> subcommand `Set.notMember` harmlessClient
  ["SCRIPT", "DEBUG"] -> True
  name : _ -> name `Set.member` names
  [] -> False
  where
    names =
      Set.fromList
        [ "ASKING",
          "AUTH",
          "DISCARD",
          "EXEC",
          "HELLO",
          "MONITOR",
          "MULTI",
          "PSUBSCRIBE",
          "PSYNC",
          "PUNSUBSCRIBE",
          "QUIT",
          "READONLY",
          "READWRITE",
          "REPLCONF",
          "RESET",
          "SELECT",
          "SSUBSCRIBE",
          "SUBSCRIBE",
          "SUNSUBSCRIBE",
          "SYNC",
          "UNSUBSCRIBE",
          "UNWATCH",
          "WAIT",
          "WAITAOF",
          "WATCH"
        ]
    -- The others: CACHING, CAPA, IMPORT-SOURCE, NO-EVICT, NO-TOUCH, REPLY,
    -- SETINFO, SETNAME, TRACKING, and what is still to come.
    harmlessClient =
      Set.fromList
        ["GETNAME", "GETREDIR", "HELP", "ID", "INFO", "KILL", "LIST", "PAUSE", "TRACKINGINFO", "UNBLOCK", "UNPAUSE"]

-- | Whether it reads, but not from a replica that may be another one each time: the
-- cursor of a walk means something to the node that gave it only, and what TOUCH
-- is for, the order in which keys are evicted, is the primary's.
staysWithPrimary :: CommandEntry -> Bool
staysWithPrimary CommandEntry {entryName} =
  entryName `Set.member` Set.fromList ["HSCAN", "SSCAN", "TOUCH", "ZSCAN"]

-- | Whether a command that servers call neither a read nor a write leaves
-- everything as it is, so that it may be sent again.
changesNothing :: CommandEntry -> Bool
changesNothing CommandEntry {entryName} =
  "|HELP" `Char8.isSuffixOf` entryName || entryName `Set.member` names
  where
    names =
      Set.fromList
        [ "ACL|CAT",
          "ACL|GETUSER",
          "ACL|LIST",
          "ACL|USERS",
          "ACL|WHOAMI",
          "CLIENT|GETNAME",
          "CLIENT|GETREDIR",
          "CLIENT|ID",
          "CLIENT|INFO",
          "CLIENT|LIST",
          "CLIENT|TRACKINGINFO",
          "CLUSTER|COUNT-FAILURE-REPORTS",
          "CLUSTER|COUNTKEYSINSLOT",
          "CLUSTER|GETKEYSINSLOT",
          "CLUSTER|INFO",
          "CLUSTER|KEYSLOT",
          "CLUSTER|LINKS",
          "CLUSTER|MYID",
          "CLUSTER|MYSHARDID",
          "CLUSTER|NODES",
          "CLUSTER|REPLICAS",
          "CLUSTER|SHARDS",
          "CLUSTER|SLAVES",
          "CLUSTER|SLOT-STATS",
          "CLUSTER|SLOTS",
          "COMMAND",
          "COMMANDLOG|GET",
          "COMMANDLOG|LEN",
          "COMMAND|COUNT",
          "COMMAND|DOCS",
          "COMMAND|GETKEYS",
          "COMMAND|GETKEYSANDFLAGS",
          "COMMAND|INFO",
          "COMMAND|LIST",
          "CONFIG|GET",
          "ECHO",
          "FUNCTION|DUMP",
          "FUNCTION|LIST",
          "FUNCTION|STATS",
          "INFO",
          "LASTSAVE",
          "LATENCY|DOCTOR",
          "LATENCY|GRAPH",
          "LATENCY|HISTOGRAM",
          "LATENCY|HISTORY",
          "LATENCY|LATEST",
          "MEMORY|DOCTOR",
          "MEMORY|MALLOC-STATS",
          "MEMORY|STATS",
          "MODULE|LIST",
          "PING",
          "PUBSUB|CHANNELS",
          "PUBSUB|NUMPAT",
          "PUBSUB|NUMSUB",
          "PUBSUB|SHARDCHANNELS",
          "PUBSUB|SHARDNUMSUB",
          "ROLE",
          "SCRIPT|EXISTS",
          "SCRIPT|SHOW",
          "SLOWLOG|GET",
          "SLOWLOG|LEN",
          "TIME"
        ]

-- | One line of the table:
--
-- > BLMPOP -5 b i2:n0,1,1
-- > XREAD -4 rb kSTREAMS,1:r-1,1,2
--
-- The flags are @r@ read-only, @b@ blocking, @c@ has subcommands, @-@ none. A
-- key specification is @i@ndex or @k@eyword (or @u@nknown), a colon, @r@ange
-- or key@n@umber (or @u@nknown), and a question mark if it is incomplete.
parseEntry :: ByteString -> Maybe CommandEntry
parseEntry line = case Char8.words line of
  name : arity : flags : specs -> do
    entryArity <- int arity
    entryKeySpecs <- traverse parseSpec specs
    pure
      CommandEntry
        { entryName = name,
          entryArity,
          entryReadOnly = Char8.elem 'r' flags,
          entryBlocking = Char8.elem 'b' flags,
          entryContainer = Char8.elem 'c' flags,
          entryKeySpecs
        }
  _ -> Nothing

parseSpec :: ByteString -> Maybe KeySpec
parseSpec word = do
  let (complete, mark) = Char8.span (/= '?') word
      (begin, find) = Char8.drop 1 <$> Char8.break (== ':') complete
  keySpecBegin <- case Char8.uncons begin of
    Just ('i', position) -> BeginAt <$> int position
    Just ('k', search) -> case Char8.split ',' search of
      [keyword, from] -> BeginAfter keyword <$> int from
      _ -> Nothing
    Just ('u', _) -> Just BeginUnknown
    _ -> Nothing
  keySpecFind <- case Char8.uncons find of
    Just ('r', numbers) -> threeInts KeyRange numbers
    Just ('n', numbers) -> threeInts KeyCount numbers
    Just ('u', _) -> Just FindUnknown
    _ -> Nothing
  pure KeySpec {keySpecBegin, keySpecFind, keySpecIncomplete = not (Char8.null mark)}
  where
    threeInts make numbers = case traverse int (Char8.split ',' numbers) of
      Just [a, b, c] -> Just (make a b c)
      _ -> Nothing

-- | One element of the reply to @COMMAND INFO@, of a server that knows key
-- specifications (since 7.0) or only the first, last and step of the older
-- form; both protocols. 'Nothing' if it has no such shape, as for a command
-- the server does not know.
entryFromReply :: Value -> Maybe CommandEntry
entryFromReply value = case items value of
  Just (name : arity : flags : first : lastKey : step : rest) -> do
    entryName <- upper <$> text name
    entryArity <- integer arity
    flagNames <- items flags >>= traverse text
    firstKey <- integer first
    lastPosition <- integer lastKey
    keyStep <- integer step
    entryKeySpecs <- case rest of
      _categories : _tips : specs : _ -> items specs >>= traverse specFromReply
      _
        | "movablekeys" `elem` flagNames -> Just [KeySpec BeginUnknown FindUnknown True]
        | firstKey > 0 -> Just [positional firstKey lastPosition keyStep]
        | otherwise -> Just []
    pure
      CommandEntry
        { entryName,
          entryArity,
          entryReadOnly = "readonly" `elem` flagNames,
          entryBlocking = "blocking" `elem` flagNames,
          entryContainer = case rest of
            _categories : _tips : _specs : subcommands : _ -> maybe False (not . null) (items subcommands)
            _ -> False,
          entryKeySpecs
        }
  _ -> Nothing
  where
    -- The old form counts the last key from the name; or from the end.
    positional firstKey lastPosition keyStep =
      KeySpec
        { keySpecBegin = BeginAt firstKey,
          keySpecFind = KeyRange (if lastPosition < 0 then lastPosition else lastPosition - firstKey) keyStep 0,
          keySpecIncomplete = False
        }

specFromReply :: Value -> Maybe KeySpec
specFromReply value = do
  spec <- pairs value
  flagNames <- lookup "flags" spec >>= items >>= traverse text
  (beginType, beginSpec) <- half "begin_search" spec
  (findType, findSpec) <- half "find_keys" spec
  keySpecBegin <- case beginType of
    "index" -> BeginAt <$> number "index" beginSpec
    "keyword" -> BeginAfter . upper <$> (lookup "keyword" beginSpec >>= text) <*> number "startfrom" beginSpec
    _ -> Just BeginUnknown
  keySpecFind <- case findType of
    "range" -> KeyRange <$> number "lastkey" findSpec <*> number "keystep" findSpec <*> number "limit" findSpec
    "keynum" -> KeyCount <$> number "keynumidx" findSpec <*> number "firstkey" findSpec <*> number "keystep" findSpec
    _ -> Just FindUnknown
  pure KeySpec {keySpecBegin, keySpecFind, keySpecIncomplete = "incomplete" `elem` flagNames}
  where
    half name spec = do
      parts <- lookup name spec >>= pairs
      kind <- lookup "type" parts >>= text
      details <- lookup "spec" parts >>= pairs
      pure (kind, details)
    number name spec = lookup name spec >>= integer

items :: Value -> Maybe [Value]
items value = case withoutAttributes value of
  Array elements -> Just elements
  Set elements -> Just elements
  _ -> Nothing

pairs :: Value -> Maybe [(ByteString, Value)]
pairs value = case withoutAttributes value of
  Map elements -> traverse (\(key, element) -> (,) <$> text key <*> pure element) elements
  Array elements -> flat elements
  _ -> Nothing
  where
    flat = \case
      key : element : rest -> do
        name <- text key
        ((name, element) :) <$> flat rest
      [] -> Just []
      [_] -> Nothing

text :: Value -> Maybe ByteString
text value = case withoutAttributes value of
  SimpleString bytes -> Just bytes
  BulkString bytes -> Just bytes
  _ -> Nothing

integer :: Value -> Maybe Int
integer value = case withoutAttributes value of
  Integer number -> Just (fromIntegral number)
  _ -> Nothing

int :: ByteString -> Maybe Int
int word = do
  (number, rest) <- Char8.readInt word
  guard (Char8.null rest)
  pure number

upper :: ByteString -> ByteString
upper = Char8.map toUpper
