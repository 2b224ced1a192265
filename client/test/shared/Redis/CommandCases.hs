-- | Every command that "Redis.Commands" exports, in use.
module Redis.CommandCases (cases) where

import Redis.Cases.Bitmap
import Redis.Cases.Connection
import Redis.Cases.Function
import Redis.Cases.Geo
import Redis.Cases.Hash
import Redis.Cases.HashField
import Redis.Cases.HyperLogLog
import Redis.Cases.Keys
import Redis.Cases.List
import Redis.Cases.Object
import Redis.Cases.Script
import Redis.Cases.Server
import Redis.Cases.Set
import Redis.Cases.Sort
import Redis.Cases.SortedSet
import Redis.Cases.SortedSetAlgebra
import Redis.Cases.SortedSetRange
import Redis.Cases.Stream
import Redis.Cases.StreamGroup
import Redis.Cases.StreamInfo
import Redis.Cases.String
import Redis.Cases.Transfer
import Redis.CommandCase

cases :: [Case]
cases =
  concat
    [ bitmapCases,
      connectionCases,
      functionCases,
      geoCases,
      hashCases,
      hashFieldCases,
      hyperLogLogCases,
      keyCases,
      listCases,
      objectCases,
      scriptCases,
      serverCases,
      setCases,
      sortCases,
      sortedSetAlgebraCases,
      sortedSetCases,
      sortedSetRangeCases,
      streamCases,
      streamGroupCases,
      streamInfoCases,
      stringCases,
      transferCases
    ]
