module Main (main) where

import Redis.Commands.SplitSpec qualified
import Redis.Commands.StreamSpec qualified
import Redis.CommandsSpec qualified
import Redis.ConfigSpec qualified
import Redis.DecodeSpec qualified
import Redis.DurationSpec qualified
import Redis.ErrorSpec qualified
import Redis.Internal.Command.ArgumentSpec qualified
import Redis.Internal.Command.ShownSpec qualified
import Redis.Internal.Command.WaitingSpec qualified
import Redis.Internal.Protocol.CommandTable.AggregationSpec qualified
import Redis.Internal.Protocol.CommandTable.PolicySpec qualified
import Redis.Internal.Protocol.CommandTableSpec qualified
import Redis.Internal.Protocol.DoubleSpec qualified
import Redis.Internal.Protocol.EncodeSpec qualified
import Redis.Internal.Protocol.KeySpecSpec qualified
import Redis.MetricsSpec qualified
import Redis.ScriptSpec qualified
import Redis.ServerRepliesSpec qualified
import Redis.TracingSpec qualified
import Support (timed)
import Test.Hspec (hspec)

main :: IO ()
main =
  hspec . timed $ do
    Redis.Commands.SplitSpec.spec
    Redis.Commands.StreamSpec.spec
    Redis.CommandsSpec.spec
    Redis.ConfigSpec.spec
    Redis.DecodeSpec.spec
    Redis.DurationSpec.spec
    Redis.ErrorSpec.spec
    Redis.Internal.Command.ArgumentSpec.spec
    Redis.Internal.Command.ShownSpec.spec
    Redis.Internal.Command.WaitingSpec.spec
    Redis.Internal.Protocol.CommandTable.AggregationSpec.spec
    Redis.Internal.Protocol.CommandTable.PolicySpec.spec
    Redis.Internal.Protocol.CommandTableSpec.spec
    Redis.Internal.Protocol.DoubleSpec.spec
    Redis.Internal.Protocol.EncodeSpec.spec
    Redis.Internal.Protocol.KeySpecSpec.spec
    Redis.MetricsSpec.spec
    Redis.ScriptSpec.spec
    Redis.ServerRepliesSpec.spec
    Redis.TracingSpec.spec
