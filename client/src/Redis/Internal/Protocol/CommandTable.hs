-- | The command table: what servers say of their commands (arity, flags, categories, policies, and
-- where the keys are).
--
-- The table is the union of what several servers answer to @COMMAND@, made by a program and kept as
-- text. Its first use parses it into a map. For a command that it lacks, 'entryFromReply' and
-- 'describedAs' read the server's own description.
--
-- What servers do not tell is in lists that are written by hand
-- ("Redis.Internal.Protocol.CommandTable.Effects", "Redis.Internal.Protocol.CommandTable.Policy").
module Redis.Internal.Protocol.CommandTable
  ( CommandEntry (..),
    RequestPolicy (..),
    ResponsePolicy (..),
    lookupCommand,
    inTable,
    allCommands,

    -- * What it says of a given command
    commandKeys,
    nameFromArguments,
    entryBlocks,
    withTimeout,
    changesConnection,
    answersApart,
    changesNothing,
    staysWithPrimary,
    overtakes,
    holdsUp,
    changesUntold,

    -- * Other sources
    describedAs,
    entryFromReply,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (mapMaybe)
import Redis.Internal.Protocol.CommandTable.Effects
import Redis.Internal.Protocol.CommandTable.Entry
import Redis.Internal.Protocol.CommandTable.Generated (tableText)
import Redis.Internal.Protocol.KeySpec (KeyPositions (..), keyPositions, keysAt)
import Redis.Value (Value)

-- | All entries, by name. The first use parses them.
table :: Map ByteString CommandEntry
table =
  Map.fromList [(entryName entry, entry) | entry <- mapMaybe parseEntry (Char8.lines tableText)]

-- | Every entry, in the order of the names.
allCommands :: [CommandEntry]
allCommands = Map.elems table

-- | Whether there is an entry with this name. The name is in capitals; a subcommand's name follows
-- a bar. \(O(\log n)\).
inTable :: ByteString -> Bool
inTable name = Map.member name table

-- | The entry for a command, given its words: the entry of the subcommand if there is one.
-- 'Nothing' for a command or subcommand that is not known. \(O(\log n)\).
lookupCommand :: [ByteString] -> Maybe CommandEntry
lookupCommand = \case
  [] -> Nothing
  name : rest -> do
    entry <- Map.lookup (upper name) table
    case rest of
      subcommand : _
        | entryContainer entry -> Map.lookup (upper name <> "|" <> upper subcommand) table
      _ -> Just entry

-- | A name for messages and metrics: capitals, two words for a subcommand. Empty for no words.
nameFromArguments :: [ByteString] -> ByteString
nameFromArguments = \case
  name : subcommand : _ | hasSubcommands name -> upper name <> " " <> upper subcommand
  name : _ -> upper name
  [] -> ""

-- | The keys of a command, given its words. 'Nothing' if it is not known which are keys. \(O(n)\).
commandKeys :: CommandEntry -> [ByteString] -> Maybe [ByteString]
commandKeys CommandEntry {entryName, entryArity, entryKeySpecs} commandArguments
  -- Every server will refuse the command, and say why.
  | tooShort = Just []
  | otherwise =
    case keyPositions entryName entryKeySpecs commandArguments of
      KeysAt positions -> Just (keysAt positions commandArguments)
      KeysUnknown -> Nothing
  where
    tooShort = length commandArguments < abs entryArity

-- | The entry for a command, given its words and the element of the reply to @COMMAND INFO@ for the
-- first word: the entry of the subcommand, if the command has subcommands. 'Nothing' if the server
-- does not know it, or does not describe it.
describedAs :: [ByteString] -> Value -> Maybe CommandEntry
describedAs commandArguments reply = do
  entry <- entryFromReply reply
  case commandArguments of
    name : subcommand : _
      | entryContainer entry || hasSubcommands name -> subcommandFromReply subcommand reply
    _ -> Just entry

hasSubcommands :: ByteString -> Bool
hasSubcommands name = maybe False entryContainer (Map.lookup (upper name) table)
