-- | Making commands: by a name and arguments, or by all their words.
--
-- The name is looked up in the command table once, when it is first used. So a
-- typed command costs no look-up, and what it does is written down once.
module Redis.Internal.Command.Make
  ( -- * By name
    Name,
    nameOf,
    Argument (..),
    command,

    -- * By words
    fromWords,
    fromLine,

    -- * What follows from a table's entry
    factsFromEntry,
    routeOfKeys,
    routeOfUnknown,
    splitStep,

    -- * Changing a command
    withRemaining,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.String (IsString (fromString))
import Redis.Decode (Decoder)
import Redis.Error (Refusal (UnfitArgument))
import Redis.Internal.Command
import Redis.Internal.Protocol.CommandTable hiding (commandKeys)
import Redis.Internal.Protocol.CommandTable qualified as Table
import Redis.Internal.Protocol.CommandTable.Policy
import Redis.Internal.Protocol.Encode
import Redis.Internal.Protocol.KeySpec (BeginSearch (..), FindKeys (..), KeySpec (..))
import Redis.Value (Value)

-- | The name of a command, such as @GET@ or @CONFIG GET@, and what servers say
-- of it. A string literal is one. Made once and kept, it costs each command
-- nothing.
--
-- @since 0.1.0.0
data Name = Name
  { nameHeader :: Header,
    -- | What the table says; 'Nothing' if it lacks the command.
    nameEntry :: Maybe CommandEntry,
    -- | The facts, if they do not depend on the arguments.
    nameFacts :: Maybe Facts
  }

instance IsString Name where
  fromString = nameOf . Char8.pack
  {-# NOINLINE fromString #-}

-- | The name with these words, which spaces separate. Upper and lower case are
-- the same to a server. \(O(\log n)\) in the size of the command table.
--
-- @since 0.1.0.0
nameOf :: ByteString -> Name
nameOf text =
  Name
    { nameHeader = headerOf nameWords,
      nameEntry,
      nameFacts = case nameEntry of
        Just entry | not (entryBlocking entry) -> Just (factsFromEntry entry nameWords)
        _ -> Nothing
    }
  where
    nameWords = Char8.words text
    nameEntry = lookupCommand nameWords

-- | One argument of a command.
--
-- @since 0.1.0.0
data Argument
  = -- | A key: it decides where the command goes.
    Key ByteString
  | -- | Several keys, one after the other.
    Keys [ByteString]
  | -- | Anything else.
    Plain ByteString
  | -- | What no server takes, and why.
    Unfit String ByteString

-- | What is sent.
argumentWords :: [Argument] -> [ByteString]
argumentWords = concatMap $ \case
  Key name -> [name]
  Keys names -> names
  Plain bytes -> [bytes]
  Unfit _ bytes -> [bytes]

argumentKeys :: [Argument] -> [ByteString]
argumentKeys = concatMap $ \case
  Key name -> [name]
  Keys names -> names
  Plain _ -> []
  Unfit _ _ -> []

-- | The command of this name with these arguments, and how its reply is read.
--
-- > command "GET" [key name] (nullable bytes)
--
-- Of a command that the table lacks, a module's, the server is asked what it is
-- (@COMMAND INFO@), once for each client. \(O(n)\) in the number of arguments.
--
-- @since 0.1.0.0
command :: Name -> [Argument] -> Decoder a -> Command a
command name arguments decoder = case nameFacts name of
  Just facts ->
    Command
      { commandRequest = requestFor (nameHeader name) arguments,
        commandRoute = routeFor name arguments,
        commandFacts = facts,
        commandDecode = decoder
      }
  Nothing -> uncommon name arguments decoder
-- Small lists of arguments are known where it is called, and vanish there.
{-# INLINE command #-}

requestFor :: Header -> [Argument] -> Request
requestFor header = \case
  [] -> requestOf0 header
  [Keys names] -> requestOf header names
  [a] | Just one <- word a -> requestOf1 header one
  [a, b] | Just one <- word a, Just two <- word b -> requestOf2 header one two
  [a, b, c] | Just one <- word a, Just two <- word b, Just three <- word c -> requestOf3 header one two three
  many -> requestOf header (argumentWords many)
  where
    word = \case
      Key name -> Just name
      Plain bytes -> Just bytes
      Unfit _ bytes -> Just bytes
      Keys _ -> Nothing
{-# INLINE requestFor #-}

routeFor :: Name -> [Argument] -> Route a
routeFor name = \case
  [Key key] -> OneKey key
  [Key key, Plain _] -> OneKey key
  [Key key, Plain _, Plain _] -> OneKey key
  [Keys names] -> routeOfNames name names
  arguments -> routeOfArguments name arguments
{-# INLINE routeFor #-}

routeOfArguments :: Name -> [Argument] -> Route a
routeOfArguments name arguments = case [why | Unfit why _ <- arguments] of
  why : _ -> Unsendable (UnfitArgument (commandWordsName (headerWords (nameHeader name))) why)
  [] -> routeOfNames name (argumentKeys arguments)
{-# NOINLINE routeOfArguments #-}

routeOfNames :: Name -> [ByteString] -> Route a
routeOfNames name names = case nameEntry name of
  Just entry -> routeOfKeys entry names
  Nothing -> AskServer (Just names)
{-# NOINLINE routeOfNames #-}

-- | Of a command whose facts depend on its arguments, or that the table lacks.
uncommon :: Name -> [Argument] -> Decoder a -> Command a
uncommon name arguments decoder =
  Command
    { commandRequest = encoded,
      commandRoute = routeOfArguments name arguments,
      commandFacts = maybe writeFacts (`factsFromEntry` requestWords encoded) (nameEntry name),
      commandDecode = decoder
    }
  where
    encoded = requestOf (nameHeader name) (argumentWords arguments)
{-# NOINLINE uncommon #-}

-- | The command with these words, the name first; it answers as the server does.
-- \(O(n)\), and a look-up.
fromWords :: [ByteString] -> Command Value
fromWords commandWords' =
  Command
    { commandRequest = request commandWords',
      commandRoute = case entry of
        Just found | Just keys <- Table.commandKeys found commandWords' -> routeOfKeys found keys
        _ -> AskServer Nothing,
      commandFacts = maybe writeFacts (`factsFromEntry` commandWords') entry,
      commandDecode = Right
    }
  where
    entry = lookupCommand commandWords'

-- | The command that a line says as one types it. What it does and where it goes
-- is that of its words. A line that is more than one command takes the way of
-- commands that are looked at before they are sent, and is refused there.
fromLine :: ByteString -> Command Value
fromLine line
  | requestIsOne encoded = (fromWords (Char8.words line)) {commandRequest = encoded}
  | otherwise = Command {commandRequest = encoded, commandRoute = AskServer Nothing, commandFacts = unknownFacts, commandDecode = Right}
  where
    encoded = requestInline line

-- | The facts of a command, given what is known of it and its words.
factsFromEntry :: CommandEntry -> [ByteString] -> Facts
factsFromEntry entry commandWords' =
  Facts
    { factReadOnly = harmless && not (staysWithPrimary entry),
      factRepeatable = harmless,
      factBlocking = case entryBlocks entry commandWords' of
        Nothing -> NonBlocking
        Just Nothing -> BlocksForever
        Just (Just seconds) -> BlocksFor seconds,
      factScope = scope,
      factFailsHalfway = failsHalfway entry,
      factPatience = Nothing,
      factReadFrom = Nothing
    }
  where
    harmless = entryReadOnly entry || changesNothing entry
    scope
      -- An old server does not say what kind of command it is.
      | changesConnection entry = maybe OwnConnection (const ConnectionState) (entryCategories entry)
      | overtakes entry = ControlLane
      | otherwise = SharedConnection

-- | Where a command goes that has these keys.
routeOfKeys :: CommandEntry -> [ByteString] -> Route a
routeOfKeys entry = \case
  [key] -> OneKey key
  key : rest
    | Just stride <- splitStep entry -> Splittable stride (key :| rest)
    | otherwise -> SameSlot (key :| rest)
  []
    -- It may have keys; this one has none.
    | not (null (entryKeySpecs entry)) -> AnyNode
    | otherwise -> case whereAnswered entry of
      AnyNodeAnswers -> AnyNode
      EveryPrimaryAnswers merge -> Everywhere Primaries merge
      EveryNodeAnswers merge -> Everywhere AllNodes merge
      OneNodesOwn -> NodesOwn

-- | Where a command goes of which nothing is known but its keys.
routeOfUnknown :: [ByteString] -> Route a
routeOfUnknown = \case
  [] -> AnyNode
  [key] -> OneKey key
  key : rest -> SameSlot (key :| rest)

-- | How many words each key has, itself included, for a command that falls into
-- one part per slot: the server's policy is to split it, and its words are all
-- keys, or keys each with a value.
splitStep :: CommandEntry -> Maybe Int
splitStep entry = case (entryRequestPolicy entry, entryKeySpecs entry) of
  (Just RequestMultiShard, [KeySpec (BeginAt 1) (KeyRange (-1) step limit) False]) | limit < 2 -> Just step
  _ -> Nothing

-- | The command as it is to be sent when so many seconds have passed since it
-- was begun. The server counts a command's time from when it gets it, so what is
-- left is written into its words. One that does not wait, waits for ever, or has
-- its timeout where nobody knows, stays as it is. If no time is left, two
-- milliseconds are, in which the server says what it says when nothing came.
-- \(O(n)\).
withRemaining :: Double -> Command a -> Command a
withRemaining passed given@Command {commandFacts} = case factBlocking commandFacts of
  BlocksFor limit
    | Just shortened <- shorten left ->
      given {commandRequest = request shortened, commandFacts = commandFacts {factBlocking = BlocksFor left}}
    where
      left = max 0.002 (limit - max 0 passed)
  _ -> given
  where
    shorten left = do
      entry <- lookupCommand (commandWords given)
      withTimeout entry left (commandWords given)
