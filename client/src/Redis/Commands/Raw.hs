-- | Any command, given as words.
module Redis.Commands.Raw
  ( raw,
  )
where

import Data.ByteString (ByteString)
import Redis.Command (Command)
import Redis.Internal.Command.Make (fromArguments)
import Redis.Value (Value)

-- | The command with these words; the first word is its name. What the command does and where its
-- keys are comes from the library's command table. If the table does not tell, the client asks the
-- server. An empty list is refused when it is run.
--
-- > raw ["OBJECT", "ENCODING", "key"]
--
-- Finding the keys costs \(O(n)\) in the number of words, and a look-up.
raw :: [ByteString] -> Command Value
raw = fromArguments
