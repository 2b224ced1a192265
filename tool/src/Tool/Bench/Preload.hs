-- | Prepares the server before the clock starts: writes the keys that the run will read, loads
-- programs, and checks once that they do what the run measures.
module Tool.Bench.Preload
  ( preload,
    runNumbered,
  )
where

import Control.Exception (displayException, throwIO, try)
import Control.Monad (forM, forM_)
import Data.ByteString.Char8 qualified as Char8
import Data.Text qualified as Text
import Redis (Client, onNode)
import Redis qualified
import Redis.Command (Command)
import Redis.Error (Error)
import Tool.Bench.Time (Nanos, monotonic, sleepUntil)
import Tool.Bench.Workload (Outcome (..), Workload, workloadSteps)
import Tool.Bench.Workload.Dataset (Step (..), StepPlace (..))
import Tool.Connect (CommandCounts, Target, counted, primaries, replicasBehind, serverKeys)
import Tool.Failure (invalidRun)

-- | Runs the workload's steps, and checks that the servers hold the keys. Returns the counts of the
-- commands that it sent. Ends the run if a step fails or keys are missing. Where reads go to
-- replicas, blocks until every replica has as many keys as its primary, for at most ten seconds.
preload :: Target -> Client -> Workload -> IO CommandCounts
preload target client workload = do
  sent <- traverse (prepare client) steps
  -- If a server does not tell its number of keys, the keys are assumed to be there.
  try @Error (serverKeys target) >>= \case
    Right held
      | held < wanted ->
        invalidRun $
          "the server holds " <> show held <> " keys after a preload of " <> show wanted
            <> ": does it evict?"
      | otherwise -> monotonic >>= replicated . (+ 10000000000)
    Left _ -> pure ()
  pure (mconcat sent)
  where
    replicated :: Nanos -> IO ()
    replicated latest = do
      late <- replicasBehind target
      now <- monotonic
      case late of
        [] -> pure ()
        (copied, held) : _
          | now > latest ->
            invalidRun $
              "a replica holds " <> show copied <> " of its primary's " <> show held
                <> " keys ten seconds after the preload"
          | otherwise -> sleepUntil (now + 50000000) >> replicated latest
    steps = workloadSteps workload
    wanted = sum (map stepKeys steps)

prepare :: Client -> Step -> IO CommandCounts
prepare client step = case stepPlace step of
  StepByKey -> once <$ many id 512
  StepInTurn -> once <$ many id 1
  -- On every node that serves keys.
  StepEverywhere -> do
    nodes <- primaries client
    mconcat <$> traverse (\node -> once <$ many (onNode node) 1) nodes
  where
    once = counted 1 (stepStats step)
    many placed atOnce =
      numbered client atOnce (stepCount step) (placed . stepCommand step) $
        either (failed . displayException) judge
    judge = \case
      Wrong found -> failed ("the reply is " <> show (Char8.take 100 found))
      _ -> pure ()
    failed problem =
      invalidRun ("the preload of " <> Text.unpack (stepName step) <> " failed: " <> problem)

-- | Runs the command of each number below this count, many at a time. Throws the first error.
runNumbered :: Client -> Int -> (Int -> Command a) -> IO ()
runNumbered client count commandOf =
  numbered client 512 count commandOf (either throwIO (const (pure ())))

-- Takes how many commands to submit at a time, and the handler that gets the replies in order.
numbered :: Client -> Int -> Int -> (Int -> Command a) -> (Either Error a -> IO ()) -> IO ()
numbered client atOnce count commandOf judge =
  forM_ [0, atOnce .. count - 1] $ \from -> do
    pending <- forM [from .. min count (from + atOnce) - 1] (Redis.submit client . commandOf)
    forM_ pending $ \one -> Redis.tryAwaitReply one >>= judge
