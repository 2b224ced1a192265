-- | Which node of a cluster answers a read.
--
-- The client says it for all, and a command for itself. What is near is found out in
-- the background, and only if somebody wants to know.
module Reading (main) where

import Data.List (nub)
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis+cluster://127.0.0.1:7000,127.0.0.1:7001"
  -- What is behind a tunnel is reached through it; here every address is good as it is.
  withClient (setReadFrom PreferReplica (setAddressMapping id config)) $ \client -> do
    run client (Redis.set "example:article" "text")

    -- A replica may not have it yet; the primary has.
    run client (readFrom ReadPrimary (Redis.get "example:article")) >>= print

    -- Whoever answers has this or, for a moment, nothing.
    answers <- mapM (\source -> run client (readFrom source (Redis.get "example:article"))) [PreferReplica, ReadAny, SameZone "eu-1a", LowestLatency]
    print (all (`elem` [Just "text", Nothing]) answers)

    -- A write stays with the primary, whatever is said of it.
    run client (readFrom PreferReplica (Redis.append "example:article" "!")) >>= print

    -- What is known of the nodes.
    nodes <- clientNodes client
    putStrLn (show (length (nub (map clientNodeEndpoint nodes))) <> " nodes")
