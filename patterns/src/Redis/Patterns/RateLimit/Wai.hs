-- | A rate limiter in front of a WAI application.
--
-- > application' = rateLimited client (limiting (gcra 100 (seconds 60)) (byHeader "X-Api-Key")) application
--
-- Each request costs one round trip before it is served. Responses say what is left:
-- @RateLimit-Limit@, @RateLimit-Remaining@ and @RateLimit-Reset@ (seconds until all is as new). Who
-- is refused gets 429 with @Retry-After@, in whole seconds, rounded up.
--
-- == Open or closed
--
-- If the server does not answer, a limiter must guess, and which guess is right depends on what
-- it protects. 'FailOpen' serves: the limit protects from too much load, and a site that is down with
-- its limiter is worse. 'FailClosed' answers 503: the limit protects from guessing passwords, and whoever
-- can bring the limiter down must gain nothing. A reply that was lost is asked for again first, and may
-- then count twice; it never lets anybody through who is over the limit.
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

-- | How requests are limited. Made by 'limiting', and changed by its fields.
--
-- @since 0.1.0.0
data Limiting = Limiting
  { limitingRule :: RateLimit,
    -- | Whose request it is; those of one key are counted together, under @limit:KEY@.
    -- 'Nothing': not limited.
    limitingKey :: Request -> Maybe ByteString,
    -- | 'FailOpen' unless said otherwise.
    limitingWithoutAnswer :: WithoutAnswer,
    -- | How long to wait for the answer: 0.5 s unless said otherwise.
    limitingPatience :: Duration,
    -- | What answers who is over the limit. The headers are added to it.
    limitingRefused :: Allowance -> Application,
    -- | Told when there was no answer. Nothing unless said otherwise.
    limitingOnError :: Error -> IO ()
  }

-- | What becomes of a request when nobody knows whether it is within the limit.
--
-- @since 0.1.0.0
data WithoutAnswer
  = -- | It is served.
    FailOpen
  | -- | It is answered with 503.
    FailClosed
  deriving stock (Eq, Show)

-- | This limit, for each key.
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

-- | By the content of a header. Requests without it are not limited. Only as good as whoever
-- sets the header: one that clients choose freely limits nobody.
--
-- @since 0.1.0.0
byHeader :: HeaderName -> Request -> Maybe ByteString
byHeader name = lookup name . requestHeaders

-- | Serves what is within the limit.
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
        -- Whether it was counted ('errorDelivery') makes no difference any more: it was
        -- not answered.
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
