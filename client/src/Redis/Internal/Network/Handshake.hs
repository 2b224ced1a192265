-- | What is said on a new connection before anybody else may speak.
--
-- Everything goes out at once, so it costs one round trip: HELLO 3 with the
-- credentials and the name, then what needs no answer to go on. A server that
-- does not know HELLO gets the words of RESP2 in a second round trip. Which
-- library this is (CLIENT SETINFO) is said too, and may be refused.
module Redis.Internal.Network.Handshake
  ( handshake,
    ConnectionRole (..),
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toLower)
import Data.Maybe (catMaybes, fromMaybe, isJust)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Protocol.Encode (Request, request)
import Redis.Value

-- | What a connection is for.
data ConnectionRole
  = -- | Any command.
    ForPrimary
  | -- | Reads from a replica of a cluster, which must be asked for it.
    ForReplica
  | -- | Commands that end what others do. It says no more than it must: a server
    -- that runs a script takes few commands.
    ForControl
  deriving stock (Eq, Ord, Show)

-- | One thing to say, and what its refusal means.
data Step = Step Importance Request

data Importance
  = Required
  | Optional
  deriving stock (Eq)

-- | Makes a connection ready for commands. Blocks for one or two round trips;
-- the caller sets the deadline.
handshake :: Config -> ConnectionRole -> Multiplexer -> IO (Either ConnectionCause ())
handshake config role mux = case configProtocol config of
  OnlyResp2 -> speak (resp2 <> common)
  PreferResp3 -> do
    outcomes <- send (hello : common)
    case outcomes of
      Right (reply : _) | lacksHello config reply -> speak (resp2 <> common)
      Right replies -> pure (verdict config (hello : common) replies)
      Left cause -> pure (Left cause)
  where
    speak steps = send steps >>= \replies -> pure (replies >>= verdict config steps)

    send :: [Step] -> IO (Either ConnectionCause [Value])
    send steps = do
      slots <- submitRun mux usualTerms [encoded | Step _ encoded <- steps]
      agreed steps <$> mapM (fmap outcome . waitSlotResult) slots

    -- A server that has no room says so in its first words and hangs up; what
    -- it said tells more than that it did.
    agreed (Step Required _ : _) (Right refused@(ErrorReply text) : rest)
      | not (lacksHello config refused), or [True | Left _ <- rest] = Left (refusal config text)
    agreed _ outcomes = sequence outcomes

    outcome = \case
      Reply value -> Right (withoutAttributes value)
      Failure (ConnectionError _ _ cause) -> Left cause
      Failure other -> Left (BrokenConnection (show other))

    hello =
      Step Required . request $
        ["HELLO", "3"]
          <> maybe [] (\known -> ["AUTH", userOf known, passwordOf known]) (configCredentials config)
          <> maybe [] (\name -> ["SETNAME", name]) (configClientName config)

    resp2 =
      catMaybes
        [ Step Required . authentication <$> configCredentials config,
          Step (if role == ForControl then Optional else Required) . (\name -> request ["CLIENT", "SETNAME", name]) <$> configClientName config
        ]

    authentication known = request $ case credentialsUser known of
      -- One argument: servers before ACLs know no users.
      Nothing -> ["AUTH", passwordOf known]
      Just user -> ["AUTH", user, passwordOf known]

    common =
      [Step Required (request ["SELECT", decimal (configDatabase config)]) | configDatabase config /= 0, role /= ForControl]
        <> [Step Required (request ["READONLY"]) | role == ForReplica]
        <> [ Step Optional (request ["CLIENT", "SETINFO", "LIB-NAME", "redis-client-haskell"]),
             Step Optional (request ["CLIENT", "SETINFO", "LIB-VER", libraryVersion])
           ]

    userOf = fromMaybe "default" . credentialsUser
    passwordOf = revealSecret . credentialsPassword
    decimal = Char8.pack . show

-- | Sent as LIB-VER; the package's version.
libraryVersion :: ByteString
libraryVersion = "0.1.0"

-- | The first refusal that matters. A server that wants a password says so to
-- every command, also to the optional ones.
verdict :: Config -> [Step] -> [Value] -> Either ConnectionCause ()
verdict config steps replies =
  case [text | (Step importance _, ErrorReply text) <- zip steps replies, importance == Required || "NOAUTH" `ByteString.isPrefixOf` text] of
    text : _ -> Left (refusal config text)
    [] -> Right ()

-- | What the server said, without the password: one that does not know AUTH
-- repeats its arguments (\"ERR unknown command \'AUTH\', with args beginning
-- with: …\"), and this ends in errors and logs. A long password it repeats in part,
-- so that all of that is left out.
refusal :: Config -> ByteString -> ConnectionCause
refusal config text =
  HandshakeRefused $ case credentialsPassword <$> configCredentials config of
    Just hidden
      | not (ByteString.null (revealSecret hidden)) -> said {serverErrorMessage = without (revealSecret hidden) (fst (ByteString.breakSubstring ", with args beginning with" (serverErrorMessage said)))}
    _ -> said
  where
    said = serverErrorFromText text
    without password message = case ByteString.breakSubstring password message of
      (before, found)
        | ByteString.null found -> before
        | otherwise -> before <> "<secret>" <> without password (ByteString.drop (ByteString.length password) found)

-- | Whether the answer to HELLO means that there is no such command, or not
-- that version of the protocol. Old servers and proxies say so in many ways, so
-- whatever else is wrong with HELLO is asked again in the words of RESP2, which
-- tell; only a server without room for another client is believed at once.
-- Valkey since 9.1 names no command as unknown to whoever has not logged in;
-- that would be no answer to the HELLO it knows, which brings the credentials.
lacksHello :: Config -> Value -> Bool
lacksHello config = \case
  ErrorReply text -> case serverErrorCode said of
    "NOPROTO" -> True
    "ERR" -> not ("max number of clients" `ByteString.isPrefixOf` serverErrorMessage said)
    "NOAUTH" -> isJust (configCredentials config)
    -- No code at all.
    _ -> any (`ByteString.isPrefixOf` Char8.map toLower text) ["unknown", "unsupported"]
    where
      said = serverErrorFromText text
  _ -> False
