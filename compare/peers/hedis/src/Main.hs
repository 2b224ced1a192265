{-# LANGUAGE CPP #-}

-- | The comparison's program for hedis: @compare/PROTOCOL.md@.
--
-- A connection of hedis serves one 'runRedis' at a time, and its pool lends it. Within one
-- 'runRedis', commands are sent together until the program looks at a reply. So a waiting caller
-- uses a 'runRedis' for each command, and a batch is one 'runRedis' with many commands.
--
-- There is no cluster: hedis 0.15.1 sends COMMAND to the server, and does not understand the reply
-- of Redis 7.
module Main (main) where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (async, wait)
import Control.Exception (SomeException, displayException, handle)
import Control.Monad (replicateM, unless, when, zipWithM_)
import Count
import Data.ByteString (ByteString)
import Data.Foldable (for_, traverse_)
import Data.Traversable (for)
import Data.Word (Word64)
import Database.Redis qualified as Redis
import GHC.Clock (getMonotonicTimeNSec)
import GHC.Stats (RTSStats (..), getRTSStats)
import Options (Options (..), parseOptions)
import Stream
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.Exit (die, exitSuccess)
import System.Mem (performMinorGC)

main :: IO ()
main = do
  arguments <- getArgs
  when (arguments == ["--version"]) (putStrLn VERSION_hedis >> exitSuccess)
  options <- either (die . ("hedis: " <>)) pure (parseOptions arguments)
  handle (\problem -> die ("hedis: " <> displayException (problem :: SomeException))) (run options)

run :: Options -> IO ()
run options = do
  let callers = optionsInFlight options `div` optionsBatch options
      info =
        Redis.defaultConnectInfo
          { Redis.connectHost = optionsHost options,
            Redis.connectPort = Redis.PortNumber (fromIntegral (optionsPort options)),
            Redis.connectMaxConnections = callers
          }
      load = newLoad options
  counts <- newCounts
  connection <- Redis.checkedConnect info
  -- The keys are made before the clock starts.
  loadNames load `seq` loadBlock load `seq` pure ()
  threads <- for [0 .. callers - 1] $ \caller -> do
    stream <- newStream load caller
    async (call options load counts connection stream)
  threadDelay (micros (optionsWarmup options))
  allocatedBefore <- allocated
  opened <- clocks
  openWindow counts
  threadDelay (micros (optionsDuration options))
  closed <- clocks
  closeWindow counts
  allocatedAfter <- allocated
  traverse_ wait threads
  report options counts VERSION_hedis callers (opened allocatedBefore) (closed allocatedAfter) >>= putStrLn
  where
    micros seconds = round (seconds * 1e6)
    clocks = Window <$> getMonotonicTimeNSec <*> getCPUTime

-- The runtime only knows the bytes allocated up to the last collection.
allocated :: IO Word64
allocated = performMinorGC >> allocated_bytes <$> getRTSStats

-- | Runs a caller until the window is closed. Each round begins where the last one ended, so that
-- the clock is read once for each.
call :: Options -> Load -> Counts -> Redis.Connection -> Stream -> IO ()
call options load counts connection stream = getMonotonicTimeNSec >>= go
  where
    size = optionsBatch options
    go begun = do
      over <- isOver counts
      unless over $ do
        operations <- replicateM size (draw load stream)
        for_ operations $ \case
          Get _ _ -> add counts Gets 1
          Set _ _ -> add counts Sets 1
        replies <- Redis.runRedis connection (traverse send operations)
        now <- getMonotonicTimeNSec
        open <- isOpen counts
        zipWithM_ (judge options counts open (now - begun)) operations replies
        go now

data Answer
  = Found (Either Redis.Reply (Maybe ByteString))
  | Stored (Either Redis.Reply Redis.Status)

send :: Operation -> Redis.Redis Answer
send = \case
  Get key _ -> Found <$> Redis.get key
  Set key value -> Stored <$> Redis.set key value

judge :: Options -> Counts -> Bool -> Word64 -> Operation -> Answer -> IO ()
judge options counts open took operation answer = case (operation, answer) of
  (Get _ expected, Found (Right (Just value)))
    | not (optionsMisses options) && value == expected -> when open (add counts Hits 1 >> done)
    | otherwise -> add counts Wrong 1
  (_, Found (Right Nothing)) ->
    when open (add counts Misses 1 >> when (optionsMisses options) done)
  (_, Stored (Right Redis.Ok)) -> when open done
  (_, Stored (Right _)) -> add counts Wrong 1
  (Set _ _, Found _) -> add counts Wrong 1
  (_, Found (Left _)) -> add counts Errors 1
  (_, Stored (Left _)) -> add counts Errors 1
  where
    done = add counts Done 1 >> latency counts took 1
