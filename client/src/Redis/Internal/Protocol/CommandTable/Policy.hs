-- | Where a command without keys is answered in a cluster, and what becomes of
-- several replies; and whether an error of it leaves a doubt.
--
-- Servers decide, by the request and response policies of their commands. Of a
-- command for which they have none they say that any node may run it, because
-- each client knows which of them it means; this client does not. So a command of
-- the table goes to an arbitrary node only if it is known that every node gives the
-- same answer. All others, and those whose policy is to do something special, are
-- answered by a node that the caller names.
module Redis.Internal.Protocol.CommandTable.Policy
  ( Answerer (..),
    Merge (..),
    whereAnswered,
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
import Redis.Internal.Protocol.CommandTable.Merge (Merge (..))

-- | Who answers a command without keys.
data Answerer
  = -- | Any node: each gives the same answer.
    AnyNodeAnswers
  | -- | Every node that owns slots.
    EveryPrimaryAnswers Merge
  | -- | Every node, replicas too.
    EveryNodeAnswers Merge
  | -- | Each node has an answer of its own, and no rule makes one of them.
    OneNodesOwn
  deriving stock (Eq, Show)

-- | Who answers the command, if it has no keys. \(O(\log n)\) in the size of the
-- table.
whereAnswered :: CommandEntry -> Answerer
whereAnswered entry@CommandEntry {entryName, entryContainer, entryCategories, entryRequestPolicy, entryResponsePolicy}
  -- It is about one connection, which its caller holds.
  | changesConnection entry = OneNodesOwn
  -- A container without its subcommand: any node says that it is missing, and what
  -- COMMAND alone lists is the same everywhere.
  | entryName `Set.member` sameEverywhere || "|HELP" `Char8.isSuffixOf` entryName || entryContainer = AnyNodeAnswers
  -- The policy is special. A key that is there is one of the cluster's.
  | entryName == "RANDOMKEY" = EveryPrimaryAnswers MergeFound
  | otherwise = case entryRequestPolicy of
    Just RequestAllNodes -> maybe OneNodesOwn EveryNodeAnswers merging
    Just RequestAllShards -> maybe OneNodesOwn EveryPrimaryAnswers merging
    Just RequestMultiShard -> OneNodesOwn
    Just RequestSpecial -> OneNodesOwn
    Nothing
      | inTable entryName || any (elem "admin") entryCategories -> OneNodesOwn
      -- A module's, of which its author had the say.
      | otherwise -> AnyNodeAnswers
  where
    merging = case entryResponsePolicy of
      Nothing -> Just MergeConcatenated
      Just (ResponseMerged how) -> Just how
      Just ResponseSpecial -> Nothing

-- | Commands without keys of which each node says or does the same: they ask of what
-- is built in, of what all nodes of a cluster agree on, or of what each of this
-- client's connections has in common; and PUBLISH, which the nodes pass on to each
-- other.
--
-- PING's policy is to ask all primaries. But it is there to see whether one is
-- answered, and with a part of a cluster down one is.
sameEverywhere :: Set ByteString
sameEverywhere =
  Set.fromList
    [ "ACL|CAT",
      "ACL|GENPASS",
      "ACL|WHOAMI",
      "CLIENT|GETNAME",
      "CLUSTER|KEYSLOT",
      "CLUSTER|SHARDS",
      "CLUSTER|SLOTS",
      "COMMAND|COUNT",
      "COMMAND|DOCS",
      "COMMAND|GETKEYS",
      "COMMAND|GETKEYSANDFLAGS",
      "COMMAND|INFO",
      "COMMAND|LIST",
      "ECHO",
      "LOLWUT",
      "PING",
      "PUBLISH"
    ]

-- | Whether an error reply may come after a part was done. Of other commands it
-- means that nothing was. Of a command that the table lacks nobody knows.
-- \(O(\log n)\) in the size of the table.
failsHalfway :: CommandEntry -> Bool
failsHalfway CommandEntry {entryName} = entryName `Set.member` inParts || not (inTable entryName)

-- | They run other commands; MIGRATE moves one key after the other; and DEBUG does
-- what nobody else may.
inParts :: Set ByteString
inParts = Set.fromList ["DEBUG", "EVAL", "EVALSHA", "EXEC", "FCALL", "MIGRATE"]

-- | Every list of this module, by what it says of its commands.
policyLists :: [(String, Set ByteString)]
policyLists = [("the same everywhere", sameEverywhere), ("fails half-way", inParts)]
