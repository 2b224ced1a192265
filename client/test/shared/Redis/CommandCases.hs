-- | Every command that "Redis.Commands" exports, in use.
module Redis.CommandCases (cases) where

import Redis.Cases.Bitmap
import Redis.Cases.Geo
import Redis.Cases.Hash
import Redis.Cases.HashField
import Redis.Cases.HyperLogLog
import Redis.Cases.List
import Redis.Cases.Set
import Redis.Cases.SortedSet
import Redis.Cases.SortedSetAlgebra
import Redis.Cases.SortedSetRange
import Redis.Cases.Stream
import Redis.Cases.StreamGroup
import Redis.Cases.StreamInfo
import Redis.CommandCase

cases :: [Case]
cases =
  concat
    [ bitmapCases,
      geoCases,
      hashCases,
      hashFieldCases,
      hyperLogLogCases,
      listCases,
      setCases,
      sortedSetAlgebraCases,
      sortedSetCases,
      sortedSetRangeCases,
      streamCases,
      streamGroupCases,
      streamInfoCases
    ]
