-- | Publishing messages, and asking who listens.
--
-- > run client (Redis.publish "example:publish" "it rains")
-- > run client (onNode node (Redis.pubsubNumsub ("example:publish" :| [])))
--
-- "Redis.Subscription" listens; SUBSCRIBE and the like are not here. The server's page: <https://valkey.io/topics/pubsub/>.
module Redis.Commands.Pubsub
  ( -- * Publishing
    publish,
    spublish,

    -- * Asking
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

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode

-- | @PUBLISH channel message@: how many got it. \(O(n)\) on the server in those who listen to the
-- channel, and in all patterns; [since 2.0.0](https://valkey.io/commands/publish/).
--
-- In a cluster any node takes it and all nodes pass it on; the number is that of the
-- node's own listeners.
--
-- @since 0.1.0.0
publish :: ByteString -> ByteString -> Command Int64
publish channel message = command "PUBLISH" [arg channel, arg message] Decode.integer

-- | @SPUBLISH channel message@: how many got it who listen to a channel of shards (SSUBSCRIBE).
-- \(O(n)\) on the server in those, [since 7.0.0](https://valkey.io/commands/spublish/).
--
-- In a cluster it goes to the primary of the channel's slot and stays in its shard;
-- the number is that of this primary's own listeners.
--
-- @since 0.1.0.0
spublish :: ByteString -> ByteString -> Command Int64
spublish channel message = command "SPUBLISH" [key channel, arg message] Decode.integer

-- | @PUBSUB CHANNELS@: the channels that somebody listens to, patterns apart. One node's own.
-- \(O(n)\) on the server, [since 2.8.0](https://valkey.io/commands/pubsub-channels/).
--
-- > run client (onEvery AllNodes pubsubChannels)
--
-- @since 0.1.0.0
pubsubChannels :: Command [ByteString]
pubsubChannels = command "PUBSUB CHANNELS" [] (Decode.list Decode.bytes)

-- | @PUBSUB CHANNELS pattern@: as 'pubsubChannels', those that match the glob.
--
-- @since 0.1.0.0
pubsubChannelsOf :: ByteString -> Command [ByteString]
pubsubChannelsOf glob = command "PUBSUB CHANNELS" [arg glob] (Decode.list Decode.bytes)

-- | @PUBSUB NUMPAT@: how many different patterns somebody listens to. One node's own. \(O(1)\) on
-- the server, [since 2.8.0](https://valkey.io/commands/pubsub-numpat/).
--
-- @since 0.1.0.0
pubsubNumpat :: Command Int64
pubsubNumpat = command "PUBSUB NUMPAT" [] Decode.integer

-- | @PUBSUB NUMSUB channel …@: how many listen to each, patterns apart, in the order of the
-- channels. One node's own. \(O(n)\) on the server,
-- [since 2.8.0](https://valkey.io/commands/pubsub-numsub/).
--
-- @since 0.1.0.0
pubsubNumsub :: NonEmpty ByteString -> Command [(ByteString, Int64)]
pubsubNumsub channels = command "PUBSUB NUMSUB" (args channels) counts

-- | @PUBSUB SHARDCHANNELS@: as 'pubsubChannels', of the channels of shards. One node's own.
-- \(O(n)\) on the server, [since 7.0.0](https://valkey.io/commands/pubsub-shardchannels/).
--
-- @since 0.1.0.0
pubsubShardchannels :: Command [ByteString]
pubsubShardchannels = command "PUBSUB SHARDCHANNELS" [] (Decode.list Decode.bytes)

-- | @PUBSUB SHARDCHANNELS pattern@: those that match the glob.
--
-- @since 0.1.0.0
pubsubShardchannelsOf :: ByteString -> Command [ByteString]
pubsubShardchannelsOf glob = command "PUBSUB SHARDCHANNELS" [arg glob] (Decode.list Decode.bytes)

-- | @PUBSUB SHARDNUMSUB channel …@: as 'pubsubNumsub', of the channels of shards. \(O(n)\) on the
-- server, [since 7.0.0](https://valkey.io/commands/pubsub-shardnumsub/).
--
-- @since 0.1.0.0
pubsubShardnumsub :: NonEmpty ByteString -> Command [(ByteString, Int64)]
pubsubShardnumsub channels = command "PUBSUB SHARDNUMSUB" (args channels) counts

counts :: Decoder [(ByteString, Int64)]
counts = Decode.pairs Decode.bytes Decode.integer

-- | @PUBSUB HELP@: what PUBSUB can do, in lines for people. \(O(1)\) on the server,
-- [since 6.2.0](https://valkey.io/commands/pubsub-help/).
--
-- @since 0.1.0.0
pubsubHelp :: Command [ByteString]
pubsubHelp = command "PUBSUB HELP" [] (Decode.list Decode.bytes)
