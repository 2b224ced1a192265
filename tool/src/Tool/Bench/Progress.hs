-- | The progress of a run, on standard error: on a terminal a line that is redrawn, with the rates
-- of the last seconds as a curve; elsewhere a line every ten seconds, so that logs stay readable.
module Tool.Bench.Progress
  ( Progress,
    newProgress,
    silent,
    announce,
    State (..),
    tick,
    finish,
    sparkline,
  )
where

import Control.Monad (when)
import Data.IORef (IORef, newIORef, readIORef, writeIORef)
import System.IO (hFlush, hIsTerminalDevice, hPutStr, hPutStrLn, stderr)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Time (Nanos)
import Tool.Span (perSecond, secondsIn)
import Tool.Text (duration, fixed, thousands)

-- | Where to show progress.
data Progress
  = Silent
  | Spoken Style (IORef Curve)

data Style = Plain | Terminal
  deriving stock (Eq)

-- The state at the last line: the time, the number of commands, and the earlier rates, newest
-- first.
data Curve = Curve
  { curveTime :: Nanos,
    curveMeasured :: Int,
    curveRates :: [Double]
  }

-- | Shows progress on standard error, in the style that fits it.
newProgress :: IO Progress
newProgress = do
  terminal <- hIsTerminalDevice stderr
  Spoken (if terminal then Terminal else Plain) <$> newIORef noCurve

noCurve :: Curve
noCurve = Curve 0 0 []

-- | Shows nothing.
silent :: Progress
silent = Silent

-- | Prints a line that says what comes next.
announce :: Progress -> String -> IO ()
announce progress text = case progress of
  Silent -> pure ()
  Spoken _ curve -> do
    writeIORef curve noCurve
    hPutStrLn stderr text >> hFlush stderr

-- | The state of a run at one moment.
data State = State
  { -- | Time since the window began.
    statePassed :: Nanos,
    -- | Commands measured so far.
    stateMeasured :: Int,
    -- | Service times of the latest complete slice.
    stateLatest :: Histogram,
    stateErrors :: Int
  }

-- | Shows the state. Takes the length of the window, if it is known.
tick :: Progress -> Maybe Nanos -> State -> IO ()
tick progress whole state = case progress of
  Silent -> pure ()
  Spoken style place -> do
    curve <- readIORef place
    let passed = statePassed state - curveTime curve
    when (passed >= (if style == Terminal then 200000000 else 10000000000)) $ do
      let rate = perSecond (fromIntegral (stateMeasured state - curveMeasured curve)) passed
          rates = take 30 (rate : curveRates curve)
      writeIORef place (Curve (statePassed state) (stateMeasured state) rates)
      case style of
        Terminal ->
          hPutStr stderr (startOver <> "  " <> line rate <> "  " <> sparkline (reverse rates))
        Plain -> hPutStrLn stderr ("  " <> line rate)
      hFlush stderr
  where
    line rate =
      seconds (statePassed state) <> maybe "" ((" of " <>) . seconds) whole <> " s  "
        <> thousands (round (rate :: Double))
        <> " ops/s"
        <> latencies (stateLatest state)
        <> errors (stateErrors state)
    errors failed = if failed > 0 then "  " <> thousands failed <> " errors" else ""
    latencies latest
      | Histogram.count latest == 0 = ""
      | otherwise = concat ["  " <> name <> " " <> at share | (name, share) <- [("p50", 50), ("p99", 99)]]
      where
        at share = duration (Histogram.percentile share latest)
    seconds nanos = fixed 1 (secondsIn nanos)

-- | A curve of one letter per number, from 0 to the largest.
sparkline :: [Double] -> String
sparkline values = map letter values
  where
    top = foldr max 0 values
    letter value
      | top <= 0 = '▁'
      | otherwise = case drop (round (value / top * 7)) "▁▂▃▄▅▆▇█" of
        found : _ -> found
        [] -> '█'

-- | Clears the line that is redrawn.
finish :: Progress -> IO ()
finish progress = case progress of
  Spoken Terminal _ -> hPutStr stderr startOver >> hFlush stderr
  _ -> pure ()

-- | Moves to the start of the line and clears it.
startOver :: String
startOver = "\r\ESC[K"
