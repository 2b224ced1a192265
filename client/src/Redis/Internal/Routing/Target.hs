-- | What decides where a command goes.
--
-- A 'Route' is what a command says. A 'Target' is what decides where one attempt goes: it follows
-- from the route, or from the failure before. A 'Redis.Internal.Routing.Nodes.Destination' is a node
-- in a role, which the current map has for the target.
module Redis.Internal.Routing.Target
  ( Target (..),
    targetOf,
    slotOf,
    atPrimary,
    isNamed,
    namesNode,
    needsAsking,
  )
where

import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.Error (Endpoint)
import Redis.Internal.Command (Command, Route (..), routeOf)
import Redis.Internal.Protocol.Slot (Slot, keySlot)

data Target
  = -- | Any primary.
    TargetAnyNode
  | -- | The primary of the slot while it is up, otherwise another one.
    TargetAnyFor Slot
  | -- | A node that serves the slot.
    TargetSlot Slot
  | -- | The primary of the slot, even if replicas are preferred.
    TargetPrimary Slot
  | -- | The primary at this endpoint; once it is none, that of the slot.
    TargetOwner Endpoint Slot
  | -- | The node at this endpoint, which the caller has named.
    TargetNode Endpoint
  | -- | The node at this endpoint, which a server has named, known or not. It counts as a primary.
    ToNode Endpoint
  | -- | The same, with ASKING ahead of the command and nothing in between.
    AskingNode Endpoint
  deriving stock (Eq, Show)

-- | The target of a command that one node answers. All its keys share a slot.
targetOf :: Command a -> Target
targetOf given = case routeOf given of
  OneKey key -> TargetSlot (keySlot key)
  SameSlot (key :| _) -> TargetSlot (keySlot key)
  Splittable _ (key :| _) -> TargetSlot (keySlot key)
  OneSlot slot -> TargetPrimary slot
  OnePrimary endpoint slot -> TargetOwner endpoint slot
  OneNode endpoint -> TargetNode endpoint
  AnyNodeFor slot -> TargetAnyFor slot
  _ -> TargetAnyNode
{-# INLINE targetOf #-}

-- | The slot that decides where a command goes, if a slot does.
slotOf :: Target -> Maybe Slot
slotOf = \case
  TargetSlot slot -> Just slot
  TargetPrimary slot -> Just slot
  TargetOwner _ slot -> Just slot
  _ -> Nothing

-- | The target without its replicas.
atPrimary :: Target -> Target
atPrimary = \case
  TargetSlot slot -> TargetPrimary slot
  other -> other

-- | Whether the caller has named the node.
isNamed :: Target -> Bool
isNamed = \case
  TargetNode _ -> True
  _ -> False

-- | Like 'isNamed', for a route, whose key is not hashed for it.
namesNode :: Route a -> Bool
namesNode = \case
  OneNode _ -> True
  _ -> False
{-# INLINE namesNode #-}

needsAsking :: Target -> Bool
needsAsking = \case
  AskingNode _ -> True
  _ -> False
