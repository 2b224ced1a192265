-- | The errors of this library, and what a caller may conclude from each.
--
-- After a failure a caller wants to know whether the command ran, more than what broke. So every 'Error'
-- tells: see 'errorDelivery'. Retries follow from that answer and from the command's own facts. This library
-- never sends a write again that may already have run, unless its caller allows that
-- ('Redis.Command.idempotent'). An error names its command, and the key, from when its caller gets it
-- ('errorCommand').
module Redis.Error
  ( -- * Delivery
    Delivery (..),
    errorDelivery,
    errorCommand,

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

    -- * Endpoints
    Endpoint (..),
    Host,
    Port,
    renderEndpoint,
  )
where

import Control.Exception (Exception (..), SomeException (..))
import Control.Monad (guard)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isAsciiUpper, isDigit)
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Data.Text.Encoding.Error qualified as Text
import Data.Typeable (cast)
import Data.Word (Word16)
import Numeric (showFFloat)
import Redis.Duration (Duration, inSeconds)

-- | A host name, an IPv4 address, or an IPv6 address without brackets.
type Host = ByteString

-- | A TCP port.
type Port = Word16

-- | The address at which a server listens.
data Endpoint
  = -- | A TCP port of a host.
    TcpEndpoint Host Port
  | -- | A Unix socket, by its path.
    UnixEndpoint FilePath
  deriving stock (Eq, Ord, Show)

-- | An endpoint as text: @host:port@, @[v6]:port@ or the path of the socket.
renderEndpoint :: Endpoint -> String
renderEndpoint = \case
  TcpEndpoint host port
    | Char8.elem ':' host -> "[" <> fromUtf8 host <> "]:" <> show port
    | otherwise -> fromUtf8 host <> ":" <> show port
  UnixEndpoint path -> path

-- | What the caller may conclude about a command that failed.
data Delivery
  = -- | The server never received the whole command, so it did not run.
    NotSent
  | -- | The server answered that it would not run the command.
    RefusedBeforeRun
  | -- | The command may have run, wholly or in part; the client cannot tell.
    MaybeExecuted
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | An error reply of a server: @-CODE message@.
data ServerError = ServerError
  { -- | The first word, such as @WRONGTYPE@ or @ERR@.
    serverErrorCode :: ByteString,
    -- | The rest of the line.
    serverErrorMessage :: ByteString,
    -- | Whether the command that got this error may have run.
    serverErrorDelivery :: Delivery,
    -- | The command, as 'errorCommand' says.
    serverErrorCommand :: ByteString
  }
  deriving stock (Eq, Show)

-- | Splits the text of an error reply into code and message. The delivery follows from the text
-- alone, so it holds for any command, scripts included. An error of a command inside a script has the code of
-- that command's error, also from servers before 7.0, which say @ERR@ and put it into the message; the
-- refusal of EXEC, of which @EXECABORT@ says why, has the code of that reason. \(O(n)\).
serverErrorFromText :: ByteString -> ServerError
serverErrorFromText text = ServerError {serverErrorCode, serverErrorMessage, serverErrorDelivery, serverErrorCommand = ""}
  where
    discarded = ByteString.stripPrefix "EXECABORT Transaction discarded because of: " text
    (serverErrorCode, rest) = Char8.break (== ' ') (fromMaybe (inScript text) discarded)
    serverErrorMessage = Char8.drop 1 rest
    serverErrorDelivery = if isJust discarded || refusesBeforeRun serverErrorCode serverErrorMessage then RefusedBeforeRun else MaybeExecuted

-- | The text of an error inside a script, in the words of servers since 7.0; any other text as it is.
-- Older servers put the script and its line before the error:
-- @ERR Error running script (call to f_…): \@user_script:1: WRONGTYPE …@.
inScript :: ByteString -> ByteString
inScript text = fromMaybe text $ do
  called <- ByteString.stripPrefix "ERR Error running script (call to " text
  let (name, rest) = ByteString.breakSubstring "): " called
      (line, failure) = position "" (ByteString.drop 3 rest)
      code = Char8.takeWhile (/= ' ') failure
  -- What Lua says itself has no code.
  guard (not (Char8.null code) && Char8.all isAsciiUpper code)
  Just (mconcat [failure, " script: ", name, ", on @user_script:", line, "."])
  where
    -- Some errors have their line twice, and the sign of an error reply.
    position line found = case Char8.span isDigit . Char8.dropWhile (== ' ') <$> ByteString.stripPrefix "@user_script:" found of
      Just (number, rest) | Just failure <- ByteString.stripPrefix ": " rest -> position number failure
      _ -> (line, fromMaybe found (ByteString.stripPrefix "-" found))

-- | Why a connection could not be opened, or was lost.
data ConnectionCause
  = -- | Connecting failed at every address of the host; the text names each address and its reason.
    ConnectFailed String
  | -- | The host name has no address.
    NameNotResolved String
  | -- | A certificate, the server's or this client's, or the TLS protocol was refused, or a certificate file cannot be used.
    TlsFailed String
  | -- | The server refused a command of the handshake, such as HELLO, AUTH or SELECT.
    HandshakeRefused ServerError
  | -- | The action that issues credentials threw (the text is of its exception), took too long, or
    -- issued credentials that the server refuses.
    CredentialsFailed String
  | -- | Connecting, TLS and the handshake together took longer than this, the time allowed.
    ConnectTimedOut Duration
  | -- | The peer did not agree on TLS within this time, as one that speaks plain text does not.
    TlsTimedOut Duration
  | -- | The peer closed the connection.
    ClosedByPeer
  | -- | Reading or writing failed.
    BrokenConnection String
  | -- | Replies were outstanding and the peer was silent for this long.
    SilentPeer Duration
  | -- | The bytes that arrived were not RESP, or exceeded a limit.
    ProtocolViolation String
  | -- | This client closed the connection: it is being closed, or the node left the cluster.
    ClosedLocally
  deriving stock (Eq, Show)

-- | A cause in words, as a part of a sentence for people. The words may change; text from the server
-- or the system stands in them unchanged. One line, unless that text has several.
renderCause :: ConnectionCause -> String
renderCause = \case
  ConnectFailed why -> "cannot be connected to (" <> why <> ")"
  NameNotResolved why -> "is not known (" <> why <> ")"
  TlsFailed why -> "TLS failed: " <> why
  HandshakeRefused said -> "the server refuses: " <> renderSaid said
  CredentialsFailed why -> "no credentials: " <> why
  ConnectTimedOut limit -> "no connection within " <> inWords limit
  TlsTimedOut limit -> "no TLS within " <> inWords limit <> ": a port that speaks plain text does not answer (that is redis://, without setTls)"
  ClosedByPeer -> "the server closed the connection"
  BrokenConnection why -> "the connection broke: " <> why
  SilentPeer quiet -> "nothing came for " <> inWords quiet
  ProtocolViolation why -> "it does not speak the Redis protocol: " <> why
  ClosedLocally -> "the connection was closed"

-- | A text of a server or a program, which is mostly UTF-8. What is not is replaced.
fromUtf8 :: ByteString -> String
fromUtf8 = Text.unpack . Text.decodeUtf8With Text.lenientDecode

-- | A duration as a part of a sentence.
inWords :: Duration -> String
inWords duration = showFFloat Nothing (inSeconds duration) " s"

-- | A connection that could not be opened, or was lost.
data ConnectionFailure = ConnectionFailure
  { -- | The command, as 'errorCommand' says.
    connectionCommand :: ByteString,
    connectionDelivery :: Delivery,
    -- | Where the connection led, or should have led.
    connectionEndpoint :: Endpoint,
    connectionCause :: ConnectionCause
  }
  deriving stock (Eq, Show)

-- | A command whose time was over before it had a result.
data TimeoutFailure = TimeoutFailure
  { -- | The command, as 'errorCommand' says.
    timeoutCommand :: ByteString,
    timeoutDelivery :: Delivery,
    -- | The time that was allowed.
    timeoutAfter :: Duration,
    -- | If the command still waited for a connection: where to, and what the attempt to open it had
    -- got no answer to until then ('ConnectTimedOut', 'TlsTimedOut'), or why the last one failed.
    timeoutConnecting :: Maybe (Endpoint, ConnectionCause)
  }
  deriving stock (Eq, Show)

-- | A command for which no node was found, or that failed on some of its nodes.
data RoutingFailure = RoutingFailure
  { -- | The command, as 'errorCommand' says.
    routingCommand :: ByteString,
    routingDelivery :: Delivery,
    routingCause :: RoutingCause
  }
  deriving stock (Eq, Show)

-- | Why a command found no node, or which of its nodes failed.
data RoutingCause
  = -- | No node is known to serve this slot.
    UncoveredSlot Int
  | -- | No node can be used. Each server that was asked for the nodes, with the reason.
    NoReachableNode [(Endpoint, Error)]
  | -- | The command was given up: too many redirects or retries, or no time left for one, even for the
    -- first redirect. The nodes in the order in which they were tried, and how each failed.
    AttemptsExhausted [(Endpoint, Error)]
  | -- | Some parts failed of a command that was split over several slots.
    PartsFailed FailedParts
  | -- | Some nodes failed of a command for several nodes.
    NodesFailed FailedNodes
  deriving stock (Eq, Show)

-- | The failed parts of a command that was split over several slots. The other parts have run.
data FailedParts = FailedParts
  { -- | How many parts failed.
    partsFailed :: Int,
    -- | How many parts there were.
    partsSent :: Int,
    -- | The error of the first part that failed.
    partsFirst :: Error
  }
  deriving stock (Eq, Show)

-- | The nodes on which a command for several nodes failed. On the other nodes it has run.
data FailedNodes = FailedNodes
  { -- | The nodes that failed, each with its error.
    nodesFailed :: Map Endpoint Error,
    -- | How many nodes were asked.
    nodesAsked :: Int
  }
  deriving stock (Eq, Show)

-- | Why this client refused a command.
data Refusal
  = -- | The keys belong to different slots and the command (its name) cannot be split. A server's
    -- own CROSSSLOT error becomes this refusal, too.
    CrossSlot ByteString
  | -- | The command (its name) changes the state of a connection that others
    -- share (SELECT, AUTH, MULTI, WATCH …); use a dedicated connection.
    NeedsDedicatedConnection ByteString
  | -- | A server does not answer the command (its name) by one reply, but by none, by several or by a
    -- stream, or it keeps later replies back (the commands SUBSCRIBE and UNSUBSCRIBE of every kind, CLIENT REPLY OFF and SKIP, MONITOR,
    -- SYNC, PSYNC, REPLCONF ACK and GETACK); use "Redis.Wire", also instead of a dedicated connection.
    -- To listen to channels, use "Redis.Subscription".
    NeedsWire ByteString
  | -- | In a cluster each node has its own answer to the command (its name), and no node was named.
    NeedsNode ByteString
  | -- | The command (its name) is for several nodes, and a dedicated connection leads to one.
    NeedsSeveralNodes ByteString
  | -- | The client knows no node at this endpoint.
    NoSuchNode Endpoint
  | -- | A contiguous run has this many commands, more than a connection may have in flight.
    RunTooLong Int
  | -- | The command (its name) cannot stand in a transaction: it changes, or may change, the state of the
    -- connection; or it names its nodes, is for several, or each has its own answer to it.
    NotInTransaction ByteString
  | -- | The command has no words, not even a name.
    EmptyCommand
  | -- | The command (its name) has an argument that no server takes, with the reason: a score that
    -- is not a number, a count below what the command takes.
    UnfitArgument ByteString String
  | -- | The command (its name) has a word longer than 'Redis.Config.limitBulkBytes', at which a server would
    -- end the connection.
    ArgumentTooLong ByteString
  | -- | The server is too old for this (what it is), so nothing was sent. Then the server and its version, such as
    -- @Redis 7.0.15@; empty if the server does not say.
    Unsupported ByteString ByteString
  | -- | The text to be sent as one line ('Redis.Command.Build.inline') is not one line: it has a
    -- line break or a zero byte, begins with an asterisk, leaves a quote open, or is too long.
    NotOneLine
  deriving stock (Eq, Show)

-- | A reply of a shape the command's decoder does not know. The command ran.
data DecodeError = DecodeError
  { -- | The place in the reply, from the outside in, such as @element 3@ (counted
    -- from 0) and @field "epoch"@. Empty for the reply itself.
    decodeErrorPath :: [String],
    -- | What the decoder expected; empty if a function of 'Redis.Command.refine' refused the result.
    decodeErrorExpected :: String,
    -- | What came instead, shortened; or what that function said.
    decodeErrorGot :: String,
    -- | The command, as 'errorCommand' says; empty if a decoder was used by itself.
    decodeErrorCommand :: ByteString
  }
  deriving stock (Eq, Show)

-- | The one error type of the library.
data Error
  = -- | The server answered with an error; the connection is fine.
    ReplyError ServerError
  | -- | The reply has an unexpected shape; the connection is fine.
    UnexpectedReply DecodeError
  | -- | There was no connection, or it was lost while the command was in flight.
    ConnectionError ConnectionFailure
  | -- | There was no reply in time.
    TimeoutError TimeoutFailure
  | -- | There was no node to send the command to, or some of its nodes failed.
    RoutingError RoutingFailure
  | -- | This client refused the command before it was sent (but see 'CrossSlot').
    RefusedError Refusal
  | -- | A subscription ended because its queue was full: this many events waited, and nobody took
    -- them. No command failed.
    SubscriberTooSlow Int
  | -- | The client has been closed.
    ClientClosed
  deriving stock (Eq, Show)

-- | A thrown 'Error' prints as 'displayException' says, also if nobody catches it.
instance Exception Error where
  toException = SomeException . ThrownError
  fromException (SomeException thrown) = (\(ThrownError failure) -> failure) <$> cast thrown
  displayException failure = case errorCommand failure of
    "" -> renderProblem failure
    command -> fromUtf8 command <> ": " <> renderProblem failure

-- | The wrapper in which an 'Error' is thrown. Runtimes before GHC 9.10 print an exception that
-- nobody catches with 'show', and 'show' of an 'Error' prints its constructors, for tests and logs.
newtype ThrownError = ThrownError Error

instance Show ThrownError where
  showsPrec _ (ThrownError failure) = showString (displayException failure)

instance Exception ThrownError where
  displayException (ThrownError failure) = displayException failure

-- | An error in words, without its command.
renderProblem :: Error -> String
renderProblem = \case
  ReplyError said@ServerError {serverErrorCode, serverErrorDelivery} ->
    "server error: " <> renderSaid said <> redirectNote serverErrorCode <> case serverErrorDelivery of
      MaybeExecuted -> deliveryNote MaybeExecuted
      _ -> ""
  UnexpectedReply DecodeError {decodeErrorPath, decodeErrorExpected, decodeErrorGot} ->
    "unexpected reply: " <> concatMap (<> ": ") decodeErrorPath <> (if null decodeErrorExpected then "" else "expected " <> decodeErrorExpected <> ", got ") <> decodeErrorGot
  ConnectionError ConnectionFailure {connectionDelivery, connectionEndpoint, connectionCause} ->
    renderEndpoint connectionEndpoint <> ": " <> renderCause connectionCause <> deliveryNote connectionDelivery
  TimeoutError TimeoutFailure {timeoutDelivery, timeoutAfter, timeoutConnecting} ->
    "no reply within " <> inWords timeoutAfter <> foldMap (\(endpoint, cause) -> ": " <> renderEndpoint endpoint <> ": " <> renderCause cause) timeoutConnecting <> deliveryNote timeoutDelivery
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

-- | The line of an error reply.
renderSaid :: ServerError -> String
renderSaid ServerError {serverErrorCode, serverErrorMessage} = fromUtf8 (serverErrorCode <> " " <> serverErrorMessage)

renderRefusal :: Refusal -> String
renderRefusal = \case
  CrossSlot name -> "the keys of " <> Char8.unpack name <> " belong to different slots"
  NeedsDedicatedConnection name ->
    Char8.unpack name <> " changes the state of its connection, which others share; run it on a dedicated connection"
  NeedsWire name -> Char8.unpack name <> " is not answered by one reply, as every command of a client is; send it as bytes over Redis.Wire"
  NeedsNode name ->
    "in a cluster each node has its own answer to " <> Char8.unpack name <> "; name the node, or ask all nodes"
  NeedsSeveralNodes name -> Char8.unpack name <> " is for several nodes, and this connection leads to one"
  NoSuchNode endpoint -> "the cluster has no node " <> renderEndpoint endpoint
  RunTooLong count -> show count <> " commands in one run are more than a connection may have in flight"
  NotInTransaction name -> Char8.unpack name <> " cannot stand in a transaction"
  EmptyCommand -> "the command has no name"
  UnfitArgument name why -> Char8.unpack name <> " does not take " <> why
  ArgumentTooLong name -> "an argument of " <> Char8.unpack name <> " is longer than limitBulkBytes allows"
  Unsupported what server ->
    (if Char8.null server then "the server" else Char8.unpack server) <> " is too old for " <> Char8.unpack what
  NotOneLine -> "the text is not one line: it must not contain a line break or a zero byte, begin with an asterisk, leave a quote open, or have 64 kB or more"

renderRouting :: RoutingCause -> String
renderRouting = \case
  UncoveredSlot slot -> "no node is known to serve slot " <> show slot
  NoReachableNode [] -> "no node is known"
  NoReachableNode reasons -> "no node can be reached: " <> listed reasons
  AttemptsExhausted trail -> "given up after " <> show (length trail) <> (if length trail == 1 then " attempt: " else " attempts: ") <> listed trail
  NodesFailed FailedNodes {nodesFailed, nodesAsked} ->
    show (Map.size nodesFailed) <> " of " <> show nodesAsked <> " nodes failed: "
      -- The command is the same on all nodes.
      <> List.intercalate "; " [renderEndpoint endpoint <> ": " <> renderProblem why | (endpoint, why) <- Map.toAscList nodesFailed]
  PartsFailed FailedParts {partsFailed, partsSent, partsFirst} ->
    show partsFailed <> " of " <> show partsSent <> " parts failed"
      <> (if partsFailed < partsSent then ", the others have run" else "")
      <> "; the first: "
      <> displayException partsFirst
  where
    -- The text names the node already, and states the delivery once for all attempts.
    reason endpoint = \case
      ConnectionError ConnectionFailure {connectionEndpoint, connectionCause} | connectionEndpoint == endpoint -> renderCause connectionCause
      TimeoutError TimeoutFailure {timeoutConnecting = Just (place, cause)} | place == endpoint -> renderCause cause
      ReplyError said
        | "This instance has cluster support disabled" `ByteString.isPrefixOf` serverErrorMessage said ->
          renderSaid said <> " (the server is alone; standaloneConfig or redis:// makes a client for it)"
        | otherwise -> renderSaid said
      other -> renderProblem other

    -- A server that is down fails in the same way each time.
    listed = List.intercalate "; " . map told . NonEmpty.group . map (\(endpoint, why) -> (endpoint, reason endpoint why))
    told same@((endpoint, why) :| _) =
      renderEndpoint endpoint <> ": " <> why <> case length same of
        1 -> ""
        times -> " (" <> show times <> " times)"

-- | What the caller may conclude from an error. \(O(1)\).
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

-- | The command that failed, as text for people and logs: its name, and the first key that decides where it
-- goes (@HGET user:17@), cut if it is long; no value and no password. In a transaction it says which command
-- failed (@transaction, command 2 of 3 (INCR visits)@). Empty if the error is of no command, as when a
-- connection cannot be lent, and for a 'RefusedError', which names the command in its own way. \(O(1)\).
errorCommand :: Error -> ByteString
errorCommand = \case
  ReplyError failed -> serverErrorCommand failed
  UnexpectedReply failed -> decodeErrorCommand failed
  ConnectionError failure -> connectionCommand failure
  TimeoutError failure -> timeoutCommand failure
  RoutingError failure -> routingCommand failure
  RefusedError _ -> ""
  SubscriberTooSlow _ -> ""
  ClientClosed -> ""

-- | Whether an error says that the command did not run: whether its code is one of those with which servers
-- turn commands away. @ERR@ and @WRONGTYPE@ are not among them: a script that fails half-way says them too.
refusesBeforeRun :: ByteString -> ByteString -> Bool
refusesBeforeRun code message
  -- The same codes come from a call inside a script that has already
  -- written; the server then names the script.
  | " script: " `ByteString.isInfixOf` message = False
  -- A script may also answer with a code of its own choice, after writing. So for
  -- codes after which a client sends the command again, the message must fit, too.
  | Just words' <- lookup code errorsByServer = any (`ByteString.isInfixOf` message) words'
  | otherwise = code `elem` refusals

-- | The other codes with which servers turn commands away.
refusals :: [ByteString]
refusals =
  Char8.words
    "ASK BUSY CROSSSLOT DENIED EXECABORT MISCONF MOVED NOPERM NOPROTO NOREPLICAS OOM REDIRECT UNBLOCKED WRONGPASS"

-- | The messages that servers themselves send with these codes, as far as all servers agree on them.
errorsByServer :: [(ByteString, [ByteString])]
errorsByServer =
  [ ("CLUSTERDOWN", ["cluster is down", "Hash slot not served"]),
    ("LOADING", [" is loading"]),
    ("MASTERDOWN", ["Link with MASTER is down"]),
    ("NOAUTH", ["Authentication required", "HELLO must be called"]),
    ("NOSCRIPT", ["No matching script"]),
    ("READONLY", ["You can't write", "Can not run script with write flag"]),
    ("TRYAGAIN", ["Multiple keys"])
  ]
