-- | What a client tells of its commands while things break.
--
-- Whatever became of a command, its end is told at most once, and never as having taken less
-- than nothing. Most are awaited, so most have an end.
module Soak.Traces
  ( Traces,
    newTraces,
    tracing,
    tracesWrong,
  )
where

import Control.Monad (when)
import Data.IORef
import Redis.Tracing

data Traces = Traces
  { tracesBegun :: IORef Int,
    tracesEnded :: IORef Int,
    tracesTwice :: IORef Int,
    tracesNegative :: IORef Int
  }

newTraces :: IO Traces
newTraces = Traces <$> newIORef 0 <*> newIORef 0 <*> newIORef 0 <*> newIORef 0

-- | To be given to clients.
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

-- | At the end, when nobody calls.
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
