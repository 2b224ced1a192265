-- | The handshake: the commands that are sent on a new connection before any other command.
--
-- They are all sent at once, so the handshake costs one round trip: HELLO 3 with the credentials
-- and the client's name, then commands that do not depend on the answer to HELLO. A server that
-- does not know HELLO gets the commands of RESP2 in a second round trip. The handshake also names
-- this library and its version (CLIENT SETINFO), which the server may refuse.
module Redis.Internal.Network.Handshake
  ( handshake,
    handshakeBy,
    ConnectionUse (..),
    ConnectionRole (..),
    authentication,
    refusal,
    lacksRoom,
    refusesCredentials,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isAsciiUpper, toLower)
import Data.Either (isLeft)
import Data.Maybe (catMaybes, fromMaybe, isJust, isNothing)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Protocol.Encode (Request, request)
import Redis.Value

-- | The commands that a connection is for.
data ConnectionRole
  = -- | Any command.
    ForPrimary
  | -- | Reads from a replica. In a cluster the handshake sends READONLY for them.
    ForReplica
  | -- | Commands that end what others do. The handshake is as short as possible: a server that runs
    -- a script accepts few commands.
    ForControl
  deriving stock (Eq, Ord, Show)

-- | The users of a connection.
data ConnectionUse
  = -- | All callers together.
    SharedFor ConnectionRole
  | -- | One caller at a time.
    Lent
  deriving stock (Eq, Show)

-- | One command of the handshake, and whether its refusal matters.
data Greeting = Greeting Importance Request

data Importance
  = Required
  | Optional
  deriving stock (Eq)

-- | Makes a connection ready for commands. Blocks for one or two round trips;
-- the caller sets the deadline.
handshake :: Config -> Maybe Credentials -> ConnectionUse -> Multiplexer -> IO (Either ConnectionCause ())
handshake config credentials use mux = handshakeBy config credentials use $ \requests ->
  submitRun mux unlimited requests >>= mapM (fmap answer . waitSlotResult)
  where
    -- The command timeout may be much shorter than the time to connect.
    unlimited = usualTerms {termsPatience = Just maxBound}
    answer = \case
      Reply value -> Right value
      Failure failed -> Left failed

-- | Like 'handshake', given an action that sends requests all at once and returns the reply to
-- each.
handshakeBy :: Config -> Maybe Credentials -> ConnectionUse -> ([Request] -> IO [Either Error Value]) -> IO (Either ConnectionCause ())
handshakeBy config credentials use exchange = case configProtocol config of
  OnlyResp2 -> speak first (resp2 <> common)
  PreferResp3 -> do
    outcomes <- send first (hello : common)
    case outcomes of
      Right (reply : _)
        | lacksHello credentials reply ->
          -- In RESP2 a server accepts CLIENT TRACKING and sends no invalidations.
          if null tracking then speak id (resp2 <> common) else pure (Left (refusal credentials (errorText reply)))
      Right replies -> pure (verdict credentials tolerant (hello : common) replies)
      Left cause -> pure (Left cause)
  where
    -- A server that expects TLS hangs up on plain text.
    first = \case
      outcomes@(Left cause : _)
        | mayWantTls, all isLeft outcomes -> [Left (hungUp cause)]
      outcomes -> outcomes
    hungUp = \case
      ClosedByPeer -> BrokenConnection (mute <> "closed by the peer")
      BrokenConnection why -> BrokenConnection (mute <> why)
      cause -> cause
    mute = "the server closed the connection without a reply, as a server that expects TLS does (use rediss:// or setTls): "
    mayWantTls =
      isNothing (configTls config) && case configTopology config of
        Standalone (UnixEndpoint _) -> False
        _ -> True

    speak seen steps = send seen steps >>= \replies -> pure (replies >>= verdict credentials tolerant steps)

    send :: ([Either ConnectionCause Value] -> [Either ConnectionCause Value]) -> [Greeting] -> IO (Either ConnectionCause [Value])
    send seen steps = agreed steps . seen . map outcome <$> exchange [encoded | Greeting _ encoded <- steps]

    -- An error before the end of the connection tells more than the end. A server that turns this
    -- client away sends its error without having read the first request.
    agreed (Greeting importance _ : _) (Right refused@(ErrorReply text) : rest)
      | turnsAway (serverErrorFromText text) || (importance == Required && not (lacksHello credentials refused)),
        or [True | Left _ <- rest] =
        Left (refusal credentials text)
    agreed _ outcomes = sequence outcomes

    errorText = \case
      ErrorReply text -> "NOPROTO caching needs RESP3, and the server says: " <> text
      _ -> "NOPROTO caching needs RESP3"

    outcome = \case
      Right value -> Right (withoutAttributes value)
      Left (ConnectionError ConnectionFailure {connectionCause = cause}) -> Left cause
      Left other -> Left (BrokenConnection (show other))

    hello =
      Greeting Required . request $
        ["HELLO", "3"]
          <> maybe [] (\known -> ["AUTH", userOf known, passwordOf known]) credentials
          <> maybe [] (\name -> ["SETNAME", name]) (configClientName config)

    resp2 =
      catMaybes
        [ Greeting Required . authentication <$> credentials,
          Greeting (if use == SharedFor ForControl then Optional else Required) . (\name -> request ["CLIENT", "SETNAME", name]) <$> configClientName config
        ]

    -- Part of the handshake, because no reply may be cached that was read before tracking began.
    tracking = case (use, configCaching config) of
      (SharedFor ForPrimary, Just caching) ->
        [ Greeting Required . request $
            ["CLIENT", "TRACKING", "ON"] <> case cachingTracking caching of
              TrackReads -> ["OPTIN"]
              TrackPrefixes prefixes -> "BCAST" : concatMap (\prefix -> ["PREFIX", prefix]) prefixes
        ]
      _ -> []

    common =
      [Greeting Required (request ["SELECT", decimal (configDatabase config)]) | configDatabase config /= 0, use /= SharedFor ForControl]
        <> tracking
        -- Outside a cluster a replica answers reads without READONLY, and refuses that command.
        <> [Greeting Required (request ["READONLY"]) | use == SharedFor ForReplica, inCluster]
        <> [Greeting Optional (request ["CLIENT", "CAPA", "redirect"]) | followsRedirects]
        <> [ Greeting Optional (request ["CLIENT", "SETINFO", "LIB-NAME", "redis-client-haskell"]),
             Greeting Optional (request ["CLIENT", "SETINFO", "LIB-VER", libraryVersion])
           ]

    inCluster = case configTopology config of
      Cluster _ -> True
      _ -> False

    -- In a group, a replica must answer the reads that were meant for it, and the caller of a
    -- dedicated connection gets the replies that any other client would get.
    followsRedirects = case configTopology config of
      Standalone _ -> configFollowsRedirects config && use /= SharedFor ForControl
      Group _ -> use == SharedFor ForPrimary
      Sentinels _ _ -> use == SharedFor ForPrimary
      Cluster _ -> False

    userOf = fromMaybe "default" . credentialsUser
    decimal = Char8.pack . show

    -- The caller authenticates the connection itself.
    tolerant = use == Lent && configCallerAuthenticates config && isNothing credentials

-- | The AUTH command for these credentials.
authentication :: Credentials -> Request
authentication known = request $ case credentialsUser known of
  -- One argument: servers before ACLs know no users.
  Nothing -> ["AUTH", passwordOf known]
  Just user -> ["AUTH", user, passwordOf known]

passwordOf :: Credentials -> ByteString
passwordOf = revealSecret . credentialsPassword

-- | Sent as LIB-VER; the package's version.
libraryVersion :: ByteString
libraryVersion = "0.1.0"

-- | The first refusal that matters, if there is one. A server that requires a password answers
-- NOAUTH to every command, also to the optional ones; with the flag, NOAUTH does not count as a
-- refusal.
verdict :: Maybe Credentials -> Bool -> [Greeting] -> [Value] -> Either ConnectionCause ()
verdict credentials tolerant steps replies =
  case [text | (Greeting importance _, ErrorReply text) <- zip steps replies, matters importance text] of
    text : _ -> Left (refusal credentials text)
    [] -> Right ()
  where
    matters importance text
      | "NOAUTH" `ByteString.isPrefixOf` text = not tolerant
      | otherwise = importance == Required

-- | The server's refusal, without the password. A server that does not know AUTH repeats its
-- arguments (\"ERR unknown command \'AUTH\', with args beginning with: …\"), and this text ends up
-- in errors and logs. It may repeat only part of a long password, so the whole list of arguments is
-- left out.
refusal :: Maybe Credentials -> ByteString -> ConnectionCause
refusal credentials text =
  HandshakeRefused $ case revealSecret . credentialsPassword <$> credentials of
    Just password
      | not (ByteString.null password) -> withoutPassword password
    _ -> said
  where
    said = serverErrorFromText text
    withoutPassword password
      -- The code is one that servers use, and callers act on it: it stays as it is.
      | Char8.all isAsciiUpper (serverErrorCode said) = said {serverErrorMessage = without password (upToArguments (serverErrorMessage said))}
      | otherwise = serverErrorFromText (without password (upToArguments text))
    upToArguments = fst . ByteString.breakSubstring ", with args beginning with"
    without password message = case ByteString.breakSubstring password message of
      (before, found)
        | ByteString.null found -> before
        | otherwise -> before <> "<secret>" <> without password (ByteString.drop (ByteString.length password) found)

-- | Whether the answer to HELLO means that the server does not know the command, or not this
-- version of the protocol. Old servers and proxies say so in many ways. So after any error with the
-- code ERR the handshake is tried again with the commands of RESP2, whose answers are clear; only
-- the error of a server without room for another client is believed at once. Since 9.1 Valkey
-- answers NOAUTH, not \"unknown command\", to a client that has not authenticated. HELLO brings the
-- credentials, so NOAUTH cannot be the answer of a server that knows HELLO.
lacksHello :: Maybe Credentials -> Value -> Bool
lacksHello credentials = \case
  ErrorReply text -> case serverErrorCode said of
    "NOPROTO" -> True
    "ERR" -> not (lacksRoom said)
    "NOAUTH" -> isJust credentials
    -- No code at all.
    _ -> any (`ByteString.isPrefixOf` Char8.map toLower text) ["unknown", "unsupported"]
    where
      said = serverErrorFromText text
  _ -> False

-- | Whether the error is one with which a server turns away every new client, and then hangs up.
turnsAway :: ServerError -> Bool
turnsAway said = lacksRoom said || serverErrorCode said == "DENIED"

-- | Whether the server has reached its largest number of clients.
lacksRoom :: ServerError -> Bool
lacksRoom ServerError {serverErrorCode, serverErrorMessage} =
  serverErrorCode == "ERR" && "max number of clients" `ByteString.isPrefixOf` serverErrorMessage

-- | Whether the server refused the credentials.
refusesCredentials :: ConnectionCause -> Bool
refusesCredentials = \case
  HandshakeRefused ServerError {serverErrorCode, serverErrorMessage} ->
    -- The second form is from servers before ACLs.
    serverErrorCode == "WRONGPASS" || (serverErrorCode == "ERR" && "invalid password" `ByteString.isPrefixOf` serverErrorMessage)
  _ -> False
