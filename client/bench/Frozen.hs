-- | Callers that wait while their server is frozen, for @lab/frozen@, which freezes it.
--
-- > frozen PORT CALLERS SECONDS    says "ready", asks when a line comes, and says how it went
-- > frozen --iters 1               on a server of its own that is not frozen, unmeasured
--
-- SECONDS is the command timeout. Every caller is a thread that asks for the same key once, all on one
-- connection. The program prints the nanoseconds from the line to the first and the last caller that
-- is back; how many have a reply, have run out of time, and have another error; and of the whole
-- program, with @+RTS -T@: the collections, how many of them were major, the nanoseconds in them, and
-- the most bytes alive and taken from the system. Without @-T@ the program prints 0 for each.
module Main (main) where

import Bench.Private
import Control.Concurrent (forkIO, newEmptyMVar, putMVar, readMVar, takeMVar)
import Control.Monad (replicateM, replicateM_, void, when)
import Data.Foldable (foldl')
import Data.Word (Word64)
import GHC.Clock (getMonotonicTimeNSec)
import GHC.Stats (RTSStats (..), getRTSStats, getRTSStatsEnabled)
import Redis
import Redis.Commands qualified as Redis
import System.Environment (getArgs)
import System.Exit (die)
import System.IO (BufferMode (LineBuffering), hSetBuffering, stdout)
import Text.Read (readMaybe)

main :: IO ()
main =
  getArgs >>= \case
    ["--iters", _] -> onPrivateServer $ \config -> do
      outcome <- waiting config 10 (pure ())
      when (outcomeReplies outcome /= 10) (die "frozen: a caller without a reply")
      putStrLn "10 callers"
    [port, callers, limit]
      | Just number <- readMaybe port,
        Just count <- readMaybe callers,
        Just patience <- readMaybe limit -> do
        hSetBuffering stdout LineBuffering
        let config = setCommandTimeout (Just (seconds patience)) (standaloneConfig "127.0.0.1" number)
        outcome <- waiting config count (putStrLn "ready" *> void getLine)
        measured <- getRTSStatsEnabled
        collected <- if measured then collections <$> getRTSStats else pure (replicate 5 0)
        putStrLn . unwords $
          [show (outcomeFirst outcome), show (outcomeLast outcome)]
            <> map show [outcomeReplies outcome, outcomeTimeouts outcome, outcomeOthers outcome]
            <> map show collected
    _ -> die "frozen: PORT CALLERS SECONDS, or --iters 1"

-- | What became of the callers.
data Outcome = Outcome
  { -- | Nanoseconds from the beginning to the first and the last that was back.
    outcomeFirst :: !Word64,
    outcomeLast :: !Word64,
    outcomeReplies :: !Int,
    outcomeTimeouts :: !Int,
    outcomeOthers :: !Int
  }

-- | Starts the callers, lets them ask when the action has returned, and waits until all are back.
waiting :: Config -> Int -> IO () -> IO Outcome
waiting config count beginning = withClient config $ \client -> do
  run client Redis.ping
  gate <- newEmptyMVar
  back <- newEmptyMVar
  replicateM_ count . forkIO $ do
    readMVar gate
    answer <- tryRun client (Redis.get "key")
    now <- getMonotonicTimeNSec
    putMVar back (now, answer)
  beginning
  began <- getMonotonicTimeNSec
  putMVar gate ()
  foldl' (noting began) (Outcome maxBound 0 0 0 0) <$> replicateM count (takeMVar back)
  where
    noting began outcome (now, answer) =
      let sooner = outcome {outcomeFirst = min (outcomeFirst outcome) (now - began), outcomeLast = max (outcomeLast outcome) (now - began)}
       in case answer of
            Right _ -> sooner {outcomeReplies = outcomeReplies sooner + 1}
            Left (TimeoutError _) -> sooner {outcomeTimeouts = outcomeTimeouts sooner + 1}
            Left _ -> sooner {outcomeOthers = outcomeOthers sooner + 1}

-- | Collections, major ones, nanoseconds in them, the most bytes alive, the most bytes resident.
collections :: RTSStats -> [Word64]
collections stats = [fromIntegral (gcs stats), fromIntegral (major_gcs stats), fromIntegral (gc_elapsed_ns stats), max_live_bytes stats, max_mem_in_use_bytes stats]
