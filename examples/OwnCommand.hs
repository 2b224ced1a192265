-- | Commands that this library does not have: of a server's module, or of a server
-- that is newer.
module OwnCommand (main) where

import Control.Exception (displayException)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis
import Redis.Command.Build qualified as Build
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Settings (configFromArguments)

-- | Of the JSON module: one line says its name, which argument is a key, and how
-- its reply is read. The client asks its server once what the command does.
jsonGet :: ByteString -> ByteString -> Command (Maybe ByteString)
jsonGet key path = Build.command "JSON.GET" [Build.key key, Build.arg path] (Decode.nullable Decode.bytes)

-- | One that the server knows and this library has no function for.
fieldCount :: ByteString -> Command Int64
fieldCount key = Build.command "HLEN" [Build.key key] Decode.integer

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    _ <- run client (raw ["HSET", "example:hash", "field", "value", "other", "value"])
    run client (fieldCount "example:hash") >>= print

    -- A server without the module says so.
    tryRun client (jsonGet "example:document" "$") >>= \case
      Right document -> print document
      Left failure -> do
        putStrLn (takeWhile (/= ',') (displayException failure))
        print (jsonGet "example:document" "$")
    _ <- run client (Redis.del (pure "example:hash"))
    pure ()
