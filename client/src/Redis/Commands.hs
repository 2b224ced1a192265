-- | All commands, as values. To be imported qualified, or by name: many are
-- called like something else.
--
-- A command that is missing here is no further than 'raw'.
module Redis.Commands
  ( module Redis.Commands.Bitmap,
    module Redis.Commands.Connection,
    module Redis.Commands.Function,
    module Redis.Commands.Geo,
    module Redis.Commands.Hash,
    module Redis.Commands.HashField,
    module Redis.Commands.HyperLogLog,
    module Redis.Commands.Keys,
    module Redis.Commands.List,
    module Redis.Commands.Object,
    module Redis.Commands.Raw,
    module Redis.Commands.Script,
    module Redis.Commands.Server,
    module Redis.Commands.Set,
    module Redis.Commands.Sort,
    module Redis.Commands.SortedSet,
    module Redis.Commands.SortedSetAlgebra,
    module Redis.Commands.SortedSetRange,
    module Redis.Commands.Stream,
    module Redis.Commands.StreamGroup,
    module Redis.Commands.StreamInfo,
    module Redis.Commands.String,
    module Redis.Commands.Transfer,
  )
where

import Redis.Commands.Bitmap
import Redis.Commands.Connection
import Redis.Commands.Function
import Redis.Commands.Geo
import Redis.Commands.Hash
import Redis.Commands.HashField
import Redis.Commands.HyperLogLog
import Redis.Commands.Keys
import Redis.Commands.List
import Redis.Commands.Object
import Redis.Commands.Raw (raw)
import Redis.Commands.Script
import Redis.Commands.Server
import Redis.Commands.Set
import Redis.Commands.Sort
import Redis.Commands.SortedSet
import Redis.Commands.SortedSetAlgebra
import Redis.Commands.SortedSetRange
import Redis.Commands.Stream
import Redis.Commands.StreamGroup
import Redis.Commands.StreamInfo
import Redis.Commands.String
import Redis.Commands.Transfer
