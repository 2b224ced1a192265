-- | All tests of the program.
module Main (main) where

import Test.Hspec (around_, hspec)
import TestTimeout (timed)
import Tool.Bench.HistogramSpec qualified
import Tool.Bench.JsonSpec qualified
import Tool.Bench.RedisBenchmarkSpec qualified
import Tool.Bench.ReportSpec qualified
import Tool.Bench.WorkloadSpec qualified
import Tool.OptionsSpec qualified

main :: IO ()
main = hspec . around_ (timed 120) $ do
  Tool.OptionsSpec.spec
  Tool.Bench.HistogramSpec.spec
  Tool.Bench.WorkloadSpec.spec
  Tool.Bench.RedisBenchmarkSpec.spec
  Tool.Bench.ReportSpec.spec
  Tool.Bench.JsonSpec.spec
