-- | Publishing messages, and looking up who subscribes.
--
-- > run client (Redis.publish "example:publish" "it rains")
-- > run client (onNode node (Redis.pubsubNumsub ("example:publish" :| [])))
--
-- To subscribe, use "Redis.Subscription"; SUBSCRIBE and its variants are not in this module. The
-- PUBSUB commands, except 'pubsubHelp', concern one node; in a cluster, name it.
-- The server's documentation: <https://valkey.io/topics/pubsub/>.
module Redis.Commands.Pubsub
  ( -- * Publishing
    publish,
    spublish,

    -- * Looking up subscribers
    pubsubChannels,
    pubsubChannelsOf,
    pubsubNumpat,
    pubsubNumsub,
    pubsubShardchannels,
    pubsubShardchannelsOf,
    pubsubShardnumsub,
    pubsubHelp,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @PUBLISH channel message@: publishes a message; how many subscribers received it. \(O(n)\) in
-- the subscribers of the channel, and in all patterns;
-- [since 2.0.0](https://valkey.io/commands/publish/).
--
-- In a cluster the message reaches all nodes; the number counts the subscribers of the node that
-- takes it. That is the primary of the slot that the channel would have as a key, or while that is
-- down another one. So a channel's messages stay in order as long as its slot stays where it is.
publish :: ByteString -> ByteString -> Command Int64
publish channel message = command "PUBLISH" [arg channel, arg message] Decode.integer

-- | @SPUBLISH channel message@: publishes to a shard channel; how many subscribers (SSUBSCRIBE)
-- received it. \(O(n)\) in their number, [since 7.0.0](https://valkey.io/commands/spublish/).
--
-- In a cluster the message goes to the primary of the channel's slot and stays in its shard; the
-- number counts the subscribers of this primary.
spublish :: ByteString -> ByteString -> Command Int64
spublish channel message = command "SPUBLISH" [key channel, arg message] Decode.integer

-- | @PUBSUB CHANNELS@, @PUBSUB SHARDCHANNELS@: the channels or shard channels with subscribers;
-- patterns do not count. \(O(n)\), [since 2.8.0](https://valkey.io/commands/pubsub-channels/),
-- shard channels [since 7.0.0](https://valkey.io/commands/pubsub-shardchannels/).
--
-- > run client (onEvery AllNodes pubsubChannels)
pubsubChannels, pubsubShardchannels :: Command [ByteString]
pubsubChannels = command "PUBSUB CHANNELS" [] (Decode.list Decode.bytes)
pubsubShardchannels = command "PUBSUB SHARDCHANNELS" [] (Decode.list Decode.bytes)

-- | @PUBSUB CHANNELS pattern@, @PUBSUB SHARDCHANNELS pattern@: like 'pubsubChannels' and
-- 'pubsubShardchannels', for the channels that match a glob.
pubsubChannelsOf, pubsubShardchannelsOf :: ByteString -> Command [ByteString]
pubsubChannelsOf glob = command "PUBSUB CHANNELS" [arg glob] (Decode.list Decode.bytes)
pubsubShardchannelsOf glob = command "PUBSUB SHARDCHANNELS" [arg glob] (Decode.list Decode.bytes)

-- | @PUBSUB NUMPAT@: how many different patterns have subscribers. \(O(1)\),
-- [since 2.8.0](https://valkey.io/commands/pubsub-numpat/).
pubsubNumpat :: Command Int64
pubsubNumpat = command "PUBSUB NUMPAT" [] Decode.integer

-- | @PUBSUB NUMSUB channel …@, @PUBSUB SHARDNUMSUB channel …@: how many subscribers each channel or
-- shard channel has, in the order of the arguments; patterns do not count. \(O(n)\),
-- [since 2.8.0](https://valkey.io/commands/pubsub-numsub/), shard channels
-- [since 7.0.0](https://valkey.io/commands/pubsub-shardnumsub/).
pubsubNumsub, pubsubShardnumsub :: NonEmpty ByteString -> Command [(ByteString, Int64)]
pubsubNumsub channels = command "PUBSUB NUMSUB" (args channels) counts
pubsubShardnumsub channels = command "PUBSUB SHARDNUMSUB" (args channels) counts

counts :: Decoder [(ByteString, Int64)]
counts = Decode.pairs Decode.bytes Decode.integer

-- | @PUBSUB HELP@: the server's help. \(O(1)\), [since 6.2.0](https://valkey.io/commands/pubsub-help/).
pubsubHelp :: Command [ByteString]
pubsubHelp = command "PUBSUB HELP" [] (Decode.list Decode.bytes)
