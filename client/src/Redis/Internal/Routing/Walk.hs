-- | A walk over all keys of a server or a cluster, as a state and a step.
--
-- Cursors mean something to one process only, and slots change their nodes while a walk
-- goes on. So what is counted is slots: a slot is /certain/ when whatever was in it
-- throughout the walk has been seen. The walk is over when all are.
--
-- A /leg/ walks the keys of one node from cursor 0 to its end. Before the leg and after it
-- the node is asked what it is and what it owns: a /look/. Both must show the same
-- identity: the same process, a primary, in the same epoch of the cluster. Then it did not
-- restart (with other cursors), was not demoted in between, and no slot that it owns in
-- both looks was away in between, because to take one back gives it a new epoch.
--
-- > look shows          leg here        done with it
-- > --------------------------------------------------------------------------------
-- > the leg's identity  has a cursor    goes on from there
-- > the leg's identity  at its end      each of its slots:
-- >                                       owned in both looks, at rest       certain
-- >                                       owned, on its way to another node  half seen
-- >                                       half seen when the leg began, and
-- >                                         on its way here                  seen at both
-- >                                       else                               as it was
-- >                                     then a new leg, if it has slots for one
-- > another identity    any             dropped; a new leg, if it has slots for one
-- > any                 none            a new leg, if it has slots for one
-- >
-- > Any look at a source settles what was half seen there: if it has the same identity, and
-- > the slot is on the same way still, a slot that was seen at both is certain, and another
-- > stays half seen; else the slot is as if it had not been seen.
--
-- A new leg is for the slots that are not certain and that the node owns, or that are on
-- their way to it and half seen where they come from. Keys of other slots are not told.
--
-- A slot that moves key by key is split between two nodes. Keys go one way: what the leg at
-- the source did not see had gone to the target before, so a leg at the target that begins
-- later sees it, unless the slot came back meanwhile: so the source is looked at once more.
--
-- Nothing is undone when a node does not answer: its leg waits for a look that shows
-- whether it goes on. If another node owns the slots meanwhile, they get a leg there.
--
-- One history is not noticed, since no server tells of it: keys that are moved back against
-- the direction of a slot's move, between two looks.
module Redis.Internal.Routing.Walk
  ( KeysWalk (..),
    Half (..),
    Leg (..),
    newKeysWalk,
    walkIsOver,
    uncertainSlots,

    -- * Steps
    Event (..),
    Errand (..),
    Look (..),
    step,

    -- * Keys
    Telling (..),
    tellingOf,
  )
where

import Data.ByteString (ByteString)
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.IntSet (IntSet)
import Data.IntSet qualified as IntSet
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Redis.Error (Endpoint)
import Redis.Internal.Protocol.Slot (slotCount)

-- | What a node says of itself, at one moment.
data Look = Look
  { -- | The node's name in its cluster; empty for a server alone.
    lookNode :: ByteString,
    -- | Equal in two looks if nothing came between that makes a leg worthless.
    lookIdentity :: ByteString,
    -- | The slots that it owns as a primary.
    lookOwned :: IntSet,
    -- | Of these, those on their way to another node, and its name.
    lookLeaving :: IntMap ByteString,
    -- | Slots on their way here, and the name of the node that they come from.
    lookComing :: IntMap ByteString
  }
  deriving stock (Eq, Show)

-- | A walk over one node's keys.
data Leg = Leg
  { legIdentity :: ByteString,
    -- | Where it goes on; 'Nothing' at its end, when a look is to follow.
    legCursor :: Maybe ByteString,
    -- | The slots that the node owned when the leg began, and that it is for.
    legOwned :: IntSet,
    -- | Of these, those that were leaving.
    legLeaving :: IntSet,
    -- | Slots that were on their way here and half seen where they come from, each
    -- with its stamp.
    legComing :: IntMap Int
  }
  deriving stock (Eq, Show)

-- | How far a walk has come.
data KeysWalk = KeysWalk
  { walkCertain :: IntSet,
    walkHalf :: IntMap Half,
    -- | How many legs have seen slots by half.
    walkHalves :: Int,
    walkLegs :: Map Endpoint Leg
  }
  deriving stock (Eq, Show)

-- | A slot that a leg has seen at its source while it left.
data Half = Half
  { halfSource :: ByteString,
    halfTarget :: ByteString,
    -- | The source's.
    halfIdentity :: ByteString,
    -- | Tells this time from others.
    halfStamp :: Int,
    -- | Whether a leg at the target has seen the rest, as far as the target can tell.
    halfBoth :: Bool
  }
  deriving stock (Eq, Show)

-- | At its beginning.
newKeysWalk :: KeysWalk
newKeysWalk = KeysWalk {walkCertain = IntSet.empty, walkHalf = IntMap.empty, walkHalves = 0, walkLegs = Map.empty}

-- | Whether all slots are certain.
walkIsOver :: KeysWalk -> Bool
walkIsOver walk = IntSet.size (walkCertain walk) == slotCount

-- | The slots that are not certain. \(O(slots)\).
uncertainSlots :: KeysWalk -> IntSet
uncertainSlots walk = IntSet.difference every (walkCertain walk)

every :: IntSet
every = IntSet.fromDistinctAscList [0 .. slotCount - 1]

-- | What a driver tells.
data Event
  = -- | What this node says of itself. It was asked after all pages of its leg that
    -- were told before, and looks are told in the order in which they were asked for.
    Saw Endpoint Look
  | -- | A page of the leg there was seen, and where the next begins, if there is one.
    Turned Endpoint (Maybe ByteString)
  deriving stock (Eq, Show)

-- | What the node of the event is to be asked next.
data Errand
  = -- | The page at this cursor.
    AskPage ByteString
  | -- | A look.
    AskLook
  deriving stock (Eq, Show)

-- | 'Nothing' if there is nothing to do at that node, as things stand.
-- \(O(slots)\) for a look, \(O(\log n)\) in nodes for a page.
step :: Event -> KeysWalk -> (KeysWalk, Maybe Errand)
step event walk = case event of
  Turned endpoint cursor -> case Map.lookup endpoint (walkLegs walk) of
    Nothing -> (walk, Nothing)
    Just leg -> (withLeg endpoint leg {legCursor = cursor} walk, Just (maybe AskLook AskPage cursor))
  Saw endpoint look -> saw endpoint look (settled look walk)

saw :: Endpoint -> Look -> KeysWalk -> (KeysWalk, Maybe Errand)
saw endpoint look walk = case Map.lookup endpoint (walkLegs walk) of
  Just leg
    | legIdentity leg == lookIdentity look,
      serves walk leg -> case legCursor leg of
      Just cursor -> (walk, Just (AskPage cursor))
      Nothing -> begin endpoint look (conclude look leg walk)
  _ -> begin endpoint look walk

-- What was half seen at this node, now that it is looked at again.
settled :: Look -> KeysWalk -> KeysWalk
settled look walk =
  walk
    { walkCertain = walkCertain walk <> IntMap.keysSet (IntMap.filter halfBoth standing),
      walkHalf = IntMap.filter (not . halfBoth) standing <> elsewhere
    }
  where
    (here, elsewhere) = IntMap.partition ((== lookNode look) . halfSource) (walkHalf walk)
    standing = IntMap.filterWithKey stands here
    stands slot half = halfIdentity half == lookIdentity look && IntMap.lookup slot (lookLeaving look) == Just (halfTarget half)

withLeg :: Endpoint -> Leg -> KeysWalk -> KeysWalk
withLeg endpoint leg walk = walk {walkLegs = Map.insert endpoint leg (walkLegs walk)}

-- Whether the leg is for a slot that no other has made certain meanwhile.
serves :: KeysWalk -> Leg -> Bool
serves walk leg = not (legSlots leg `IntSet.isSubsetOf` walkCertain walk)

legSlots :: Leg -> IntSet
legSlots leg = legOwned leg <> IntMap.keysSet (legComing leg)

-- What a leg at its end has shown, by a look that shows the same identity.
conclude :: Look -> Leg -> KeysWalk -> KeysWalk
conclude look leg walk =
  walk
    { walkCertain = certain,
      walkHalf = IntMap.withoutKeys (IntMap.map half leavingSince <> IntMap.mapWithKey arrived (walkHalf walk)) certain,
      walkHalves = stamp
    }
  where
    certain = walkCertain walk <> atRest
    owned = IntSet.intersection (legOwned leg) (lookOwned look)
    leavingSince = IntMap.restrictKeys (lookLeaving look) owned
    -- One that was leaving when the leg began, and rests, was taken back: with keys, perhaps.
    atRest = owned `IntSet.difference` legLeaving leg `IntSet.difference` IntMap.keysSet leavingSince
    stamp = walkHalves walk + 1
    half target = Half {halfSource = lookNode look, halfTarget = target, halfIdentity = lookIdentity look, halfStamp = stamp, halfBoth = False}
    arrived slot known
      | IntMap.lookup slot (legComing leg) == Just (halfStamp known), IntMap.lookup slot (lookComing look) == Just (halfSource known) = known {halfBoth = True}
      | otherwise = known

-- A new leg there, if the node has slots for one; an old one is dropped.
begin :: Endpoint -> Look -> KeysWalk -> (KeysWalk, Maybe Errand)
begin endpoint look walk
  | IntSet.null owned && IntMap.null coming = (walk {walkLegs = Map.delete endpoint (walkLegs walk)}, Nothing)
  | otherwise = (withLeg endpoint leg walk, Just (AskPage beginning))
  where
    leg =
      Leg
        { legIdentity = lookIdentity look,
          legCursor = Just beginning,
          legOwned = owned,
          legLeaving = IntSet.intersection (IntMap.keysSet (lookLeaving look)) owned,
          legComing = coming
        }
    beginning = "0"
    halfHere = IntMap.keysSet (IntMap.filter ((== lookNode look) . halfSource) (walkHalf walk))
    owned = lookOwned look `IntSet.difference` walkCertain walk `IntSet.difference` halfHere
    coming = IntMap.map halfStamp (IntMap.filterWithKey halfThere (walkHalf walk))
    halfThere slot half =
      halfTarget half == lookNode look && not (halfBoth half) && IntMap.lookup slot (lookComing look) == Just (halfSource half)

-- | Of which slots keys are told.
data Telling
  = TellAll
  | TellOf IntSet
  deriving stock (Eq, Show)

-- | At this node. \(O(slots)\).
tellingOf :: Endpoint -> KeysWalk -> Telling
tellingOf endpoint walk = case Map.lookup endpoint (walkLegs walk) of
  Nothing -> TellOf IntSet.empty
  Just leg
    | IntSet.size (legSlots leg) == slotCount -> TellAll
    | otherwise -> TellOf (legSlots leg)
