-- | All commands, as values. Import this module qualified, or import single names: many names clash
-- with those of other modules.
--
-- The repository's @docs/commands.md@ lists all commands and the functions that make them.
-- In @examples/Tour@ there is a short program for each group, and the first lines of the groups'
-- modules show parts of it; the tests run it. For a command of a newer server there is 'raw', and
-- for a command of a server's module "Redis.Command.Build".
module Redis.Commands
  ( module Redis.Commands.Acl,
    module Redis.Commands.Array,
    module Redis.Commands.Bitmap,
    module Redis.Commands.Client,
    module Redis.Commands.Cluster,
    module Redis.Commands.ClusterAdmin,
    module Redis.Commands.Clusterscan,
    module Redis.Commands.Command,
    module Redis.Commands.Config,
    module Redis.Commands.Connection,
    module Redis.Commands.Function,
    module Redis.Commands.Geo,
    module Redis.Commands.Hash,
    module Redis.Commands.HashField,
    module Redis.Commands.Himport,
    module Redis.Commands.Hotkeys,
    module Redis.Commands.HyperLogLog,
    module Redis.Commands.Keys,
    module Redis.Commands.Latency,
    module Redis.Commands.List,
    module Redis.Commands.Memory,
    module Redis.Commands.Module,
    module Redis.Commands.Object,
    module Redis.Commands.Persistence,
    module Redis.Commands.Pubsub,
    module Redis.Commands.Raw,
    module Redis.Commands.Replication,
    module Redis.Commands.Script,
    module Redis.Commands.Server,
    module Redis.Commands.Set,
    module Redis.Commands.Slowlog,
    module Redis.Commands.Sort,
    module Redis.Commands.SortedSet,
    module Redis.Commands.SortedSetAlgebra,
    module Redis.Commands.SortedSetRange,
    module Redis.Commands.Stream,
    module Redis.Commands.StreamGroup,
    module Redis.Commands.StreamInfo,
    module Redis.Commands.String,
    module Redis.Commands.Transfer,
    module Redis.Commands.VectorSet,
  )
where

import Redis.Commands.Acl
import Redis.Commands.Array
import Redis.Commands.Bitmap
import Redis.Commands.Client
import Redis.Commands.Cluster
import Redis.Commands.ClusterAdmin
import Redis.Commands.Clusterscan
import Redis.Commands.Command
import Redis.Commands.Config
import Redis.Commands.Connection
import Redis.Commands.Function
import Redis.Commands.Geo
import Redis.Commands.Hash
import Redis.Commands.HashField
import Redis.Commands.Himport
import Redis.Commands.Hotkeys
import Redis.Commands.HyperLogLog
import Redis.Commands.Keys
import Redis.Commands.Latency
import Redis.Commands.List
import Redis.Commands.Memory
import Redis.Commands.Module
import Redis.Commands.Object
import Redis.Commands.Persistence
import Redis.Commands.Pubsub
import Redis.Commands.Raw (raw)
import Redis.Commands.Replication
import Redis.Commands.Script
import Redis.Commands.Server
import Redis.Commands.Set
import Redis.Commands.Slowlog
import Redis.Commands.Sort
import Redis.Commands.SortedSet
import Redis.Commands.SortedSetAlgebra
import Redis.Commands.SortedSetRange
import Redis.Commands.Stream
import Redis.Commands.StreamGroup
import Redis.Commands.StreamInfo
import Redis.Commands.String
import Redis.Commands.Transfer
import Redis.Commands.VectorSet
