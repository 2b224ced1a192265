-- | A cluster answers as one; and a node is asked by its name.
module AsOne (main) where

import Data.Map.Strict qualified as Map
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis+cluster://127.0.0.1:7000,127.0.0.1:7001"
  withClient config $ \client -> do
    run client Redis.flushall
    run client (Redis.mset (pure ("red", "1") <> pure ("green", "2") <> pure ("blue", "3")))

    -- The sum over all primaries, as the servers' own policy says.
    run client Redis.dbsize >>= print

    -- What is one node's own is refused, unless a node is named …
    tryRun client Redis.info >>= either print (const (pure ()))
    nodes <- clientNodes client
    logs <- traverse (\node -> run client (onNode (clientNodeEndpoint node) (Redis.slowlogGet 10))) nodes
    print (length logs == length nodes)

    -- … or every one is asked.
    sizes <- run client (onEvery Primaries Redis.dbsize)
    print (sum (Map.elems sizes))
