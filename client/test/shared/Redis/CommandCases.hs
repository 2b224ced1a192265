-- | Every command that "Redis.Commands" exports, in use.
module Redis.CommandCases (cases) where

import Redis.Cases.Bitmap
import Redis.Cases.Geo
import Redis.Cases.HyperLogLog
import Redis.Cases.List
import Redis.Cases.Stream
import Redis.Cases.StreamGroup
import Redis.Cases.StreamInfo
import Redis.CommandCase

cases :: [Case]
cases =
  concat
    [ bitmapCases,
      geoCases,
      hyperLogLogCases,
      listCases,
      streamCases,
      streamGroupCases,
      streamInfoCases
    ]
