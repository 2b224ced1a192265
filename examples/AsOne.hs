-- | A cluster answers as one; and a node is asked by its name.
module AsOne (main) where

import Data.Either (isRight)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Map.Strict qualified as Map
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis+cluster://127.0.0.1:7000,127.0.0.1:7001"
  withClient config $ \client -> do
    run client (Redis.mset (("example:red", "1") :| [("example:green", "2"), ("example:blue", "3")]))

    -- The sum over all primaries, as the servers' own policy says.
    whole <- run client Redis.dbsize
    print (whole >= 3)

    -- What is one node's own is refused, unless a node is named …
    tryRun client Redis.info >>= either print (const (pure ()))
    nodes <- clientNodes client
    logs <- traverse (\node -> run client (onNode (clientNodeEndpoint node) (Redis.slowlogGet 10))) nodes
    print (length logs == length nodes)

    -- … or every one is asked. One that fails makes all of it fail …
    sizes <- run client (onEvery Primaries Redis.dbsize)
    print (sum (Map.elems sizes) == whole)

    -- … unless each may have its own result.
    names <- run client (onEach Primaries (raw ["CLUSTER", "MYID"]))
    print [(Map.member endpoint sizes, isRight result) | (endpoint, result) <- Map.toList names]

    _ <- run client (Redis.unlink ("example:red" :| ["example:green", "example:blue"]))
    pure ()
