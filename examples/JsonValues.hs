-- | Values of one's own types, kept as JSON.
module JsonValues (main) where

import Control.Exception (displayException)
import Data.Aeson (FromJSON, ToJSON, eitherDecodeStrict, encode)
import Data.Bifunctor (first)
import Data.ByteString (ByteString)
import Data.ByteString.Lazy qualified as Lazy
import Data.Text (Text)
import Data.Text qualified as Text
import GHC.Generics (Generic)
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

data User = User {name :: Text, age :: Int}
  deriving stock (Show, Generic)

instance ToJSON User

instance FromJSON User

-- JSON begins
setJson :: ToJSON a => ByteString -> a -> Command ()
setJson key = Redis.set key . Lazy.toStrict . encode

getJson :: FromJSON a => ByteString -> Command (Maybe a)
getJson = refine (traverse (first Text.pack . eitherDecodeStrict)) . Redis.get

-- JSON ends

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    run client (setJson "example:user" User {name = "Ada", age = 36})
    run client (getJson "example:user") >>= print @(Maybe User)

    -- A value that is not what it should be is an error of the command, and names the key.
    run client (Redis.set "example:user" "{\"name\":\"Ada\"}")
    found <- tryRun client (getJson "example:user")
    either (putStrLn . displayException) (print @(Maybe User)) found
    _ <- run client (Redis.del (pure "example:user"))
    pure ()
