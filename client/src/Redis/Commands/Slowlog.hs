-- | What a server has noted of commands that took long, or, with Valkey, were large.
--
-- > slow <- run client (Redis.slowlogGet 10)
--
-- The server's pages: <https://valkey.io/commands/slowlog/> and
-- <https://valkey.io/commands/commandlog/>.
module Redis.Commands.Slowlog
  ( -- * The slow log
    slowlogGet,
    SlowlogEntry (..),
    slowlogLen,
    slowlogReset,
    slowlogHelp,

    -- * The logs of Valkey
    Commandlog (..),
    commandlogGet,
    CommandlogEntry (..),
    CommandlogAmount (..),
    commandlogLen,
    commandlogReset,
    commandlogHelp,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.Time.Clock (UTCTime)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, seconds)
import Redis.Value (Value)

-- | One command that took long.
--
-- @since 0.1.0.0
data SlowlogEntry = SlowlogEntry
  { -- | The server counts them.
    slowlogId :: Int64,
    -- | When it was run, to the second.
    slowlogTime :: UTCTime,
    -- | How long it ran, without waiting.
    slowlogDuration :: Duration,
    -- | Its words; the server leaves some out where there are many.
    slowlogCommand :: [ByteString],
    -- | Whose it was, since 4.0.0: address and port.
    slowlogClient :: Maybe ByteString,
    -- | The name of that client, if it has one, since 4.0.0.
    slowlogClientName :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | @SLOWLOG GET count@: the latest entries, the newest first; in a cluster those of every node, so
-- many of each. \(O(n)\) on the server, [since 2.2.12](https://valkey.io/commands/slowlog-get/).
--
-- > run client (onNode node (slowlogGet 10))
--
-- @since 0.1.0.0
slowlogGet :: Int64 -> Command [SlowlogEntry]
slowlogGet count = command "SLOWLOG GET" [int count] (Decode.list slowlogEntry)

slowlogEntry :: Decoder SlowlogEntry
slowlogEntry reply = do
  Entry {entryId, entryTime, entryAmount, entryCommand, entryClient, entryClientName} <- logEntry reply
  slowlogDuration <- inMicros entryAmount
  pure
    SlowlogEntry
      { slowlogId = entryId,
        slowlogTime = entryTime,
        slowlogDuration,
        slowlogCommand = entryCommand,
        slowlogClient = entryClient,
        slowlogClientName = entryClientName
      }

inMicros :: Decoder Duration
inMicros = fmap (seconds . (/ 1e6) . fromIntegral) . Decode.integer

-- | An entry of any of the logs.
data Entry = Entry
  { entryId :: Int64,
    entryTime :: UTCTime,
    -- | What it was noted for.
    entryAmount :: Value,
    entryCommand :: [ByteString],
    entryClient :: Maybe ByteString,
    entryClientName :: Maybe ByteString
  }

logEntry :: Decoder Entry
logEntry reply = do
  elements <- Decode.list Decode.value reply
  entryId <- Decode.element 0 Decode.integer elements
  entryTime <- Decode.element 1 Decode.unixSeconds elements
  entryAmount <- Decode.element 2 Decode.value elements
  entryCommand <- Decode.element 3 (Decode.list Decode.bytes) elements
  entryClient <- Decode.optionalElement 4 Decode.bytes elements
  name <- Decode.optionalElement 5 Decode.bytes elements
  let entryClientName = if name == Just Char8.empty then Nothing else name
  pure Entry {entryId, entryTime, entryAmount, entryCommand, entryClient, entryClientName}

-- | @SLOWLOG LEN@: how many entries there are; in a cluster, on all nodes. \(O(1)\) on the server,
-- [since 2.2.12](https://valkey.io/commands/slowlog-len/).
--
-- @since 0.1.0.0
slowlogLen :: Command Int64
slowlogLen = command "SLOWLOG LEN" [] Decode.integer

-- | @SLOWLOG RESET@: forgets all entries; in a cluster, on every node. \(O(n)\) on the server,
-- [since 2.2.12](https://valkey.io/commands/slowlog-reset/).
--
-- @since 0.1.0.0
slowlogReset :: Command ()
slowlogReset = command "SLOWLOG RESET" [] Decode.okay

-- | @SLOWLOG HELP@: what SLOWLOG can do, in lines for people. \(O(1)\) on the server,
-- [since 6.2.0](https://valkey.io/commands/slowlog-help/).
--
-- @since 0.1.0.0
slowlogHelp :: Command [ByteString]
slowlogHelp = command "SLOWLOG HELP" [] (Decode.list Decode.bytes)

-- | Which log.
--
-- @since 0.1.0.0
data Commandlog
  = -- | Commands that ran long: that of SLOWLOG.
    SlowCommands
  | -- | Commands of many bytes.
    LargeRequests
  | -- | Commands whose replies had many bytes.
    LargeReplies
  deriving stock (Eq, Ord, Show)

commandlogWord :: Commandlog -> Argument
commandlogWord = \case
  SlowCommands -> arg "slow"
  LargeRequests -> arg "large-request"
  LargeReplies -> arg "large-reply"

-- | What a command was noted for.
--
-- @since 0.1.0.0
data CommandlogAmount
  = -- | How long it ran, without waiting.
    RanFor Duration
  | -- | How many bytes its request or reply had.
    HadBytes Int64
  deriving stock (Eq, Show)

-- | One command that was noted.
--
-- @since 0.1.0.0
data CommandlogEntry = CommandlogEntry
  { -- | The server counts them, for each log.
    commandlogId :: Int64,
    -- | When it was run, to the second.
    commandlogTime :: UTCTime,
    commandlogAmount :: CommandlogAmount,
    -- | Its words; the server leaves some out where there are many.
    commandlogCommand :: [ByteString],
    -- | Whose it was: address and port.
    commandlogClient :: Maybe ByteString,
    -- | The name of that client, if it has one.
    commandlogClientName :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | @COMMANDLOG GET count slow|large-request|large-reply@: the latest entries, the newest first; -1
-- is all of them. In a cluster those of every node, so many of each. \(O(n)\) on the server,
-- [since Valkey 8.1.0](https://valkey.io/commands/commandlog-get/); Redis has none.
--
-- @since 0.1.0.0
commandlogGet :: Commandlog -> Int64 -> Command [CommandlogEntry]
commandlogGet which count = command "COMMANDLOG GET" [int count, commandlogWord which] (Decode.list entry)
  where
    entry reply = do
      Entry {entryId, entryTime, entryAmount, entryCommand, entryClient, entryClientName} <- logEntry reply
      commandlogAmount <- case which of
        SlowCommands -> RanFor <$> inMicros entryAmount
        _ -> HadBytes <$> Decode.integer entryAmount
      pure
        CommandlogEntry
          { commandlogId = entryId,
            commandlogTime = entryTime,
            commandlogAmount,
            commandlogCommand = entryCommand,
            commandlogClient = entryClient,
            commandlogClientName = entryClientName
          }

-- | @COMMANDLOG LEN slow|large-request|large-reply@: how many entries there are; in a cluster on
-- all nodes. \(O(1)\) on the server,
-- [since Valkey 8.1.0](https://valkey.io/commands/commandlog-len/).
--
-- @since 0.1.0.0
commandlogLen :: Commandlog -> Command Int64
commandlogLen which = command "COMMANDLOG LEN" [commandlogWord which] Decode.integer

-- | @COMMANDLOG RESET slow|large-request|large-reply@: forgets all entries; in a cluster on every
-- node. \(O(n)\) on the server, [since Valkey 8.1.0](https://valkey.io/commands/commandlog-reset/).
--
-- @since 0.1.0.0
commandlogReset :: Commandlog -> Command ()
commandlogReset which = command "COMMANDLOG RESET" [commandlogWord which] Decode.okay

-- | @COMMANDLOG HELP@: what COMMANDLOG can do, in lines for people. \(O(1)\) on the server,
-- [since Valkey 8.1.0](https://valkey.io/commands/commandlog-help/).
--
-- @since 0.1.0.0
commandlogHelp :: Command [ByteString]
commandlogHelp = command "COMMANDLOG HELP" [] (Decode.list Decode.bytes)
