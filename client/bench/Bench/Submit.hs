-- | What does a round trip cost: submit, send, receive, wake?
--
-- Over one connection to a private server on the loopback interface, so the server's and the
-- kernel's work is in the figures.
module Bench.Submit (benchmarks) where

import Control.DeepSeq (NFData (rnf))
import Control.Exception (onException)
import Control.Monad (replicateM)
import Criterion.Main (Benchmark, bench, bgroup, envWithCleanup, whnfIO)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Server (Server, defaultServerOptions, disposeServer, serverHost, serverPort, startServer)

-- | One caller that waits for each command, and one that waits for many at
-- once. Figures of a batch are for all of it.
benchmarks :: Benchmark
benchmarks =
  envWithCleanup open close $ \surroundings ->
    bgroup
      "submit"
      [ bench "1 command, then wait" . whnfIO $
          run (client surroundings) (Commands.get key),
        bench "64 commands, then wait for all" . whnfIO $
          replicateM 64 (submit (client surroundings) (Commands.get key)) >>= mapM_ awaitReply
      ]

key :: ByteString
key = "user:1000:000042"

-- | Made for the run and gone after it; listing the names starts no server.
data Surroundings = Surroundings
  { server :: Server,
    client :: Client
  }

-- | Its fields are strict, and there is nothing within to evaluate.
instance NFData Surroundings where
  rnf Surroundings {} = ()

open :: IO Surroundings
open = do
  server <- startServer defaultServerOptions
  flip onException (disposeServer server) $ do
    client <- newClient . setMuxCount (Just 1) $ standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server))
    -- This also opens the connection, before the first figure is taken.
    run client (Commands.set key "a value of 16 B.")
    pure Surroundings {server, client}

close :: Surroundings -> IO ()
close surroundings = do
  closeClient (client surroundings)
  disposeServer (server surroundings)
