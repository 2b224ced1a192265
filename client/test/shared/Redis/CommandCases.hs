-- | Every command that "Redis.Commands" exports, in use.
module Redis.CommandCases (cases) where

import Redis.Cases.Connection
import Redis.Cases.Function
import Redis.Cases.Keys
import Redis.Cases.List
import Redis.Cases.Object
import Redis.Cases.Script
import Redis.Cases.Server
import Redis.Cases.Sort
import Redis.Cases.String
import Redis.Cases.Transfer
import Redis.CommandCase

cases :: [Case]
cases =
  concat
    [ connectionCases,
      functionCases,
      keyCases,
      listCases,
      objectCases,
      scriptCases,
      serverCases,
      sortCases,
      stringCases,
      transferCases
    ]
