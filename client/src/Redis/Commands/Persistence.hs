-- | Writing a server's data to its disk.
--
-- > run client (onEvery Primaries Redis.bgsave)
-- > saved <- run client (onNode node Redis.lastsave)
--
-- Each of these commands concerns one node; in a cluster, name it. The server's documentation:
-- <https://valkey.io/topics/persistence/>.
module Redis.Commands.Persistence
  ( save,
    bgsave,
    bgsaveSchedule,
    bgsaveCancel,
    bgrewriteaof,
    BackgroundWork (..),
    lastsave,

    -- * Backups
    backupStart,
    backupSeal,
    backupAbort,
    backupCleanup,
    backupList,
    backupStatus,
    BackupStatus (..),
    BackupState (..),
    backupHelp,
  )
where

import Control.Monad (mfilter)
import Data.ByteString.Char8 qualified as Char8
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | When a server does the work that was requested.
data BackgroundWork
  = -- | It has started.
    WorkStarted
  | -- | It will start as soon as no other work of this kind runs.
    WorkScheduled
  deriving stock (Eq, Show)

-- | Decodes the sentence with which servers answer.
backgroundWork :: Decoder BackgroundWork
backgroundWork reply = do
  text <- Decode.bytes reply
  pure (if "scheduled" `Char8.isSuffixOf` text then WorkScheduled else WorkStarted)

-- | @SAVE@: writes all data to the disk; the server serves nobody meanwhile. An error while BGSAVE
-- runs. \(O(n)\), [since 1.0.0](https://valkey.io/commands/save/).
save :: Command ()
save = command "SAVE" [] Decode.okay

-- | @BGSAVE@: starts a separate process that writes all data to the disk. An error while another
-- such process runs. @BGSAVE SCHEDULE@ (since 3.2.2) waits for the end of a rewriting of the
-- append-only file instead of failing. \(O(1)\), [since 1.0.0](https://valkey.io/commands/bgsave/).
bgsave, bgsaveSchedule :: Command BackgroundWork
bgsave = command "BGSAVE" [] backgroundWork
bgsaveSchedule = command "BGSAVE" [arg "SCHEDULE"] backgroundWork

-- | @BGSAVE CANCEL@: ends a BGSAVE that runs or is scheduled. An error if there is none. \(O(1)\),
-- [since Valkey 8.1.0](https://valkey.io/commands/bgsave/); Redis does not have it.
bgsaveCancel :: Command ()
bgsaveCancel = command "BGSAVE" [arg "CANCEL"] Decode.ignored

-- | @BGREWRITEAOF@: starts to write the append-only file anew, as short as it can be. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/bgrewriteaof/).
bgrewriteaof :: Command BackgroundWork
bgrewriteaof = command "BGREWRITEAOF" [] backgroundWork

-- | @LASTSAVE@: when all data were last written to the disk, to the second. If that has not
-- happened since the server started, the time at which it started. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/lastsave/).
lastsave :: Command UTCTime
lastsave = command "LASTSAVE" [] Decode.unixSeconds

-- | @BACKUP START@: the server begins a backup, in the folder that its setting @backupdirname@
-- names and that must be empty: it writes all data to a file, in the background, and then what
-- changes. An error while another backup is under way. \(O(1)\),
-- [since Redis 8.10.0](https://redis.io/docs/latest/commands/backup-start/); Valkey lacks it.
backupStart :: Command ()
backupStart = command "BACKUP START" [] Decode.okay

-- | @BACKUP SEAL@ ends the backup: its files have the data of now, and change no more. @BACKUP
-- ABORT@ gives up a backup that is not sealed. @BACKUP CLEANUP@ removes the files of one that is
-- sealed or has failed. \(O(1)\), since Redis 8.10.0
-- ([BACKUP SEAL](https://redis.io/docs/latest/commands/backup-seal/),
-- [BACKUP ABORT](https://redis.io/docs/latest/commands/backup-abort/),
-- [BACKUP CLEANUP](https://redis.io/docs/latest/commands/backup-cleanup/)).
backupSeal, backupAbort, backupCleanup :: Command ()
backupSeal = command "BACKUP SEAL" [] Decode.okay
backupAbort = command "BACKUP ABORT" [] Decode.okay
backupCleanup = command "BACKUP CLEANUP" [] Decode.okay

-- | @BACKUP LIST@: the paths of the backup's files that change no more, on the server's machine.
-- \(O(1)\), [since Redis 8.10.0](https://redis.io/docs/latest/commands/backup-list/).
backupList :: Command [ByteString]
backupList = command "BACKUP LIST" [] (Decode.list Decode.bytes)

-- | How far a backup is.
data BackupState
  = -- | There is none.
    BackupIdle
  | -- | It waits until other work of the server is done.
    BackupPending
  | -- | The server writes all data to a file.
    BackupSnapshotting
  | -- | It writes down what changes, until the backup is sealed.
    BackupIncrementing
  | BackupSealed
  | -- | It has failed, or was given up.
    BackupFailed
  | BackupOther ByteString
  deriving stock (Eq, Show)

-- | The state of the backup.
data BackupStatus = BackupStatus
  { backupStatusState :: BackupState,
    -- | The reason, if it has failed.
    backupStatusError :: Maybe ByteString,
    -- | When it began, to the second.
    backupStatusStartTime :: Maybe UTCTime,
    -- | When it was sealed, to the second.
    backupStatusEndTime :: Maybe UTCTime
  }
  deriving stock (Eq, Show)

-- | @BACKUP STATUS@: the state of the backup. \(O(1)\),
-- [since Redis 8.10.0](https://redis.io/docs/latest/commands/backup-status/).
backupStatus :: Command BackupStatus
backupStatus =
  command "BACKUP STATUS" [] . recordOf $
    BackupStatus
      <$> field "state" (fmap state . Decode.bytes)
      <*> field "error" (fmap (mfilter (/= "") . Just) . Decode.bytes)
      <*> field "start_time" (numberWhere (/= 0) Decode.unixSeconds)
      <*> field "end_time" (numberWhere (/= 0) Decode.unixSeconds)
  where
    state = \case
      "idle" -> BackupIdle
      "pending" -> BackupPending
      "snapshotting" -> BackupSnapshotting
      "incrementing" -> BackupIncrementing
      "sealed" -> BackupSealed
      "failed" -> BackupFailed
      other -> BackupOther other

-- | @BACKUP HELP@: the server's help.
-- [Since Redis 8.10.0](https://redis.io/docs/latest/commands/backup-help/).
backupHelp :: Command [ByteString]
backupHelp = command "BACKUP HELP" [] (Decode.list Decode.bytes)
