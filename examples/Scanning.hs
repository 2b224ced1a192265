-- | Walks over keys and over large collections, in constant memory.
module Scanning (main) where

import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (traverse_)
import Redis
import Redis.Commands qualified as Redis
import Redis.Scan
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    let users = ["user:" <> Char8.pack (show n) | n <- [1 .. 2500 :: Int]]
    runPipeline client (traverse_ (\user -> pipelined (Redis.set user "here")) users)

    -- All keys of a server, or of all primaries of a cluster.
    total <- foldScan client Redis.scanDefaults {Redis.scanMatch = Just "user:*"} (\count _key -> pure (count + 1)) 0
    putStrLn (show (total :: Int) <> " users")

    -- All elements of one key.
    _ <- run client (Redis.zadd "scores" (pure ("ada", 3)))
    foldZscan client Redis.zscanDefaults "scores" (\best (_, score) -> pure (max best score)) 0 >>= print

    -- Page by page. The walk's position is a text, from which any program can continue.
    walk <- walkScan walkDefaults client Redis.scanDefaults {Redis.scanMatch = Just "user:*"}
    first <- nextPage walk
    text <- positionText <$> walkPosition walk
    let later = walkDefaults {walkFrom = positionFromText text}
    rest <- walkScan later client Redis.scanDefaults {Redis.scanMatch = Just "user:*"}
    others <- foldWalk rest (\count _key -> pure (count + 1)) 0
    putStrLn (show (maybe 0 length first + others) <> " users in two parts")

    runPipeline client (traverse_ (pipelined . Redis.unlink . pure) ("scores" : users))
