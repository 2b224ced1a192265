-- | The service behind Scotty, to find the cost of that layer. The naive service uses it, as the
-- original did.
module Rest.Scotty
  ( scottyApplication,
  )
where

import Control.Monad.IO.Class (liftIO)
import Data.ByteString qualified as ByteString
import Data.ByteString.Lazy qualified as Lazy
import Data.CaseInsensitive qualified as CaseInsensitive
import Data.Int (Int64)
import Data.Maybe (listToMaybe)
import Data.Text.Encoding qualified as Text
import Data.Text.Lazy qualified as LazyText
import Network.Wai (Application, pathInfo, rawQueryString)
import Rest.Http (parseId, parsePage, readBody)
import Rest.Json.Read (readUserInput)
import Rest.Reply
import Rest.User (UserInput)
import Rest.Users (Users (..))
import Web.Scotty (ActionM, matchAny, raw, request, scottyApp, setHeader, status)
import Web.Scotty qualified as Scotty

-- | The service, routed by Scotty.
scottyApplication :: Users -> IO Application
scottyApplication users = scottyApp $ do
  Scotty.get "/users/:id" (withId (liftIO . usersGet users))
  Scotty.put "/users/:id" (withId (withInput . usersChange users))
  Scotty.delete "/users/:id" (withId (liftIO . usersDelete users))
  Scotty.get "/users" $ do
    query <- rawQueryString <$> request
    send =<< maybe (pure invalidPage) (liftIO . uncurry (usersList users)) (parsePage query)
  Scotty.post "/users" (withInput (usersAdd users) >>= send)
  matchAny "/users/:id" (send (methodNotAllowed "GET, PUT, DELETE"))
  matchAny "/users" (send (methodNotAllowed "GET, POST"))
  Scotty.notFound (send notFound)

withId :: (Int64 -> ActionM Reply) -> ActionM ()
withId action = do
  -- Scotty's own function for this has a different name in each of its versions.
  path <- pathInfo <$> request
  send =<< maybe (pure invalidId) action (parseId . Text.encodeUtf8 =<< listToMaybe (drop 1 path))

withInput :: (UserInput -> IO Reply) -> ActionM Reply
withInput action = do
  body <- request >>= liftIO . readBody
  case body of
    Nothing -> pure bodyTooLarge
    Just bytes -> maybe (pure invalidUser) (liftIO . action) (readUserInput bytes)

send :: Reply -> ActionM ()
send (Reply code headers body) = do
  status code
  setHeader "Content-Type" "application/json"
  setHeader "Content-Length" (LazyText.pack (show (ByteString.length body)))
  mapM_ (\(name, value) -> setHeader (text (CaseInsensitive.original name)) (text value)) headers
  raw (Lazy.fromStrict body)
  where
    text = LazyText.fromStrict . Text.decodeLatin1
