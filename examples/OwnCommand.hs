-- | Commands that this library does not have: those of a server's module, or of a newer server.
module OwnCommand (main) where

import Control.Exception (displayException)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis
import Redis.Command.Build qualified as Build
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Settings (configFromArguments)

-- | A command of the JSON module: one line gives its name, the argument that is a key, and the
-- decoder of its reply. The client asks its server once what the command does.
jsonGet :: ByteString -> ByteString -> Command (Maybe ByteString)
jsonGet key path = Build.command "JSON.GET" [Build.key key, Build.arg path] (Decode.nullable Decode.bytes)

-- | A command that the server knows, written without this library's function for it.
fieldCount :: ByteString -> Command Int64
fieldCount key = Build.command "HLEN" [Build.key key] Decode.integer

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    _ <- run client (raw ["HSET", "example:hash", "field", "value", "other", "value"])
    run client (fieldCount "example:hash") >>= print

    -- A server without the module returns an error.
    tryRun client (jsonGet "example:document" "$") >>= \case
      Right document -> print document
      Left failure -> do
        putStrLn (takeWhile (/= ',') (displayException failure))
        print (jsonGet "example:document" "$")
    _ <- run client (Redis.del (pure "example:hash"))
    pure ()
