-- | What servers do not tell of commands: effects that decide which connection a command needs and whether it
-- may be sent again, and where the timeout of a command that blocks is.
--
-- The lists below are written by hand. Each is there because the safe answer would be too expensive or
-- servers say too little, and each is on the safe side for a command that it does not name. The tests check
-- that every name in them is in the table, or in 'aheadOfTable'.
module Redis.Internal.Protocol.CommandTable.Effects
  ( changesConnection,
    answersApart,
    changesNothing,
    staysWithPrimary,
    overtakes,
    holdsUp,
    changesUntold,
    entryBlocks,
    withTimeout,

    -- * The lists
    handLists,
    timeoutLists,
    aheadOfTable,
  )
where

import Control.Monad (guard)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.Maybe (listToMaybe)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Internal.Protocol.CommandTable.Entry
import Redis.Internal.Protocol.KeySpec (StreamOptions (blockMillisAt), streamOptions)
import Text.Read (readMaybe)

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
-- by none, by a stream, or by keeping later replies back. A connection on which each command has one
-- reply would give its callers the replies of others. \(O(n)\) in the number of words.
answersApart :: CommandEntry -> [ByteString] -> Bool
answersApart CommandEntry {entryName} arguments = case entryName of
  "CLIENT|REPLY" -> any ((`elem` ["OFF", "SKIP"]) . upper) arguments
  _ -> entryName `elem` ["MONITOR", "PSYNC", "SYNC"]

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
-- command does not name.
changesUntold :: CommandEntry -> Bool
changesUntold CommandEntry {entryName} = entryName `Set.member` untold

untold :: Set ByteString
untold =
  named
    "EVALSHA_RO EVAL_RO FCALL_RO HPTTL HRANDFIELD HTTL MEMORY|USAGE OBJECT|ENCODING \
    \OBJECT|FREQ OBJECT|IDLETIME OBJECT|REFCOUNT PTTL SORT_RO SRANDMEMBER TTL VRANDMEMBER \
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

-- | The commands in lists that are written by hand which the table lacks, because its servers are
-- older, each with the reason why the server's own description of it is not enough.
aheadOfTable :: [(ByteString, String)]
aheadOfTable =
  [("TS.READ", "Redis 8.10 calls it a read and not blocking, but with BLOCK it waits, and the connection with it")]

-- | The other lists, with what they say of their commands.
handLists :: [(String, Set ByteString)]
handLists =
  [ ("harmless to connections", harmless),
    ("changes connections in spite of its categories", uncategorized),
    ("overtakes", overtaking),
    ("holds up its connection", waitingUntold),
    ("stays with the primary", primaryOnly),
    ("changes nothing", questions),
    ("changes untold", untold)
  ]

-- | The lists of where a timeout is, with what they say of their commands.
timeoutLists :: [(String, Set ByteString)]
timeoutLists = [(title, names) | (title, names, _) <- timeouts]
