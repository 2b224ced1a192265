-- | A private server and a client on one connection to it, for the length of a benchmark.
module Bench.Surroundings
  ( Surroundings (client),
    open,
    close,
  )
where

import Bench.Private
import Control.DeepSeq (NFData (rnf))
import Control.Exception (onException)
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Server (Server, disposeServer, serverDefaults, startServer)

-- | The server and the client, made for the run and disposed of after it. Listing the benchmarks'
-- names starts no server.
data Surroundings = Surroundings
  { server :: Server,
    client :: Client
  }

-- | The fields are strict and contain nothing to evaluate.
instance NFData Surroundings where
  rnf Surroundings {} = ()

open :: IO Surroundings
open = do
  server <- startServer serverDefaults
  flip onException (disposeServer server) $ do
    client <- newClient (setMuxCount (Just 1) (addressed server))
    -- Opens the connection before the first measurement.
    run client Commands.ping
    pure Surroundings {server, client}

close :: Surroundings -> IO ()
close surroundings = do
  closeClient (client surroundings)
  disposeServer (server surroundings)
