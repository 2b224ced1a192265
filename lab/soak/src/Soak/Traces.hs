-- | What a client reports about its commands while things break: its audit, and the nodes that took
-- the messages.
--
-- Whatever happens to a command, its end is reported at most once, and never with a negative
-- duration. Callers wait for most commands, so most have an end.
module Soak.Traces
  ( Traces,
    newTraces,
    tracing,
    tracesWrong,

    -- * Nodes
    Takers,
    newTakers,
    taking,
    takerHere,
  )
where

import Control.Concurrent (ThreadId, myThreadId)
import Control.Monad (when)
import Data.IORef
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Redis (Endpoint)
import Redis.Tracing

data Traces = Traces
  { tracesBegun :: IORef Int,
    tracesEnded :: IORef Int,
    tracesTwice :: IORef Int,
    tracesNegative :: IORef Int
  }

newTraces :: IO Traces
newTraces = Traces <$> newIORef 0 <*> newIORef 0 <*> newIORef 0 <*> newIORef 0

-- | The hook for clients.
tracing :: Traces -> CommandHook
tracing traces _ = do
  more tracesBegun
  over <- newIORef False
  pure $ \ended -> do
    before <- atomicModifyIORef' over ((,) True)
    more (if before then tracesTwice else tracesEnded)
    when (endedTook ended < mempty) (more tracesNegative)
  where
    more field = atomicModifyIORef' (field traces) (\count -> (count + 1, ()))

-- | The violations at the end, when no caller calls.
tracesWrong :: Traces -> IO [String]
tracesWrong traces = do
  begun <- readIORef (tracesBegun traces)
  ended <- readIORef (tracesEnded traces)
  twice <- readIORef (tracesTwice traces)
  negative <- readIORef (tracesNegative traces)
  pure $
    ["traces: " <> show twice <> " of " <> show ended <> " ends were told twice" | twice > 0]
      <> ["traces: " <> show negative <> " took less than nothing" | negative > 0]
      <> ["traces: of " <> show begun <> " commands that began, " <> show ended <> " ended" | ended > begun || 10 * ended < 9 * begun]

-- | The node that took the command before, for each thread that publishes.
newtype Takers = Takers (IORef (Map ThreadId Endpoint))

newTakers :: IO Takers
newTakers = Takers <$> newIORef Map.empty

-- | The hook for clients that publish.
taking :: Takers -> CommandHook
taking (Takers takers) _ = pure $ \ended -> do
  thread <- myThreadId
  atomicModifyIORef' takers (\nodes -> (Map.alter (const (endedNode ended)) thread nodes, ()))

-- | The node that took the command of this thread before.
takerHere :: Takers -> IO (Maybe Endpoint)
takerHere (Takers takers) = Map.lookup <$> myThreadId <*> readIORef takers
