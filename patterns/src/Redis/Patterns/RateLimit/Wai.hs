-- | A rate limiter in front of a WAI application.
--
-- > application' = rateLimited client (limiting (gcra 100 (seconds 60)) (byHeader "X-Api-Key" byPeer)) application
--
-- Each request costs one round trip before it is served. Responses report the state of the limit:
-- @RateLimit-Limit@, @RateLimit-Remaining@ and @RateLimit-Reset@ (seconds until all is as new). Who
-- is refused gets 429 with @Retry-After@, in whole seconds, rounded up.
--
-- == Open or closed
--
-- If the server does not answer, a limiter must guess. 'FailOpen' serves the request: use it for a limit
-- that protects from too much load, since a site that is down together with its limiter is worse.
-- 'FailClosed' answers 503: use it for a limit that protects from guessing passwords, since an attacker
-- who can bring the limiter down must gain nothing. If a reply is lost, the limiter asks again first;
-- that may count the request twice, but never allows one that is over the limit.
module Redis.Patterns.RateLimit.Wai
  ( rateLimited,
    Limiting (limitingKey, limitingWithoutAnswer, limitingTimeout, limitingRefused, limitingOnError),
    limiting,
    WithoutAnswer (..),

    -- * Keys
    byHeader,
    byPeer,
    byForwarded,
    allTogether,
    unlimited,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IP (IP (..), fromIPv6b, fromSockAddr, makeAddrRange, toIPv4)
import Network.HTTP.Types (HeaderName, ResponseHeaders, hContentType, status429, status503)
import Network.Wai (Application, Middleware, Request, mapResponseHeaders, remoteHost, requestHeaders, responseLBS)
import Redis
import Redis.Duration
import Redis.Patterns.Internal.Token (number)
import Redis.Patterns.RateLimit
import Text.Read (readMaybe)

-- | The settings of the limiter. Made by 'limiting', and changed by its fields.
data Limiting = Limiting
  { limitingRule :: RateLimit,
    -- | The key of a request; requests of one key are counted together, under @limit:KEY@.
    -- 'Nothing': the request is not limited. 'byHeader', 'byPeer' and 'byForwarded' make keys.
    limitingKey :: Request -> Maybe ByteString,
    -- | What happens if the server does not answer. Default: 'FailOpen'.
    limitingWithoutAnswer :: WithoutAnswer,
    -- | How long to wait for the server's answer. Default: 0.5 s.
    limitingTimeout :: Duration,
    -- | The application that answers requests over the limit. The headers are added to its
    -- response.
    limitingRefused :: Allowance -> Application,
    -- | Called with the error when the server did not answer. Does nothing by default.
    limitingOnError :: Error -> IO ()
  }

-- | What happens to a request if it is unknown whether it is within the limit.
data WithoutAnswer
  = -- | It is served.
    FailOpen
  | -- | It is answered with 503.
    FailClosed
  deriving stock (Eq, Show)

-- | This limit, applied to each key, with the default settings.
limiting :: RateLimit -> (Request -> Maybe ByteString) -> Limiting
limiting rule key =
  Limiting
    { limitingRule = rule,
      limitingKey = key,
      limitingWithoutAnswer = FailOpen,
      limitingTimeout = seconds 0.5,
      limitingRefused = \_ _ respond -> respond (responseLBS status429 [(hContentType, "text/plain")] "too many requests"),
      limitingOnError = const (pure ())
    }

-- | The content of a header, as the key @header:CONTENT@. The second argument gives the key of a
-- request without the header, which a caller may leave out: 'byPeer', 'byForwarded', 'allTogether',
-- or 'unlimited' if something before the limiter refuses such requests.
--
-- > byHeader "X-Api-Key" byPeer
--
-- The limit is only as good as the source of the header: one that clients choose freely limits nobody.
-- \(O(n)\) in the number of headers.
byHeader :: HeaderName -> (Request -> Maybe ByteString) -> Request -> Maybe ByteString
byHeader name without request =
  maybe (without request) (Just . ("header:" <>)) (lookup name (requestHeaders request))

-- | The address of the peer, as the key @address:ADDRESS@: of who has opened the connection, which
-- behind a proxy is the proxy (then see 'byForwarded'). An IPv6 address counts by its first 64 bits,
-- since one host may choose the others. All peers at Unix sockets have one key. \(O(1)\).
byPeer :: Request -> Maybe ByteString
byPeer = Just . addressKey . fmap fst . fromSockAddr . remoteHost

-- | The address of the client, like 'byPeer', for an application behind this many proxies, each of which
-- appends to @X-Forwarded-For@ the address from which it got the request.
--
-- Whatever stands before the addresses that these proxies have appended is ignored, since clients write it. So
-- the application must not be reachable but through the proxies, and the number must be right: if it is too
-- great, clients choose their keys; if it is too small, all clients of a proxy have one. If there are fewer
-- addresses than proxies, the first one counts; if there is none, or it is no address, that of the peer.
-- \(O(n)\) in the length of the headers.
byForwarded :: Int -> Request -> Maybe ByteString
byForwarded proxies request = case drop (max 0 (length hops - max 0 proxies)) hops of
  Just address : _ | proxies > 0 -> Just (addressKey (Just address))
  _ -> byPeer request
  where
    hops = [addressIn hop | (name, content) <- requestHeaders request, name == "X-Forwarded-For", hop <- Char8.split ',' content]

-- | One key for all requests.
allTogether :: Request -> Maybe ByteString
allTogether = const (Just "all")

-- | No key: the request is not limited.
unlimited :: Request -> Maybe ByteString
unlimited = const Nothing

-- | The address in an element of @X-Forwarded-For@: some proxies add the port.
addressIn :: ByteString -> Maybe IP
addressIn element = readMaybe . Char8.unpack $ case Char8.uncons word of
  Just ('[', rest) -> Char8.takeWhile (/= ']') rest
  _ | Char8.count ':' word == 1 -> Char8.takeWhile (/= ':') word
  _ -> word
  where
    word = Char8.dropWhile (== ' ') (Char8.dropWhileEnd (== ' ') element)

addressKey :: Maybe IP -> ByteString
addressKey known = "address:" <> maybe "local" (Char8.pack . text) known
  where
    text = \case
      IPv4 address -> show address
      IPv6 address -> case splitAt 12 (fromIPv6b address) of
        -- How a socket for both versions gives a peer of version 4.
        ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255], rest) -> show (toIPv4 rest)
        _ -> show (makeAddrRange address 64)

-- | Serves the requests that are within the limit, and refuses the others.
rateLimited :: Client -> Limiting -> Middleware
rateLimited client Limiting {limitingRule, limitingKey, limitingWithoutAnswer, limitingTimeout, limitingRefused, limitingOnError} application request respond =
  case limitingKey request of
    Nothing -> application request respond
    Just key ->
      tryRun client (timeLimit limitingTimeout (attempt limitingRule ("limit:" <> key) 1)) >>= \case
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
