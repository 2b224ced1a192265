-- | Sessions of a WAI application, stored on the server.
--
-- > application = withSessions client sessions $ \session request respond -> do
-- >   user <- sessionGet session "user"
-- >   …
-- >   -- at login, when the password was right:
-- >   sessionRotate session
-- >   sessionPut session "user" name
--
-- A session is a hash, @session:ID@. The browser has its id in a cookie: 256 random bits from the
-- operating system. The session is loaded when the application first reads it, and created when the
-- application first stores something. It ends when it has not been used for 'sessionIdle', or is
-- older than 'sessionLifetime'. The clock is the server's.
--
-- == What is promised
--
-- An id that this library did not create, or whose session has ended, is never accepted. So an
-- attacker cannot plant a session id that he knows in another user's browser. 'sessionRotate' makes
-- the old id worthless before the application can store anything more in the session. A late write by
-- another request does not bring a session back that has ended ('sessionPut' returns 'False').
--
-- The cookie has HttpOnly, Secure, SameSite=Lax and the prefix @__Host-@ by default.
--
-- == What is not promised
--
-- A cookie can only be set before the response begins: what a streamed body stores after that is
-- kept only if the session existed before. Requests of one session run side by side; each field is
-- written as a whole, and the last write stays. For five minutes after a rotation or an end, a request
-- with the id from before it cannot begin a session, so its cookie cannot replace that of a login. One
-- that takes longer until it first uses its session can, and so can one that has begun a session
-- before the login and is answered after it. Whoever can read the server's keys can take over sessions.
-- After a fail-over, a session that was ended shortly before may exist again.
--
-- == When a reply is lost
--
-- Each step may run again, since new ids are unique and ended ids lead to nothing. An error matters in
-- two places, where other implementations set a cookie and go on. If 'sessionRotate' throws, the browser
-- has the old session or none, and never a login under an old id. If 'sessionEnd' throws, even with
-- 'NotSent', the session may not have ended, and the application should tell the user, who believes that he is logged out.
module Redis.Patterns.Session
  ( -- * Configuration
    Sessions (sessionName, sessionIdle, sessionLifetime, sessionSecure, sessionSameSite, sessionRemembered),
    sessions,
    SameSite (..),

    -- * Use
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
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, listToMaybe)
import Network.HTTP.Types (ResponseHeaders, hCookie)
import Network.Wai (Application, Request, mapResponseHeaders, requestHeaders)
import Redis
import Redis.Decode qualified as Decode
import Redis.Duration
import Redis.Patterns.Internal.Token
import Redis.Script

-- | The settings of sessions. Start from 'sessions', and change its fields.
data Sessions = Sessions
  { -- | The name of the cookie, prefixed with @__Host-@ if it is secure, and of the
    -- keys, @NAME:ID@. Default: @session@.
    sessionName :: ByteString,
    -- | How long a session lives without being used. Default: 30 minutes.
    sessionIdle :: Duration,
    -- | How long a session lives after it was created or rotated. Default: 12 hours.
    sessionLifetime :: Duration,
    -- | Whether the browser sends the cookie over HTTPS only. Default: 'True'. 'False' is for
    -- tests.
    sessionSecure :: Bool,
    -- | Which requests from other sites carry the cookie. Default: 'Lax'.
    sessionSameSite :: SameSite,
    -- | Whether the browser keeps the cookie for 'sessionLifetime', also after it was closed. The
    -- session itself ends after 'sessionIdle' all the same. Default: 'False'.
    sessionRemembered :: Bool
  }
  deriving stock (Eq, Show)

-- | Which requests from other sites carry the cookie.
data SameSite
  = -- | None.
    Strict
  | -- | Those that navigate to this site, by a link.
    Lax
  | -- | All. Requests that change something then need another protection against forgery.
    Unrestricted
  deriving stock (Eq, Show)

-- | The default settings, which suit most applications.
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

-- | The session of a request. Its functions may be called from several threads, which take turns.
-- Each of them throws 'Error'.
data Session = Session
  { sessionClient :: Client,
    sessionKept :: Sessions,
    sessionState :: MVar State
  }

data State = State
  { stateSeat :: Seat,
    -- | The cookie that the response sets.
    stateCookie :: Cookie
  }

data Seat
  = -- | The browser sent this id, which has not been looked up yet.
    Presented ByteString
  | -- | There is no session. The browser may have sent an id that leads to none.
    Vacant (Maybe ByteString)
  | Seated ByteString (Map ByteString ByteString)
  | -- | The session was ended or rotated by another request. Only a rotation creates another: a session that
    -- a write created would have its cookie replace that of a login by that request.
    Ended

data Cookie
  = Silent
  | -- | Only if this request created the session or its id: a request that sent the id back that it
    -- was given could replace the cookie of a login by another request.
    Assigned ByteString
  | Cleared

-- | Gives each request its session. Costs nothing until the application uses the session.
withSessions :: Client -> Sessions -> (Session -> Application) -> Application
withSessions client kept application request respond = do
  state <- newMVar (State (maybe (Vacant Nothing) Presented (presentedId kept request)) Silent)
  application (Session client kept state) request $ \response -> do
    State {stateCookie} <- readMVar state
    respond (mapResponseHeaders (cookieHeaders kept stateCookie <>) response)

-- | Reads the field of this name. The first use of the session in a request costs one round trip,
-- later reads cost none.
sessionGet :: Session -> ByteString -> IO (Maybe ByteString)
sessionGet session field = modifyMVar (sessionState session) $ \state -> do
  loaded <- load session state
  pure (loaded, case stateSeat loaded of Seated _ fields -> Map.lookup field fields; _ -> Nothing)

-- | Stores a field under this name, and creates the session if there is none. 'False': another request
-- has ended or rotated the session since this one first used it, or in the last five minutes;
-- nothing was stored, nor will be until 'sessionRotate'. One round trip.
sessionPut :: Session -> ByteString -> ByteString -> IO Bool
sessionPut session field content = change session $ \case
  Seated known fields -> do
    done <- run (sessionClient session) (putting (sessionKept session) known field (Just content))
    pure (if done then Just (known, Map.insert field content fields) else Nothing)
  Ended -> pure Nothing
  _ -> do
    new <- newToken 32
    run (sessionClient session) (making (sessionKept session) new [(field, content)])
    pure (Just (new, Map.singleton field content))

-- | Removes the field of this name. 'False': there is no session, or it has ended since this
-- request first used it. One round trip.
sessionDelete :: Session -> ByteString -> IO Bool
sessionDelete session field = change session $ \case
  Seated known fields -> do
    done <- run (sessionClient session) (putting (sessionKept session) known field Nothing)
    pure (if done then Just (known, Map.delete field fields) else Nothing)
  _ -> pure Nothing

-- | Gives the session a new id, and ends the session of the old one, for every request that uses
-- it. Call this when the session's user changes: at login, before you store who the user is.
-- Creates a session if there is none. Two round trips, and one more if this request has not used
-- the session yet. If this throws, the session may have ended.
--
-- Fields that were stored before are in the new session; if two requests rotate one session at the
-- same time, in both new ones. A write by another request at the same time is either refused
-- ('sessionPut' returns 'False') or is in the new session.
sessionRotate :: Session -> IO ()
sessionRotate session@Session {sessionClient, sessionKept} = void . change session $ \seat -> do
  new <- newToken 32
  -- The old session is closed first, so no later write to it can succeed and then be lost. It keeps its
  -- fields for as long as it is remembered: another request that has loaded it may rotate it, too.
  fields <- case seat of
    Seated known _ -> run sessionClient (closing sessionKept known)
    _ -> Nothing <$ mapM_ (run sessionClient . ending sessionKept) (sentId seat)
  let kept = fromMaybe Map.empty fields
  run sessionClient (making sessionKept new (Map.toList kept))
  pure (Just (new, kept))

-- | Ends the session, for a logout, and has the browser delete the cookie. Nothing else does that: a
-- session that was not found may have been rotated by another request, whose response has set the
-- new cookie already. One round trip.
sessionEnd :: Session -> IO ()
sessionEnd Session {sessionClient, sessionKept, sessionState} = modifyMVar_ sessionState $ \State {stateSeat} -> do
  mapM_ (run sessionClient . ending sessionKept) (sentId stateSeat)
  pure (State (Vacant Nothing) Cleared)

-- | Loads the session and changes it; returns whether there is a session afterwards. The action gets
-- the seat, which is not 'Presented' any more, and returns the session's id and fields.
change :: Session -> (Seat -> IO (Maybe (ByteString, Map ByteString ByteString))) -> IO Bool
change session action = modifyMVar (sessionState session) $ \state -> do
  loaded <- load session state
  let held = seatedId (stateSeat loaded)
  action (stateSeat loaded) >>= \case
    Just (known, fields)
      | Just known == held -> pure (loaded {stateSeat = Seated known fields}, True)
      | otherwise -> pure (State (Seated known fields) (Assigned known), True)
    Nothing -> pure (maybe loaded (const (State Ended Silent)) held, False)

seatedId :: Seat -> Maybe ByteString
seatedId = \case
  Seated known _ -> Just known
  _ -> Nothing

-- | The id that leads to the session, or that the browser sent and that leads to none.
sentId :: Seat -> Maybe ByteString
sentId = \case
  Presented known -> Just known
  Seated known _ -> Just known
  Vacant known -> known
  Ended -> Nothing

load :: Session -> State -> IO State
load Session {sessionClient, sessionKept} state = case stateSeat state of
  Presented known ->
    run sessionClient (loading sessionKept known) >>= \case
      Left () -> pure (State Ended Silent)
      Right (Just fields) -> pure (State (Seated known fields) Silent)
      -- The unknown id is not accepted: a session that is created later gets a new id. But the
      -- cookie stays: the browser may have a new one by now, from the response to a login.
      Right Nothing -> pure (State (Vacant (Just known)) Silent)
  _ -> pure state

-- Cookies

cookieName :: Sessions -> ByteString
cookieName Sessions {sessionName, sessionSecure} = (if sessionSecure then "__Host-" else "") <> sessionName

-- | The id that the browser sent, if it has the form of an id.
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
  Assigned known -> [cookie known (if sessionRemembered kept then "; Max-Age=" <> number (inMilliseconds (sessionLifetime kept) `div` 1000) else "")]
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

-- Commands. The fields of the hash: c is the time of its creation; m is set when the session moves
-- to another id or has ended, and stays for five minutes; the names of stored fields follow a colon.

keyOf :: Sessions -> ByteString -> ByteString
keyOf Sessions {sessionName} known = sessionName <> ":" <> known

times :: Sessions -> [ByteString]
times Sessions {sessionIdle, sessionLifetime} = map (number . inMilliseconds) [sessionIdle, sessionLifetime]

-- | Reads the stored fields; 'Nothing' if there is no session, @Left@ if it was ended or rotated lately.
-- Counts as a use.
loading :: Sessions -> ByteString -> Command (Either () (Maybe (Map ByteString ByteString)))
loading kept known =
  idempotent (evalScript loadScript [keyOf kept known] (times kept) `decodedBy` (fmap (maybe (Left ()) Right) . Decode.nullable stored))

-- | Closes the session and returns its fields, also if it is closed already. From now on nothing
-- can be stored in it, and a request that loads it finds that it has ended.
closing :: Sessions -> ByteString -> Command (Maybe (Map ByteString ByteString))
closing kept known = idempotent (evalScript closeScript [keyOf kept known] [] `decodedBy` stored)

stored :: Decode.Decoder (Maybe (Map ByteString ByteString))
stored reply = do
  fields <- Decode.mapping Decode.bytes Decode.bytes reply
  pure $
    if Map.member "c" fields
      then Just (Map.mapKeysMonotonic (ByteString.drop 1) (Map.filterWithKey (\name _ -> ":" `ByteString.isPrefixOf` name) fields))
      else Nothing

-- | Stores or removes a field; whether the session still existed. Running it twice has the same
-- effect as running it once.
putting :: Sessions -> ByteString -> ByteString -> Maybe ByteString -> Command Bool
putting kept known field content =
  idempotent (evalScript putScript [keyOf kept known] (times kept <> [":" <> field] <> maybe [] pure content) `decodedBy` Decode.boolean)

making :: Sessions -> ByteString -> [(ByteString, ByteString)] -> Command ()
making kept new fields =
  idempotent (evalScript makeScript [keyOf kept new] (times kept <> concat [[":" <> name, content] | (name, content) <- fields]) `decodedBy` Decode.ignored)

ending :: Sessions -> ByteString -> Command ()
ending kept known = idempotent (evalScript endScript [keyOf kept known] [] `decodedBy` Decode.ignored)

-- Each use begins with this: check that the session exists, and begin a new idle period.
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

loadScript, closeScript, endScript, putScript, makeScript :: Script
loadScript =
  script $
    "if redis.call('HEXISTS', KEYS[1], 'm') == 1 then return false end\n"
      <> use "{}"
      <> "return redis.call('HGETALL', KEYS[1])"
closeScript = script (over <> "return redis.call('HGETALL', KEYS[1])")
endScript = script ("redis.call('DEL', KEYS[1])\n" <> over <> "return 1")
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

-- | Remembers that the session is over.
over :: ByteString
over = "redis.call('HSET', KEYS[1], 'm', 1)\nredis.call('PEXPIRE', KEYS[1], 300000)\n"
