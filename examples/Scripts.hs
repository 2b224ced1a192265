-- | A script that is called by its digest, and a function that is called by its name.
module Scripts (main) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Redis
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.Script
import Settings (configFromArguments)

-- | Takes an amount from a counter, or the rest if that is less. At the top level, so that its
-- digest is computed once.
takeSome :: Script
takeSome =
  script
    "local left = tonumber(redis.call('GET', KEYS[1]) or 0)\n\
    \local taken = math.min(left, tonumber(ARGV[1]))\n\
    \redis.call('SET', KEYS[1], left - taken)\n\
    \return taken"

-- | A command like any other.
takeFrom :: ByteString -> ByteString -> Command Int64
takeFrom counter amount = evalScript takeSome [counter] [amount] `decodedBy` Decode.integer

-- FIELDS begins
look :: Script
look =
  script
    "local left = tonumber(redis.call('GET', KEYS[1]) or '0') \
    \return {'left', left, 'enough', left >= tonumber(ARGV[1]) and 1 or 0}"

lookAt :: ByteString -> Int64 -> Command (Int64, Bool)
lookAt counter wanted =
  evalScriptRo look [counter] [Char8.pack (show wanted)] `decodedBy` \reply -> do
    fields <- Decode.record reply
    (,) <$> Decode.field "left" Decode.integer fields <*> Decode.field "enough" Decode.boolean fields

-- FIELDS ends

-- | A function library for the server.
library :: ByteString
library =
  "#!lua name=example\n\
  \redis.register_function{function_name='example_get', flags={'no-writes'},\n\
  \  callback=function(keys, args) return redis.call('GET', keys[1]) end}"

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    run client (Redis.mset (("{tickets}a", "5") :| [("{tickets}b", "9")]))

    -- The server does not know the script yet: the client sends the text, and the caller does not
    -- notice.
    run client (takeFrom "{tickets}a" "3") >>= print
    -- Now it does. This works in a pipeline, too.
    taken <- runPipeline client (traverse (pipelined . uncurry takeFrom) [("{tickets}a", "3"), ("{tickets}b", "3")])
    print taken
    -- An argument that is a number, and a reply with names.
    run client (lookAt "{tickets}b" 7) >>= print

    -- A function is loaded once, and replicas may run it if it only reads.
    _ <- run client (Redis.functionLoadWith Redis.functionLoadDefaults {Redis.functionLoadReplace = True} library)
    left <- run client (Redis.fcallRo "example_get" ["{tickets}b"] [] `decodedBy` Decode.nullable Decode.bytes)
    print left
    run client (Redis.functionDelete "example")
    run client (Redis.del ("{tickets}a" :| ["{tickets}b"])) >>= print
