-- | "Redis.Commands.Persistence". The server notices within a tenth of a second that its process
-- for writing has ended; each case waits for that.
module Redis.Cases.Persistence (persistenceCases) where

import Data.ByteString (ByteString)
import Data.Time.Clock.POSIX (posixSecondsToUTCTime, utcTimeToPOSIXSeconds)
import Redis.CommandCase
import Redis.Commands.Persistence
import Redis.Value (Value (..))

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
    documented [SimpleString "OK"] $ onEmpty "backupStart" backupStart ["BACKUP", "START"] (Gives ()),
    documented [SimpleString "OK"] $ onEmpty "backupSeal" backupSeal ["BACKUP", "SEAL"] (Gives ()),
    documented [SimpleString "OK"] $ onEmpty "backupAbort" backupAbort ["BACKUP", "ABORT"] (Gives ()),
    documented [SimpleString "OK"] $ onEmpty "backupCleanup" backupCleanup ["BACKUP", "CLEANUP"] (Gives ()),
    documented [Array (map BulkString sealed)] $ onEmpty "backupList" backupList ["BACKUP", "LIST"] (Gives sealed),
    documented (inBoth [("state", "incrementing"), ("error", ""), ("start_time", "1717921800"), ("end_time", "0")]) $
      onEmpty
        "backupStatus"
        backupStatus
        ["BACKUP", "STATUS"]
        (Gives (BackupStatus BackupIncrementing Nothing (Just (posixSecondsToUTCTime 1717921800)) Nothing)),
    documented (inBoth [("state", "failed"), ("error", "no room"), ("start_time", "0"), ("end_time", "0")]) $
      onEmpty "backupStatus" backupStatus ["BACKUP", "STATUS"] (Gives (BackupStatus BackupFailed (Just "no room") Nothing Nothing)),
    documented [Array [BulkString "BACKUP <subcommand>", BulkString "START"]] $
      onEmpty "backupHelp" backupHelp ["BACKUP", "HELP"] (Such "are some lines" (not . null)),
    onEmpty "lastsave" lastsave ["LASTSAVE"] (Such "is after 2020" ((> 1577836800) . utcTimeToPOSIXSeconds))
  ]

-- | The files of a backup that is sealed.
sealed :: [ByteString]
sealed = ["/data/backupdir/appendonly.aof.3.base.rdb", "/data/backupdir/appendonly.aof.3.incr.aof", "/data/backupdir/appendonly.aof.manifest"]

-- | Fields with their texts, as RESP2 and as RESP3 have them.
inBoth :: [(ByteString, ByteString)] -> [Value]
inBoth those =
  [ Array (concat [[BulkString name, BulkString text] | (name, text) <- those]),
    Map [(BulkString name, BulkString text) | (name, text) <- those]
  ]

noticed :: [ByteString]
noticed = ["DEBUG", "SLEEP", "0.25"]
