module Main (main) where

import Redis.Internal.Client.CacheSpec qualified
import Redis.Internal.Client.SubscribingSpec qualified
import Redis.Internal.Network.CountersSpec qualified
import Redis.Internal.Network.DedicatedSpec qualified
import Redis.Internal.Protocol.RedirectSpec qualified
import Redis.Internal.Protocol.SessionSpec qualified
import Redis.Internal.Protocol.SlotSpec qualified
import Redis.Internal.Routing.InquirySpec qualified
import Redis.Internal.Routing.NodesSpec qualified
import Redis.Internal.Routing.ReplicasSpec qualified
import Redis.Internal.Routing.RetryPolicySpec qualified
import Redis.Internal.Routing.RetryQueueSpec qualified
import Redis.Internal.Routing.ScanSpec qualified
import Redis.Internal.Routing.SimulationSpec qualified
import Redis.Internal.Routing.SlotMapSpec qualified
import Redis.Internal.Routing.SwitchSpec qualified
import Redis.Internal.Routing.TopologyReportSpec qualified
import Redis.Internal.Routing.TopologySpec qualified
import Support (timed)
import Test.Hspec (hspec)

main :: IO ()
main =
  hspec . timed $ do
    Redis.Internal.Client.SubscribingSpec.spec
    Redis.Internal.Client.CacheSpec.spec
    Redis.Internal.Network.DedicatedSpec.spec
    Redis.Internal.Network.CountersSpec.spec
    Redis.Internal.Protocol.RedirectSpec.spec
    Redis.Internal.Protocol.SessionSpec.spec
    Redis.Internal.Protocol.SlotSpec.spec
    Redis.Internal.Routing.InquirySpec.spec
    Redis.Internal.Routing.NodesSpec.spec
    Redis.Internal.Routing.ReplicasSpec.spec
    Redis.Internal.Routing.RetryQueueSpec.spec
    Redis.Internal.Routing.RetryPolicySpec.spec
    Redis.Internal.Routing.SimulationSpec.spec
    Redis.Internal.Routing.SlotMapSpec.spec
    Redis.Internal.Routing.SwitchSpec.spec
    Redis.Internal.Routing.TopologySpec.spec
    Redis.Internal.Routing.TopologyReportSpec.spec
    Redis.Internal.Routing.ScanSpec.spec
