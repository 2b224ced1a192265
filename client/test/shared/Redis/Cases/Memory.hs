-- | "Redis.Commands.Memory".
module Redis.Cases.Memory (memoryCases) where

import Data.ByteString.Char8 qualified as Char8
import Redis.CommandCase
import Redis.Commands.Memory

memoryCases :: [Case]
memoryCases =
  [ after [["SET", "k", "v"]] "memoryUsage" (memoryUsage "k") ["MEMORY", "USAGE", "k"] (Such "is some bytes" (maybe False (> 1))),
    onEmpty "memoryUsage" (memoryUsage "k") ["MEMORY", "USAGE", "k"] (Gives Nothing),
    after
      [["RPUSH", "k", "a", "b"]]
      "memoryUsageWith"
      (memoryUsageWith memoryUsageDefaults {memoryUsageSamples = Just 0} "k")
      ["MEMORY", "USAGE", "k", "SAMPLES", "0"]
      (Such "is some bytes" (maybe False (> 1))),
    after
      [["SET", "k", "v"]]
      "memoryStats"
      memoryStats
      ["MEMORY", "STATS"]
      ( Such
          "has one key, and what is of this database besides"
          (\stats -> memoryStatsKeys stats == 1 && memoryStatsTotal stats > memoryStatsOverhead stats && any ((== "db.0") . fst) (memoryStatsOthers stats))
      ),
    onEmpty "memoryPurge" memoryPurge ["MEMORY", "PURGE"] (Gives ()),
    onEmpty "memoryDoctor" memoryDoctor ["MEMORY", "DOCTOR"] (Such "is a text" (not . Char8.null)),
    onEmpty "memoryMallocStats" memoryMallocStats ["MEMORY", "MALLOC-STATS"] (Such "is a text" (not . Char8.null)),
    onEmpty "memoryHelp" memoryHelp ["MEMORY", "HELP"] (Such "has lines" (not . null))
  ]
