-- | The handshake: the commands that are sent on a new connection before any other command.
--
-- They are all sent at once, so the handshake costs one round trip: HELLO 3 with the credentials and the
-- client's name, then commands that do not depend on the answer to HELLO. A server that refuses HELLO gets
-- the commands of RESP2 in a second round trip. Optional steps name the client, this library and its
-- version, and no answer to them ends the connection, but NOAUTH ('verdict').
--
-- A proxy may know neither HELLO nor CLIENT, and hang up instead of saying so. So the peer's end during the
-- handshake leads to other approaches ('Approach'), each on a connection of its own: first PING, which
-- tells such a proxy from a server that expects TLS and from one that just ends; then only the commands
-- without which the connection would be of no use.
module Redis.Internal.Network.Handshake
  ( handshake,
    handshakeBy,
    ConnectionUse (..),
    ConnectionRole (..),
    Approach (..),
    Unready (..),
    authentication,
    refusal,
    passes,
    refusesCredentials,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isAsciiUpper)
import Data.Either (isRight)
import Data.Maybe (fromMaybe, isJust, isNothing, listToMaybe, maybeToList)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Dial (Approach (..))
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Runtime (coarseNanos, deadlineAfter, nanosFromSeconds)
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

-- | Why a connection is not ready for commands.
data Unready
  = Refused ConnectionCause
  | -- | The peer ended the connection, and may not do so with another approach.
    HungUp ConnectionCause
  deriving stock (Eq, Show)

-- | The words of one command of the handshake, and whether its refusal matters.
data Greeting = Greeting Importance [ByteString]

data Importance
  = Required
  | Optional
  deriving stock (Eq)

-- | Makes a connection ready for commands. Blocks for up to two round trips, and one after a PING. Who connects
-- limits it to the connect timeout.
handshake :: Config -> Maybe Credentials -> ConnectionUse -> Approach -> Multiplexer -> IO (Either Unready ())
handshake config credentials use approach mux = handshakeBy config credentials use approach $ \requests -> do
  -- The command timeout and the silence limit may be much shorter than the time to connect. The silence limit is
  -- no less than half of this.
  terms <- termsUntil . deadlineAfter (2 * nanosFromSeconds (configConnectTimeout config)) <$> coarseNanos
  submitRun mux terms requests >>= mapM (fmap answer . waitSlotResult)
  where
    answer = \case
      Reply value -> Right value
      Failure failed -> Left failed

-- | Like 'handshake', given an action that sends requests all at once and returns the replies.
handshakeBy :: Config -> Maybe Credentials -> ConnectionUse -> Approach -> ([Request] -> IO [Either Error Value]) -> IO (Either Unready ())
handshakeBy config credentials use approach exchange = case approach of
  Usual -> greet
  AfterPing ->
    send [ping] >>= \case
      [Left cause] -> pure (Left (Refused (if mayWantTls then mute cause else cause)))
      [Right (ErrorReply text)] | turnsAway (serverErrorFromText text) -> pure (Left (refused text))
      _ -> greet
  Bare
    | null tracking -> speak (password <> required <> [ping])
    | otherwise -> pure (Left (HungUp (BrokenConnection "caching needs RESP3, and the server closed the connection at HELLO, as a proxy does that does not know this command")))
  where
    greet = case configProtocol config of
      OnlyResp2 -> speak resp2
      PreferResp3 -> do
        let steps = hello : required <> courtesies
        outcomes <- agreed steps <$> send steps
        case outcomes of
          Right (reply@(ErrorReply text) : _)
            | lacksHello credentials reply ->
              -- In RESP2 a server accepts CLIENT TRACKING and sends no invalidations.
              if null tracking then speak resp2 else pure (Left (refused (needsResp3 <> ", and the server says: " <> text)))
          _ -> pure (outcomes >>= judged steps)

    speak steps = (\outcomes -> agreed steps outcomes >>= judged steps) <$> send steps
    judged steps = either (Left . Refused) Right . verdict credentials tolerant steps
    refused = Refused . refusal credentials
    needsResp3 = "NOPROTO caching needs RESP3"

    -- A server that expects TLS hangs up on plain text.
    mute cause = maybe cause (BrokenConnection . (wantsTls <>)) (peersEnd cause)
    wantsTls = "the server closed the connection without a reply, as a server that expects TLS does (use rediss:// or setTls): "
    mayWantTls =
      isNothing (configTls config) && case configTopology config of
        Standalone (UnixEndpoint _) -> False
        _ -> True

    send :: [Greeting] -> IO [Either ConnectionCause Value]
    send steps = map outcome <$> exchange [request words' | Greeting _ words' <- steps]

    -- An error before the end of the connection tells more than the end. A server that turns this
    -- client away sends its error without having read the first request.
    agreed :: [Greeting] -> [Either ConnectionCause Value] -> Either Unready [Value]
    agreed (Greeting importance _ : _) (Right refusing@(ErrorReply text) : rest)
      | turnsAway (serverErrorFromText text) || (importance == Required && not (lacksHello credentials refusing)),
        or [True | Left _ <- rest] =
        Left (refused text)
    agreed steps outcomes = either (Left . ended (length (takeWhile isRight outcomes))) Right (sequence outcomes)
      where
        ended answered cause = maybe (Refused cause) (HungUp . BrokenConnection . (unknownTo answered <>)) (peersEnd cause)
        unknownTo answered =
          "the server closed the connection at " <> concat [Char8.unpack name | Greeting _ (name : _) <- take 1 (drop answered steps)]
            <> ", as a proxy does that does not know this command: "

    peersEnd = \case
      ClosedByPeer -> Just "closed by the peer"
      BrokenConnection why -> Just why
      _ -> Nothing

    outcome = \case
      Right value -> Right (withoutAttributes value)
      Left (ConnectionError ConnectionFailure {connectionCause = cause}) -> Left cause
      Left other -> Left (BrokenConnection (show other))

    hello =
      Greeting Required $
        ["HELLO", "3"]
          <> maybe [] (\known -> ["AUTH", userOf known, passwordOf known]) credentials
          <> maybe [] (\name -> ["SETNAME", name]) (configClientName config)

    ping = Greeting Optional ["PING"]

    resp2 = password <> [Greeting Optional ["CLIENT", "SETNAME", name] | name <- maybeToList (configClientName config)] <> required <> courtesies

    password = Greeting Required . authenticationArguments <$> maybeToList credentials

    -- Part of the handshake, because no reply may be cached that was read before tracking began.
    tracking = case (use, configCaching config) of
      (SharedFor ForPrimary, Just caching) ->
        [ Greeting Required $
            ["CLIENT", "TRACKING", "ON"] <> case cachingTracking caching of
              TrackReads -> ["OPTIN"]
              TrackPrefixes prefixes -> "BCAST" : concatMap (\prefix -> ["PREFIX", prefix]) prefixes
        ]
      _ -> []

    required =
      [Greeting Required ["SELECT", decimal (configDatabase config)] | configDatabase config /= 0, use /= SharedFor ForControl]
        <> tracking
        -- Outside a cluster a replica answers reads without READONLY, and refuses that command.
        <> [Greeting Required ["READONLY"] | use == SharedFor ForReplica, isClusterConfig config]

    courtesies =
      [Greeting Optional ["CLIENT", "CAPA", "redirect"] | followsRedirects]
        <> [ Greeting Optional ["CLIENT", "SETINFO", "LIB-NAME", "redis-client-haskell"],
             Greeting Optional ["CLIENT", "SETINFO", "LIB-VER", libraryVersion]
           ]

    -- In a group, a replica must answer the reads that were meant for it, and the caller of a
    -- dedicated connection gets the replies that any other client would get.
    followsRedirects = case configTopology config of
      Standalone _ -> configFollowsRedirects config && use /= SharedFor ForControl
      Cluster _ -> False
      _ -> use == SharedFor ForPrimary

    userOf = fromMaybe "default" . credentialsUser
    decimal = Char8.pack . show

    -- The caller authenticates the connection itself.
    tolerant = use == Lent && configCallerAuthenticates config && isNothing credentials

-- | The AUTH command for these credentials.
authentication :: Credentials -> Request
authentication = request . authenticationArguments

authenticationArguments :: Credentials -> [ByteString]
authenticationArguments known = case credentialsUser known of
  -- One argument: servers before ACLs know no users.
  Nothing -> ["AUTH", passwordOf known]
  Just user -> ["AUTH", user, passwordOf known]

passwordOf :: Credentials -> ByteString
passwordOf = revealSecret . credentialsPassword

-- | Sent as LIB-VER; the package's version.
libraryVersion :: ByteString
libraryVersion = "0.1.0"

-- | The first refusal that matters, if there is one. A server that requires a password answers
-- NOAUTH to every command, also to the optional ones; so NOAUTH to those matters if no required
-- command was accepted. With the flag, NOAUTH does not count as a refusal.
verdict :: Maybe Credentials -> Bool -> [Greeting] -> [Value] -> Either ConnectionCause ()
verdict credentials tolerant steps replies =
  maybe (Right ()) (Left . refusal credentials) (listToMaybe [text | (Greeting importance _, ErrorReply text) <- answered, matters importance text])
  where
    answered = zip steps replies
    accepted = not (all isError [reply | (Greeting Required _, reply) <- answered])
    isError = \case
      ErrorReply _ -> True
      _ -> False
    matters importance text
      | "NOAUTH" `ByteString.isPrefixOf` text = not tolerant && (importance == Required || not accepted)
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

-- | Whether the answer to HELLO means that the handshake is to be tried with the commands of RESP2,
-- whose answers are clear. Old servers, proxies and users without the right to HELLO refuse it in many
-- ways, so the errors to be believed at once are listed: those of a server that knows HELLO, or would
-- refuse any command. Since 9.1 Valkey answers NOAUTH, not \"unknown command\", to a client that has
-- not authenticated. HELLO brings the credentials, so NOAUTH cannot be the answer of a server that
-- knows HELLO.
lacksHello :: Maybe Credentials -> Value -> Bool
lacksHello credentials = \case
  ErrorReply text -> case serverErrorCode said of
    "NOAUTH" -> isJust credentials
    "WRONGPASS" -> False
    _ -> not (turnsAway said || passes said)
    where
      said = serverErrorFromText text
  _ -> False

-- | Whether the error is one with which a server turns away every new client, and then hangs up.
turnsAway :: ServerError -> Bool
turnsAway said = lacksRoom said || serverErrorCode said == "DENIED"

-- | Whether the refusal may be over soon, without anybody changing a setting: the server has no room
-- for another client, runs a script, reads its data set, or has lost its primary or its cluster.
passes :: ServerError -> Bool
passes said = lacksRoom said || serverErrorCode said `elem` ["BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "TRYAGAIN"]

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
