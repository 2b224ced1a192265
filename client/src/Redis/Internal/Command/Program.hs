-- | The form that the commands for scripts and functions share.
module Redis.Internal.Command.Program (program) where

import Data.ByteString (ByteString)
import Redis.Command.Build
import Redis.Decode qualified as Decode
import Redis.Internal.Command (Command)
import Redis.Internal.Command.Groups
import Redis.Value (Value)

-- | A command that runs a program, given its text, digest or name, then its keys and its
-- other arguments.
program :: Name -> ByteString -> [ByteString] -> [ByteString] -> Command Value
program name which names arguments =
  command name (arg which : countedKeys names <> args arguments) Decode.value
