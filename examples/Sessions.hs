-- | Sessions of a WAI application: log in, come back, log out.
module Sessions (main) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Network.HTTP.Types (hCookie, status200, status401, status404, statusCode)
import Network.Wai (Application, Request, defaultRequest, rawPathInfo, requestHeaders, responseHeaders, responseLBS, responseStatus)
import Network.Wai.Internal (ResponseReceived (..))
import Redis
import Redis.Patterns.Session
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    -- Without HTTPS, as here, the browser would not send a secure cookie.
    let kept = sessions {sessionName = "example-session", sessionIdle = seconds 60, sessionSecure = False}
        visit = answerOf (withSessions client kept service)
    (stranger, _) <- visit (asking "/" Nothing)
    (welcomed, given) <- visit (asking "/login" Nothing)
    let cookie = Char8.takeWhile (/= ';') <$> given
    (known, _) <- visit (asking "/" cookie)
    (leaving, _) <- visit (asking "/logout" cookie)
    -- A browser that kept the cookie gains nothing by it.
    (late, _) <- visit (asking "/" cookie)
    print [stranger, welcomed, known, leaving, late]

service :: Session -> Application
service session request respond = case rawPathInfo request of
  "/" -> do
    user <- sessionGet session "user"
    respond (responseLBS (maybe status401 (const status200) user) [] "")
  "/login" -> do
    -- First a new id: an id that somebody has planted before is worth nothing then.
    sessionRotate session
    stored <- sessionPut session "user" "ada"
    respond (responseLBS (if stored then status200 else status401) [] "")
  "/logout" -> do
    sessionEnd session
    respond (responseLBS status200 [] "")
  _ -> respond (responseLBS status404 [] "")

asking :: ByteString -> Maybe ByteString -> Request
asking path cookie = defaultRequest {rawPathInfo = path, requestHeaders = [(hCookie, content) | Just content <- [cookie]]}

-- | The status of the response, and the cookie that it sets.
answerOf :: Application -> Request -> IO (Int, Maybe ByteString)
answerOf application request = do
  answer <- newIORef (0, Nothing)
  _ <- application request $ \response -> do
    writeIORef answer (statusCode (responseStatus response), lookup "Set-Cookie" (responseHeaders response))
    pure ResponseReceived
  readIORef answer
