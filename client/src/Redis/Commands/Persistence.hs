-- | What a server keeps on its disk.
--
-- > run client (onEvery Primaries Redis.bgsave)
-- > saved <- run client (onNode node Redis.lastsave)
--
-- All of these are one node's own. The server's page:
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

-- | When a server does what it was asked for.
--
-- @since 0.1.0.0
data BackgroundWork
  = -- | It does it now.
    WorkStarted
  | -- | It will, as soon as it does nothing else of this kind.
    WorkScheduled
  deriving stock (Eq, Show)

-- | Servers say it in a sentence.
backgroundWork :: Decoder BackgroundWork
backgroundWork reply = do
  text <- Decode.bytes reply
  pure (if "scheduled" `Char8.isSuffixOf` text then WorkScheduled else WorkStarted)

-- | @SAVE@: writes everything to the disk while everybody waits. An error while BGSAVE does it.
-- \(O(n)\) on the server, [since 1.0.0](https://valkey.io/commands/save/).
--
-- @since 0.1.0.0
save :: Command ()
save = command "SAVE" [] Decode.okay

-- | @BGSAVE@: begins to write everything to the disk in a process of its own. An error while
-- another such process runs. \(O(1)\) on the server,
-- [since 1.0.0](https://valkey.io/commands/bgsave/).
--
-- @since 0.1.0.0
bgsave :: Command BackgroundWork
bgsave = command "BGSAVE" [] backgroundWork

-- | @BGSAVE SCHEDULE@: as 'bgsave', but after a rewriting of the append-only file, if there is one,
-- instead of failing. [Since 3.2.2](https://valkey.io/commands/bgsave/).
--
-- @since 0.1.0.0
bgsaveSchedule :: Command BackgroundWork
bgsaveSchedule = command "BGSAVE" [arg "SCHEDULE"] backgroundWork

-- | @BGSAVE CANCEL@: ends one that runs or is scheduled. An error if there is none. \(O(1)\) on the
-- server, [since Valkey 8.1.0](https://valkey.io/commands/bgsave/); Redis has none.
--
-- @since 0.1.0.0
bgsaveCancel :: Command ()
bgsaveCancel = command "BGSAVE" [arg "CANCEL"] Decode.ignored

-- | @BGREWRITEAOF@: begins to write the append-only file anew, as short as it can be. \(O(1)\) on
-- the server, [since 1.0.0](https://valkey.io/commands/bgrewriteaof/).
--
-- @since 0.1.0.0
bgrewriteaof :: Command BackgroundWork
bgrewriteaof = command "BGREWRITEAOF" [] backgroundWork

-- | @LASTSAVE@: when everything was last written to the disk, to the second. The time at which the
-- server started if it has not been since. \(O(1)\) on the server,
-- [since 1.0.0](https://valkey.io/commands/lastsave/).
--
-- @since 0.1.0.0
lastsave :: Command UTCTime
lastsave = command "LASTSAVE" [] Decode.unixSeconds
