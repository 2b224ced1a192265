-- | Everything that can go wrong, split by what the caller now knows.
--
-- The question a caller has after a failure is not "what broke" but "has it
-- been done". So every 'Error' answers it: 'errorDelivery'. Retries follow
-- from that answer and from the command's own facts (see
-- "Redis.Internal.Routing.Retry"); nothing in this library sends a write again
-- that may already have run.
module Redis.Error
  ( -- * What may have happened
    Delivery (..),
    errorDelivery,

    -- * Errors
    Error (..),
    ServerError (..),
    serverErrorFromText,
    ConnectionFailure (..),
    ConnectionCause (..),
    renderCause,
    TimeoutFailure (..),
    RoutingFailure (..),
    RoutingCause (..),
    FailedParts (..),
    FailedNodes (..),
    Refusal (..),
    DecodeError (..),

    -- * Where
    Endpoint (..),
    Host,
    Port,
    renderEndpoint,
  )
where

import Control.Exception (Exception (..), SomeException (..))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Typeable (cast)
import Data.Word (Word16)
import Redis.Duration (Duration, inSeconds)

-- | A host name, an IPv4 address, or an IPv6 address without brackets.
--
-- @since 0.1.0.0
type Host = ByteString

-- | A TCP port.
--
-- @since 0.1.0.0
type Port = Word16

-- | Where a server listens.
--
-- @since 0.1.0.0
data Endpoint
  = -- | On a TCP port.
    TcpEndpoint Host Port
  | -- | On a Unix socket, by its path.
    UnixEndpoint FilePath
  deriving stock (Eq, Ord, Show)

-- | @host:port@, @[v6]:port@ or the path of the socket.
--
-- @since 0.1.0.0
renderEndpoint :: Endpoint -> String
renderEndpoint = \case
  TcpEndpoint host port
    | Char8.elem ':' host -> "[" <> Char8.unpack host <> "]:" <> show port
    | otherwise -> Char8.unpack host <> ":" <> show port
  UnixEndpoint path -> path

-- | What the caller may conclude about a command that failed.
--
-- @since 0.1.0.0
data Delivery
  = -- | The server never received it whole, so it did not run.
    NotSent
  | -- | The server answered that it would not run it.
    RefusedBeforeRun
  | -- | It may have run, wholly or in part; nobody can tell from here.
    MaybeExecuted
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | An error reply of a server: @-CODE message@.
--
-- @since 0.1.0.0
data ServerError = ServerError
  { -- | The first word, such as @WRONGTYPE@ or @ERR@.
    serverErrorCode :: ByteString,
    -- | The rest of the line.
    serverErrorMessage :: ByteString,
    -- | Whether the command that was answered so may have run.
    serverErrorDelivery :: Delivery
  }
  deriving stock (Eq, Show)

-- | Splits the text of an error reply into code and message. What it says of
-- the command's run is what it would say of any command's, scripts included.
-- \(O(n)\).
--
-- @since 0.1.0.0
serverErrorFromText :: ByteString -> ServerError
serverErrorFromText text =
  let (code, rest) = Char8.break (== ' ') text
      message = Char8.drop 1 rest
   in ServerError
        { serverErrorCode = code,
          serverErrorMessage = message,
          serverErrorDelivery = if refusesBeforeRun code message then RefusedBeforeRun else MaybeExecuted
        }

-- | Why a connection could not be had, or was lost.
--
-- @since 0.1.0.0
data ConnectionCause
  = -- | No address of the host could be connected to; the text names each
    -- address and its reason.
    ConnectFailed String
  | -- | The name has no address.
    NameNotResolved String
  | -- | The certificate or the TLS protocol was refused.
    TlsFailed String
  | -- | The server refused HELLO, AUTH or SELECT.
    HandshakeRefused ServerError
  | -- | The action that issues credentials threw; the text is of its exception.
    CredentialsFailed String
  | -- | Connect, TLS and handshake together took longer than this, which was allowed.
    ConnectTimedOut Duration
  | -- | The peer did not agree on TLS in this time. One that speaks plain text waits
    -- for more.
    TlsTimedOut Duration
  | -- | The peer closed the connection.
    ClosedByPeer
  | -- | Reading or writing failed.
    BrokenConnection String
  | -- | Bytes were outstanding and nothing arrived for this long.
    SilentPeer Duration
  | -- | What arrived was not RESP, or broke a limit.
    ProtocolViolation String
  | -- | This client closed the connection: it is being closed, or the node
    -- left the cluster.
    ClosedLocally
  deriving stock (Eq, Show)

-- | A cause as a part of a sentence, for people: its words may change, and what
-- the server or the system said stands in them as it is. One line, unless that
-- has several.
--
-- @since 0.1.0.0
renderCause :: ConnectionCause -> String
renderCause = \case
  ConnectFailed why -> "cannot be connected to (" <> why <> ")"
  NameNotResolved why -> "is not known (" <> why <> ")"
  TlsFailed why -> "TLS failed: " <> why
  HandshakeRefused ServerError {serverErrorCode, serverErrorMessage} ->
    "the server refuses: " <> Char8.unpack (serverErrorCode <> " " <> serverErrorMessage)
  CredentialsFailed why -> "no credentials: " <> why
  ConnectTimedOut limit -> "no connection within " <> inWords limit
  TlsTimedOut limit -> "no TLS within " <> inWords limit <> ": a port that speaks plain text does not answer (that is redis://, without setTls)"
  ClosedByPeer -> "the server closed the connection"
  BrokenConnection why -> "the connection broke: " <> why
  SilentPeer quiet -> "nothing came for " <> inWords quiet
  ProtocolViolation why -> "it does not speak as Redis does: " <> why
  ClosedLocally -> "the connection was closed"

-- | As it stands in a sentence.
inWords :: Duration -> String
inWords duration = show (inSeconds duration) <> " s"

-- | A connection that could not be had, or was lost.
--
-- @since 0.1.0.0
data ConnectionFailure = ConnectionFailure
  { connectionDelivery :: Delivery,
    -- | Where the connection led, or should have led.
    connectionEndpoint :: Endpoint,
    connectionCause :: ConnectionCause
  }
  deriving stock (Eq, Show)

-- | A time that was over.
--
-- @since 0.1.0.0
data TimeoutFailure = TimeoutFailure
  { timeoutDelivery :: Delivery,
    -- | The time that was allowed.
    timeoutAfter :: Duration
  }
  deriving stock (Eq, Show)

-- | A command for which no node was found, or not each of its nodes did it.
--
-- @since 0.1.0.0
data RoutingFailure = RoutingFailure
  { routingDelivery :: Delivery,
    routingCause :: RoutingCause
  }
  deriving stock (Eq, Show)

-- | Why no node could be chosen.
--
-- @since 0.1.0.0
data RoutingCause
  = -- | No node is known to serve the slot.
    UncoveredSlot Int
  | -- | No seed answered; each with its reason.
    NoReachableNode [(Endpoint, Error)]
  | -- | Too many redirects or retries; the nodes in the order they were tried
    -- and how each failed.
    AttemptsExhausted [(Endpoint, Error)]
  | -- | A command that was split over several slots.
    PartsFailed FailedParts
  | -- | A command for several nodes.
    NodesFailed FailedNodes
  deriving stock (Eq, Show)

-- | Parts of a command that was split over several slots. The other parts have run.
--
-- @since 0.1.0.0
data FailedParts = FailedParts
  { -- | How many failed,
    partsFailed :: Int,
    -- | of so many.
    partsSent :: Int,
    -- | What the first of them said.
    partsFirst :: Error
  }
  deriving stock (Eq, Show)

-- | Nodes on which a command for several nodes failed. On the others it has run.
--
-- @since 0.1.0.0
data FailedNodes = FailedNodes
  { -- | Each with its error.
    nodesFailed :: Map Endpoint Error,
    -- | How many nodes were asked.
    nodesAsked :: Int
  }
  deriving stock (Eq, Show)

-- | Why this client would not even try.
--
-- @since 0.1.0.0
data Refusal
  = -- | The keys belong to different slots and the command (its name) cannot be
    -- split.
    CrossSlot ByteString
  | -- | The command (its name) changes the state of a connection that others
    -- share (SELECT, AUTH, MULTI, SUBSCRIBE …); use a dedicated connection.
    NeedsDedicatedConnection ByteString
  | -- | In a cluster the answer to the command (its name) is one node's own, and
    -- none was named.
    NeedsNode ByteString
  | -- | The command (its name) is for several nodes, and a lent connection leads to
    -- one.
    NeedsSeveralNodes ByteString
  | -- | The cluster has no node at this endpoint.
    NoSuchNode Endpoint
  | -- | A contiguous run of so many commands, more than a connection may have in
    -- flight.
    RunTooLong Int
  | -- | The command (its name) cannot stand in a transaction: it changes the state of
    -- the connection, this library does not know whether it does, it is for nodes by
    -- name, or its answer is one node's own.
    NotInTransaction ByteString
  | -- | The command has no arguments at all.
    EmptyCommand
  | -- | The command (its name) has an argument that no server takes, and why: a score
    -- that is not a number, a count below what the command takes.
    UnfitArgument ByteString String
  | -- | The command (its name) has a word of more than 'Redis.Config.limitBulkBytes'. A
    -- server would end the connection, and with it what others have on it.
    ArgumentTooLong ByteString
  | -- | What was to be sent as one line ('Redis.Command.Build.inline') is not one: it
    -- has a line break or a zero byte, or it begins with an asterisk.
    NotOneLine
  deriving stock (Eq, Show)

-- | A reply of a shape the command's decoder does not know. The command ran.
--
-- @since 0.1.0.0
data DecodeError = DecodeError
  { -- | Where in the reply, from the outside in, such as @element 3@ (counted
    -- from 0) and @field "epoch"@. Empty if it is the reply itself.
    decodeErrorPath :: [String],
    -- | What the decoder was looking for.
    decodeErrorExpected :: String,
    -- | What came instead, shortened.
    decodeErrorGot :: String,
    -- | The command that was answered so, by its name; empty where a decoder was
    -- used by itself.
    decodeErrorCommand :: ByteString
  }
  deriving stock (Eq, Show)

-- | The one error type of the library.
--
-- @since 0.1.0.0
data Error
  = -- | The server answered with an error; the connection is fine.
    ReplyError ServerError
  | -- | The reply has an unexpected shape; the connection is fine.
    UnexpectedReply DecodeError
  | -- | No connection, or it was lost while the command was in flight.
    ConnectionError ConnectionFailure
  | -- | No reply in time.
    TimeoutError TimeoutFailure
  | -- | No node to send it to, or not all of its nodes did it.
    RoutingError RoutingFailure
  | -- | Refused by this client before anything was sent.
    RefusedError Refusal
  | -- | A subscription that ends when its queue is full: so many events waited for who
    -- takes them. No command failed.
    SubscriberTooSlow Int
  | -- | The client has been closed.
    ClientClosed
  deriving stock (Eq, Show)

-- | Thrown, it prints as 'displayException' says, also where nobody catches it.
-- It is caught as what it is.
instance Exception Error where
  toException = SomeException . ThrownError
  fromException (SomeException thrown) = (\(ThrownError failure) -> failure) <$> cast thrown
  displayException = \case
    ReplyError ServerError {serverErrorCode, serverErrorMessage} ->
      "server error: " <> Char8.unpack serverErrorCode <> " " <> Char8.unpack serverErrorMessage <> redirectNote serverErrorCode
    UnexpectedReply DecodeError {decodeErrorPath, decodeErrorExpected, decodeErrorGot, decodeErrorCommand} ->
      "unexpected reply"
        <> (if ByteString.null decodeErrorCommand then "" else " to " <> Char8.unpack decodeErrorCommand)
        <> ": "
        <> concatMap (<> ": ") decodeErrorPath
        <> "expected "
        <> decodeErrorExpected
        <> ", got "
        <> decodeErrorGot
    ConnectionError ConnectionFailure {connectionDelivery, connectionEndpoint, connectionCause} ->
      renderEndpoint connectionEndpoint <> ": " <> renderCause connectionCause <> deliveryNote connectionDelivery
    TimeoutError TimeoutFailure {timeoutDelivery, timeoutAfter} ->
      "no reply within " <> inWords timeoutAfter <> deliveryNote timeoutDelivery
    RoutingError RoutingFailure {routingDelivery, routingCause} -> renderRouting routingCause <> deliveryNote routingDelivery
    RefusedError refusal -> "refused: " <> renderRefusal refusal
    SubscriberTooSlow waiting -> "the subscription has ended: " <> show waiting <> " events waited, and nobody took them"
    ClientClosed -> "the client is closed"
    where
      redirectNote code
        | code `elem` ["MOVED", "ASK"] = " (the server is a node of a cluster; a client that was made with clusterConfig or redis+cluster:// goes where it says)"
        | otherwise = ""
      deliveryNote = \case
        NotSent -> " (not sent)"
        RefusedBeforeRun -> " (refused before it ran)"
        MaybeExecuted -> " (it may have run)"

-- | An 'Error' on its way to who catches it. Runtimes before GHC 9.10 print by
-- 'show' what nobody catches; 'Error' itself shows its constructors, for tests and
-- for logs.
newtype ThrownError = ThrownError Error

instance Show ThrownError where
  showsPrec _ (ThrownError failure) = showString (displayException failure)

instance Exception ThrownError where
  displayException (ThrownError failure) = displayException failure

renderRefusal :: Refusal -> String
renderRefusal = \case
  CrossSlot name -> "the keys of " <> Char8.unpack name <> " belong to different slots"
  NeedsDedicatedConnection name ->
    Char8.unpack name <> " concerns the connection, which others share; it can be run on a dedicated one"
  NeedsNode name ->
    "in a cluster the answer to " <> Char8.unpack name <> " is one node's own; name the node, or ask every one"
  NeedsSeveralNodes name -> Char8.unpack name <> " is for several nodes, and this connection leads to one"
  NoSuchNode endpoint -> "the cluster has no node " <> renderEndpoint endpoint
  RunTooLong count -> show count <> " commands in one run are more than a connection may have in flight"
  NotInTransaction name -> Char8.unpack name <> " cannot stand in a transaction"
  EmptyCommand -> "a command has at least a name"
  UnfitArgument name why -> Char8.unpack name <> " does not take " <> why
  ArgumentTooLong name -> "an argument of " <> Char8.unpack name <> " is longer than limitBulkBytes allows"
  NotOneLine -> "what is sent as a line has no line break, no zero byte, and no asterisk at its beginning"

renderRouting :: RoutingCause -> String
renderRouting = \case
  UncoveredSlot slot -> "no node is known to serve slot " <> show slot
  NoReachableNode [] -> "no node is known"
  NoReachableNode reasons -> "no node can be reached: " <> listed reasons
  AttemptsExhausted trail -> "given up after " <> show (length trail) <> " attempts: " <> listed trail
  NodesFailed FailedNodes {nodesFailed, nodesAsked} ->
    show (Map.size nodesFailed) <> " of " <> show nodesAsked <> " nodes failed: "
      <> List.intercalate "; " [renderEndpoint endpoint <> ": " <> displayException why | (endpoint, why) <- Map.toAscList nodesFailed]
  PartsFailed FailedParts {partsFailed, partsSent, partsFirst} ->
    show partsFailed <> " of " <> show partsSent <> " parts failed, the others have run; the first: " <> displayException partsFirst
  where
    -- The node is named already, and what it did with the command is said of all.
    reason endpoint = \case
      ConnectionError ConnectionFailure {connectionEndpoint, connectionCause} | connectionEndpoint == endpoint -> renderCause connectionCause
      ReplyError ServerError {serverErrorCode, serverErrorMessage} -> Char8.unpack (Char8.unwords [serverErrorCode, serverErrorMessage])
      other -> displayException other

    -- A server that is down says the same each time.
    listed = List.intercalate "; " . map told . NonEmpty.group . map (\(endpoint, why) -> (endpoint, reason endpoint why))
    told same@((endpoint, why) :| _) =
      renderEndpoint endpoint <> ": " <> why <> case length same of
        1 -> ""
        times -> " (" <> show times <> " times)"

-- | What the caller may conclude from an error. \(O(1)\).
--
-- @since 0.1.0.0
errorDelivery :: Error -> Delivery
errorDelivery = \case
  ReplyError failed -> serverErrorDelivery failed
  UnexpectedReply _ -> MaybeExecuted
  ConnectionError failure -> connectionDelivery failure
  TimeoutError failure -> timeoutDelivery failure
  RoutingError failure -> routingDelivery failure
  RefusedError _ -> NotSent
  SubscriberTooSlow _ -> NotSent
  ClientClosed -> NotSent

-- | Codes with which a server turns a command away before running it.
--
-- @ERR@ and @WRONGTYPE@ are not among them: a script that fails half-way says
-- them too.
refusesBeforeRun :: ByteString -> ByteString -> Bool
refusesBeforeRun code message
  -- The same codes come from a call inside a script that has already
  -- written; the server then names the script.
  | " script: " `ByteString.isInfixOf` message = False
  -- A script may also answer with a code of its own choice, after writing. So
  -- where a client would send the command again, the words count too.
  | Just words' <- lookup code wordsOfServers = any (`ByteString.isInfixOf` message) words'
  | otherwise = code `elem` others
  where
    others =
      [ "ASK",
        "BUSY",
        "CROSSSLOT",
        "DENIED",
        "EXECABORT",
        "MISCONF",
        "MOVED",
        "NOAUTH",
        "NOPERM",
        "NOPROTO",
        "NOREPLICAS",
        "OOM",
        "REDIRECT",
        "UNBLOCKED",
        "WRONGPASS"
      ]

-- | What servers themselves say after these codes, as far as it is the same in
-- all of them.
wordsOfServers :: [(ByteString, [ByteString])]
wordsOfServers =
  [ ("CLUSTERDOWN", ["cluster is down", "Hash slot not served"]),
    ("LOADING", [" is loading"]),
    ("MASTERDOWN", ["Link with MASTER is down"]),
    ("NOSCRIPT", ["No matching script"]),
    ("READONLY", ["You can't write", "Can not run script with write flag"]),
    ("TRYAGAIN", ["Multiple keys"])
  ]
