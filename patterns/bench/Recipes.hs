-- | What recipes cost beside the scripts they are made of: the same words sent with
-- nothing around them. One caller, one server, each call waited for.
module Main (main) where

import Control.Monad (void)
import Criterion.Main (Benchmark, bench, bgroup, defaultMain, nfIO)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Command (commandArguments)
import Redis.Patterns.CacheAside
import Redis.Patterns.Lock
import Redis.Patterns.RateLimit
import Redis.Patterns.Semaphore
import Redis.Script
import Redis.TestKit.Server

main :: IO ()
main = withServer serverDefaults $ \server ->
  withClient (setMuxCount (Just 1) (standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server)))) $ \client -> do
    cache <- newCache client (keeping "cache" plainBytes) {keepingEarly = 0}
    -- So that each script is known, and what is measured is EVALSHA.
    mapM_ (run client) [attempt gcraLimit "key" 1, attempt windowLimit "window" 1]
    void (withLock client (lock "known") (const (pure ())))
    mapM_ (\known -> run client (evalScript known ["{lock:raw}", "{lock:raw}:fence"] ["token", "10000"])) [takeScript, releaseScript]
    defaultMain
      [ bgroup
          "limiter"
          [ beside client "gcra" (attempt gcraLimit "key" 1),
            beside client "sliding window" (attempt windowLimit "window" 1)
          ],
        bgroup
          "lock"
          [ bench "withLock" (nfIO (withLock client (lock "free") (const (pure ())))),
            bench "two raw EVALSHA" (nfIO (locking client))
          ],
        bench "withPermit" (nfIO (withPermit client (semaphore "free" 4) (const (pure ())))),
        bench "cached, there" (nfIO (cached cache "key" (pure (Just "value"))))
      ]
  where
    gcraLimit = gcra 1000000 (seconds 1)
    windowLimit = slidingWindow 1000 (milliseconds 10)

-- | A recipe's command, and its words.
beside :: Client -> String -> Command Allowance -> Benchmark
beside client name asked =
  bgroup
    name
    [ bench "attempt" (nfIO (allowed <$> run client asked)),
      bench "raw EVALSHA" (nfIO (void (run client (raw (commandArguments asked)))))
    ]

-- | As little as a lock can be: set if absent, with an end and a counter; deleted if it
-- is one's own.
locking :: Client -> IO ()
locking client = do
  void (run client (raw (["EVALSHA", scriptDigest takeScript, "2"] <> keys <> ["token", "10000"])))
  void (run client (raw (["EVALSHA", scriptDigest releaseScript, "2"] <> keys <> ["token"])))
  where
    keys = ["{lock:raw}", "{lock:raw}:fence"] :: [ByteString]

takeScript, releaseScript :: Script
takeScript = script "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end return 0"
releaseScript = script "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
