-- | Makes commands, from a name and arguments or from all their words.
--
-- A name is looked up in the command table once, when it is first used. So a typed
-- command costs no look-up, and what it does is written down in one place, the table.
module Redis.Internal.Command.Make
  ( -- * By name
    Name,
    nameOf,
    Argument (..),
    command,

    -- * By words
    fromArguments,
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

import Control.Applicative ((<|>))
import Control.Monad (mfilter)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.String (IsString (fromString))
import Redis.Decode (Decoder)
import Redis.Error (Refusal (EmptyCommand, NeedsWire, UnfitArgument))
import Redis.Internal.Command
import Redis.Internal.Protocol.CommandTable hiding (commandKeys)
import Redis.Internal.Protocol.CommandTable qualified as Table
import Redis.Internal.Protocol.Encode
import Redis.Internal.Protocol.KeySpec (BeginSearch (..), FindKeys (..), KeySpec (..))
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Value (Value)

-- | The name of a command, such as @GET@ or @CONFIG GET@, with the command table's
-- entry for it. A string literal is a name. A name that is made once and kept costs
-- each command nothing.
data Name = Name
  { nameHeader :: Header,
    -- | The table's entry; 'Nothing' if the table lacks the command, or if the command has
    -- subcommands and the name has none.
    nameEntry :: Maybe CommandEntry,
    -- | The facts, if they do not depend on the arguments.
    nameFacts :: Maybe Facts
  }

instance IsString Name where
  fromString = nameOf . Char8.pack
  {-# NOINLINE fromString #-}

-- | Makes a name from words that are separated by spaces. Servers do not distinguish
-- upper and lower case. \(O(\log n)\) in the size of the command table.
nameOf :: ByteString -> Name
nameOf text =
  Name
    { nameHeader = headerOf nameWords,
      nameEntry,
      nameFacts = case nameEntry of
        Just entry | not (entryBlocking entry || answersApart entry (drop 1 nameWords)) -> Just (factsFromEntry entry nameWords)
        _ -> Nothing
    }
  where
    nameWords = Char8.words text
    nameEntry = mfilter (not . entryContainer) (lookupCommand nameWords)

-- | One argument of a command.
data Argument
  = -- | A key: it decides where the command goes.
    Key ByteString
  | -- | Several keys, one after the other.
    Keys [ByteString]
  | -- | An argument that is not a key.
    Plain ByteString
  | -- | Why no server accepts an argument, and the argument: the command is not sent.
    Unfit String ByteString

-- | The words that are sent.
encodedArguments :: [Argument] -> [ByteString]
encodedArguments = \case
  [Keys names] -> names
  many -> foldr encoded [] many
  where
    encoded = \case
      Key name -> (name :)
      Keys names -> (names <>)
      Plain bytes -> (bytes :)
      Unfit _ bytes -> (bytes :)

argumentKeys :: [Argument] -> [ByteString]
argumentKeys = \case
  [Keys names] -> names
  many -> concatMap keysOf many
  where
    keysOf = \case
      Key name -> [name]
      Keys names -> names
      Plain _ -> []
      Unfit _ _ -> []

-- | Makes a command from its name, its arguments and the decoder of its reply.
--
-- > command "GET" [key name] (nullable bytes)
--
-- If the table lacks the command, as it lacks those of modules, each client asks its
-- server once for a description (@COMMAND INFO@). \(O(n)\) in the number of arguments.
command :: Name -> [Argument] -> Decoder a -> Command a
command name arguments decoder = case arguments of
  [Key a] -> command1 name a decoder
  [Key a, Plain b] -> command2 name a b decoder
  [Key a, Plain b, Plain c] -> command3 name a b c decoder
  _ -> commandOf name arguments decoder
-- Inlined: a caller's short list of arguments is known at compile time, and vanishes.
{-# INLINE command #-}

command1 :: Name -> ByteString -> Decoder a -> Command a
command1 name !a = keyed name [Key a] (requestOf1 (nameHeader name) a)
{-# NOINLINE command1 #-}

command2 :: Name -> ByteString -> ByteString -> Decoder a -> Command a
command2 name !a !b = keyed name [Key a, Plain b] (requestOf2 (nameHeader name) a b)
{-# NOINLINE command2 #-}

command3 :: Name -> ByteString -> ByteString -> ByteString -> Decoder a -> Command a
command3 name !a !b !c = keyed name [Key a, Plain b, Plain c] (requestOf3 (nameHeader name) a b c)
{-# NOINLINE command3 #-}

-- | A command whose only key is its first argument, and its request.
keyed :: Name -> [Argument] -> Request -> Decoder a -> Command a
keyed name arguments encoded decoder = case nameFacts name of
  Just facts -> Command {commandRequest = encoded, commandRoute = FirstKey, commandFacts = facts, commandDecode = decoder}
  Nothing -> uncommon name arguments decoder
{-# INLINE keyed #-}

commandOf :: Name -> [Argument] -> Decoder a -> Command a
commandOf name arguments decoder = case nameFacts name of
  Just facts ->
    Command
      { commandRequest = requestFor (nameHeader name) given,
        commandRoute = routeOfArguments name given arguments,
        commandFacts = facts,
        commandDecode = decoder
      }
  Nothing -> uncommon name arguments decoder
  where
    given = encodedArguments arguments
{-# NOINLINE commandOf #-}

requestFor :: Header -> [ByteString] -> Request
requestFor header = \case
  [] -> requestOf0 header
  [a] -> requestOf1 header a
  [a, b] -> requestOf2 header a b
  [a, b, c] -> requestOf3 header a b c
  many -> requestOf header many

-- | The route, from the arguments as words and as they are.
routeOfArguments :: Name -> [ByteString] -> [Argument] -> Route a
routeOfArguments name given arguments = case ([why | Unfit why _ <- arguments], nameEntry name) of
  (why : _, _) -> Unsendable (UnfitArgument (nameFromArguments (headerArguments (nameHeader name))) why)
  ([], Just entry) -> routeOfKeys entry given (argumentKeys arguments)
  ([], Nothing) -> AskServer (Just (argumentKeys arguments)) Nothing

-- | Makes a command whose facts depend on its arguments, or that the table lacks. Its
-- subcommand may be among the arguments.
uncommon :: Name -> [Argument] -> Decoder a -> Command a
uncommon name arguments decoder =
  Command
    { commandRequest = encoded,
      commandRoute = if null allWords then Unsendable EmptyCommand else routeOfArguments known (drop 1 allWords) arguments,
      commandFacts = maybe untoldFacts (`factsFromEntry` allWords) (nameEntry known),
      commandDecode = decoder
    }
  where
    given = encodedArguments arguments
    encoded = requestOf (nameHeader name) given
    allWords = requestArguments encoded
    known = name {nameEntry = nameEntry name <|> lookupCommand allWords}
{-# NOINLINE uncommon #-}

-- | Makes a command from its words, the name first. Its result is the server's reply,
-- not decoded. \(O(n)\), and a look-up in the table.
fromArguments :: [ByteString] -> Command Value
fromArguments commandWords' =
  Command
    { commandRequest = request commandWords',
      commandRoute = case entry of
        Just found | Just keys <- Table.commandKeys found commandWords' -> routeOfKeys found (drop 1 commandWords') keys
        _ -> AskServer Nothing Nothing,
      commandFacts = maybe untoldFacts (`factsFromEntry` commandWords') entry,
      commandDecode = Right
    }
  where
    entry = lookupCommand commandWords'

-- | Makes a command from a line as one types it. Its words decide its facts and its
-- route. A line that is not exactly one command, or has no words, gets a route on which
-- commands are checked before they are sent, and is refused there.
fromLine :: ByteString -> Command Value
fromLine line
  | requestIsOne encoded = (fromArguments (requestArguments encoded)) {commandRequest = encoded}
  | otherwise = Command {commandRequest = encoded, commandRoute = AskServer Nothing Nothing, commandFacts = unknownFacts, commandDecode = Right}
  where
    encoded = requestInline line

-- | The facts of a command, from its table entry and its words.
factsFromEntry :: CommandEntry -> [ByteString] -> Facts
factsFromEntry entry commandWords' =
  Facts
    { factInfo =
        CommandInfo
          { infoReadOnly = harmless && not (staysWithPrimary entry),
            infoHarmless = harmless,
            infoBlocking = case entryBlocks entry commandWords' of
              Nothing -> NonBlocking
              Just Nothing -> BlocksForever
              Just (Just seconds) -> BlocksFor seconds,
            infoScope = scope,
            infoFailsHalfway = failsHalfway entry
          },
      factOptions = noOptions
    }
  where
    harmless = (entryReadOnly entry || changesNothing entry) && not (tellsOnce entry commandWords')
    scope
      -- Old servers tell no categories, so the effect on the connection is unknown.
      | changesConnection entry = maybe OwnConnection (const ConnectionState) (entryCategories entry)
      | overtakes entry = ControlConnection
      | holdsUp entry = OwnConnection
      | otherwise = SharedConnection

-- | The route of a command with these arguments, of which these are keys.
routeOfKeys :: CommandEntry -> [ByteString] -> [ByteString] -> Route a
routeOfKeys entry arguments = \case
  _ | answersApart entry arguments -> Unsendable (NeedsWire (Char8.map (\sign -> if sign == '|' then ' ' else sign) (entryName entry)))
  [key] -> OneKey key
  key : rest
    -- The server refuses a value that is missing; parts before it would have run.
    | Just stride <- splitStep entry, stride == 1 || length arguments == stride * (1 + length rest) -> Splittable stride (key :| rest)
    | otherwise -> SameSlot (key :| rest)
  []
    -- Commands of this name may have keys; this one has none.
    | not (null (entryKeySpecs entry)) -> AnyNode
    | otherwise -> case whereAnswered entry of
      AnyNodeAnswers
        | keepsOrder entry, first : _ <- arguments -> AnyNodeFor (keySlot first)
        | otherwise -> AnyNode
      EveryPrimaryAnswers aggregate -> Everywhere Primaries aggregate
      EveryNodeAnswers aggregate -> Everywhere AllNodes aggregate
      OneNodesOwn -> NodesOwn

-- | The route of a command of which only the keys are known.
routeOfUnknown :: [ByteString] -> Route a
routeOfUnknown = \case
  [] -> AnyNode
  [key] -> OneKey key
  key : rest -> SameSlot (key :| rest)

-- | The number of words per key, itself included, if the command can be split into one
-- part per slot: the server's policy is to split it, and its arguments are all keys, or
-- keys that are each followed by a value.
splitStep :: CommandEntry -> Maybe Int
splitStep entry = case (entryRequestPolicy entry, entryKeySpecs entry) of
  (Just RequestMultiShard, [KeySpec (BeginAt 1) (KeyRange (-1) step limit) False]) | limit < 2 -> Just step
  _ -> Nothing

-- | The command as it is sent this many seconds after it began. A server counts a timeout from when
-- it receives the command, so the remaining time replaces the timeout among the words. A command
-- whose timeout is not found stays as it is. At least two milliseconds remain, within which the
-- server replies to a wait without a result. \(O(n)\).
withRemaining :: Double -> Command a -> Command a
withRemaining passed given@Command {commandFacts} = case factBlocking commandFacts of
  BlocksFor limit
    | Just shortened <- shorten left ->
      given {commandRequest = request shortened, commandRoute = routeOf given, commandFacts = withInfo (\info -> info {infoBlocking = BlocksFor left}) commandFacts}
    where
      left = max 0.002 (limit - max 0 passed)
  _ -> given
  where
    shorten left = do
      entry <- lookupCommand (commandArguments given)
      withTimeout entry left (commandArguments given)
