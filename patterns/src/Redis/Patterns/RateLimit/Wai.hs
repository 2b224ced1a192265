-- | A rate limiter in front of a WAI application.
--
-- > application' = rateLimited client (limiting (gcra 100 (seconds 60)) (byHeader "X-Api-Key")) application
--
-- Each request costs one round trip before it is served. Responses report the state of the limit:
-- @RateLimit-Limit@, @RateLimit-Remaining@ and @RateLimit-Reset@ (seconds until all is as new). Who
-- is refused gets 429 with @Retry-After@, in whole seconds, rounded up.
--
-- == Open or closed
--
-- If the server does not answer, a limiter must guess. The right guess depends on what it protects.
-- 'FailOpen' serves the request: use it for a limit that protects from too much load, since a site
-- that is down together with its limiter is worse. 'FailClosed' answers 503: use it for a limit
-- that protects from guessing passwords, since an attacker who can bring the limiter down must gain
-- nothing. If a reply is lost, the limiter asks again first; that may count the request twice, but
-- never allows one that is over the limit.
module Redis.Patterns.RateLimit.Wai
  ( rateLimited,
    Limiting (limitingKey, limitingWithoutAnswer, limitingPatience, limitingRefused, limitingOnError),
    limiting,
    WithoutAnswer (..),
    byHeader,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Network.HTTP.Types (HeaderName, ResponseHeaders, hContentType, status429, status503)
import Network.Wai (Application, Middleware, Request, mapResponseHeaders, requestHeaders, responseLBS)
import Redis
import Redis.Duration
import Redis.Patterns.RateLimit

-- | The settings of the limiter. Made by 'limiting', and changed by its fields.
--
-- @since 0.1.0.0
data Limiting = Limiting
  { limitingRule :: RateLimit,
    -- | The key of a request; requests of one key are counted together, under @limit:KEY@.
    -- 'Nothing': the request is not limited.
    limitingKey :: Request -> Maybe ByteString,
    -- | What happens if the server does not answer. Default: 'FailOpen'.
    limitingWithoutAnswer :: WithoutAnswer,
    -- | How long to wait for the server's answer. Default: 0.5 s.
    limitingPatience :: Duration,
    -- | The application that answers requests over the limit. The headers are added to its
    -- response.
    limitingRefused :: Allowance -> Application,
    -- | Called with the error when the server did not answer. Does nothing by default.
    limitingOnError :: Error -> IO ()
  }

-- | What happens to a request if it is unknown whether it is within the limit.
--
-- @since 0.1.0.0
data WithoutAnswer
  = -- | It is served.
    FailOpen
  | -- | It is answered with 503.
    FailClosed
  deriving stock (Eq, Show)

-- | This limit, applied to each key, with the default settings.
--
-- @since 0.1.0.0
limiting :: RateLimit -> (Request -> Maybe ByteString) -> Limiting
limiting rule key =
  Limiting
    { limitingRule = rule,
      limitingKey = key,
      limitingWithoutAnswer = FailOpen,
      limitingPatience = seconds 0.5,
      limitingRefused = \_ _ respond -> respond (responseLBS status429 [(hContentType, "text/plain")] "too many requests"),
      limitingOnError = const (pure ())
    }

-- | The content of a header, as a key. Requests without the header are not limited. The limit is
-- only as good as the source of the header: one that clients choose freely limits nobody.
--
-- @since 0.1.0.0
byHeader :: HeaderName -> Request -> Maybe ByteString
byHeader name = lookup name . requestHeaders

-- | Serves the requests that are within the limit, and refuses the others.
--
-- @since 0.1.0.0
rateLimited :: Client -> Limiting -> Middleware
rateLimited client Limiting {limitingRule, limitingKey, limitingWithoutAnswer, limitingPatience, limitingRefused, limitingOnError} application request respond =
  case limitingKey request of
    Nothing -> application request respond
    Just key ->
      tryRun client (timeLimit limitingPatience (attempt limitingRule ("limit:" <> key) 1)) >>= \case
        Right answer
          | allowed answer -> application request (respond . mapResponseHeaders (<> told answer))
          | otherwise -> limitingRefused answer request (respond . mapResponseHeaders (<> (told answer <> later answer)))
        -- It does not matter whether the request was counted ('errorDelivery'): the library has
        -- asked again for as long as there was time.
        Left failure -> do
          limitingOnError failure
          case limitingWithoutAnswer of
            FailOpen -> application request respond
            FailClosed -> respond (responseLBS status503 [(hContentType, "text/plain")] "try again later")
  where
    told :: Allowance -> ResponseHeaders
    told answer =
      [ ("RateLimit-Limit", number (limitCount limitingRule)),
        ("RateLimit-Remaining", number (remaining answer)),
        ("RateLimit-Reset", wholeSeconds (resetAfter answer))
      ]
    later answer = [("Retry-After", wholeSeconds wait) | Just wait <- [retryAfter answer]]

wholeSeconds :: Duration -> ByteString
wholeSeconds duration = number ((inMicroseconds duration + 999999) `div` 1000000)

number :: Int64 -> ByteString
number = Char8.pack . show
