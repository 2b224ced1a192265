-- | What does a broken connection cost a pipeline?
--
-- The server is two milliseconds away, behind a proxy that cuts the connection when half of the
-- replies have passed. The client must send the rest again together, so it takes the time of one
-- reconnection and a few round trips, whatever the number of commands. The row without a cut shows
-- what the proxy and the delay cost alone. A command that fails ends the run.
module Bench.Recovery (benchmarks) where

import Control.DeepSeq (NFData (rnf))
import Control.Exception (onException)
import Control.Monad (forM_, unless)
import Criterion.Main (Benchmark, bench, bgroup, envWithCleanup, whnfIO)
import Data.ByteString (ByteString)
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Proxy (Direction (..), Ending (Close), Proxy)
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (Server, disposeServer, serverAddress, serverDefaults, startServer)

-- | Each figure is for the whole pipeline.
benchmarks :: Benchmark
benchmarks =
  envWithCleanup open close $ \surroundings ->
    bgroup
      "recovery"
      [ bench (show count <> " reads" <> title) . whnfIO $ before surroundings count *> pipeline surroundings count
        | count <- [5000, 10000 :: Int],
          (title, before) <- [(", undisturbed", \_ _ -> pure ()), (", cut in the middle", cutInTheMiddle)]
      ]

key, value :: ByteString
key = "user:1000:000042"
value = "value"

pipeline :: Surroundings -> Int -> IO ()
pipeline surroundings count = do
  found <- runPipeline (client surroundings) (traverse (pipelined . Commands.get) (replicate count key))
  unless (all (== Just value) found) (fail "a reply is wrong")

-- | Cuts the connection after half of the replies. Each reply has eleven bytes.
cutInTheMiddle :: Surroundings -> Int -> IO ()
cutInTheMiddle surroundings count = Proxy.cutAfter (proxy surroundings) ToClient (count * 11 `quot` 2) Close

data Surroundings = Surroundings
  { server :: Server,
    proxy :: Proxy,
    client :: Client
  }

-- | The fields are strict and contain nothing to evaluate.
instance NFData Surroundings where
  rnf Surroundings {} = ()

open :: IO Surroundings
open = do
  server <- startServer serverDefaults
  flip onException (disposeServer server) $ do
    proxy <- Proxy.startProxy (serverAddress server)
    flip onException (Proxy.disposeProxy proxy) $ do
      client <- newClient . setMuxCount (Just 1) $ standaloneConfig "127.0.0.1" (fromIntegral (Proxy.proxyPort proxy))
      run client (Commands.set key value)
      forM_ [ToServer, ToClient] $ \direction -> Proxy.delay proxy direction 0.002
      pure Surroundings {server, proxy, client}

close :: Surroundings -> IO ()
close surroundings = do
  closeClient (client surroundings)
  Proxy.disposeProxy (proxy surroundings)
  disposeServer (server surroundings)
