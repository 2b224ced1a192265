-- | What does a read cost that the cache answers?
--
-- The server is private and sends no invalidation meanwhile, so every figure is of hits. The second
-- benchmark reads one key among ten thousand kept replies with similar keys. In the last one, two
-- threads read the same reply all the time; its figure is the time of both.
module Bench.Cached (benchmarks) where

import Bench.Private
import Control.Concurrent (forkOn, newEmptyMVar, putMVar, takeMVar)
import Control.DeepSeq (NFData (rnf))
import Control.Exception (onException)
import Control.Monad (forM_, replicateM_, void)
import Criterion.Main (Benchmark, bench, bgroup, envWithCleanup, whnfIO)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Cache
import Redis.Commands qualified as Commands
import Redis.TestKit.Server (Server, disposeServer, serverDefaults, startServer)

benchmarks :: Benchmark
benchmarks =
  envWithCleanup open close $ \surroundings ->
    bgroup
      "cached"
      [ bench "1 hit" . whnfIO $ runCached (few surroundings) age (Commands.get (keyOf 42)),
        bench "1 hit among 10000 replies" . whnfIO $ runCached (many surroundings) age (Commands.get (keyOf 42)),
        bench "1000 hits of different keys among 10000 replies" . whnfIO . forM_ [1 .. 1000] $ \number -> runCached (many surroundings) age (Commands.get (keyOf number)),
        bench "1000 hits each by 2 threads" . whnfIO $ do
          done <- newEmptyMVar
          forM_ [0, 1] $ \capability -> forkOn capability $ do
            replicateM_ 1000 (runCached (few surroundings) age (Commands.get (keyOf 42)))
            putMVar done ()
          replicateM_ 2 (takeMVar done)
      ]

age :: Duration
age = seconds 3600

keyOf :: Int -> ByteString
keyOf number = "user:1000:" <> Char8.pack (show (100000 + number))

-- | The server and the clients, made for the run and disposed of after it. Listing the benchmarks'
-- names starts no server.
data Surroundings = Surroundings
  { server :: Server,
    few :: Client,
    many :: Client
  }

-- | The fields are strict and contain nothing to evaluate.
instance NFData Surroundings where
  rnf Surroundings {} = ()

open :: IO Surroundings
open = do
  server <- startServer serverDefaults
  flip onException (disposeServer server) $ do
    let config = setCaching (Just cachingDefaults) (addressed server)
    few <- newClient config
    many <- newClient config
    forM_ [1 .. 10000] $ \number -> submit few (Commands.set (keyOf number) "a value of 16 B.")
    run few Commands.ping
    void (runCached few age (Commands.get (keyOf 42)))
    forM_ [1 .. 10000] $ \number -> runCached many age (Commands.get (keyOf number))
    pure Surroundings {server, few, many}

close :: Surroundings -> IO ()
close surroundings = do
  closeClient (few surroundings)
  closeClient (many surroundings)
  disposeServer (server surroundings)
