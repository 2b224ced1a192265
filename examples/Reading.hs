-- | Which node of a cluster answers a read.
--
-- The client's configuration decides it for all commands, and each command may decide for itself.
-- The client measures in the background which nodes are near, and only if a read depends on it.
module Reading (main) where

import Data.List (nub)
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis+cluster://127.0.0.1:7000,127.0.0.1:7001"
  -- With a tunnel, this would map a node's address to the tunnel's. Here every address can be used
  -- as it is.
  withClient (setReadFrom PreferReplica (setAddressMapping id config)) $ \client -> do
    run client (Redis.set "example:article" "text")

    -- A replica may not have the value yet; the primary has it.
    run client (readFrom ReadPrimary (Redis.get "example:article")) >>= print

    -- Whichever node answers has this value or, for a moment, none.
    answers <- mapM (\source -> run client (readFrom source (Redis.get "example:article"))) [PreferReplica, ReadAny, SameZone "eu-1a", LowestLatency]
    print (all (`elem` [Just "text", Nothing]) answers)

    -- A write goes to the primary, whatever 'readFrom' says.
    run client (readFrom PreferReplica (Redis.append "example:article" "!")) >>= print

    -- The nodes that the client knows.
    nodes <- clientNodes client
    putStrLn (show (length (nub (map clientNodeEndpoint nodes))) <> " nodes")
