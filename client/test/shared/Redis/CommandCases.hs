-- | The cases of all commands that "Redis.Commands" exports.
module Redis.CommandCases (cases) where

import Redis.Cases.Acl
import Redis.Cases.Array
import Redis.Cases.Bitmap
import Redis.Cases.Client
import Redis.Cases.Cluster
import Redis.Cases.Command
import Redis.Cases.Config
import Redis.Cases.Connection
import Redis.Cases.Function
import Redis.Cases.Geo
import Redis.Cases.Hash
import Redis.Cases.HashField
import Redis.Cases.Himport
import Redis.Cases.Hotkeys
import Redis.Cases.HyperLogLog
import Redis.Cases.Keys
import Redis.Cases.Latency
import Redis.Cases.List
import Redis.Cases.Memory
import Redis.Cases.Module
import Redis.Cases.Object
import Redis.Cases.Persistence
import Redis.Cases.Pubsub
import Redis.Cases.Replication
import Redis.Cases.Script
import Redis.Cases.Server
import Redis.Cases.Set
import Redis.Cases.Slowlog
import Redis.Cases.Sort
import Redis.Cases.SortedSet
import Redis.Cases.SortedSetAlgebra
import Redis.Cases.SortedSetRange
import Redis.Cases.Stream
import Redis.Cases.StreamGroup
import Redis.Cases.StreamInfo
import Redis.Cases.String
import Redis.Cases.Transfer
import Redis.Cases.VectorSet
import Redis.CommandCase

cases :: [Case]
cases =
  concat
    [ aclCases,
      arrayCases,
      bitmapCases,
      clientCases,
      clusterCases,
      commandCases,
      configCases,
      connectionCases,
      functionCases,
      geoCases,
      hashCases,
      hashFieldCases,
      himportCases,
      hotkeysCases,
      hyperLogLogCases,
      keyCases,
      latencyCases,
      listCases,
      memoryCases,
      moduleCases,
      objectCases,
      persistenceCases,
      pubsubCases,
      replicationCases,
      scriptCases,
      serverCases,
      setCases,
      slowlogCases,
      sortCases,
      sortedSetCases,
      sortedSetAlgebraCases,
      sortedSetRangeCases,
      streamCases,
      streamGroupCases,
      streamInfoCases,
      stringCases,
      transferCases,
      vectorSetCases
    ]
