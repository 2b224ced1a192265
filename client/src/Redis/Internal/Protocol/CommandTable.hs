-- | The command table: what servers, and we, say of their commands.
--
-- The table is the union of what several servers answer to @COMMAND@ (arity, flags, categories,
-- policies, and where the keys are), made by a program and kept as text. Its first use parses it
-- into a map. For a command that it lacks, 'entryFromReply' and 'describedAs' read the server's
-- own description.
--
-- What servers do not tell is in 'handLists'. Each list is there because the safe answer would be
-- too expensive or servers say too little, and each is on the safe side for a command that it does
-- not name. The tests check that every name in them is in the table, or in 'aheadOfTable'.
module Redis.Internal.Protocol.CommandTable
  ( CommandEntry (..),
    RequestPolicy (..),
    ResponsePolicy (..),
    Aggregation (..),
    lookupCommand,
    inTable,
    allCommands,

    -- * What it says of a given command
    commandKeys,
    nameFromArguments,
    entryBlocks,
    withTimeout,
    changesConnection,
    answersApart,
    changesNothing,
    tellsOnce,
    staysWithPrimary,
    overtakes,
    holdsUp,
    changesUntold,
    AnsweringNodes (..),
    whereAnswered,
    keepsOrder,
    failsHalfway,

    -- * Where it comes from
    handLists,
    aheadOfTable,
    parseEntry,
    describedAs,
    entryFromReply,
  )
where

import Control.Monad (guard)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (fromRight)
import Data.Foldable (find)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust, listToMaybe, mapMaybe)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Internal.Protocol.CommandTable.Aggregation (Aggregation (..))
import Redis.Internal.Protocol.CommandTable.Generated (tableText)
import Redis.Internal.Protocol.KeySpec
import Redis.Value (Value)
import Text.Read (readMaybe)

-- | One command, or one subcommand (@CONFIG|GET@).
data CommandEntry = CommandEntry
  { -- | The name in capitals; a subcommand's name follows a bar.
    entryName :: ByteString,
    -- | The number of words, the name included; negative for at least so many.
    entryArity :: Int,
    entryReadOnly :: Bool,
    -- | Whether it can keep a caller waiting.
    entryBlocking :: Bool,
    -- | Whether it has subcommands.
    entryContainer :: Bool,
    -- | The categories of the access control lists, without the @\@@. Servers tell them since 6.0.
    entryCategories :: Maybe [ByteString],
    -- | 'Nothing' if the server has none: a node that serves the keys runs it, or any node if it has no keys.
    entryRequestPolicy :: Maybe RequestPolicy,
    -- | 'Nothing' if the server has none: the aggregated reply has the elements of all replies.
    entryResponsePolicy :: Maybe ResponsePolicy,
    entryKeySpecs :: [KeySpec]
  }
  deriving stock (Eq, Show)

-- | Where the server wants a command to be sent (<https://valkey.io/topics/command-tips/>).
data RequestPolicy
  = -- | To all nodes, replicas too.
    RequestAllNodes
  | -- | To all primaries.
    RequestAllShards
  | -- | In parts, each to the primary that serves its keys.
    RequestMultiShard
  | -- | By a rule of its own, or by one that is not known here.
    RequestSpecial
  deriving stock (Eq, Show)

-- | How the server wants the replies of several nodes to become one.
data ResponsePolicy
  = ResponseAggregated Aggregation
  | -- | By a rule of its own, or by one that is not known here.
    ResponseSpecial
  deriving stock (Eq, Show)

-- | All entries, by name. The first use parses them.
table :: Map ByteString CommandEntry
table =
  Map.fromList [(entryName entry, entry) | entry <- mapMaybe parseEntry (Char8.lines tableText)]

-- | Every entry, in the order of the names.
allCommands :: [CommandEntry]
allCommands = Map.elems table

-- | Whether there is an entry with this name. The name is in capitals; a subcommand's name follows
-- a bar. \(O(\log n)\).
inTable :: ByteString -> Bool
inTable name = Map.member name table

-- | The entry for a command, given its words: the entry of the subcommand if there is one.
-- 'Nothing' for a command or subcommand that is not known. \(O(\log n)\).
lookupCommand :: [ByteString] -> Maybe CommandEntry
lookupCommand = \case
  [] -> Nothing
  name : rest -> do
    entry <- Map.lookup (upper name) table
    case rest of
      subcommand : _
        | entryContainer entry -> Map.lookup (upper name <> "|" <> upper subcommand) table
      _ -> Just entry

-- | A name for messages and metrics: capitals, two words for a subcommand. Empty for no words.
nameFromArguments :: [ByteString] -> ByteString
nameFromArguments = \case
  name : subcommand : _ | hasSubcommands name -> upper name <> " " <> upper subcommand
  name : _ -> upper name
  [] -> ""

-- | The keys of a command, given its words. 'Nothing' if it is not known which are keys. \(O(n)\).
commandKeys :: CommandEntry -> [ByteString] -> Maybe [ByteString]
commandKeys CommandEntry {entryName, entryArity, entryKeySpecs} commandArguments
  -- Every server will refuse the command, and say why.
  | tooShort = Just []
  | otherwise = (`keysAt` commandArguments) <$> keyPositions entryName entryKeySpecs commandArguments
  where
    tooShort = length commandArguments < abs entryArity

-- | The entry for a command, given its words and the element of the reply to @COMMAND INFO@ for the
-- first word: the entry of the subcommand, if the command has subcommands. 'Nothing' if the server
-- does not know it, or does not describe it.
describedAs :: [ByteString] -> Value -> Maybe CommandEntry
describedAs commandArguments reply = do
  entry <- entryFromReply reply
  case commandArguments of
    name : subcommand : _
      | entryContainer entry || hasSubcommands name -> subcommandFromReply subcommand reply
    _ -> Just entry

hasSubcommands :: ByteString -> Bool
hasSubcommands name = maybe False entryContainer (Map.lookup (upper name) table)

-- | Whether a command changes what later commands on its connection mean, or depends on the earlier ones
-- (WAIT), so that it must not run on a connection that others share. This also holds for every command of the categories
-- @connection@, @pubsub@ and @transaction@ that is not known to be harmless, and every command whose
-- categories no server tells.
changesConnection :: CommandEntry -> Bool
changesConnection entry@CommandEntry {entryName, entryCategories}
  | entryName `Set.member` uncategorized = True
  | changesNothing entry || entryName `Set.member` harmless = False
  | otherwise = maybe True (any (`elem` ["connection", "pubsub", "transaction"])) entryCategories

-- | Commands of a category that changes connections, which do not change theirs: they act on the
-- connections of others, by name, or publish. The questions below are harmless, too.
harmless :: Set ByteString
harmless = named "CLIENT|KILL CLIENT|PAUSE CLIENT|UNBLOCK CLIENT|UNPAUSE PUBLISH SPUBLISH"

-- | Commands of no such category that nevertheless turn a connection into a link between servers or a
-- debugger's, or keep something on it that others of them need, as HIMPORT keeps its sets of fields.
uncategorized :: Set ByteString
uncategorized =
  named
    "CLUSTER|SYNCSLOTS HIMPORT|DISCARD HIMPORT|DISCARDALL HIMPORT|PREPARE HIMPORT|SET MONITOR \
    \PSYNC REPLCONF SCRIPT|DEBUG SYNC"

-- | Whether a server answers the command, of these words behind the first, otherwise than by one reply:
-- by none, by pushes, by one for each channel, by a stream, or by keeping later replies back. A connection
-- on which each command has one reply would give its callers the replies of others. \(O(n)\) in the
-- number of words.
answersApart :: CommandEntry -> [ByteString] -> Bool
answersApart CommandEntry {entryName} arguments = case entryName of
  "CLIENT|REPLY" -> saying ["OFF", "SKIP"]
  "REPLCONF" -> saying ["ACK", "GETACK"]
  _ -> entryName `Set.member` apart
  where
    saying options = any ((`elem` options) . upper) arguments

-- | Commands that are answered apart, whatever their arguments.
apart :: Set ByteString
apart = named "MONITOR PSUBSCRIBE PSYNC PUNSUBSCRIBE SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE SYNC UNSUBSCRIBE"

-- | Whether a command must not queue behind others: its purpose is to end them or, with FUNCTION
-- STATS, to tell which one holds up the rest.
overtakes :: CommandEntry -> Bool
overtakes CommandEntry {entryName} = entryName `Set.member` overtaking

overtaking :: Set ByteString
overtaking =
  named
    "CLIENT|KILL CLIENT|UNBLOCK CLIENT|UNPAUSE FUNCTION|KILL FUNCTION|STATS SCRIPT|KILL"

-- | Whether the server may read nothing more from the command's connection until the command is
-- done, although servers do not call it blocking: SHUTDOWN waits for replicas that lag behind, and
-- CLUSTER SETSLOT, since Valkey 8, for the consent of the node's replicas. SHUTDOWN ABORT and other
-- commands must not queue behind them.
holdsUp :: CommandEntry -> Bool
holdsUp CommandEntry {entryName} = entryName `Set.member` waitingUntold

waitingUntold :: Set ByteString
waitingUntold = named "CLUSTER|SETSLOT SHUTDOWN"

-- | Whether a command that reads must not go to a replica, which may be another one each time.
staysWithPrimary :: CommandEntry -> Bool
staysWithPrimary CommandEntry {entryName} = entryName `Set.member` primaryOnly

-- | The cursor of a walk means something only to the node that gave it. TOUCH is for the order in
-- which keys are evicted, and the primary decides that.
primaryOnly :: Set ByteString
primaryOnly = named "CLUSTERSCAN HSCAN SSCAN TOUCH ZSCAN"

-- | Whether the reply to a read may change without an invalidation for a client that caches it: it
-- changes with time or by chance, does not depend on the key's value, or depends on keys that the
-- command does not name. TOUCH is sent for what it does.
changesUntold :: CommandEntry -> Bool
changesUntold CommandEntry {entryName} = entryName `Set.member` untold

untold :: Set ByteString
untold =
  named
    "EVALSHA_RO EVAL_RO FCALL_RO HPTTL HRANDFIELD HTTL MEMORY|USAGE OBJECT|ENCODING \
    \OBJECT|FREQ OBJECT|IDLETIME OBJECT|REFCOUNT PTTL SORT_RO SRANDMEMBER TOUCH TTL VRANDMEMBER \
    \XINFO|CONSUMERS XINFO|GROUPS XINFO|STREAM XPENDING ZRANDMEMBER"

-- | Whether a command, neither read nor write for servers, changes nothing, so that it may be sent again.
changesNothing :: CommandEntry -> Bool
changesNothing CommandEntry {entryName} = "|HELP" `Char8.isSuffixOf` entryName || entryName `Set.member` questions

-- | Commands that only ask a server something.
questions :: Set ByteString
questions =
  named
    "ACL|CAT ACL|GETUSER ACL|LIST ACL|USERS ACL|WHOAMI BACKUP|LIST BACKUP|STATUS \
    \CLIENT|GETNAME CLIENT|GETREDIR CLIENT|ID CLIENT|INFO CLIENT|LIST CLIENT|TRACKINGINFO \
    \CLUSTER|COUNT-FAILURE-REPORTS CLUSTER|COUNTKEYSINSLOT CLUSTER|GETKEYSINSLOT CLUSTER|INFO \
    \CLUSTER|KEYSLOT CLUSTER|LINKS CLUSTER|MYID CLUSTER|MYSHARDID CLUSTER|NODES \
    \CLUSTER|REPLICAS CLUSTER|SHARDS CLUSTER|SLAVES CLUSTER|SLOT-STATS CLUSTER|SLOTS COMMAND \
    \COMMANDLOG|GET COMMANDLOG|LEN COMMAND|COUNT COMMAND|DOCS COMMAND|GETKEYS \
    \COMMAND|GETKEYSANDFLAGS COMMAND|INFO COMMAND|LIST CONFIG|GET ECHO FUNCTION|DUMP \
    \FUNCTION|LIST FUNCTION|STATS HOTKEYS|GET INFO LASTSAVE LATENCY|DOCTOR LATENCY|GRAPH \
    \LATENCY|HISTOGRAM LATENCY|HISTORY LATENCY|LATEST MEMORY|DOCTOR MEMORY|MALLOC-STATS \
    \MEMORY|STATS MODULE|LIST PING PUBSUB|CHANNELS PUBSUB|NUMPAT PUBSUB|NUMSUB \
    \PUBSUB|SHARDCHANNELS PUBSUB|SHARDNUMSUB ROLE SCRIPT|EXISTS SCRIPT|SHOW SLOWLOG|GET \
    \SLOWLOG|LEN TIME"

-- | Whether a command, given its words, is called a read and still must not be sent again after its reply was
-- lost, because the caller would miss what that said. Either it moves a cursor, or it waits for what comes
-- after the end, and the end is elsewhere by then. A key of such a name only costs a retry. \(O(n)\) in the
-- number of words.
tellsOnce :: CommandEntry -> [ByteString] -> Bool
tellsOnce entry@CommandEntry {entryName} commandArguments =
  entryName `Set.member` consuming || any (`elem` commandArguments) ends && isJust (entryBlocks entry commandArguments)
  where
    ends = case entryName of
      "XREAD" -> ["$"]
      -- From the last sample on: it may wait for more of them.
      "TS.READ" -> ["$", "+"]
      _ -> []

-- | Commands that move a cursor, which only the node knows that made it.
consuming :: Set ByteString
consuming = named "FT.CURSOR FT.CURSOR|DEL FT.CURSOR|READ"

-- | For how many seconds a command can keep its caller waiting: 'Nothing' if the command does not
-- wait, and @Just Nothing@ if it waits until something happens.
--
-- A timeout that is not a number counts as no timeout: the server will refuse the command, and
-- until then no limit is certain.
entryBlocks :: CommandEntry -> [ByteString] -> Maybe (Maybe Double)
entryBlocks entry commandArguments = case waitingOf entry commandArguments of
  NoWait -> Nothing
  Waits -> Just Nothing
  WaitsAt position unit -> Just (inUnit unit <$> (listToMaybe (drop position commandArguments) >>= seconds))
  where
    inUnit unit amount = case unit of
      Seconds -> amount
      Milliseconds -> amount * 0.001

-- | The words of a command with so many seconds for their timeout; 'Nothing' if there is none, or
-- it is not known where. The timeout is never zero, which would be for ever. Servers understand
-- fractions of a second since 6.0.0, and until 7.0.8 took one millisecond for zero.
withTimeout :: CommandEntry -> Double -> [ByteString] -> Maybe [ByteString]
withTimeout entry left commandArguments = case waitingOf entry commandArguments of
  WaitsAt position unit
    | (before, _ : after) <- splitAt position commandArguments -> Just (before <> (rendered unit : after))
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

waitingOf :: CommandEntry -> [ByteString] -> Waiting
waitingOf CommandEntry {entryName, entryBlocking} commandArguments
  | not (entryBlocking || entryName `Set.member` blockUntold) = NoWait
  | otherwise = case [waitingIn | (_, names, waitingIn) <- timeouts, entryName `Set.member` names] of
    waitingIn : _ -> waitingIn commandArguments
    [] -> Waits

-- | The commands whose timeout is known, each list with what it says of its commands.
timeouts :: [(String, Set ByteString, [ByteString] -> Waiting)]
timeouts =
  [ ("the last word limits it", named "BLMOVE BLPOP BRPOP BRPOPLPUSH BZPOPMAX BZPOPMIN", atLast Seconds),
    ("the first word limits it", named "BLMPOP BZMPOP", \_ -> WaitsAt 1 Seconds),
    -- Two keys and two ends stand before it, and the number of elements behind it.
    ("the fifth word limits it", named "BLMOVEM", \_ -> WaitsAt 5 Seconds),
    ("the last word limits it, in milliseconds", named "WAIT WAITAOF", atLast Milliseconds),
    ("an option limits it", named "XREAD XREADGROUP", afterOption . blockMillisAt . streamOptions),
    ("an option limits it, though no server calls it blocking", blockUntold, afterOption . behindBlock)
  ]
  where
    atLast unit commandArguments = WaitsAt (max 0 (length commandArguments - 1)) unit
    afterOption = maybe NoWait (`WaitsAt` Milliseconds)
    -- The option stands after the key and one more word.
    behindBlock = fmap (+ 4) . List.findIndex ((== "BLOCK") . upper) . drop 3

-- | Commands that wait, but only with an option, and that servers do not call blocking.
blockUntold :: Set ByteString
blockUntold = named "TS.READ"

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

-- | The nodes that answer a command without keys.
--
-- Servers decide this by the request and response policies of their commands. They say that any
-- node may run a command for which they have no policy, because each client knows which node it
-- means; this client does not. So a command of the table goes to an arbitrary node only if every
-- node is known to give the same answer. For all other commands, and for those with a special
-- policy, the caller names the node.
data AnsweringNodes
  = -- | Any node: each gives the same answer.
    AnyNodeAnswers
  | -- | Every node that owns slots.
    EveryPrimaryAnswers Aggregation
  | -- | Every node, replicas too.
    EveryNodeAnswers Aggregation
  | -- | Each node has an answer of its own, and no rule aggregates them.
    OneNodesOwn
  deriving stock (Eq, Show)

-- | The nodes that answer the command, if it has no keys. \(O(\log n)\) in the size of the table.
whereAnswered :: CommandEntry -> AnsweringNodes
whereAnswered entry@CommandEntry {entryName, entryContainer, entryCategories, entryRequestPolicy, entryResponsePolicy}
  -- The command is about one connection, which its caller holds.
  | changesConnection entry = OneNodesOwn
  -- Any node says that a subcommand is missing, and what COMMAND alone lists is the same everywhere.
  | entryName `Set.member` sameEverywhere || "|HELP" `Char8.isSuffixOf` entryName || entryContainer = AnyNodeAnswers
  -- Its policy is special. Any key of one node is a key of the cluster.
  | entryName == "RANDOMKEY" = EveryPrimaryAnswers AggFirstFound
  | otherwise = case entryRequestPolicy of
    Just RequestAllNodes -> maybe OneNodesOwn EveryNodeAnswers merging
    Just RequestAllShards -> maybe OneNodesOwn EveryPrimaryAnswers merging
    -- A command of a module, whose author could have set a policy.
    Nothing | not (inTable entryName || any (elem "admin") entryCategories) -> AnyNodeAnswers
    _ -> OneNodesOwn
  where
    merging = case entryResponsePolicy of
      Nothing -> Just AggConcatenated
      Just (ResponseAggregated how) -> Just how
      Just ResponseSpecial -> Nothing

-- | Commands without keys to which each node gives the same answer: they ask about what is built
-- in, what all nodes of a cluster agree on, or what all connections of this client have in common.
-- PUBLISH is among them, because the nodes pass it on to each other.
--
-- The policy of PING is to ask all primaries. But its purpose is to see whether a command is
-- answered, and that is so even when part of a cluster is down.
sameEverywhere :: Set ByteString
sameEverywhere =
  named
    "ACL|CAT ACL|GENPASS ACL|WHOAMI CLIENT|GETNAME CLUSTER|KEYSLOT CLUSTER|SHARDS \
    \CLUSTER|SLOTS COMMAND|COUNT COMMAND|DOCS COMMAND|GETKEYS COMMAND|GETKEYSANDFLAGS \
    \COMMAND|INFO COMMAND|LIST ECHO LOLWUT PING PUBLISH"

-- | Whether any node may run the command, but the same one each time for the same first argument:
-- what two nodes pass on to the others comes in no order. \(O(\log n)\).
keepsOrder :: CommandEntry -> Bool
keepsOrder CommandEntry {entryName} = entryName `Set.member` inOrder

-- | Commands that any node runs, whose effects must keep the order in which they are sent.
inOrder :: Set ByteString
inOrder = named "PUBLISH"

-- | Whether an error reply may come after a part of the command was done. For other commands an
-- error means that nothing was done. For a command that the table lacks nobody knows, so this is
-- 'True'. \(O(\log n)\) in the size of the table.
failsHalfway :: CommandEntry -> Bool
failsHalfway CommandEntry {entryName} = entryName `Set.member` inParts || not (inTable entryName)

-- | Commands that run other commands; MIGRATE, which moves one key after the other; and DEBUG,
-- which does what no other command may.
inParts :: Set ByteString
inParts = named "DEBUG EVAL EVALSHA EXEC FCALL MIGRATE"

-- | The commands that a text names, with blanks between them, for the lists that are written by hand.
named :: ByteString -> Set ByteString
named = Set.fromList . Char8.words

-- | The commands in lists that are written by hand which the table lacks, because its servers are
-- older, each with the reason why the server's own description of it is not enough.
aheadOfTable :: [(ByteString, String)]
aheadOfTable =
  [ ("FT.CURSOR", "old servers describe no subcommands, and call it a read, but each batch comes once, from one node"),
    ("FT.CURSOR|DEL", "servers call it a read, but it ends a cursor, which one node has"),
    ("FT.CURSOR|READ", "servers call it a read, but each batch comes once, from one node"),
    ("TS.READ", "Redis 8.10 calls it a read and not blocking, but with BLOCK it waits, and the connection with it")
  ]

-- | Every list that is written by hand, with what it says of its commands.
handLists :: [(String, Set ByteString)]
handLists =
  [ ("harmless to connections", harmless),
    ("changes connections in spite of its categories", uncategorized),
    ("answered apart", apart),
    ("overtakes", overtaking),
    ("holds up its connection", waitingUntold),
    ("stays with the primary", primaryOnly),
    ("changes nothing", questions),
    ("tells once", consuming),
    ("changes untold", untold),
    ("the same everywhere", sameEverywhere),
    ("keeps an order", inOrder),
    ("fails half-way", inParts)
  ]
    <> [(title, names) | (title, names, _) <- timeouts]

-- | Parses one line of the table; 'Nothing' if it is not of that form. The lines are written like this:
--
-- > DBSIZE 1 r fast,keyspace,read all_shards:agg_sum
-- > BLMPOP -5 b blocking,list,slow,write - i2:n0,1,1
-- > XREAD -4 rb blocking,read,slow,stream - kSTREAMS,1:r-1,1,2
--
-- The fields are name, arity, flags, categories, policies, and any number of key specifications.
--
-- * The flags are @r@ read-only, @b@ blocking, @c@ has subcommands, @-@ none.
-- * The categories are those of the access control lists, @-@ none.
-- * The policies are that of requests and, after a colon, that of responses, as
--   the servers write them; @-@ is no policy of requests.
-- * A key specification is @i@ndex or @k@eyword (or @u@nknown), a colon, @r@ange or
--   key@n@umber (or @u@nknown), and a question mark if it is incomplete.
parseEntry :: ByteString -> Maybe CommandEntry
parseEntry line = case Char8.words line of
  name : arity : flags : categories : policies : specs -> do
    entryArity <- decimal arity
    guard (Char8.all (`elem` ("rbc-" :: String)) flags)
    (entryRequestPolicy, entryResponsePolicy) <- parsePolicies policies
    entryKeySpecs <- traverse parseSpec specs
    pure
      CommandEntry
        { entryName = name,
          entryArity,
          entryReadOnly = Char8.elem 'r' flags,
          entryBlocking = Char8.elem 'b' flags,
          entryContainer = Char8.elem 'c' flags,
          entryCategories = Just (if categories == "-" then [] else Char8.split ',' categories),
          entryRequestPolicy,
          entryResponsePolicy,
          entryKeySpecs
        }
  _ -> Nothing

parsePolicies :: ByteString -> Maybe (Maybe RequestPolicy, Maybe ResponsePolicy)
parsePolicies word = case Char8.split ':' word of
  request : response | length response < 2 -> (,) <$> parsedRequest request <*> traverse responsePolicyNamed (listToMaybe response)
  _ -> Nothing
  where
    parsedRequest = \case
      "-" -> Just Nothing
      request -> Just <$> requestPolicyNamed request

-- | The policy that servers call by this name.
requestPolicyNamed :: ByteString -> Maybe RequestPolicy
requestPolicyNamed = \case
  "all_nodes" -> Just RequestAllNodes
  "all_shards" -> Just RequestAllShards
  "multi_shard" -> Just RequestMultiShard
  "special" -> Just RequestSpecial
  _ -> Nothing

-- | The policy that servers call by this name.
responsePolicyNamed :: ByteString -> Maybe ResponsePolicy
responsePolicyNamed = \case
  "special" -> Just ResponseSpecial
  name -> ResponseAggregated <$> lookup name aggregations
  where
    aggregations = zip (Char8.words "agg_sum agg_min agg_max agg_logical_and agg_logical_or all_succeeded one_succeeded") [AggSum ..]

parseSpec :: ByteString -> Maybe KeySpec
parseSpec word = do
  let (complete, mark) = Char8.span (/= '?') word
      (begin, keys) = Char8.drop 1 <$> Char8.break (== ':') complete
  keySpecBegin <- case Char8.uncons begin of
    Just ('i', position) -> BeginAt <$> decimal position
    Just ('k', search) -> case Char8.split ',' search of
      [keyword, from] -> BeginAfter keyword <$> decimal from
      _ -> Nothing
    Just ('u', "") -> Just BeginUnknown
    _ -> Nothing
  keySpecFind <- case Char8.uncons keys of
    Just ('r', numbers) -> threeInts KeyRange numbers
    Just ('n', numbers) -> threeInts KeyCount numbers
    Just ('u', "") -> Just FindUnknown
    _ -> Nothing
  guard (mark `elem` ["", "?"])
  pure KeySpec {keySpecBegin, keySpecFind, keySpecIncomplete = mark == "?"}
  where
    threeInts make numbers = case traverse decimal (Char8.split ',' numbers) of
      Just [a, b, c] -> Just (make a b c)
      _ -> Nothing

-- | Reads one element of the reply to @COMMAND INFO@, in both protocols: from a server that knows
-- key specifications (since 7.0), or only the first key, the last and the step of the older form.
-- 'Nothing' if it has no such shape, as for a command that the server does not know.
entryFromReply :: Value -> Maybe CommandEntry
entryFromReply = either (const Nothing) Just . description

-- | The entry of a subcommand with this name, from the description of its command. 'Nothing' if there is none, or the
-- server is older than 7.0.
subcommandFromReply :: ByteString -> Value -> Maybe CommandEntry
subcommandFromReply name reply =
  find ((== upper name) . subcommandName) (mapMaybe entryFromReply subcommands)
  where
    subcommands = either (const []) (subcommandsAmong . drop 6) (Decode.list Decode.value reply)
    subcommandName = Char8.drop 1 . Char8.dropWhile (/= '|') . entryName

description :: Decoder CommandEntry
description reply =
  Decode.list Decode.value reply >>= \case
    name : arity : flags : first : lastKey : step : rest -> do
      entryName <- upper <$> Decode.bytes name
      entryArity <- intReply arity
      flagNames <- Decode.list Decode.bytes flags
      -- Servers tell these since 6.0, and what follows them since 7.0.
      categories <- traverse (Decode.list Decode.bytes) (listToMaybe rest)
      tips <- maybe (Right []) (Decode.list Decode.bytes) (listToMaybe (drop 1 rest))
      olderForm <- positions flagNames <$> intReply first <*> intReply lastKey <*> intReply step
      entryKeySpecs <- maybe (Right olderForm) (Decode.list keySpec) (listToMaybe (drop 2 rest))
      pure
        CommandEntry
          { entryName,
            entryArity,
            entryReadOnly = "readonly" `elem` flagNames,
            entryBlocking = "blocking" `elem` flagNames,
            entryContainer = not (null (subcommandsAmong rest)),
            entryCategories = map withoutAt <$> categories,
            entryRequestPolicy = fromMaybe RequestSpecial . requestPolicyNamed <$> tip "request_policy:" tips,
            entryResponsePolicy = fromMaybe ResponseSpecial . responsePolicyNamed <$> tip "response_policy:" tips,
            entryKeySpecs
          }
    _ -> Decode.mismatch "a command's description" reply
  where
    withoutAt category = fromMaybe category (Char8.stripPrefix "@" category)
    tip kind = listToMaybe . mapMaybe (Char8.stripPrefix kind)

-- | The subcommands, given what follows the older form. A server before 7.0 tells none.
subcommandsAmong :: [Value] -> [Value]
subcommandsAmong rest = case drop 3 rest of
  subcommands : _ -> fromRight [] (Decode.list Decode.value subcommands)
  [] -> []

-- | The key specification for the older form: the positions of the first and the last key, and the
-- step from one to the next. It counts the last key from the name, or from the end.
positions :: [ByteString] -> Int -> Int -> Int -> [KeySpec]
positions flagNames firstKey lastKey step
  | "movablekeys" `elem` flagNames = [KeySpec BeginUnknown FindUnknown True]
  | firstKey > 0 = [KeySpec (BeginAt firstKey) (KeyRange (if lastKey < 0 then lastKey else lastKey - firstKey) step 0) False]
  | otherwise = []

keySpec :: Decoder KeySpec
keySpec reply = do
  spec <- Decode.record reply
  flagNames <- Decode.field "flags" (Decode.list Decode.bytes) spec
  keySpecBegin <-
    Decode.field "begin_search" half spec >>= \case
      ("index", begin) -> BeginAt <$> number "index" begin
      ("keyword", begin) -> BeginAfter . upper <$> Decode.field "keyword" Decode.bytes begin <*> number "startfrom" begin
      _ -> Right BeginUnknown
  keySpecFind <-
    Decode.field "find_keys" half spec >>= \case
      ("range", found) -> KeyRange <$> number "lastkey" found <*> number "keystep" found <*> number "limit" found
      ("keynum", found) -> KeyCount <$> number "keynumidx" found <*> number "firstkey" found <*> number "keystep" found
      _ -> Right FindUnknown
  pure KeySpec {keySpecBegin, keySpecFind, keySpecIncomplete = "incomplete" `elem` flagNames}
  where
    half inner = do
      parts <- Decode.record inner
      (,) <$> Decode.field "type" Decode.bytes parts <*> Decode.field "spec" Decode.record parts
    number name = Decode.field name intReply

intReply :: Decoder Int
intReply = fmap fromIntegral . Decode.integer
