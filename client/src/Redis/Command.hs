{-# LANGUAGE ExistentialQuantification #-}

-- | What a command is: a pure value that knows its bytes, its keys, what the
-- server does with it, and how to read the reply.
--
-- One value serves every way of running it — waiting, asynchronously, in a
-- pipeline, in a cluster — so adding a command never touches a client. The
-- smart constructors live in "Redis.Commands".
module Redis.Command
  ( Command (..),

    -- * Routing
    Route (..),
    SplitPlan (..),

    -- * Facts
    Facts (..),
    Blocking (..),
    Scope (..),
    readFacts,
    writeFacts,

    -- * Changing a command
    repeatable,
  )
where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty)
import Redis.Error (DecodeError)
import Redis.Internal.Protocol.Encode (Request)
import Redis.Value (Value)

-- | A command that answers with an @a@.
--
-- @since 0.1.0.0
data Command a = Command
  { -- | The server's name for it, in capitals; two words for a subcommand.
    commandName :: ByteString,
    -- | Its bytes.
    commandRequest :: Request,
    -- | Which node it goes to.
    commandRoute :: Route a,
    -- | What the server does with it.
    commandFacts :: Facts,
    -- | Reads a reply. Never given an error reply, a push or attributes.
    commandDecode :: Value -> Either DecodeError a
  }

instance Functor Command where
  fmap f command =
    command
      { commandRoute = f <$> commandRoute command,
        commandDecode = fmap f . commandDecode command
      }

-- | How the keys of a command decide where it goes.
--
-- @since 0.1.0.0
data Route a
  = -- | No key: any node will do.
    AnyNode
  | -- | One key.
    OneKey ByteString
  | -- | Several keys that must share a slot; checked before sending.
    SameSlot (NonEmpty ByteString)
  | -- | Several keys; across slots the command falls into one part per slot.
    Splittable (SplitPlan a)
  | -- | The keys of this command are not known here; the server is asked.
    -- Name and arguments.
    AskServer [ByteString]

instance Functor Route where
  fmap f = \case
    AnyNode -> AnyNode
    OneKey key -> OneKey key
    SameSlot keys -> SameSlot keys
    Splittable SplitPlan {splitKeys, splitPart, splitMerge} ->
      Splittable SplitPlan {splitKeys, splitPart, splitMerge = f . splitMerge}
    AskServer arguments -> AskServer arguments

-- | How a command over several keys falls into parts and how their answers
-- become one again. Not atomic: parts run on different nodes at different
-- times, and some may fail when others have run.
--
-- @since 0.1.0.0
data SplitPlan a = forall b.
  SplitPlan
  { -- | The keys, in the caller's order.
    splitKeys :: NonEmpty ByteString,
    -- | The part for some of them, given by position and ascending.
    splitPart :: NonEmpty Int -> Command b,
    -- | All parts with their positions.
    splitMerge :: [(NonEmpty Int, b)] -> a
  }

-- | What the server does with a command: data that decide over retries,
-- replicas and connections, so that the caller need not.
--
-- @since 0.1.0.0
data Facts = Facts
  { -- | It changes nothing, and any replica may answer it. Not so of a step of a
    -- walk, whose cursor is of one node.
    factReadOnly :: Bool,
    -- | Sending it a second time, when it may already have run, does no harm.
    -- True of all that changes nothing; of a write only if its caller says so.
    factRepeatable :: Bool,
    -- | Whether it waits on the server.
    factBlocking :: Blocking,
    -- | Whether it may share a connection.
    factScope :: Scope
  }
  deriving stock (Eq, Show)

-- | Whether the server keeps a command waiting, and for how long.
--
-- @since 0.1.0.0
data Blocking
  = -- | It answers when it has run.
    NonBlocking
  | -- | At most so many seconds.
    BlocksFor Double
  | -- | Until something happens.
    BlocksForever
  deriving stock (Eq, Show)

-- | Whether a command may share a connection with those of other callers.
--
-- @since 0.1.0.0
data Scope
  = -- | It may.
    SharedConnection
  | -- | It changes what later commands on the same connection mean
    -- (SELECT, MULTI, SUBSCRIBE, CLIENT REPLY …), or asks about the earlier
    -- ones on it (WAIT).
    ConnectionState
  deriving stock (Eq, Show)

-- | Facts of a command that only reads.
--
-- @since 0.1.0.0
readFacts :: Facts
readFacts =
  Facts
    { factReadOnly = True,
      factRepeatable = True,
      factBlocking = NonBlocking,
      factScope = SharedConnection
    }

-- | Facts of a command that writes.
--
-- @since 0.1.0.0
writeFacts :: Facts
writeFacts = readFacts {factReadOnly = False, factRepeatable = False}

-- | Declares that this command may be sent again even if it may already have
-- run: the caller's word that running it twice does no harm.
--
-- @since 0.1.0.0
repeatable :: Command a -> Command a
repeatable command =
  command {commandFacts = (commandFacts command) {factRepeatable = True}}
