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
  )
where

import Data.ByteString.Char8 qualified as Char8
import Data.Time.Clock (UTCTime)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode

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
-- runs. \(O(n)\) on the server, [since 1.0.0](https://valkey.io/commands/save/).
save :: Command ()
save = command "SAVE" [] Decode.okay

-- | @BGSAVE@: starts a separate process that writes all data to the disk. An error while another
-- such process runs. \(O(1)\) on the server, [since 1.0.0](https://valkey.io/commands/bgsave/).
bgsave :: Command BackgroundWork
bgsave = command "BGSAVE" [] backgroundWork

-- | @BGSAVE SCHEDULE@: like 'bgsave', but while the append-only file is being rewritten, it waits
-- for the end of that instead of failing. [Since 3.2.2](https://valkey.io/commands/bgsave/).
bgsaveSchedule :: Command BackgroundWork
bgsaveSchedule = command "BGSAVE" [arg "SCHEDULE"] backgroundWork

-- | @BGSAVE CANCEL@: ends a BGSAVE that runs or is scheduled. An error if there is none. \(O(1)\)
-- on the server, [since Valkey 8.1.0](https://valkey.io/commands/bgsave/); Redis does not have it.
bgsaveCancel :: Command ()
bgsaveCancel = command "BGSAVE" [arg "CANCEL"] Decode.ignored

-- | @BGREWRITEAOF@: starts to write the append-only file anew, as short as it can be. \(O(1)\) on
-- the server, [since 1.0.0](https://valkey.io/commands/bgrewriteaof/).
bgrewriteaof :: Command BackgroundWork
bgrewriteaof = command "BGREWRITEAOF" [] backgroundWork

-- | @LASTSAVE@: when all data were last written to the disk, to the second. If that has not
-- happened since the server started, the time at which it started. \(O(1)\) on the server,
-- [since 1.0.0](https://valkey.io/commands/lastsave/).
lastsave :: Command UTCTime
lastsave = command "LASTSAVE" [] Decode.unixSeconds
