module Main (main) where

import Redis.Internal.Protocol.RedirectSpec qualified
import Redis.Internal.Protocol.SlotSpec qualified
import Redis.Internal.Routing.ClusterReplySpec qualified
import Redis.Internal.Routing.HealthSpec qualified
import Redis.Internal.Routing.RecoverySpec qualified
import Redis.Internal.Routing.RetrySpec qualified
import Redis.Internal.Routing.SimulationSpec qualified
import Redis.Internal.Routing.SlotMapSpec qualified
import Redis.Internal.Routing.TopologySpec qualified
import Support (timed)
import Test.Hspec (hspec)

main :: IO ()
main =
  hspec . timed $ do
    Redis.Internal.Protocol.RedirectSpec.spec
    Redis.Internal.Protocol.SlotSpec.spec
    Redis.Internal.Routing.ClusterReplySpec.spec
    Redis.Internal.Routing.HealthSpec.spec
    Redis.Internal.Routing.RecoverySpec.spec
    Redis.Internal.Routing.RetrySpec.spec
    Redis.Internal.Routing.SimulationSpec.spec
    Redis.Internal.Routing.SlotMapSpec.spec
    Redis.Internal.Routing.TopologySpec.spec
