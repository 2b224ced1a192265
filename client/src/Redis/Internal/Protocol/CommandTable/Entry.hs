-- | What a server says of one command, in the terms of the reply to @COMMAND@.
module Redis.Internal.Protocol.CommandTable.Entry
  ( CommandEntry (..),
    RequestPolicy (..),
    ResponsePolicy (..),
  )
where

import Data.ByteString (ByteString)
import Redis.Internal.Protocol.CommandTable.Aggregation (Aggregation)
import Redis.Internal.Protocol.KeySpec (KeySpec)

-- | One command, or one subcommand (@CONFIG|GET@).
data CommandEntry = CommandEntry
  { -- | The name in capitals; a subcommand's name follows a bar.
    entryName :: ByteString,
    -- | The number of words, the name included; negative for at least so many.
    entryArity :: Int,
    entryReadOnly :: Bool,
    -- | Whether it can keep a caller waiting.
    entryBlocking :: Bool,
    -- | Whether it has subcommands.
    entryContainer :: Bool,
    -- | The categories of the access control lists, without the @\@@. 'Nothing' if
    -- the server does not tell them, as those before 6.0.
    entryCategories :: Maybe [ByteString],
    -- | 'Nothing' if the server has none: a node that serves the keys runs it, or
    -- any node if it has no keys.
    entryRequestPolicy :: Maybe RequestPolicy,
    -- | 'Nothing' if the server has none: the aggregated reply has the elements of all replies.
    entryResponsePolicy :: Maybe ResponsePolicy,
    entryKeySpecs :: [KeySpec]
  }
  deriving stock (Eq, Show)

-- | Where the server wants a command to be sent in a cluster
-- (<https://valkey.io/topics/command-tips/>).
data RequestPolicy
  = -- | To all nodes, replicas too.
    RequestAllNodes
  | -- | To all primaries.
    RequestAllShards
  | -- | In parts, each to the primary that serves its keys.
    RequestMultiShard
  | -- | By a rule of its own, or by one that is not known here.
    RequestSpecial
  deriving stock (Eq, Show)

-- | How the server wants the replies of several nodes to become one.
data ResponsePolicy
  = ResponseAggregated Aggregation
  | -- | By a rule of its own, or by one that is not known here.
    ResponseSpecial
  deriving stock (Eq, Show)
