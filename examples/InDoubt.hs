-- | What to do about a write of which nobody knows whether it ran: three answers.
module InDoubt (main) where

import Control.Monad (void)
import Data.ByteString (ByteString)
import Data.Foldable (traverse_)
import Data.Int (Int64)
import Redis
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.Script
import Settings (configFromArguments)

-- REPEATED begins
-- Running it twice leaves the same state, so the client may send it again.
saveState :: Client -> ByteString -> IO ()
saveState client state = run client (idempotent (Redis.set "example:state" state))

-- REPEATED ends

-- COUNTED begins
-- Counts a request once, however often it is sent: the request has a number of its own, which
-- the server remembers for a day.
countOnce :: ByteString -> Command Int64
countOnce request =
  idempotent (evalScript once ["{example:visits}", "{example:visits}:" <> request] []) `decodedBy` Decode.integer
  where
    once =
      script
        "if redis.call('SET', KEYS[2], '1', 'NX', 'EX', 86400) then return redis.call('INCR', KEYS[1]) end \
        \return tonumber(redis.call('GET', KEYS[1]) or '0')"

-- COUNTED ends

-- QUEUED begins
-- May put a job into the queue twice, and never loses it. The job has a number, and the worker
-- does a number once.
enqueue :: Client -> ByteString -> ByteString -> IO ()
enqueue client number job = run client (idempotent (void (Redis.lpush "example:jobs" (number <> " " <> job :| []))))

firstTime :: ByteString -> Command Bool
firstTime number = Redis.setWith Redis.setDefaults {Redis.setCondition = Just Redis.OnlyIfAbsent, Redis.setExpiry = Redis.ExpireIn (seconds 86400)} ("example:done:" <> number) "1"

-- QUEUED ends

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    saveState client "done"
    mapM (run client . countOnce) ["r1", "r1", "r2"] >>= print
    enqueue client "7" "mail Ada"
    mapM (run client . firstTime) ["7", "7"] >>= print
    _ <- run client (Redis.del ("{example:visits}" :| ["{example:visits}:r1", "{example:visits}:r2"]))
    traverse_ (run client . Redis.del . pure) ["example:state", "example:jobs", "example:done:7"]
