-- | Decides which nodes of a cluster answer a command without keys, how their replies are aggregated,
-- and whether an error reply leaves a doubt.
--
-- Servers decide this by the request and response policies of their commands. They say that any
-- node may run a command for which they have no policy, because each client knows which node it
-- means; this client does not. So a command of the table goes to an arbitrary node only if every
-- node is known to give the same answer. For all other commands, and for those with a special
-- policy, the caller names the node.
module Redis.Internal.Protocol.CommandTable.Policy
  ( AnsweringNodes (..),
    Aggregation (..),
    whereAnswered,
    keepsOrder,
    failsHalfway,

    -- * The lists
    policyLists,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Internal.Protocol.CommandTable
import Redis.Internal.Protocol.CommandTable.Aggregation (Aggregation (..))
import Redis.Internal.Protocol.CommandTable.Entry (named)

-- | The nodes that answer a command without keys.
data AnsweringNodes
  = -- | Any node: each gives the same answer.
    AnyNodeAnswers
  | -- | Every node that owns slots.
    EveryPrimaryAnswers Aggregation
  | -- | Every node, replicas too.
    EveryNodeAnswers Aggregation
  | -- | Each node has an answer of its own, and no rule aggregates them.
    OneNodesOwn
  deriving stock (Eq, Show)

-- | The nodes that answer the command, if it has no keys. \(O(\log n)\) in the size of the table.
whereAnswered :: CommandEntry -> AnsweringNodes
whereAnswered entry@CommandEntry {entryName, entryContainer, entryCategories, entryRequestPolicy, entryResponsePolicy}
  -- The command is about one connection, which its caller holds.
  | changesConnection entry = OneNodesOwn
  -- Any node says that a subcommand is missing, and what COMMAND alone lists is the same everywhere.
  | entryName `Set.member` sameEverywhere || "|HELP" `Char8.isSuffixOf` entryName || entryContainer = AnyNodeAnswers
  -- Its policy is special. Any key of one node is a key of the cluster.
  | entryName == "RANDOMKEY" = EveryPrimaryAnswers AggFirstFound
  | otherwise = case entryRequestPolicy of
    Just RequestAllNodes -> maybe OneNodesOwn EveryNodeAnswers merging
    Just RequestAllShards -> maybe OneNodesOwn EveryPrimaryAnswers merging
    -- A command of a module, whose author could have set a policy.
    Nothing | not (inTable entryName || any (elem "admin") entryCategories) -> AnyNodeAnswers
    _ -> OneNodesOwn
  where
    merging = case entryResponsePolicy of
      Nothing -> Just AggConcatenated
      Just (ResponseAggregated how) -> Just how
      Just ResponseSpecial -> Nothing

-- | Commands without keys to which each node gives the same answer: they ask about what is built
-- in, what all nodes of a cluster agree on, or what all connections of this client have in common.
-- PUBLISH is among them, because the nodes pass it on to each other.
--
-- The policy of PING is to ask all primaries. But its purpose is to see whether a command is
-- answered, and that is so even when part of a cluster is down.
sameEverywhere :: Set ByteString
sameEverywhere =
  named
    "ACL|CAT ACL|GENPASS ACL|WHOAMI CLIENT|GETNAME CLUSTER|KEYSLOT CLUSTER|SHARDS \
    \CLUSTER|SLOTS COMMAND|COUNT COMMAND|DOCS COMMAND|GETKEYS COMMAND|GETKEYSANDFLAGS \
    \COMMAND|INFO COMMAND|LIST ECHO LOLWUT PING PUBLISH"

-- | Whether any node may run the command, but the same one each time for the same first argument:
-- what two nodes pass on to the others comes in no order. \(O(\log n)\).
keepsOrder :: CommandEntry -> Bool
keepsOrder CommandEntry {entryName} = entryName `Set.member` inOrder

-- | Commands that any node runs, whose effects must keep the order in which they are sent.
inOrder :: Set ByteString
inOrder = named "PUBLISH"

-- | Whether an error reply may come after a part of the command was done. For other commands an
-- error means that nothing was done. For a command that the table lacks nobody knows, so this is
-- 'True'. \(O(\log n)\) in the size of the table.
failsHalfway :: CommandEntry -> Bool
failsHalfway CommandEntry {entryName} = entryName `Set.member` inParts || not (inTable entryName)

-- | Commands that run other commands; MIGRATE, which moves one key after the other; and DEBUG,
-- which does what no other command may.
inParts :: Set ByteString
inParts = named "DEBUG EVAL EVALSHA EXEC FCALL MIGRATE"

-- | Every list of this module, with what it says of its commands.
policyLists :: [(String, Set ByteString)]
policyLists = [("the same everywhere", sameEverywhere), ("keeps an order", inOrder), ("fails half-way", inParts)]
