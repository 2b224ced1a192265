-- | @redis-benchmark@ on a campaign's cell: the same test, callers, keys and
-- bytes, against the same server, right after the load.
--
-- Its callers have a connection each, the load's callers share one: that is how
-- either is used. It may not be on this machine; then the run says so.
module Tool.Campaign.Reference
  ( runReferenceFor,
  )
where

import Control.Exception (IOException, try)
import Data.ByteString.Char8 qualified as Char8
import Data.List (intercalate)
import System.Exit (ExitCode (..))
import System.Process (proc, readCreateProcessWithExitCode)
import Tool.Bench.Cpu (endedChildrenCpu)
import Tool.Bench.Document (Reference (..))
import Tool.Bench.RedisBenchmark (parseCsv)

-- | Cores, host, port, test, callers, keys, bytes, seconds. It counts commands
-- and not seconds, so a short run finds how many fill the time. 'Left' says why
-- there is none.
runReferenceFor :: [Int] -> String -> Int -> String -> Int -> Int -> Int -> Double -> IO (Either String Reference)
runReferenceFor cores host port test callers keys bytes seconds =
  counted (max 200 (callers * 40)) >>= \case
    Left problem -> pure (Left problem)
    Right short -> counted (max 1000 (ceiling (referenceOpsPerSecond short * seconds)))
  where
    counted commands = do
      before <- endedChildrenCpu
      outcome <- try (readCreateProcessWithExitCode (proc program (prefix <> arguments commands)) "")
      after <- endedChildrenCpu
      pure $ case outcome of
        Left problem -> Left (show (problem :: IOException))
        Right (ExitFailure code, _, _) -> Left ("redis-benchmark ended with " <> show code)
        Right (ExitSuccess, output, _) -> case parseCsv (Char8.pack output) of
          Nothing -> Left "redis-benchmark said nothing that can be read"
          Just (rate, p50, p99) ->
            Right
              Reference
                { referenceOpsPerSecond = rate,
                  referenceP50 = p50,
                  referenceP99 = p99,
                  referenceCpuPerOp = fromIntegral (after - before) / fromIntegral commands,
                  referenceCommands = commands,
                  referenceArguments = "redis-benchmark" : arguments commands
                }
    (program, prefix) = case cores of
      [] -> ("redis-benchmark", [])
      _ -> ("taskset", ["-c", intercalate "," (map show cores), "redis-benchmark"])
    arguments :: Int -> [String]
    arguments commands =
      concat
        [ ["-h", host, "-p", show port, "-t", test],
          ["-c", show callers, "-P", "1"],
          -- With one key it is to send one key, as it does without -r.
          if keys > 1 then ["-r", show keys] else [],
          ["-d", show bytes, "-n", show commands, "--csv"]
        ]
