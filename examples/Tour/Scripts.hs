-- | Programs that the server runs: scripts, by their text or their digest, and functions,
-- by their names.
module Tour.Scripts (tour) where

import Control.Exception (displayException)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.Script
import Tour.Fresh (fresh)

-- | At the top level, so that its digest is computed once.
addUpTo :: Script
addUpTo = script "local new = math.min(redis.call('GET', KEYS[1]) + ARGV[1], tonumber(ARGV[2])) redis.call('SET', KEYS[1], new) return new"

-- | A command like any other: its keys, its other arguments, and the decoder of its reply.
addTo :: ByteString -> ByteString -> ByteString -> Command Int64
addTo key amount most = evalScript addUpTo [key] [amount, most] `decodedBy` Decode.integer

library :: ByteString
library = "#!lua name=example_tour\nredis.register_function('example_add', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)"

tour :: Client -> IO ()
tour client = fresh client ("example:scripts" :| []) $ do
  -- Run a script by its text.
  run client (Redis.eval "return redis.call('INCRBY', KEYS[1], ARGV[1])" ["example:scripts"] ["5"] `decodedBy` Decode.integer) >>= print
  run client (Redis.evalRo "return redis.call('GET', KEYS[1])" ["example:scripts"] [] `decodedBy` Decode.nullable Decode.bytes) >>= print

  -- Run a script by its digest. If the server does not know it, the client sends the text, and the
  -- caller does not notice.
  run client (addTo "example:scripts" "4" "10") >>= print
  run client (addTo "example:scripts" "4" "10") >>= print

  -- A script can return a value of any shape. A script that fails returns an error.
  run client (Redis.eval "return {1, {'two', false}}" ["example:scripts"] []) >>= print
  failed <- tryRun client (Redis.eval "return redis.error_reply('OUT of order')" ["example:scripts"] [])
  putStrLn (either displayException show failed)

  -- Functions are loaded once, as a library, which the server keeps.
  run client (Redis.functionLoadWith Redis.functionLoadDefaults {Redis.functionLoadReplace = True} library) >>= print
  run client (Redis.fcall "example_add" ["example:scripts"] ["5"] `decodedBy` Decode.integer) >>= print
  run client (Redis.functionDelete "example_tour")
