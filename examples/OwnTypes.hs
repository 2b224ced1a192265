{-# LANGUAGE FlexibleContexts #-}

-- | Keys and values of one's own types, and a client in the environment of a program.
module OwnTypes (main) where

import Control.Monad.IO.Unlift (MonadUnliftIO, askRunInIO)
import Control.Monad.Reader
import Data.Aeson (FromJSON, ToJSON, eitherDecodeStrict, encode)
import Data.Bifunctor (first)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Int (Int64)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import GHC.Generics (Generic)
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

-- NEWTYPES begins
newtype Email = Email Text
  deriving stock (Eq, Show)

email :: ByteString -> Either Text Email
email bytes = case Text.decodeUtf8' bytes of
  Right text | Text.any (== '@') text -> Right (Email text)
  Right _ -> Left "no e-mail address"
  Left _ -> Left "not UTF-8"

getEmail :: ByteString -> Command (Maybe Email)
getEmail = refine (traverse email) . Redis.get

-- NEWTYPES ends

-- KEYS begins

-- | A key, and what its value is.
data Key a = Key {keyName :: ByteString, toBytes :: a -> ByteString, fromBytes :: ByteString -> Either Text a}

fetch :: Key a -> Command (Maybe a)
fetch key = refine (traverse (fromBytes key)) (Redis.get (keyName key))

store :: Key a -> a -> Command ()
store key = Redis.set (keyName key) . toBytes key

storeFor :: Duration -> Key a -> a -> Command ()
storeFor time key = Redis.setex (keyName key) time . toBytes key

jsonKey :: (ToJSON a, FromJSON a) => ByteString -> Key a
jsonKey name = Key name (Lazy.toStrict . encode) (first Text.pack . eitherDecodeStrict)

-- | All keys of the program, in one place.
user :: Int64 -> Key User
user number = jsonKey ("example:user:" <> Char8.pack (show number))

data User = User {name :: Text, age :: Int}
  deriving stock (Eq, Show, Generic)

instance ToJSON User

instance FromJSON User

-- KEYS ends

-- READER begins
newtype Environment = Environment {environmentClient :: Client}

redis :: (MonadReader Environment m, MonadIO m) => Command a -> m a
redis command = do
  client <- asks environmentClient
  liftIO (run client command)

-- What takes a function in IO gets one of yours by askRunInIO.
held :: (MonadReader Environment m, MonadUnliftIO m) => ByteString -> (forall s. Dedicated s -> m a) -> m a
held key action = do
  client <- asks environmentClient
  runInIO <- askRunInIO
  liftIO (withDedicated client (AtKey key) (runInIO . action))

-- READER ends

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> flip runReaderT (Environment client) $ do
    redis (store (user 7) User {name = "Ada", age = 35})
    redis (storeFor (seconds 60) (user 7) User {name = "Ada", age = 36})
    redis (fetch (user 7)) >>= liftIO . print
    redis (Redis.set "example:email" "nobody")
    failed <- liftIO (tryRun client (getEmail "example:email"))
    liftIO (print (either errorCommand (const "no error") failed))
    selected <- held "example:email" (\connection -> liftIO (runOn connection (Redis.exists (pure "example:email"))))
    liftIO (print selected)
    _ <- redis (Redis.del ("example:email" :| [keyName (user 7)]))
    pure ()
