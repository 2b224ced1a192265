-- | What a command is: its words, where they go, what the server does with
-- them, and how to read the reply.
--
-- A command states its name, its arguments, which of them are keys, and its
-- decoder. Everything else follows from the table of what servers say of their
-- commands, by name, or from the words.
module Redis.Internal.Command
  ( Command (..),
    commandWords,
    commandName,
    commandKeys,
    repeatable,
    timeLimit,
    readFrom,
    decodedBy,
    decoded,
    fromReply,
    failureOfNodes,
    unknownScript,

    -- * Where it goes
    Route (..),
    Audience (..),
    onNode,
    onEvery,
    onEach,

    -- * What the server does with it
    Facts (..),
    Blocking (..),
    Scope (..),
    readFacts,
    writeFacts,
    unknownFacts,
  )
where

import Control.Monad ((>=>))
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Redis.Duration (Duration, inSeconds)
import Redis.Error
import Redis.Internal.Command.Shown (shownWords)
import Redis.Internal.Config (ReadFrom)
import Redis.Internal.Protocol.CommandTable (commandWordsName, lookupCommand)
import Redis.Internal.Protocol.CommandTable qualified as Table
import Redis.Internal.Protocol.CommandTable.Policy (Merge)
import Redis.Internal.Protocol.Encode
import Redis.Internal.Protocol.Slot (Slot)
import Redis.Value (Value (..), withoutAttributes)

-- | A command that answers with an @a@: a value, which may be run any number of
-- times, in every way there is of running one.
--
-- 'show' prints it as one types it at a prompt, without its secrets.
--
-- @since 0.1.0.0
data Command a = Command
  { -- | Its name and its arguments.
    commandRequest :: Request,
    -- | Which node it goes to.
    commandRoute :: Route a,
    -- | What the server does with it.
    commandFacts :: Facts,
    -- | Reads a reply. Never given an error reply, a push or attributes.
    commandDecode :: Value -> Either DecodeError a
  }

instance Functor Command where
  fmap f given =
    given
      { commandRoute = f <$> commandRoute given,
        commandDecode = fmap f . commandDecode given
      }

instance Show (Command a) where
  showsPrec _ = showString . Char8.unpack . shownWords . commandWords

-- | The name and the arguments, as they are sent. \(O(n)\).
--
-- @since 0.1.0.0
commandWords :: Command a -> [ByteString]
commandWords = requestWords . commandRequest

-- | The server's name for it, in capitals; two words for a subcommand.
-- \(O(\log n)\) in the size of the command table.
--
-- @since 0.1.0.0
commandName :: Command a -> ByteString
commandName = commandWordsName . commandWords

-- | The keys that decide where it goes, in the order of its words. Empty if it has
-- none, or if only the server knows them. \(O(n)\).
--
-- @since 0.1.0.0
commandKeys :: Command a -> [ByteString]
commandKeys given = case commandRoute given of
  OneKey key -> [key]
  SameSlot keys -> NonEmpty.toList keys
  Splittable _ keys -> NonEmpty.toList keys
  AskServer keys -> fromMaybe [] keys
  OneNode _ -> tableKeys
  OneSlot _ -> []
  PerNode _ _ -> tableKeys
  AnyNode -> []
  Everywhere _ _ -> []
  NodesOwn -> []
  Unsendable _ -> tableKeys
  where
    tableKeys = fromMaybe [] (lookupCommand words' >>= (`Table.commandKeys` words'))
    words' = commandWords given

-- | Declares that this command may be sent again even if it may already have
-- run: the caller's word that running it twice does no harm.
--
-- @since 0.1.0.0
repeatable :: Command a -> Command a
repeatable given =
  given {commandFacts = (commandFacts given) {factRepeatable = True}}

-- | Gives the command so long, instead of the client's command timeout
-- ('Redis.Config.setCommandTimeout'): from when it is run or submitted until its
-- result, with all redirects and retries. A shorter time or a longer one; the last
-- that is said counts. When it is over the command fails with 'TimeoutError', and
-- those that share its connection go on. A command that waits on the server (BLPOP)
-- has the time of its own words besides; one that waits for ever then does not.
--
-- > run client (timeLimit (seconds 20) (eval slowScript [] []))
--
-- Costs no timer: a connection looks after the times of all its commands together.
--
-- @since 0.1.0.0
timeLimit :: Duration -> Command a -> Command a
timeLimit limit given =
  given {commandFacts = (commandFacts given) {factPatience = Just (inSeconds limit)}}

-- | Says which nodes may answer the command, instead of the client's
-- 'Redis.Config.setReadFrom'; the last that is said counts.
--
-- > run client (readFrom LowestLatency (get "config"))
--
-- It is for commands with keys that only read. Of all others it changes nothing: a
-- write, a command that blocks, a step of a walk (HSCAN, SSCAN, ZSCAN), a command
-- without a key, a transaction, and a command on a lent connection stay with the
-- primary, whatever is said. 'onNode' and 'onEvery' have the last word about nodes.
--
-- @since 0.1.0.0
readFrom :: ReadFrom -> Command a -> Command a
readFrom source given =
  given {commandFacts = (commandFacts given) {factReadFrom = Just source}}

-- | The same command with its reply read in another way.
--
-- > eval script ["key"] [] `decodedBy` integer
--
-- @since 0.1.0.0
decodedBy :: Command Value -> (Value -> Either DecodeError a) -> Command a
decodedBy given decoder =
  given
    { commandRoute = mapTogether (>=> either (Left . UnexpectedReply) Right . decoder) (commandRoute given),
      commandDecode = commandDecode given >=> decoder
    }

infixl 1 `decodedBy`

-- | How a command finds its node.
data Route a
  = -- | No key, and every node gives the same answer: any node will do.
    AnyNode
  | -- | One key.
    OneKey ByteString
  | -- | Several keys that must share a slot; checked before sending.
    SameSlot (NonEmpty ByteString)
  | -- | Several keys; across slots the command falls into one part per slot. With
    -- how many of its words each key has, itself included.
    Splittable Int (NonEmpty ByteString)
  | -- | Every node of these, and how their replies become one.
    Everywhere Audience Merge
  | -- | Every node of these, and what becomes of their replies.
    PerNode Audience ([(Endpoint, Either Error Value)] -> Either Error a)
  | -- | The node at this endpoint, whatever keys there are.
    OneNode Endpoint
  | -- | The primary that serves this slot, whoever that is by then.
    OneSlot Slot
  | -- | The answer is one node's own: in a cluster a node must be named.
    NodesOwn
  | -- | No server would take it, and why.
    Unsendable Refusal
  | -- | What the command does is not known here; the server is asked. With its
    -- keys, if they are known.
    AskServer (Maybe [ByteString])

-- | What the nodes of a 'PerNode' said, and what it comes to.
type Together a = [(Endpoint, Either Error Value)] -> Either Error a

instance Functor Route where
  fmap f = mapTogether (fmap f .)

mapTogether :: (Together a -> Together b) -> Route a -> Route b
mapTogether change = \case
  PerNode audience together -> PerNode audience (change together)
  AnyNode -> AnyNode
  OneKey key -> OneKey key
  SameSlot keys -> SameSlot keys
  Splittable stride keys -> Splittable stride keys
  Everywhere audience merge -> Everywhere audience merge
  OneNode endpoint -> OneNode endpoint
  OneSlot slot -> OneSlot slot
  NodesOwn -> NodesOwn
  Unsendable why -> Unsendable why
  AskServer keys -> AskServer keys

-- | Which nodes of a cluster. A server alone is all of them, whichever are asked
-- for.
--
-- @since 0.1.0.0
data Audience
  = -- | Those that own slots.
    Primaries
  | -- | Those that follow a primary.
    Replicas
  | -- | All that the cluster's map names.
    AllNodes
  deriving stock (Eq, Ord, Show)

-- | Sends the command to the node at this endpoint, whatever its keys or the
-- server's own rules say. A redirect is not followed: it is the error. An endpoint
-- that is not of the cluster is refused.
--
-- > run client (onNode node info)
--
-- @since 0.1.0.0
onNode :: Endpoint -> Command a -> Command a
onNode endpoint given = case commandRoute given of
  Unsendable _ -> given
  _ -> given {commandRoute = OneNode endpoint}

-- | Sends the command to each of these nodes, at the same time. Fails if one of
-- them does; the error names each that did.
--
-- > run client (onEvery Primaries info)
--
-- @since 0.1.0.0
onEvery :: Audience -> Command a -> Command (Map Endpoint a)
onEvery audience given =
  perNode audience given $ \results ->
    case Map.mapEither (either Left Right) results of
      (failed, done)
        | Map.null failed -> Right done
        | otherwise -> Left (failureOfNodes (commandFacts given) failed (Map.size results))

-- | Sends the command to each of these nodes, at the same time, and tells what
-- became of it on each.
--
-- @since 0.1.0.0
onEach :: Audience -> Command a -> Command (Map Endpoint (Either Error a))
onEach audience given = perNode audience given Right

perNode :: Audience -> Command a -> (Map Endpoint (Either Error a) -> Either Error b) -> Command b
perNode audience given conclude =
  Command
    { commandRequest = commandRequest given,
      commandRoute = case commandRoute given of
        Unsendable why -> Unsendable why
        _ -> PerNode audience (conclude . Map.fromList . map (fmap (>>= decoded given))),
      commandFacts = commandFacts given,
      -- One node alone is not told apart from the others.
      commandDecode = \_ -> Left DecodeError {decodeErrorPath = [], decodeErrorExpected = "replies of nodes", decodeErrorGot = "a reply", decodeErrorCommand = ""}
    }

-- | What the command's decoder makes of a reply that is no error: for tests of
-- programs, and of commands of their own.
--
-- @since 0.1.0.0
decoded :: Command a -> Value -> Either Error a
decoded given value = case commandDecode given value of
  Right result -> Right result
  Left unexpected -> Left (UnexpectedReply unexpected {decodeErrorCommand = commandName given})

-- | The reply without its attributes, or the error that it is. An error that says
-- that nothing was done, as those of most commands do, is so marked.
fromReply :: Facts -> Value -> Either Error Value
fromReply facts reply = case withoutAttributes reply of
  ErrorReply text -> Left (ReplyError (told (serverErrorFromText text)))
  plain -> Right plain
  where
    told failed
      | factFailsHalfway facts = failed
      | otherwise = failed {serverErrorDelivery = RefusedBeforeRun}

-- | Whether a server says that it does not know the script of this digest.
unknownScript :: Error -> Bool
unknownScript = \case
  ReplyError ServerError {serverErrorCode = "NOSCRIPT", serverErrorDelivery = RefusedBeforeRun} -> True
  _ -> False

-- | The error of a command that failed on some of so many nodes. Where nothing
-- was changed, or no node has run it, that is the worst of theirs; otherwise it
-- has run in part.
failureOfNodes :: Facts -> Map Endpoint Error -> Int -> Error
failureOfNodes facts failed asked =
  RoutingError (RoutingFailure delivery (NodesFailed (FailedNodes failed asked)))
  where
    worst = maximum (map errorDelivery (Map.elems failed))
    delivery
      | factReadOnly facts || factRepeatable facts = worst
      | Map.size failed == asked = worst
      | otherwise = MaybeExecuted

-- | What the server does with a command: data that decide over retries,
-- replicas and connections, so that the caller need not.
--
-- @since 0.1.0.0
data Facts = Facts
  { -- | It changes nothing, and any replica may answer it. Not so of a step of a
    -- walk, whose cursor is of one node.
    factReadOnly :: Bool,
    -- | Sending it a second time, when it may already have run, does no harm.
    -- True of all that changes nothing; of a write only if its caller says so.
    factRepeatable :: Bool,
    -- | Whether it waits on the server.
    factBlocking :: Blocking,
    -- | Which connection it needs.
    factScope :: Scope,
    -- | An error reply may come when a part has been done: from scripts,
    -- functions and EXEC. Of all other commands it says that nothing was done.
    factFailsHalfway :: Bool,
    -- | Seconds that it is given, where they are not the client's.
    factPatience :: Maybe Double,
    -- | Who may answer it if it only reads, where that is not the client's choice.
    factReadFrom :: Maybe ReadFrom
  }
  deriving stock (Eq, Show)

-- | Whether the server keeps a command waiting, and for how long.
--
-- @since 0.1.0.0
data Blocking
  = -- | It answers when it has run.
    NonBlocking
  | -- | At most so many seconds.
    BlocksFor Double
  | -- | Until something happens.
    BlocksForever
  deriving stock (Eq, Show)

-- | Which connection a command needs.
--
-- @since 0.1.0.0
data Scope
  = -- | It may share one with the commands of other callers.
    SharedConnection
  | -- | It ends what others do (SCRIPT KILL, CLIENT UNPAUSE …), so it must not
    -- queue behind them.
    ControlLane
  | -- | Nobody knows what it does to its connection: it gets one that nobody
    -- uses afterwards.
    OwnConnection
  | -- | It changes what later commands on the same connection mean
    -- (SELECT, MULTI, SUBSCRIBE, CLIENT REPLY …), or asks about the earlier
    -- ones on it (WAIT). It is refused but on a connection that its caller holds.
    ConnectionState
  deriving stock (Eq, Show)

-- | Facts of a command that only reads.
readFacts :: Facts
readFacts =
  Facts
    { factReadOnly = True,
      factRepeatable = True,
      factBlocking = NonBlocking,
      factScope = SharedConnection,
      factFailsHalfway = False,
      factPatience = Nothing,
      factReadFrom = Nothing
    }

-- | Facts of a command that writes.
writeFacts :: Facts
writeFacts = readFacts {factReadOnly = False, factRepeatable = False}

-- | Facts of a command that nobody knows.
unknownFacts :: Facts
unknownFacts = writeFacts {factScope = OwnConnection, factFailsHalfway = True}
