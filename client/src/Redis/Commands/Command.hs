-- | A server's descriptions of its own commands. Each node of a cluster gives the same.
--
-- > known <- run client (Redis.commandInfo ("get" :| ["config|get"]))
-- > print (map (fmap Redis.commandInfoArity) known) -- [Just 2,Just (-3)]
--
-- The server's pages: <https://valkey.io/commands/command/> and those beside it.
module Redis.Commands.Command
  ( commandInfo,
    commandInfoAll,
    CommandInfo (..),
    commandDocs,
    commandDocsAll,
    CommandDocs (..),
    commandGetkeys,
    commandGetkeysandflags,
    commandCount,
    commandList,
    commandListOf,
    CommandFilter (..),
    commandHelp,
  )
where

import Data.Foldable (fold)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | A server's description of one of its commands.
data CommandInfo = CommandInfo
  { -- | In lower case; a subcommand after a bar, as in @config|get@.
    commandInfoName :: ByteString,
    -- | How many words it has, the name included; a negative number means at least that many.
    commandInfoArity :: Int64,
    -- | Such as @readonly@ or @blocking@.
    commandInfoFlags :: [ByteString],
    -- | Categories of the server's access rules, such as @\@write@; none before 6.0.0.
    commandInfoCategories :: [ByteString],
    -- | Hints for clients, such as @request_policy:all_shards@; none before 7.0.0.
    commandInfoTips :: [ByteString],
    -- | Where its keys are, in the server's form; none before 7.0.0.
    commandInfoKeySpecs :: [Value],
    -- | None before 7.0.0.
    commandInfoSubcommands :: [CommandInfo]
  }
  deriving stock (Eq, Show)

-- | @COMMAND INFO name …@: the description of each command, or 'Nothing' if the server does not
-- know the command. A subcommand is named as @config|get@
-- ([since 7.0.0](https://valkey.io/commands/command-info/)). \(O(n)\), since 2.8.13.
commandInfo :: NonEmpty ByteString -> Command [Maybe CommandInfo]
commandInfo names =
  command "COMMAND INFO" (args names) (Decode.listOf (length names) (Decode.nullable description))

-- | @COMMAND INFO@: the descriptions of all commands, in no order. @COMMAND@ alone gives the same.
-- \(O(n)\); without names [since 7.0.0](https://valkey.io/commands/command-info/).
commandInfoAll :: Command [CommandInfo]
commandInfoAll = command "COMMAND INFO" [] (Decode.list description)

description :: Decoder CommandInfo
description reply = do
  elements <- Decode.list Decode.value reply
  let listAt place one = concat <$> Decode.optionalElement place (Decode.list one) elements
  CommandInfo
    <$> Decode.element 0 Decode.bytes elements
    <*> Decode.element 1 Decode.integer elements
    <*> Decode.element 2 (Decode.list Decode.bytes) elements
    -- Elements 3 to 5 are the first key, the last key, and the step.
    <*> listAt 6 Decode.bytes
    <*> listAt 7 Decode.bytes
    <*> listAt 8 Decode.value
    <*> listAt 9 description

-- | A server's documentation of one of its commands, for people.
data CommandDocs = CommandDocs
  { -- | A sentence. Empty for a module's command.
    commandDocsSummary :: ByteString,
    -- | The first version that has the command.
    commandDocsSince :: Maybe ByteString,
    -- | Such as @string@ or @sorted-set@.
    commandDocsGroup :: ByteString,
    -- | The complexity, in words.
    commandDocsComplexity :: Maybe ByteString,
    -- | Each subcommand, named as @config|get@.
    commandDocsSubcommands :: [(ByteString, CommandDocs)],
    -- | All other fields, as the server sends them: arguments, history and so on.
    commandDocsOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @COMMAND DOCS name …@: the documentation of the commands that the server knows; others are left
-- out. \(O(n)\), [since 7.0.0](https://valkey.io/commands/command-docs/).
commandDocs :: NonEmpty ByteString -> Command [(ByteString, CommandDocs)]
commandDocs names = command "COMMAND DOCS" (args names) documentations

-- | @COMMAND DOCS@: the documentation of all commands, in no order: some hundred kilobytes.
-- \(O(n)\), [since 7.0.0](https://valkey.io/commands/command-docs/).
commandDocsAll :: Command [(ByteString, CommandDocs)]
commandDocsAll = command "COMMAND DOCS" [] documentations

documentations :: Decoder [(ByteString, CommandDocs)]
documentations =
  Decode.pairs Decode.bytes . recordOf $
    CommandDocs
      <$> (fold <$> optionalField "summary" Decode.bytes)
      <*> optionalField "since" Decode.bytes
      <*> field "group" Decode.bytes
      <*> optionalField "complexity" Decode.bytes
      <*> several "subcommands" documentations
      <*> others Decode.value

-- | @COMMAND GETKEYS name argument …@: the keys of this command. An error reply if it has none, or
-- if it is wrong. \(O(n)\), [since 2.8.13](https://valkey.io/commands/command-getkeys/).
commandGetkeys :: NonEmpty ByteString -> Command [ByteString]
commandGetkeys commandArguments =
  command "COMMAND GETKEYS" (args commandArguments) (Decode.list Decode.bytes)

-- | @COMMAND GETKEYSANDFLAGS name argument …@: like 'commandGetkeys', with what the command does to
-- each key: @RO@ for read, @RW@, @OW@ for overwritten, @access@, @update@ and so on. \(O(n)\),
-- [since 7.0.0](https://valkey.io/commands/command-getkeysandflags/).
commandGetkeysandflags :: NonEmpty ByteString -> Command [(ByteString, [ByteString])]
commandGetkeysandflags commandArguments =
  command "COMMAND GETKEYSANDFLAGS" (args commandArguments) (Decode.list (Decode.pair Decode.bytes (Decode.list Decode.bytes)))

-- | @COMMAND COUNT@: how many commands there are, without subcommands. \(O(1)\),
-- [since 2.8.13](https://valkey.io/commands/command-count/).
commandCount :: Command Int64
commandCount = command "COMMAND COUNT" [] Decode.integer

-- | Which commands to list.
data CommandFilter
  = -- | The commands of the module of this name.
    OfModule ByteString
  | -- | The commands of this category, without the at sign.
    OfCategory ByteString
  | -- | The commands whose names match the glob.
    OfPattern ByteString
  deriving stock (Eq, Show)

-- | @COMMAND LIST@: the names of all commands, without subcommands, in no order. \(O(n)\),
-- [since 7.0.0](https://valkey.io/commands/command-list/).
commandList :: Command [ByteString]
commandList = command "COMMAND LIST" [] (Decode.list Decode.bytes)

-- | @COMMAND LIST FILTERBY MODULE|ACLCAT|PATTERN word@: like 'commandList', for the commands that
-- the filter selects, with subcommands as @config|get@.
commandListOf :: CommandFilter -> Command [ByteString]
commandListOf which = command "COMMAND LIST" (arg "FILTERBY" : condition) (Decode.list Decode.bytes)
  where
    condition = case which of
      OfModule name -> [arg "MODULE", arg name]
      OfCategory category -> [arg "ACLCAT", arg category]
      OfPattern glob -> [arg "PATTERN", arg glob]

-- | @COMMAND HELP@: the server's help. \(O(1)\), [since 5.0.0](https://valkey.io/commands/command-help/).
commandHelp :: Command [ByteString]
commandHelp = command "COMMAND HELP" [] (Decode.list Decode.bytes)
