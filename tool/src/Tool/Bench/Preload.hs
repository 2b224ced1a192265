-- | Writes every key before the clock starts, so that every GET hits.
module Tool.Bench.Preload
  ( preload,
  )
where

import Control.Exception (displayException, try)
import Control.Monad (forM, forM_, when)
import Redis (Client)
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.Error (Error)
import Tool.Bench.Counts (CommandCounts, counted)
import Tool.Bench.Cpu (Nanos, monotonic)
import Tool.Bench.Sleep (sleepUntil)
import Tool.Bench.Workload (Workload, workloadKey, workloadKeys, workloadValue)
import Tool.Connect (Target, replicaKeys, serverKeys)
import Tool.Failure (invalidRun)

-- | Sets all keys, many at a time, and asks the servers whether they hold them.
-- Returns what it sent. Ends the run if a SET fails or keys are
-- gone. Where reads go to replicas, blocks until they have the keys too, for at
-- most ten seconds.
preload :: Target -> Client -> Workload -> IO CommandCounts
preload target client workload = do
  forM_ [0, atOnce .. keys - 1] $ \from -> do
    pending <- forM [from .. min keys (from + atOnce) - 1] $ \number ->
      Redis.submit client $
        Commands.set (workloadKey workload number) (workloadValue workload number)
    forM_ pending $ \one ->
      Redis.tryWait one >>= either (invalidRun . ("the preload failed: " <>) . displayException) pure
  -- A server that does not say is believed.
  try @Error (serverKeys target) >>= \case
    Right held
      | held < keys ->
        invalidRun $
          "the server holds " <> show held <> " keys after a preload of " <> show keys
            <> ": does it evict?"
      | otherwise -> monotonic >>= replicated held . (+ 10000000000)
    Left _ -> pure ()
  pure (counted keys [("set", 1)])
  where
    keys = workloadKeys workload
    atOnce = 512
    replicated :: Int -> Nanos -> IO ()
    replicated held latest = do
      copies <- replicaKeys target
      now <- monotonic
      when (not (null copies) && sum copies < held) $
        if now > latest
          then invalidRun ("the replicas hold " <> show (sum copies) <> " of " <> show held <> " keys ten seconds after the preload")
          else sleepUntil (now + 50000000) >> replicated held latest
