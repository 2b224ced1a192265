-- | "Redis.Commands.Object".
module Redis.Cases.Object (objectCases) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis.CommandCase
import Redis.Commands.Object
import Redis.Duration

objectCases :: [Case]
objectCases =
  [ encoded ["SET", "k", "7"] IntEncoding,
    encoded ["SET", "k", "v"] EmbstrEncoding,
    encoded ["SET", "k", Char8.replicate 1000 'v'] RawEncoding,
    encoded ["ZADD", "k", "1", "m"] ListpackEncoding,
    encoded ["ZADD", "k", "1", Char8.replicate 100 'm'] SkiplistEncoding,
    encoded ["HSET", "k", "f", Char8.replicate 100 'v'] HashtableEncoding,
    encoded ["SADD", "k", "1", "2"] IntsetEncoding,
    encoded ["XADD", "k", "*", "f", "v"] StreamEncoding,
    onEmpty "objectEncoding" (objectEncoding "k") ["OBJECT", "ENCODING", "k"] (Gives Nothing),
    after [evicting "allkeys-lfu", kv] "objectFreq" (objectFreq "k") ["OBJECT", "FREQ", "k"] (Such "is a small number" (maybe False (\count -> count > 0 && count < 256))),
    after [evicting "allkeys-lfu", kv] "objectIdletime" (objectIdletime "k") ["OBJECT", "IDLETIME", "k"] (Fails "ERR"),
    after [evicting "noeviction", kv] "objectFreq" (objectFreq "k") ["OBJECT", "FREQ", "k"] (Fails "ERR"),
    onEmpty "objectFreq" (objectFreq "k") ["OBJECT", "FREQ", "k"] (Gives Nothing),
    after [kv] "objectIdletime" (objectIdletime "k") ["OBJECT", "IDLETIME", "k"] (Such "is a short time" (maybe False (< seconds 60))),
    onEmpty "objectIdletime" (objectIdletime "k") ["OBJECT", "IDLETIME", "k"] (Gives Nothing),
    after [kv] "objectRefcount" (objectRefcount "k") ["OBJECT", "REFCOUNT", "k"] (Gives (Just 1)),
    onEmpty "objectRefcount" (objectRefcount "k") ["OBJECT", "REFCOUNT", "k"] (Gives Nothing),
    onEmpty "objectHelp" objectHelp ["OBJECT", "HELP"] (Such "names a subcommand" (elem "ENCODING <key>"))
  ]
  where
    encoded given expected =
      after [given] "objectEncoding" (objectEncoding "k") ["OBJECT", "ENCODING", "k"] (Gives (Just expected))
    evicting policy = ["CONFIG", "SET", "maxmemory-policy", policy]

kv :: [ByteString]
kv = ["SET", "k", "v"]
