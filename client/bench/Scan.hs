-- | Counts the keys of a server by a walk, for @lab/scan@, which compares it with
-- @redis-cli --scan@.
--
-- > scan HOST PORT COUNT      once: keys, nanoseconds, nanoseconds of processor time, most bytes alive
-- > scan --iters 1            on a server of its own, unmeasured
--
-- With COUNT 0 the library chooses the count. The most bytes alive are known only with @+RTS -T@;
-- without it, the program prints 0.
module Main (main) where

import Bench.Private
import Control.Monad (when)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import GHC.Clock (getMonotonicTimeNSec)
import GHC.Stats (RTSStats (max_live_bytes), getRTSStats, getRTSStatsEnabled)
import Redis
import Redis.Commands qualified as Redis
import Redis.Scan
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.Exit (die)

main :: IO ()
main =
  getArgs >>= \case
    ["--iters", _] -> onPrivateServer $ \config -> do
      withClient config $ \client -> run client (Redis.set "key" "value")
      keys <- counting config Nothing
      when (keys /= 1) (die ("scan: " <> show keys <> " keys"))
      putStrLn "1 key"
    [host, port, count] -> do
      began <- getMonotonicTimeNSec
      keys <- counting (standaloneConfig (Char8.pack host) (fromInteger (read port))) (if count == "0" then Nothing else Just (read count))
      ended <- getMonotonicTimeNSec
      spent <- getCPUTime
      measured <- getRTSStatsEnabled
      alive <- if measured then max_live_bytes <$> getRTSStats else pure 0
      putStrLn (unwords [show keys, show (ended - began), show (spent `div` 1000), show alive])
    _ -> die "scan: HOST PORT COUNT, or --iters 1"

counting :: Config -> Maybe Int64 -> IO Int
counting config count = withClient config $ \client ->
  foldScan client Redis.scanDefaults {Redis.scanCount = count} (\keys _key -> pure (keys + 1)) 0
