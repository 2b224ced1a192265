-- | Any command, by its words.
--
-- What it does and where its keys are comes from the table of what servers say
-- of their commands. One that the table lacks is taken for a write, and the
-- server is asked for its keys.
module Redis.Commands.Raw
  ( raw,
    rawFacts,
  )
where

import Data.ByteString (ByteString)
import Redis.Command
import Redis.Decode qualified as Decode
import Redis.Internal.Commands.Build (routeOfKeys)
import Redis.Internal.Protocol.CommandTable
import Redis.Internal.Protocol.Encode (request)
import Redis.Value (Value)

-- | The command with these words, the name first. It is sent as it stands:
-- several keys must share a slot, whatever the command. No words at all are
-- refused when it is run.
--
-- > raw ["OBJECT", "ENCODING", "key"]
--
-- Finding the keys costs \(O(n)\) in the number of words, and a look-up.
--
-- @since 0.1.0.0
raw :: [ByteString] -> Command Value
raw commandWords =
  Command
    { commandName = commandWordsName commandWords,
      commandRequest = request commandWords,
      commandRoute = maybe (AskServer commandWords) routeOfKeys keys,
      commandFacts = maybe unknown (`rawFacts` commandWords) entry,
      commandDecode = Decode.value
    }
  where
    entry = lookupCommand commandWords
    keys = entry >>= (`commandKeys` commandWords)
    unknown = writeFacts {factScope = scopeOf commandWords}

-- | The facts of a command, given what is known of it and its words.
--
-- @since 0.1.0.0
rawFacts :: CommandEntry -> [ByteString] -> Facts
rawFacts entry commandWords =
  Facts
    { factReadOnly = harmless && not (staysWithPrimary entry),
      factRepeatable = harmless,
      factBlocking = case entryBlocks entry commandWords of
        Nothing -> NonBlocking
        Just Nothing -> BlocksForever
        Just (Just seconds) -> BlocksFor seconds,
      factScope = scopeOf commandWords
    }
  where
    harmless = entryReadOnly entry || changesNothing entry

scopeOf :: [ByteString] -> Scope
scopeOf commandWords
  | changesConnection commandWords = ConnectionState
  | otherwise = SharedConnection
