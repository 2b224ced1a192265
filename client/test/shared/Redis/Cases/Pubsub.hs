-- | "Redis.Commands.Pubsub".
module Redis.Cases.Pubsub (pubsubCases) where

import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Pubsub

-- | The cases without subscribers; "Redis.ListeningLiveSpec" has those with some.
pubsubCases :: [Case]
pubsubCases =
  [ onEmpty "publish" (publish "c" "m") ["PUBLISH", "c", "m"] (Gives 0),
    onEmpty "spublish" (spublish "c" "m") ["SPUBLISH", "c", "m"] (Gives 0),
    onEmpty "pubsubChannels" pubsubChannels ["PUBSUB", "CHANNELS"] (Gives []),
    onEmpty "pubsubChannelsOf" (pubsubChannelsOf "c*") ["PUBSUB", "CHANNELS", "c*"] (Gives []),
    onEmpty "pubsubNumpat" pubsubNumpat ["PUBSUB", "NUMPAT"] (Gives 0),
    onEmpty "pubsubNumsub" (pubsubNumsub ("c" :| ["d"])) ["PUBSUB", "NUMSUB", "c", "d"] (Gives [("c", 0), ("d", 0)]),
    onEmpty "pubsubShardchannels" pubsubShardchannels ["PUBSUB", "SHARDCHANNELS"] (Gives []),
    onEmpty "pubsubShardchannelsOf" (pubsubShardchannelsOf "c*") ["PUBSUB", "SHARDCHANNELS", "c*"] (Gives []),
    onEmpty "pubsubShardnumsub" (pubsubShardnumsub ("c" :| [])) ["PUBSUB", "SHARDNUMSUB", "c"] (Gives [("c", 0)]),
    onEmpty "pubsubHelp" pubsubHelp ["PUBSUB", "HELP"] (Such "has lines" (not . null))
  ]
