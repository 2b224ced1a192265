-- | Three ways to have many commands in flight at once.
--
-- Threads that use the same client pipeline without any effort. One thread pipelines with
-- 'runPipeline' if it knows all commands beforehand, and with 'submit' and 'awaitReply' if it does
-- not.
module Pipelining (main) where

import Control.Concurrent (forkFinally)
import Control.Concurrent.MVar
import Control.Exception (throwIO)
import Control.Monad (forM)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (traverse_)
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    let keys = [Char8.pack ("example:" <> show n) | n <- [1 :: Int .. 100]]

    -- All commands are sent before the first reply is awaited.
    runPipeline client (traverse_ (\key -> pipelined (Redis.set key (Char8.reverse key))) keys)
    values <- runPipeline client (traverse (pipelined . Redis.get) keys)
    putStrLn ("pipeline: " <> show (length (filter (/= Nothing) values)) <> " values")

    -- The next command may depend on earlier replies. One thread's commands to one server run in
    -- the order in which they were submitted.
    written <- submit client (Redis.set "example:first" "1")
    counted <- submit client (Redis.incr "example:first")
    awaitReply written
    count <- awaitReply counted
    putStrLn ("submit: " <> show count)

    -- Threads pipeline without any effort.
    found <- concurrently [run client (Redis.strlen key) | key <- keys]
    putStrLn ("threads: " <> show (sum found) <> " bytes")

    -- A bulk load, in pieces.
    failed <- load client [(key, "loaded") | key <- keys]
    putStrLn ("load: " <> show (length failed) <> " failed")

    removed <- run client (Redis.unlink (pure "example:first"))
    others <- traverse (removal client) keys >>= traverse awaitReply
    putStrLn ("removed: " <> show (removed + sum others))
  where
    removal client key = submit client (Redis.unlink (pure (key :: ByteString)))

-- LOAD begins
-- Stores pairs, 500 at once. The result has the pairs that failed, each with its error.
load :: Client -> [(ByteString, ByteString)] -> IO [((ByteString, ByteString), Error)]
load _ [] = pure []
load client pairs = do
  let (piece, rest) = splitAt 500 pairs
  results <- runPipeline client (traverse (\(key, value) -> tryPipelined (idempotent (Redis.set key value))) piece)
  ([(pair, failure) | (pair, Left failure) <- zip piece results] <>) <$> load client rest

-- LOAD ends

-- | Runs each action in a thread of its own. The package @async@ has this function, and more.
concurrently :: [IO a] -> IO [a]
concurrently actions = do
  results <- forM actions $ \action -> do
    result <- newEmptyMVar
    _ <- forkFinally action (putMVar result)
    pure result
  mapM (\result -> takeMVar result >>= either throwIO pure) results
