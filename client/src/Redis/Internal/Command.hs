-- | Commands: their words, their nodes, what servers do with them, and how replies are read.
--
-- A command states its name, its arguments, which of them are keys, and its decoder. All else
-- follows from its words, or by its name from the table of what servers tell.
module Redis.Internal.Command
  ( Command (..),
    commandArguments,
    commandName,
    commandKeys,
    idempotent,
    timeLimit,
    readFrom,
    decodedBy,
    refine,
    decoded,
    decodedFrom,
    fromReply,
    unlike,
    naming,
    withLabel,
    relabelled,
    commandLabel,
    argumentsLabel,
    isUnknownCommand,
    failureOfNodes,
    unknownScript,

    -- * Where it goes
    Route (..),
    routeOf,
    NodeSet (..),
    onNode,
    onEvery,
    onEach,

    -- * What is known of it
    Facts (..),
    CommandInfo (..),
    CallOptions (..),
    noOptions,
    factReadOnly,
    factIdempotent,
    factBlocking,
    factScope,
    Blocking (..),
    Scope (..),
    readFacts,
    writeFacts,
    untoldFacts,
    unknownFacts,
    withInfo,
    withSettingsOf,
    withOptions,
  )
where

import Control.Monad ((>=>))
import Data.Bifunctor (first)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isNothing)
import Data.Text (Text)
import Data.Text qualified as Text
import Redis.Duration (Duration)
import Redis.Error
import Redis.Internal.Command.Shown (shownArguments, shownLabel)
import Redis.Internal.Config (ReadFrom)
import Redis.Internal.Protocol.CommandTable (lookupCommand, nameFromArguments)
import Redis.Internal.Protocol.CommandTable qualified as Table
import Redis.Internal.Protocol.CommandTable.Aggregation (Aggregation)
import Redis.Internal.Protocol.Encode
import Redis.Internal.Protocol.KeySpec (upper)
import Redis.Internal.Protocol.Slot (Slot)
import Redis.Value (Value (..), withoutAttributes)

-- | A command with a result of type @a@. It can be run any number of times, and in every way.
--
-- 'show' prints it as one types it at a prompt, without its secrets.
data Command a = Command
  { commandRequest :: Request,
    commandRoute :: Route a,
    -- | What servers say of it, and what its caller wants.
    commandFacts :: Facts,
    -- | Reads a reply, which is never an error reply, a push, or a reply with
    -- attributes.
    commandDecode :: Value -> Either DecodeError a
  }

instance Functor Command where
  fmap f given =
    given
      { commandRoute = f <$> commandRoute given,
        commandDecode = fmap f . commandDecode given
      }

instance Show (Command a) where
  showsPrec _ = showString . Char8.unpack . shownArguments . commandArguments

-- | The name and the arguments, as they are sent. \(O(n)\).
commandArguments :: Command a -> [ByteString]
commandArguments = requestArguments . commandRequest

-- | The command's name in capitals; two words for a subcommand. \(O(\log n)\) in the table's size.
commandName :: Command a -> ByteString
commandName = nameFromArguments . commandArguments

-- | The keys that decide where the command goes, in the order of its words. Empty if it
-- has none, or if only the server knows them. \(O(n)\).
commandKeys :: Command a -> [ByteString]
commandKeys given = case routeOf given of
  OneKey key -> [key]
  SameSlot keys -> NonEmpty.toList keys
  Splittable _ keys -> NonEmpty.toList keys
  AskServer keys _ -> fromMaybe [] keys
  OneNode _ -> tableKeys
  PerNode _ _ -> tableKeys
  Unsendable _ -> tableKeys
  _ -> []
  where
    tableKeys = keysByTable (commandArguments given)

-- | The keys of a command with these words; none if the command table does not know them.
keysByTable :: [ByteString] -> [ByteString]
keysByTable words' = fromMaybe [] (lookupCommand words' >>= (`Table.commandKeys` words'))

-- | Declares that this command may be sent again even if it may already have run. With
-- it the caller promises that running the command twice does no harm.
idempotent :: Command a -> Command a
idempotent = withOptions $ \options -> options {optionIdempotent = True}

-- | Limits the time of the command, instead of the client's command timeout
-- ('Redis.Config.setCommandTimeout'), which may be longer or shorter. The time counts
-- from when the command is run or submitted until its result, all waits, redirects and retries
-- included. Of several limits the last one counts. When the time is over, the command fails with
-- 'TimeoutError', and the other commands on its connection continue. A command that waits on the
-- server (BLPOP) may take its own timeout in addition; for one that waits without limit, this limit
-- is the whole time. A limit costs no timer.
--
-- > run client (timeLimit (seconds 20) (eval slowScript [] []))
timeLimit :: Duration -> Command a -> Command a
timeLimit !limit = withOptions $ \options -> options {optionTimeLimit = Just limit}

-- | Chooses the nodes that may answer the command, instead of the client's
-- 'Redis.Config.setReadFrom'. Of several choices the last one counts.
--
-- > run client (readFrom LowestLatency (get "config"))
--
-- It applies to commands with keys that only read, and has no effect on any other: a
-- write, a command that blocks, a step of a walk (HSCAN, SSCAN, ZSCAN), a command
-- without a key, a transaction, and a command on a lent connection stay with the
-- primary. 'onNode' and 'onEvery' override it.
readFrom :: ReadFrom -> Command a -> Command a
readFrom source = withOptions $ \options -> options {optionReadFrom = Just source}

-- | Reads the command's reply with this decoder.
--
-- > eval script ["key"] [] `decodedBy` integer
decodedBy :: Command Value -> (Value -> Either DecodeError a) -> Command a
decodedBy given decoder = readBy decoder given

infixl 1 `decodedBy`

-- | Reads the command's result with a function that may refuse it.
--
-- > getUser :: ByteString -> Command (Maybe User)
-- > getUser = refine (traverse (first Text.pack . eitherDecodeStrict)) . get
--
-- Where the function returns 'Left', the command fails with 'UnexpectedReply', which names the command
-- and says what the function said. The command has run then, and is not sent again. The function is
-- called for each result, also for one that the cache kept.
refine :: (a -> Either Text b) -> Command a -> Command b
refine reading = readBy (first refused . reading)
  where
    refused why = DecodeError {decodeErrorPath = [], decodeErrorExpected = "", decodeErrorGot = Text.unpack why, decodeErrorCommand = ""}

readBy :: (a -> Either DecodeError b) -> Command a -> Command b
readBy reading given =
  given
    { commandRoute = mapTogether (>=> first UnexpectedReply . reading) (commandRoute given),
      commandDecode = commandDecode given >=> reading
    }

-- | How a command finds its node.
data Route a
  = -- | No key, and every node gives the same reply: any node will do.
    AnyNode
  | -- | Any node will do, but the same one each time: the primary of this slot while it is up.
    AnyNodeFor Slot
  | -- | One key, the first argument. It is not stored a second time, because a command in flight keeps
    -- its route; see 'routeOf'.
    FirstKey
  | -- | One key.
    OneKey ByteString
  | -- | Several keys that must share a slot; checked before sending.
    SameSlot (NonEmpty ByteString)
  | -- | Several keys. If they are in several slots, the command is split into one part
    -- per slot. The number is that of words per key, the key included.
    Splittable Int (NonEmpty ByteString)
  | -- | All nodes of the node set, and how their replies are aggregated into one.
    Everywhere NodeSet Aggregation
  | -- | All nodes of the node set, and how their replies make the result.
    PerNode NodeSet ([(Endpoint, Either Error Value)] -> Either Error a)
  | -- | The node at this endpoint, whatever the keys are.
    OneNode Endpoint
  | -- | The primary that serves this slot when the command is sent.
    OneSlot Slot
  | -- | The primary at this endpoint; once it is none, that of this slot, which it served.
    OnePrimary Endpoint Slot
  | -- | The reply is about one node only, so in a cluster the caller must name a node.
    NodesOwn
  | -- | No server would accept the command, for this reason. It is not sent.
    Unsendable Refusal
  | -- | The table does not tell enough, so the server is asked. With the keys, if they are known,
    -- and the route to the nodes that the caller has named, if any.
    AskServer (Maybe [ByteString]) (Maybe (Route a))

-- | The route with its key: never 'FirstKey'. \(O(1)\).
routeOf :: Command a -> Route a
routeOf given = case commandRoute given of
  FirstKey -> OneKey (requestFirst (commandRequest given))
  route -> route
{-# INLINE routeOf #-}

-- | Makes the result of a 'PerNode' from the replies of its nodes.
type Together a = [(Endpoint, Either Error Value)] -> Either Error a

instance Functor Route where
  fmap f = mapTogether (fmap f .)

mapTogether :: (Together a -> Together b) -> Route a -> Route b
mapTogether change = \case
  PerNode nodeSet together -> PerNode nodeSet (change together)
  AnyNode -> AnyNode
  AnyNodeFor slot -> AnyNodeFor slot
  FirstKey -> FirstKey
  OneKey key -> OneKey key
  SameSlot keys -> SameSlot keys
  Splittable stride keys -> Splittable stride keys
  Everywhere nodeSet aggregate -> Everywhere nodeSet aggregate
  OneNode endpoint -> OneNode endpoint
  OneSlot slot -> OneSlot slot
  OnePrimary endpoint slot -> OnePrimary endpoint slot
  NodesOwn -> NodesOwn
  Unsendable why -> Unsendable why
  AskServer keys named -> AskServer keys (mapTogether change <$> named)

-- | A set of nodes of a cluster. A standalone server belongs to every node set.
data NodeSet
  = -- | The primaries that serve slots.
    Primaries
  | -- | The replicas.
    Replicas
  | -- | All nodes of the cluster's slot map.
    AllNodes
  deriving stock (Eq, Ord, Show)

-- | Sends the command to the node at this endpoint, whatever its keys or the server's policy for
-- the command. A redirect is not followed: it is the command's error. An endpoint outside the
-- cluster is refused.
--
-- > run client (onNode node info)
onNode :: Endpoint -> Command a -> Command a
onNode endpoint given = given {commandRoute = routeToNamed given (OneNode endpoint)}

-- | Sends the command to all nodes of the node set at the same time. Fails if it fails
-- on any of them; the error names every node on which it failed.
--
-- > run client (onEvery Primaries info)
onEvery :: NodeSet -> Command a -> Command (Map Endpoint a)
onEvery nodeSet given =
  perNode nodeSet given $ \results ->
    case Map.mapEither (either Left Right) results of
      (failed, done)
        | Map.null failed -> Right done
        | otherwise -> Left (failureOfNodes (commandFacts given) failed (Map.size results))

-- | Sends the command to all nodes of the node set at the same time; returns the result
-- or the error of each node.
onEach :: NodeSet -> Command a -> Command (Map Endpoint (Either Error a))
onEach nodeSet given = perNode nodeSet given Right

perNode :: NodeSet -> Command a -> (Map Endpoint (Either Error a) -> Either Error b) -> Command b
perNode nodeSet given conclude =
  given
    { commandRoute = routeToNamed given (PerNode nodeSet (conclude . Map.fromList . map (fmap (>>= decoded given)))),
      -- A single reply does not tell which node sent it.
      commandDecode = \_ -> Left DecodeError {decodeErrorPath = [], decodeErrorExpected = "replies of nodes", decodeErrorGot = "a reply", decodeErrorCommand = ""}
    }

-- | The route of a command whose caller names the nodes. If the table lacks the command, the
-- server is asked all the same: not where it goes, but what it does to its connection, and
-- whether it may fail half-way.
routeToNamed :: Command a -> Route b -> Route b
routeToNamed given named = case commandRoute given of
  Unsendable why -> Unsendable why
  AskServer keys _ | isNothing (lookupCommand (commandArguments given)) -> AskServer keys (Just named)
  _ -> named

-- | Reads a reply, which is not an error, with the command's decoder. For tests of
-- programs and of their own commands.
decoded :: Command a -> Value -> Either Error a
decoded given value = case commandDecode given value of
  Right result -> Right result
  Left unexpected -> Left (naming given (UnexpectedReply unexpected))

-- | The result of a command: its reply, decoded, or the error, with the command's name.
decodedFrom :: Command a -> Either Error Value -> Either Error a
decodedFrom given = either (Left . naming given) (decoded given)

-- | The error for a reply that is something else than what was expected. Takes both, and the command's name.
unlike :: String -> String -> ByteString -> Error
unlike decodeErrorExpected decodeErrorGot decodeErrorCommand =
  UnexpectedReply DecodeError {decodeErrorPath = [], decodeErrorExpected, decodeErrorGot, decodeErrorCommand}

-- | The error with the name of this command, unless it has one already: a part of a command is named
-- before the whole.
naming :: Command a -> Error -> Error
naming given = withLabel (commandLabel given)

-- | The error with this label, unless it has one.
withLabel :: ByteString -> Error -> Error
withLabel label failure
  | ByteString.null (errorCommand failure) = relabelled label failure
  | otherwise = failure

-- | The error with this label. The label is made at once, because it would keep the command with its
-- arguments alive.
relabelled :: ByteString -> Error -> Error
relabelled label = \case
  ReplyError said -> label `seq` ReplyError said {serverErrorCommand = label}
  UnexpectedReply unread -> label `seq` UnexpectedReply unread {decodeErrorCommand = label}
  ConnectionError lost -> label `seq` ConnectionError lost {connectionCommand = label}
  TimeoutError late -> label `seq` TimeoutError late {timeoutCommand = label}
  RoutingError unrouted -> label `seq` RoutingError unrouted {routingCommand = label}
  RefusedError why -> RefusedError why
  SubscriberTooSlow waiting -> SubscriberTooSlow waiting
  ClientClosed -> ClientClosed

-- | The command as errors name it.
commandLabel :: Command a -> ByteString
commandLabel given = shownLabel (commandName given) (commandKeys given)

-- | The label of the command with these words. Keys that the command table does not know are missing.
argumentsLabel :: [ByteString] -> ByteString
argumentsLabel words' = shownLabel (nameFromArguments words') (keysByTable words')

-- | The reply to this request without its attributes, or the error if it is an error reply. Unless
-- the command can fail half-way, an error reply means that nothing was done, and is marked
-- 'RefusedBeforeRun'. But a command that holds up its connection waits after it has begun:
-- replicas of Valkey make the change of CLUSTER SETSLOT before their primary does.
fromReply :: CommandInfo -> Request -> Value -> Either Error Value
fromReply info asked reply = case withoutAttributes reply of
  ErrorReply text -> Left (ReplyError (told (serverErrorFromText text)))
  plain -> Right plain
  where
    told failed
      | infoFailsHalfway info = if isUnknownCommand asked failed then failed {serverErrorDelivery = RefusedBeforeRun} else failed
      | infoScope info == OwnConnection, serverErrorCode failed `elem` ["NOREPLICAS", "UNBLOCKED"] = failed {serverErrorDelivery = MaybeExecuted}
      | otherwise = failed {serverErrorDelivery = RefusedBeforeRun}

-- | Whether the error says that the server does not know the command of this request, and so has done
-- nothing. The error must name that very command: a script or a module may have written before it
-- fails because it called a command that the server does not know.
isUnknownCommand :: Request -> ServerError -> Bool
isUnknownCommand asked ServerError {serverErrorCode, serverErrorMessage} =
  serverErrorCode == "ERR" && case requestArguments asked of
    [] -> False
    name : rest -> names "unknown command " name || any (names "unknown subcommand ") (take 1 rest)
  where
    names told word = case Char8.uncons =<< ByteString.stripPrefix told serverErrorMessage of
      -- Servers cut a long name.
      Just (mark, said) | isQuote mark -> upper (Char8.takeWhile (not . isQuote) said) == upper (ByteString.take 128 word)
      _ -> False
    isQuote mark = mark == '\'' || mark == '`' || mark == '"'

-- | Whether the error says that the server does not know the script of this digest.
unknownScript :: Error -> Bool
unknownScript = \case
  ReplyError ServerError {serverErrorCode = "NOSCRIPT", serverErrorDelivery = RefusedBeforeRun} -> True
  _ -> False

-- | The error of a command that failed on some of this many nodes. Its delivery is the
-- worst of the nodes' deliveries, if the command may be sent again or failed on all
-- nodes. Otherwise some nodes have run it, and the delivery is 'MaybeExecuted'.
failureOfNodes :: Facts -> Map Endpoint Error -> Int -> Error
failureOfNodes facts failed asked =
  RoutingError (RoutingFailure "" delivery (NodesFailed (FailedNodes failed asked)))
  where
    worst = maximum (map errorDelivery (Map.elems failed))
    delivery
      | factReadOnly facts || factIdempotent facts = worst
      | Map.size failed == asked = worst
      | otherwise = MaybeExecuted

-- | What is known of a command: what servers say of it, and what its caller wants. These facts decide
-- about retries, replicas and connections, so that the caller need not.
data Facts = Facts
  { factInfo :: {-# UNPACK #-} !CommandInfo,
    factOptions :: {-# UNPACK #-} !CallOptions
  }
  deriving stock (Eq, Show)

-- | What servers say of a command.
data CommandInfo = CommandInfo
  { -- | See 'factReadOnly'.
    infoReadOnly :: Bool,
    -- | It changes nothing, and says the same if it is asked again.
    infoHarmless :: Bool,
    infoBlocking :: Blocking,
    infoScope :: Scope,
    -- | An error reply may come after a part was done: for scripts, functions, EXEC,
    -- MIGRATE and DEBUG, and for commands that the command table lacks. An error reply
    -- to any other command means that nothing was done, unless it ends the wait of a
    -- command that holds up its connection (CLUSTER SETSLOT).
    infoFailsHalfway :: Bool
  }
  deriving stock (Eq, Show)

-- | What the caller of a command wants.
data CallOptions = CallOptions
  { -- | Sending it a second time does no harm, even if it may already have run.
    optionIdempotent :: Bool,
    -- | Its own time limit; 'Nothing' means the client's command timeout.
    optionTimeLimit :: Maybe Duration,
    -- | Its own choice of nodes for reads; 'Nothing' means the client's choice.
    optionReadFrom :: Maybe ReadFrom
  }
  deriving stock (Eq, Show)

-- | The options of a caller that sets none.
noOptions :: CallOptions
noOptions = CallOptions {optionIdempotent = False, optionTimeLimit = Nothing, optionReadFrom = Nothing}

-- | Whether the command changes nothing, and any replica may answer it. False for a step of a walk, whose
-- cursor is valid on one node only.
factReadOnly :: Facts -> Bool
factReadOnly = infoReadOnly . factInfo

-- | Whether sending the command a second time does no harm, even if it may already have run: it changes
-- nothing, or its caller says so.
factIdempotent :: Facts -> Bool
factIdempotent facts = infoHarmless (factInfo facts) || optionIdempotent (factOptions facts)

-- | Whether the command waits on the server.
factBlocking :: Facts -> Blocking
factBlocking = infoBlocking . factInfo

-- | Which connection the command needs.
factScope :: Facts -> Scope
factScope = infoScope . factInfo

-- | Whether the server keeps the caller of a command waiting, and for how long.
data Blocking
  = -- | The server replies as soon as the command has run.
    NonBlocking
  | -- | For at most this many seconds.
    BlocksFor Double
  | -- | Without limit, until something happens.
    BlocksForever
  deriving stock (Eq, Show)

-- | The connection that a command needs.
data Scope
  = -- | A connection that it shares with the commands of other callers.
    SharedConnection
  | -- | The node's control connection: the command ends what others do (SCRIPT KILL, CLIENT
    -- UNPAUSE …), so it must not queue behind them.
    ControlConnection
  | -- | A connection of its own that is not used afterwards, because the command's
    -- effect on it is not known, or because it holds the connection up (SHUTDOWN).
    OwnConnection
  | -- | A connection that its caller holds; elsewhere the command is refused. The
    -- command changes what later commands on the same connection mean (SELECT, MULTI,
    -- SUBSCRIBE, CLIENT REPLY …), or asks about earlier ones (WAIT).
    ConnectionState
  deriving stock (Eq, Show)

-- | Facts of a command that only reads.
readFacts :: Facts
readFacts =
  Facts
    { factInfo =
        CommandInfo
          { infoReadOnly = True,
            infoHarmless = True,
            infoBlocking = NonBlocking,
            infoScope = SharedConnection,
            infoFailsHalfway = False
          },
      factOptions = noOptions
    }

-- | Facts of a command that writes.
writeFacts :: Facts
writeFacts = withInfo (\info -> info {infoReadOnly = False, infoHarmless = False}) readFacts

-- | Facts of a command that no server has described yet: a write that may fail half-way.
untoldFacts :: Facts
untoldFacts = withInfo (\info -> info {infoFailsHalfway = True}) writeFacts

-- | Facts of a command that no server describes either.
unknownFacts :: Facts
unknownFacts = withInfo (\info -> info {infoScope = OwnConnection}) untoldFacts

-- | These facts, with the options of the others, and with their blocking if they block.
withSettingsOf :: Facts -> Facts -> Facts
withSettingsOf facts told = (withInfo blocking facts) {factOptions = factOptions told}
  where
    blocking info = case factBlocking told of
      NonBlocking -> info
      other -> info {infoBlocking = other}

-- | The facts, with something else that servers say.
withInfo :: (CommandInfo -> CommandInfo) -> Facts -> Facts
withInfo change facts = facts {factInfo = change (factInfo facts)}

-- | The command with other options.
withOptions :: (CallOptions -> CallOptions) -> Command a -> Command a
withOptions change given@Command {commandFacts} =
  given {commandFacts = commandFacts {factOptions = change (factOptions commandFacts)}}
