-- | Any command, by its words.
module Redis.Commands.Raw
  ( raw,
  )
where

import Data.ByteString (ByteString)
import Redis.Command (Command)
import Redis.Internal.Command.Make (fromWords)
import Redis.Value (Value)

-- | The command with these words, the name first. What it does and where its
-- keys are comes from the table of what servers say of their commands; of one
-- that the table lacks, the server is asked. No words at all are refused when it
-- is run.
--
-- > raw ["OBJECT", "ENCODING", "key"]
--
-- Finding the keys costs \(O(n)\) in the number of words, and a look-up.
--
-- @since 0.1.0.0
raw :: [ByteString] -> Command Value
raw = fromWords
