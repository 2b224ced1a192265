-- | The logs in which a server notes commands that were slow or, with Valkey, large.
--
-- > slow <- run client (Redis.slowlogGet 10)
--
-- The server's documentation: <https://valkey.io/commands/slowlog/> and
-- <https://valkey.io/commands/commandlog/>.
module Redis.Commands.Slowlog
  ( -- * The slow log
    slowlogGet,
    SlowlogEntry (..),
    slowlogLen,
    slowlogReset,
    slowlogHelp,

    -- * Valkey's command logs
    Commandlog (..),
    commandlogGet,
    CommandlogEntry (..),
    CommandlogAmount (..),
    commandlogLen,
    commandlogReset,
    commandlogHelp,
  )
where

import Control.Monad (mfilter)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | A command that took long.
data SlowlogEntry = SlowlogEntry
  { -- | The number of the entry; the server counts them.
    slowlogId :: Int64,
    -- | When the command ran, to the second.
    slowlogTime :: UTCTime,
    -- | How long it ran, without time that it spent waiting.
    slowlogDuration :: Duration,
    -- | The words of the command; if there are many, the server leaves some out.
    slowlogCommand :: [ByteString],
    -- | The address and port of the client that sent it, since 4.0.0.
    slowlogClient :: Maybe ByteString,
    -- | The name of that client, if it has one, since 4.0.0.
    slowlogClientName :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | @SLOWLOG GET count@: the latest entries, the newest first; in a cluster those of every node, up
-- to the count of each. \(O(n)\), [since 2.2.12](https://valkey.io/commands/slowlog-get/).
--
-- > run client (onNode node (slowlogGet 10))
slowlogGet :: Int64 -> Command [SlowlogEntry]
slowlogGet count = command "SLOWLOG GET" [int count] (Decode.list (logEntry SlowlogEntry microsecondsReply))

-- | Reads an entry of any of the logs: how it is made, and what the command was noted for.
logEntry ::
  (Int64 -> UTCTime -> amount -> [ByteString] -> Maybe ByteString -> Maybe ByteString -> entry) -> Decoder amount -> Decoder entry
logEntry make amount reply = do
  elements <- Decode.list Decode.value reply
  make
    <$> Decode.element 0 Decode.integer elements
    <*> Decode.element 1 Decode.unixSeconds elements
    <*> Decode.element 2 amount elements
    <*> Decode.element 3 (Decode.list Decode.bytes) elements
    <*> Decode.optionalElement 4 Decode.bytes elements
    <*> (mfilter (/= "") <$> Decode.optionalElement 5 Decode.bytes elements)

-- | @SLOWLOG LEN@: the number of entries; in a cluster, on all nodes together. \(O(1)\),
-- [since 2.2.12](https://valkey.io/commands/slowlog-len/).
slowlogLen :: Command Int64
slowlogLen = command "SLOWLOG LEN" [] Decode.integer

-- | @SLOWLOG RESET@: deletes all entries; in a cluster, on every node. \(O(n)\),
-- [since 2.2.12](https://valkey.io/commands/slowlog-reset/).
slowlogReset :: Command ()
slowlogReset = command "SLOWLOG RESET" [] Decode.okay

-- | @SLOWLOG HELP@, @COMMANDLOG HELP@: what these commands can do, as lines of text for people to
-- read. \(O(1)\), [since 6.2.0](https://valkey.io/commands/slowlog-help/) and
-- [since Valkey 8.1.0](https://valkey.io/commands/commandlog-help/).
slowlogHelp, commandlogHelp :: Command [ByteString]
slowlogHelp = command "SLOWLOG HELP" [] (Decode.list Decode.bytes)
commandlogHelp = command "COMMANDLOG HELP" [] (Decode.list Decode.bytes)

-- | One of Valkey's logs.
data Commandlog
  = -- | Commands that ran long: the log that SLOWLOG reads.
    SlowCommands
  | -- | Commands whose requests had many bytes.
    LargeRequests
  | -- | Commands whose replies had many bytes.
    LargeReplies
  deriving stock (Eq, Ord, Show)

commandlogWord :: Commandlog -> Argument
commandlogWord = \case
  SlowCommands -> arg "slow"
  LargeRequests -> arg "large-request"
  LargeReplies -> arg "large-reply"

-- | Why a command was noted.
data CommandlogAmount
  = -- | How long it ran, without time that it spent waiting.
    RanFor Duration
  | -- | How many bytes its request or reply had.
    HadBytes Int64
  deriving stock (Eq, Show)

-- | A command that was noted in one of the logs.
data CommandlogEntry = CommandlogEntry
  { -- | The number of the entry; the server counts them for each log.
    commandlogId :: Int64,
    -- | When the command ran, to the second.
    commandlogTime :: UTCTime,
    commandlogAmount :: CommandlogAmount,
    -- | The words of the command; if there are many, the server leaves some out.
    commandlogCommand :: [ByteString],
    -- | The address and port of the client that sent it.
    commandlogClient :: Maybe ByteString,
    -- | The name of that client, if it has one.
    commandlogClientName :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | @COMMANDLOG GET count slow|large-request|large-reply@: the latest entries, the newest first; a
-- count of -1 returns all of them. In a cluster those of every node, up to the count of each.
-- \(O(n)\), [since Valkey 8.1.0](https://valkey.io/commands/commandlog-get/); Redis lacks it.
commandlogGet :: Commandlog -> Int64 -> Command [CommandlogEntry]
commandlogGet which count =
  command "COMMANDLOG GET" [int count, commandlogWord which] (Decode.list (logEntry CommandlogEntry amount))
  where
    amount = case which of
      SlowCommands -> fmap RanFor . microsecondsReply
      _ -> fmap HadBytes . Decode.integer

-- | @COMMANDLOG LEN slow|large-request|large-reply@: the number of entries; in a cluster, on all
-- nodes together. \(O(1)\), [since Valkey 8.1.0](https://valkey.io/commands/commandlog-len/).
commandlogLen :: Commandlog -> Command Int64
commandlogLen which = command "COMMANDLOG LEN" [commandlogWord which] Decode.integer

-- | @COMMANDLOG RESET slow|large-request|large-reply@: deletes all entries; in a cluster, on every
-- node. \(O(n)\), [since Valkey 8.1.0](https://valkey.io/commands/commandlog-reset/).
commandlogReset :: Commandlog -> Command ()
commandlogReset which = command "COMMANDLOG RESET" [commandlogWord which] Decode.okay
