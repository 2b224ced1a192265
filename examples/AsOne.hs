-- | Commands that a whole cluster answers, and commands to one node of it.
module AsOne (main) where

import Data.Either (isRight)
import Data.Map.Strict qualified as Map
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis+cluster://127.0.0.1:7000,127.0.0.1:7001"
  withClient config $ \client -> do
    run client (Redis.mset (("example:red", "1") :| [("example:green", "2"), ("example:blue", "3")]))

    -- The sum over all primaries, as the server's own policy for DBSIZE says.
    whole <- run client Redis.dbsize
    print (whole >= 3)

    -- A command about a single node is refused unless the caller names a node …
    tryRun client Redis.info >>= either print (const (pure ()))
    nodes <- clientNodes client
    logs <- traverse (\node -> run client (onNode (clientNodeEndpoint node) (Redis.slowlogGet 10))) nodes
    print (length logs == length nodes)

    -- … or asks every node. If one node fails, the whole command fails …
    sizes <- run client (onEvery Primaries Redis.dbsize)
    print (sum (Map.elems sizes) == whole)

    -- … unless each node may have its own result.
    names <- run client (onEach Primaries (raw ["CLUSTER", "MYID"]))
    print [(Map.member endpoint sizes, isRight result) | (endpoint, result) <- Map.toList names]

    _ <- run client (Redis.unlink ("example:red" :| ["example:green", "example:blue"]))
    pure ()
