-- | Sessions of a WAI application, kept by the server.
--
-- > application = withSessions client sessions $ \session request respond -> do
-- >   user <- sessionGet session "user"
-- >   …
-- >   -- at login, when the password was right:
-- >   sessionRotate session
-- >   sessionPut session "user" name
--
-- A session is a hash, @session:ID@, and the browser has its id in a cookie: 256 random bits of the operating
-- system. It is loaded when it is first asked for, made when something is first stored, and ends when
-- nobody has used it for 'sessionIdle', or is as old as 'sessionLifetime'. The clock is the server's.
--
-- == What is promised
--
-- An id that this library did not make, or that has ended, is never taken over: nobody can give
-- somebody else a session that he knows. 'sessionRotate' leaves the old id worthless, before what is
-- stored next is in the session. What has ended stays so: a late write of another request does not
-- bring it back ('sessionPut' says so).
--
-- The cookie has HttpOnly, Secure, SameSite=Lax and the prefix @__Host-@ unless said
-- otherwise.
--
-- == What is not
--
-- A cookie can only be set before the response begins: what is stored later, by a streamed body, is kept
-- if there was a session by then. Requests of one session run side by side; each field is written as a
-- whole, and the last one stands. Who can read the server's keys can take over sessions. After a
-- fail-over a session may be there again that was ended shortly before.
--
-- == When a reply is lost
--
-- Each step may be done again, since ids are new or lead to nothing, so the library does. What is left as
-- 'MaybeExecuted' matters in two places, in which others set a cookie and go on: a rotation that throws leaves
-- the old session or none, and never a login under an old id; and a 'sessionEnd' that throws, 'NotSent' too,
-- has perhaps not ended the session, which is then to be said to who believes to be logged out.
module Redis.Patterns.Session
  ( -- * How sessions are kept
    Sessions (sessionName, sessionIdle, sessionLifetime, sessionSecure, sessionSameSite, sessionRemembered),
    sessions,
    SameSite (..),

    -- * Using them
    withSessions,
    Session,
    sessionGet,
    sessionPut,
    sessionDelete,
    sessionRotate,
    sessionEnd,
  )
where

import Control.Concurrent.MVar
import Control.Monad (void)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, listToMaybe)
import Network.HTTP.Types (ResponseHeaders, hCookie)
import Network.Wai (Application, Request, mapResponseHeaders, requestHeaders)
import Redis
import Redis.Commands qualified as Commands
import Redis.Decode qualified as Decode
import Redis.Duration
import Redis.Patterns.Internal.Token
import Redis.Script

-- | How sessions are kept. Changed by its fields.
--
-- @since 0.1.0.0
data Sessions = Sessions
  { -- | The cookie, behind @__Host-@ if it is secure; and the keys, @NAME:ID@. @session@
    -- unless said otherwise.
    sessionName :: ByteString,
    -- | For how long it lives unused: 30 minutes unless said otherwise.
    sessionIdle :: Duration,
    -- | For how long it lives since it was made or rotated: 12 hours unless said
    -- otherwise.
    sessionLifetime :: Duration,
    -- | Whether the cookie travels by HTTPS only. 'True' unless said otherwise, as it is
    -- for a test.
    sessionSecure :: Bool,
    -- | 'Lax' unless said otherwise.
    sessionSameSite :: SameSite,
    -- | Whether the browser keeps the cookie for 'sessionIdle' when it is closed. 'False' unless said
    -- otherwise. If so, each response to a request that used the session sets the cookie.
    sessionRemembered :: Bool
  }
  deriving stock (Eq, Show)

-- | Which requests from other sites bring the cookie.
--
-- @since 0.1.0.0
data SameSite
  = -- | None.
    Strict
  | -- | Those that lead here, by a link.
    Lax
  | -- | All. What changes something must then have a protection of its own.
    Unrestricted
  deriving stock (Eq, Show)

-- | What is right for most.
--
-- @since 0.1.0.0
sessions :: Sessions
sessions =
  Sessions
    { sessionName = "session",
      sessionIdle = minutes 30,
      sessionLifetime = hours 12,
      sessionSecure = True,
      sessionSameSite = Lax,
      sessionRemembered = False
    }

-- | The session of a request. Its functions may be called from several threads, and exclude
-- each other. Each throws 'Error'.
--
-- @since 0.1.0.0
data Session = Session
  { sessionClient :: Client,
    sessionKept :: Sessions,
    sessionState :: MVar State
  }

data State = State
  { stateSeat :: Seat,
    -- | What the response says to the browser.
    stateCookie :: Cookie
  }

data Seat
  = -- | The browser has brought this id, and it was not looked for yet.
    Presented ByteString
  | Vacant
  | Seated ByteString (Map ByteString ByteString)

data Cookie
  = Silent
  | Assigned ByteString
  | Cleared

-- | Gives each request its session. Costs nothing until the session is used.
--
-- @since 0.1.0.0
withSessions :: Client -> Sessions -> (Session -> Application) -> Application
withSessions client kept application request respond = do
  state <- newMVar (State (maybe Vacant Presented (presentedId kept request)) Silent)
  application (Session client kept state) request $ \response -> do
    State {stateCookie} <- readMVar state
    respond (mapResponseHeaders (cookieHeaders kept stateCookie <>) response)

-- | What was stored under this name. The first use of a session in a request costs a round trip,
-- the next ones none.
--
-- @since 0.1.0.0
sessionGet :: Session -> ByteString -> IO (Maybe ByteString)
sessionGet session field = modifyMVar (sessionState session) $ \state -> do
  loaded <- load session state
  pure
    ( loaded,
      case stateSeat loaded of
        Seated _ fields -> Map.lookup field fields
        _ -> Nothing
    )

-- | Stores under this name; makes the session if there is none. 'False': the session has ended
-- since this request began, and nothing was stored. One round trip.
--
-- @since 0.1.0.0
sessionPut :: Session -> ByteString -> ByteString -> IO Bool
sessionPut session field content = change session $ \case
  Nothing -> do
    new <- newToken 32
    run (sessionClient session) (making (sessionKept session) new [(field, content)])
    pure (Just (new, Map.singleton field content))
  Just (known, fields) -> do
    done <- run (sessionClient session) (putting (sessionKept session) known field (Just content))
    pure (if done then Just (known, Map.insert field content fields) else Nothing)

-- | Removes what was stored under this name. 'False': there is no session, or it has ended since this
-- request began. One round trip.
--
-- @since 0.1.0.0
sessionDelete :: Session -> ByteString -> IO Bool
sessionDelete session field = change session $ \case
  Nothing -> pure Nothing
  Just (known, fields) -> do
    done <- run (sessionClient session) (putting (sessionKept session) known field Nothing)
    pure (if done then Just (known, Map.delete field fields) else Nothing)

-- | Gives the session a new id, and ends the old one with everything that knows it. To be called
-- when who uses it changes: at login, before it is stored who that is. Makes a session if there
-- is none. Three round trips, and one if the session was not used before.
--
-- What was stored before is in the new session. What another request stores meanwhile is refused
-- ('sessionPut' says 'False'), or is in it. If it throws, the session may have ended.
--
-- @since 0.1.0.0
sessionRotate :: Session -> IO ()
sessionRotate session@Session {sessionClient, sessionKept} = void . change session $ \held -> do
  new <- newToken 32
  -- Closed first: nothing that is stored from here on could be lost.
  fields <- maybe (pure Nothing) (run sessionClient . closing sessionKept . fst) held
  let kept = fromMaybe Map.empty fields
  run sessionClient (making sessionKept new (Map.toList kept))
  mapM_ (run sessionClient . ending sessionKept . fst) held
  pure (Just (new, kept))

-- | Ends the session: at logout. One round trip.
--
-- @since 0.1.0.0
sessionEnd :: Session -> IO ()
sessionEnd Session {sessionClient, sessionKept, sessionState} = modifyMVar_ sessionState $ \State {stateSeat} -> do
  let end = run sessionClient . ending sessionKept
  case stateSeat of
    Presented known -> end known
    Seated known _ -> end known
    Vacant -> pure ()
  pure (State Vacant Cleared)

-- | The answer is whether there is a session afterwards.
change :: Session -> (Maybe (ByteString, Map ByteString ByteString) -> IO (Maybe (ByteString, Map ByteString ByteString))) -> IO Bool
change session action = modifyMVar (sessionState session) $ \state -> do
  loaded <- load session state
  let held = case stateSeat loaded of
        Seated known fields -> Just (known, fields)
        _ -> Nothing
  action held >>= \case
    Just (known, fields)
      | Just known == (fst <$> held) -> pure (loaded {stateSeat = Seated known fields}, True)
      | otherwise -> pure (State (Seated known fields) (Assigned known), True)
    Nothing -> pure (maybe loaded (const (State Vacant Cleared)) held, False)

load :: Session -> State -> IO State
load Session {sessionClient, sessionKept} state = case stateSeat state of
  Presented known ->
    run sessionClient (loading sessionKept known) >>= \case
      Just fields -> pure (State (Seated known fields) (if sessionRemembered sessionKept then Assigned known else Silent))
      -- Not taken over: what comes next has an id of its own.
      Nothing -> pure (State Vacant Cleared)
  _ -> pure state

-- Cookies

cookieName :: Sessions -> ByteString
cookieName Sessions {sessionName, sessionSecure} = (if sessionSecure then "__Host-" else "") <> sessionName

-- | What cannot be an id is none.
presentedId :: Sessions -> Request -> Maybe ByteString
presentedId kept request =
  listToMaybe
    [ content
      | (header, cookies) <- requestHeaders request,
        header == hCookie,
        cookie <- Char8.split ';' cookies,
        let (name, rest) = Char8.break (== '=') (Char8.dropWhile (== ' ') cookie),
        name == cookieName kept,
        let content = ByteString.drop 1 rest,
        ByteString.length content == 64,
        Char8.all (`elem` ("0123456789abcdef" :: String)) content
    ]

cookieHeaders :: Sessions -> Cookie -> ResponseHeaders
cookieHeaders kept = \case
  Silent -> []
  Assigned known -> [cookie known (if sessionRemembered kept then "; Max-Age=" <> number (inMilliseconds (sessionIdle kept) `div` 1000) else "")]
  Cleared -> [cookie "" "; Max-Age=0"]
  where
    cookie content age =
      ( "Set-Cookie",
        cookieName kept <> "=" <> content <> "; Path=/; HttpOnly" <> (if sessionSecure kept then "; Secure" else "") <> sameSite <> age
      )
    sameSite = case sessionSameSite kept of
      Strict -> "; SameSite=Strict"
      Lax -> "; SameSite=Lax"
      Unrestricted -> "; SameSite=None"

-- Commands. The fields of the hash: c is when it was made, m that it is being moved to another
-- id, and the names of what is stored follow a colon.

keyOf :: Sessions -> ByteString -> ByteString
keyOf Sessions {sessionName} known = sessionName <> ":" <> known

times :: Sessions -> [ByteString]
times Sessions {sessionIdle, sessionLifetime} = map (number . inMilliseconds) [sessionIdle, sessionLifetime]

-- | What is in it; 'Nothing' if it has ended. Counts as a use.
loading :: Sessions -> ByteString -> Command (Maybe (Map ByteString ByteString))
loading kept known = repeatable (evalScript loadScript [keyOf kept known] (times kept) `decodedBy` stored)

-- | What is in it, also if it is closed already. From now on nothing is stored there, and who loads it
-- finds it ended.
closing :: Sessions -> ByteString -> Command (Maybe (Map ByteString ByteString))
closing kept known = repeatable (evalScript closeScript [keyOf kept known] [] `decodedBy` stored)

stored :: Decode.Decoder (Maybe (Map ByteString ByteString))
stored reply = do
  fields <- Decode.mapping Decode.bytes Decode.bytes reply
  pure $
    if Map.member "c" fields
      then Just (Map.mapKeysMonotonic (ByteString.drop 1) (Map.filterWithKey (\name _ -> ":" `ByteString.isPrefixOf` name) fields))
      else Nothing

-- | Whether it could be done. Done twice it is as done once.
putting :: Sessions -> ByteString -> ByteString -> Maybe ByteString -> Command Bool
putting kept known field content =
  repeatable (evalScript putScript [keyOf kept known] (times kept <> [":" <> field] <> maybe [] pure content) `decodedBy` Decode.boolean)

making :: Sessions -> ByteString -> [(ByteString, ByteString)] -> Command ()
making kept new fields =
  repeatable (evalScript makeScript [keyOf kept new] (times kept <> concat [[":" <> name, content] | (name, content) <- fields]) `decodedBy` Decode.ignored)

ending :: Sessions -> ByteString -> Command ()
ending kept known = repeatable (void (Commands.unlink (pure (keyOf kept known))))

-- What every use begins with: whether there is one, and a new term.
use :: ByteString -> ByteString
use otherwise' =
  "local made = redis.call('HGET', KEYS[1], 'c')\n\
  \if not made or redis.call('HEXISTS', KEYS[1], 'm') == 1 then return "
    <> otherwise'
    <> " end\n\
       \local time = redis.call('TIME')\n\
       \local rest = tonumber(made) + tonumber(ARGV[2]) - (time[1] * 1000 + math.floor(time[2] / 1000))\n\
       \if rest <= 0 then\n\
       \  redis.call('DEL', KEYS[1])\n\
       \  return "
    <> otherwise'
    <> "\n\
       \end\n\
       \redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.min(rest, tonumber(ARGV[1]))))\n"

loadScript, closeScript, putScript, makeScript :: Script
loadScript = script (use "{}" <> "return redis.call('HGETALL', KEYS[1])")
closeScript =
  script
    "if redis.call('EXISTS', KEYS[1]) == 0 then return {} end\n\
    \redis.call('HSET', KEYS[1], 'm', 1)\n\
    \return redis.call('HGETALL', KEYS[1])"
putScript =
  script $
    use "0"
      <> "if ARGV[4] then redis.call('HSET', KEYS[1], ARGV[3], ARGV[4]) else redis.call('HDEL', KEYS[1], ARGV[3]) end\n\
         \return 1"
makeScript =
  script
    "local time = redis.call('TIME')\n\
    \redis.call('HSET', KEYS[1], 'c', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))\n\
    \for at = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end\n\
    \redis.call('PEXPIRE', KEYS[1], ARGV[1])\n\
    \return 1"

number :: Int64 -> ByteString
number = Char8.pack . show
