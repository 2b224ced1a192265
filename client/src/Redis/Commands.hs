-- | All commands, as values. To be imported qualified, or by name: many are
-- called like something else.
--
-- A command that is missing here is no further than 'raw'.
module Redis.Commands
  ( module Redis.Commands.Connection,
    module Redis.Commands.Function,
    module Redis.Commands.Keys,
    module Redis.Commands.List,
    module Redis.Commands.Object,
    module Redis.Commands.Raw,
    module Redis.Commands.Script,
    module Redis.Commands.Server,
    module Redis.Commands.Sort,
    module Redis.Commands.String,
    module Redis.Commands.Transfer,
  )
where

import Redis.Commands.Connection
import Redis.Commands.Function
import Redis.Commands.Keys
import Redis.Commands.List
import Redis.Commands.Object
import Redis.Commands.Raw (raw)
import Redis.Commands.Script
import Redis.Commands.Server
import Redis.Commands.Sort
import Redis.Commands.String
import Redis.Commands.Transfer
