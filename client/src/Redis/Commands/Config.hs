-- | The settings of a running server.
--
-- > before <- run client (onNode node (Redis.configGet ("slowlog-log-slower-than" :| ["latency-monitor-threshold"])))
-- > run client (Redis.configSet (("slowlog-log-slower-than", "0") :| []))
--
-- The server's page: <https://valkey.io/topics/valkey.conf/>.
module Redis.Commands.Config
  ( configGet,
    configSet,
    configResetstat,
    configRewrite,
    configHelp,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @CONFIG GET pattern …@: settings whose names match a glob. In a cluster, name the node.
-- \(O(n)\), [since 2.0.0](https://valkey.io/commands/config-get/); several patterns since 7.0.0.
configGet :: NonEmpty ByteString -> Command [(ByteString, ByteString)]
configGet patterns = command "CONFIG GET" (args patterns) (Decode.pairs Decode.bytes Decode.bytes)

-- | @CONFIG SET name value …@: changes these settings: all of them, or none. In a cluster it runs
-- on every node. \(O(n)\), [since 2.0.0](https://valkey.io/commands/config-set/); several settings since 7.0.0.
configSet :: NonEmpty (ByteString, ByteString) -> Command ()
configSet settings = command "CONFIG SET" (fieldsWithValues settings) Decode.okay

-- | @CONFIG RESETSTAT@: resets what INFO and LATENCY HISTOGRAM count. In a cluster it runs on every
-- node. \(O(1)\), [since 2.0.0](https://valkey.io/commands/config-resetstat/).
configResetstat :: Command ()
configResetstat = command "CONFIG RESETSTAT" [] Decode.okay

-- | @CONFIG REWRITE@: writes the current settings into the file that the server was started with.
-- In a cluster it runs on every node. An error if there is no file. \(O(1)\),
-- [since 2.8.0](https://valkey.io/commands/config-rewrite/).
configRewrite :: Command ()
configRewrite = command "CONFIG REWRITE" [] Decode.okay

-- | @CONFIG HELP@: the server's help. \(O(1)\), [since 5.0.0](https://valkey.io/commands/config-help/).
configHelp :: Command [ByteString]
configHelp = command "CONFIG HELP" [] (Decode.list Decode.bytes)
