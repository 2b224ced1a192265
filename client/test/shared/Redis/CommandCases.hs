-- | Every command that "Redis.Commands" exports, in use.
module Redis.CommandCases (cases) where

import Redis.Cases.Hash
import Redis.Cases.HashField
import Redis.Cases.List
import Redis.Cases.Set
import Redis.Cases.SortedSet
import Redis.Cases.SortedSetAlgebra
import Redis.Cases.SortedSetRange
import Redis.CommandCase

cases :: [Case]
cases =
  concat
    [ hashCases,
      hashFieldCases,
      listCases,
      setCases,
      sortedSetCases,
      sortedSetAlgebraCases,
      sortedSetRangeCases
    ]
