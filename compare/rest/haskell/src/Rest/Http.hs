-- | The contract's paths, methods, parameters and bodies, for any WAI server.
module Rest.Http
  ( application,

    -- * Parts, for other HTTP layers
    respondWith,
    parseId,
    parsePage,
    readBody,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe qualified as Unsafe
import Data.Int (Int64)
import Network.HTTP.Types (urlDecode)
import Network.Wai (Application, Request, RequestBodyLength (..), Response, getRequestBodyChunk, rawPathInfo, rawQueryString, requestBodyLength, requestMethod, responseBuilder)
import Rest.Json.Read (readUserInput)
import Rest.Reply
import Rest.User (UserInput)
import Rest.Users (Users (..))

-- | The service as a WAI application.
application :: Users -> Application
application users request respond = answer users request >>= respond . respondWith

-- | A reply as a WAI response. It has a length, so that the server need not compute it or send the
-- body in chunks.
respondWith :: Reply -> Response
respondWith (Reply status headers body) =
  responseBuilder
    status
    (("Content-Type", "application/json") : ("Content-Length", decimal (ByteString.length body)) : headers)
    (Builder.byteString body)
{-# INLINE respondWith #-}

decimal :: Int -> ByteString
decimal = Char8.pack . show

answer :: Users -> Request -> IO Reply
answer users request = case pathOf (rawPathInfo request) of
  OneUser text -> case requestMethod request of
    "GET" -> withId text (usersGet users)
    "PUT" -> withId text (withInput request . usersChange users)
    "DELETE" -> withId text (usersDelete users)
    _ -> pure (methodNotAllowed "GET, PUT, DELETE")
  AllUsers -> case requestMethod request of
    "GET" -> maybe (pure invalidPage) (uncurry (usersList users)) (parsePage (rawQueryString request))
    "POST" -> withInput request (usersAdd users)
    _ -> pure (methodNotAllowed "GET, POST")
  Elsewhere -> pure notFound
  where
    withId text action = maybe (pure invalidId) action (parseId text)

withInput :: Request -> (UserInput -> IO Reply) -> IO Reply
withInput request action =
  readBody request >>= \case
    Nothing -> pure bodyTooLarge
    Just body -> maybe (pure invalidUser) action (readUserInput body)

data Path = AllUsers | OneUser ByteString | Elsewhere

-- | The path of a request; a slash at the end makes no difference, and one that is written @%2F@
-- separates nothing.
pathOf :: ByteString -> Path
pathOf raw
  | Char8.elem '%' raw = plain (Char8.intercalate "/" (map decoded (Char8.split '/' raw)))
  | otherwise = plain raw
  where
    decoded part = let text = urlDecode False part in if Char8.elem '/' text then part else text
    plain path = case Char8.stripPrefix "/users" path of
      Nothing -> Elsewhere
      Just rest -> case Char8.uncons rest of
        Nothing -> AllUsers
        Just ('/', end)
          | ByteString.null end -> AllUsers
          | otherwise -> segment (if Unsafe.unsafeLast end == 0x2f then Unsafe.unsafeInit end else end)
        _ -> Elsewhere
    segment text
      | ByteString.null text || Char8.elem '/' text = Elsewhere
      | otherwise = OneUser text

-- | A number of 1 to 18 digits.
parseId :: ByteString -> Maybe Int64
parseId = digits 18

digits :: Int -> ByteString -> Maybe Int64
digits most text
  | ByteString.null text || ByteString.length text > most = Nothing
  | ByteString.all (\byte -> byte >= 0x30 && byte <= 0x39) text =
    Just (ByteString.foldl' (\total byte -> total * 10 + fromIntegral (byte - 0x30)) 0 text)
  | otherwise = Nothing

-- | The page and the limit in a query string. Only an ampersand separates parameters.
parsePage :: ByteString -> Maybe (Int64, Int64)
parsePage raw = (,) <$> given "page" 1 <*> (min 100 <$> given "limit" 20)
  where
    -- It begins with the question mark.
    parameters = map parameter (Char8.split '&' (ByteString.drop 1 raw))
    -- Without a value it has the empty one, which is no number.
    parameter text = let (key, rest) = Char8.break (== '=') text in (urlDecode True key, urlDecode True (ByteString.drop 1 rest))
    given name absent = case [value | (key, value) <- parameters, key == name] of
      [] -> Just absent
      [text] -> digits 9 text >>= \value -> if value == 0 then Nothing else Just value
      _ -> Nothing

-- | The whole body, if it is at most 64 KiB. Stops reading as soon as the body is larger.
readBody :: Request -> IO (Maybe ByteString)
readBody request = case requestBodyLength request of
  KnownLength size | size > largest -> pure Nothing
  _ -> gather 0 []
  where
    largest = 65536
    gather size chunks = do
      chunk <- getRequestBodyChunk request
      let size' = size + ByteString.length chunk
      if ByteString.null chunk
        then pure (Just (whole chunks))
        else if size' > fromIntegral largest then pure Nothing else gather size' (chunk : chunks)
    whole [chunk] = chunk
    whole chunks = ByteString.concat (reverse chunks)
