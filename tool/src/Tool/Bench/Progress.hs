-- | How far a run is, on the standard error: a line that is redrawn on a
-- terminal; elsewhere one line per run, so that logs stay readable.
module Tool.Bench.Progress
  ( Progress,
    newProgress,
    silent,
    announce,
    tick,
    finish,
  )
where

import System.IO (hFlush, hIsTerminalDevice, hPutStr, hPutStrLn, stderr)
import Tool.Bench.Cpu (Nanos)
import Tool.Text (fixed, thousands)

-- | Where to say it.
data Progress
  = Silent
  | Plain
  | Terminal

-- | As it fits the standard error.
newProgress :: IO Progress
newProgress = do
  terminal <- hIsTerminalDevice stderr
  pure (if terminal then Terminal else Plain)

-- | Says nothing.
silent :: Progress
silent = Silent

-- | A line: what comes next.
announce :: Progress -> String -> IO ()
announce progress text = case progress of
  Silent -> pure ()
  _ -> hPutStrLn stderr text >> hFlush stderr

-- | So many of so many nanoseconds have passed, so many commands are measured.
tick :: Progress -> Nanos -> Nanos -> Int -> IO ()
tick progress passed whole measured = case progress of
  Terminal | passed > 0 -> do
    hPutStr stderr $
      startOver <> "  " <> seconds passed <> " of " <> seconds whole <> " s  "
        <> thousands (round (fromIntegral measured * 1e9 / fromIntegral passed :: Double))
        <> " ops/s"
    hFlush stderr
  _ -> pure ()
  where
    seconds nanos = fixed 1 (fromIntegral nanos / 1e9)

-- | Wipes the line that is redrawn.
finish :: Progress -> IO ()
finish progress = case progress of
  Terminal -> hPutStr stderr startOver >> hFlush stderr
  _ -> pure ()

-- | To the start of the line, which becomes empty.
startOver :: String
startOver = "\r\ESC[K"
