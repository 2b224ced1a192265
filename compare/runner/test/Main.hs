-- | All tests of the comparison's runner.
module Main (main) where

import Compare.GoalsSpec qualified
import Compare.ManifestSpec qualified
import Compare.MeasureSpec qualified
import Compare.Ours.OptionsSpec qualified
import Compare.Ours.RuntimeSpec qualified
import Compare.PairSpec qualified
import Compare.QuietSpec qualified
import Compare.ReportSpec qualified
import Compare.RowSpec qualified
import Compare.SampleSpec qualified
import Compare.StreamSpec qualified
import Redis.TestKit.Wait (within)
import Test.Hspec (around_, hspec)

main :: IO ()
main = hspec . around_ (within 60) $ do
  Compare.StreamSpec.spec
  Compare.Ours.OptionsSpec.spec
  Compare.Ours.RuntimeSpec.spec
  Compare.RowSpec.spec
  Compare.SampleSpec.spec
  Compare.ManifestSpec.spec
  Compare.PairSpec.spec
  Compare.QuietSpec.spec
  Compare.MeasureSpec.spec
  Compare.GoalsSpec.spec
  Compare.ReportSpec.spec
