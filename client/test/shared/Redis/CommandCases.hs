-- | Every command that "Redis.Commands" exports, in use.
module Redis.CommandCases (cases) where

import Redis.Cases.Connection
import Redis.Cases.Keys
import Redis.Cases.List
import Redis.Cases.Script
import Redis.Cases.Server
import Redis.Cases.String
import Redis.CommandCase

cases :: [Case]
cases =
  concat
    [ connectionCases,
      keyCases,
      listCases,
      scriptCases,
      serverCases,
      stringCases
    ]
