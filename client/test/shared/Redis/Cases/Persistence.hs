-- | "Redis.Commands.Persistence". The server notices within a tenth of a second that its process
-- for writing has ended; each case waits for that.
module Redis.Cases.Persistence (persistenceCases) where

import Data.ByteString (ByteString)
import Data.Time.Clock.POSIX (utcTimeToPOSIXSeconds)
import Redis.CommandCase
import Redis.Commands.Persistence

persistenceCases :: [Case]
persistenceCases =
  [ after [noticed] "save" save ["SAVE"] (Gives ()),
    after [noticed] "bgsave" bgsave ["BGSAVE"] (Gives WorkStarted),
    after [noticed] "bgsaveSchedule" bgsaveSchedule ["BGSAVE", "SCHEDULE"] (Gives WorkStarted),
    needs [(IsValkey, (8, 1))] (after [noticed, ["BGSAVE"]] "bgsaveCancel" bgsaveCancel ["BGSAVE", "CANCEL"] (Gives ())),
    needs [(IsValkey, (8, 1))] (after [noticed] "bgsaveCancel" bgsaveCancel ["BGSAVE", "CANCEL"] (Fails "ERR")),
    after [noticed] "bgrewriteaof" bgrewriteaof ["BGREWRITEAOF"] (Gives WorkStarted),
    after [noticed, ["BGSAVE"]] "bgrewriteaof" bgrewriteaof ["BGREWRITEAOF"] (Gives WorkScheduled),
    after [noticed, noticed, ["BGREWRITEAOF"]] "bgsaveSchedule" bgsaveSchedule ["BGSAVE", "SCHEDULE"] (Gives WorkScheduled),
    onEmpty "lastsave" lastsave ["LASTSAVE"] (Such "is after 2020" ((> 1577836800) . utcTimeToPOSIXSeconds))
  ]

noticed :: [ByteString]
noticed = ["DEBUG", "SLEEP", "0.25"]
