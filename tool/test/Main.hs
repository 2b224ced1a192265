-- | All tests of the program. When a test starts this process again, it runs the program.
module Main (main) where

import Redis.TestKit.Wait (testWithin)
import System.Environment (lookupEnv)
import System.Exit (exitWith)
import Test.Hspec (around_, hspec)
import Tool.Bench.ArrivalsSpec qualified
import Tool.Bench.AssembleSpec qualified
import Tool.Bench.CountersSpec qualified
import Tool.Bench.Document.ConsistencySpec qualified
import Tool.Bench.Document.JsonSpec qualified
import Tool.Bench.EventsSpec qualified
import Tool.Bench.FormatSpec qualified
import Tool.Bench.Histogram.HdrSpec qualified
import Tool.Bench.HistogramSpec qualified
import Tool.Bench.HtmlSpec qualified
import Tool.Bench.KnownAnswerSpec qualified
import Tool.Bench.ReconcileSpec qualified
import Tool.Bench.RedisBenchmarkSpec qualified
import Tool.Bench.ReportSpec qualified
import Tool.Bench.ServerFactsSpec qualified
import Tool.Bench.SteadySpec qualified
import Tool.Bench.SweepSpec qualified
import Tool.Bench.TrustSpec qualified
import Tool.Bench.Workload.AloneSpec qualified
import Tool.Bench.Workload.DistributionSpec qualified
import Tool.Bench.Workload.KeysSpec qualified
import Tool.Bench.Workload.NamedSpec qualified
import Tool.Bench.Workload.RunSpec qualified
import Tool.Bench.Workload.TemplateSpec qualified
import Tool.Bench.Workload.ValuesSpec qualified
import Tool.Bench.WorkloadSpec qualified
import Tool.Campaign.DesignSpec qualified
import Tool.Campaign.ServerSpec qualified
import Tool.Campaign.ViewsSpec qualified
import Tool.CampaignSpec qualified
import Tool.ChangePointSpec qualified
import Tool.ChartSpec qualified
import Tool.CompareSpec qualified
import Tool.ConnectSpec qualified
import Tool.FaultSpec qualified
import Tool.HintSpec qualified
import Tool.MergeSpec qualified
import Tool.MonitorSpec qualified
import Tool.Options.LoadSpec qualified
import Tool.OptionsSpec qualified
import Tool.Program (runProgram)
import Tool.ProgramSpec qualified
import Tool.Record.LinesSpec qualified
import Tool.RecordSpec qualified
import Tool.RelaySpec qualified
import Tool.ReplaySpec qualified
import Tool.SpanSpec qualified
import Tool.Startup (useUtf8)
import Tool.StatisticsSpec qualified

main :: IO ()
main =
  (,) <$> lookupEnv Tool.ProgramSpec.actAsProgram <*> lookupEnv Tool.MergeSpec.actAsSampler >>= \case
    (Just _, _) -> runProgram >>= exitWith
    (_, Just _) -> Tool.MergeSpec.sampler
    (Nothing, Nothing) -> (useUtf8 >>) . hspec . around_ (testWithin 120) $ do
      Tool.OptionsSpec.spec
      Tool.Bench.ArrivalsSpec.spec
      Tool.Bench.AssembleSpec.spec
      Tool.ChangePointSpec.spec
      Tool.ChartSpec.spec
      Tool.ConnectSpec.spec
      Tool.MonitorSpec.spec
      Tool.RelaySpec.spec
      Tool.SpanSpec.spec
      Tool.Campaign.DesignSpec.spec
      Tool.Campaign.ServerSpec.spec
      Tool.Campaign.ViewsSpec.spec
      Tool.Bench.HistogramSpec.spec
      Tool.Bench.Histogram.HdrSpec.spec
      Tool.Bench.WorkloadSpec.spec
      Tool.Bench.Workload.AloneSpec.spec
      Tool.Bench.Workload.DistributionSpec.spec
      Tool.Bench.Workload.KeysSpec.spec
      Tool.Bench.Workload.NamedSpec.spec
      Tool.Bench.Workload.RunSpec.spec
      Tool.Bench.Workload.TemplateSpec.spec
      Tool.Bench.Workload.ValuesSpec.spec
      Tool.Bench.RedisBenchmarkSpec.spec
      Tool.Bench.ReportSpec.spec
      Tool.Bench.FormatSpec.spec
      Tool.Bench.HtmlSpec.spec
      Tool.StatisticsSpec.spec
      Tool.CompareSpec.spec
      Tool.MergeSpec.spec
      Tool.Bench.Document.ConsistencySpec.spec
      Tool.Bench.Document.JsonSpec.spec
      Tool.Bench.ReconcileSpec.spec
      Tool.Bench.SteadySpec.spec
      Tool.Bench.EventsSpec.spec
      Tool.Bench.TrustSpec.spec
      Tool.Bench.ServerFactsSpec.spec
      Tool.Bench.SweepSpec.spec
      Tool.Bench.CountersSpec.spec
      Tool.Bench.KnownAnswerSpec.spec
      Tool.Options.LoadSpec.spec
      Tool.ProgramSpec.spec
      Tool.HintSpec.spec
      Tool.FaultSpec.spec
      Tool.CampaignSpec.spec
      Tool.Record.LinesSpec.spec
      Tool.RecordSpec.spec
      Tool.ReplaySpec.spec
