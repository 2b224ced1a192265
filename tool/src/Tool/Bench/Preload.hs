-- | Writes every key before the clock starts, so that every GET hits.
module Tool.Bench.Preload
  ( preload,
  )
where

import Control.Exception (displayException)
import Control.Monad (forM, forM_)
import Redis (Client)
import Redis qualified
import Redis.Commands qualified as Commands
import Tool.Bench.Counts (CommandCounts, counted)
import Tool.Bench.Workload (Workload, workloadKey, workloadKeys, workloadValue)
import Tool.Connect (Target, serverKeys)
import Tool.Failure (invalidRun)

-- | Sets all keys, many at a time, and asks the servers whether they hold them.
-- Returns what it sent. Ends the run if a SET fails or keys are gone.
preload :: Target -> Client -> Workload -> IO CommandCounts
preload target client workload = do
  forM_ [0, atOnce .. keys - 1] $ \from -> do
    pending <- forM [from .. min keys (from + atOnce) - 1] $ \number ->
      Redis.submit client $
        Commands.set (workloadKey workload number) (workloadValue workload number)
    forM_ pending $ \one ->
      Redis.tryWait one >>= either (invalidRun . ("the preload failed: " <>) . displayException) pure
  held <- serverKeys target
  if held < keys
    then
      invalidRun $
        "the server holds " <> show held <> " keys after a preload of " <> show keys
          <> ": does it evict?"
    else pure (counted keys [("set", 1)])
  where
    keys = workloadKeys workload
    atOnce = 512
