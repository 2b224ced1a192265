-- | A walk over all keys of a server or a cluster, as a state and a step.
--
-- A cursor means something to one process only, and slots move between nodes during a walk.
-- So the walk counts slots: a slot is /certain/ when everything that was in it throughout the
-- walk has been seen. The walk is over when all slots are certain.
--
-- A /leg/ walks the keys of one node from cursor 0 to its end. Before and after the leg the
-- node is asked for its identity and its slots: a /look/. Both looks must show the same
-- identity: the same process, a primary, in the same epoch of the cluster. Then the node did
-- not restart (with other cursors) and was not demoted in between, and no slot that it owns
-- in both looks was away in between, because taking a slot back gives it a new epoch.
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
-- their way to it and half seen at their source. The caller does not get keys of other slots.
--
-- A slot that moves key by key is split between two nodes. Keys go one way: a key that the leg
-- at the source did not see had gone to the target before, so a leg at the target that begins
-- later sees it, unless the slot came back meanwhile. To exclude that, the source is looked at
-- once more.
--
-- Nothing is undone when a node does not answer: its leg waits for a look that shows whether
-- it can go on. If another node owns the slots meanwhile, they get a leg there.
--
-- One case is not noticed, because no server reports it: keys that are moved back, against the
-- direction of a slot's move, between two looks.
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

-- | A node's description of itself at one moment.
data Look = Look
  { -- | The node's name in its cluster; empty for a standalone server.
    lookNode :: ByteString,
    -- | Equal in two looks if nothing happened in between that makes a leg worthless.
    lookIdentity :: ByteString,
    -- | The slots that it owns as a primary.
    lookOwned :: IntSet,
    -- | The owned slots that are on their way to another node, and that node's name.
    lookLeaving :: IntMap ByteString,
    -- | The slots that are on their way here, and the name of the node that they come from.
    lookComing :: IntMap ByteString
  }
  deriving stock (Eq, Show)

-- | A walk over one node's keys.
data Leg = Leg
  { legIdentity :: ByteString,
    -- | The cursor at which it goes on; 'Nothing' at its end, when a look must follow.
    legCursor :: Maybe ByteString,
    -- | The slots that the node owned when the leg began, and that the leg is for.
    legOwned :: IntSet,
    -- | The slots among these that were leaving when the leg began.
    legLeaving :: IntSet,
    -- | The slots that were on their way here and half seen at their source, each with its
    -- stamp.
    legComing :: IntMap Int
  }
  deriving stock (Eq, Show)

-- | The progress of a walk.
data KeysWalk = KeysWalk
  { walkCertain :: IntSet,
    walkHalf :: IntMap Half,
    -- | How many legs have ended, each of which may have half seen slots.
    walkHalves :: Int,
    walkLegs :: Map Endpoint Leg
  }
  deriving stock (Eq, Show)

-- | A slot that a leg has seen at its source while the slot was leaving.
data Half = Half
  { halfSource :: ByteString,
    halfTarget :: ByteString,
    -- | The identity of the source.
    halfIdentity :: ByteString,
    -- | Tells this half from others of the same slot.
    halfStamp :: Int,
    -- | Whether a leg at the target has seen the rest, as far as the target can tell.
    halfBoth :: Bool
  }
  deriving stock (Eq, Show)

-- | A walk at its beginning.
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

-- | An event that a driver reports.
data Event
  = -- | A look at the node. It was requested after all pages of the node's leg that were
    -- reported before. Looks are reported in the order in which they were requested.
    Saw Endpoint Look
  | -- | A page of the leg there was read, and where the next page begins, if there is one.
    Turned Endpoint (Maybe ByteString)
  deriving stock (Eq, Show)

-- | The next request to the node of the event.
data Errand
  = -- | Request the page at this cursor.
    AskPage ByteString
  | -- | Request a look.
    AskLook
  deriving stock (Eq, Show)

-- | The walk after an event, and the next request. 'Nothing' if there is nothing to do at that
-- node as things stand. \(O(slots)\) for a look, \(O(\log n)\) in nodes for a page.
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

-- Settles the slots that were half seen at this node, which is looked at again.
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

-- Whether the leg is for a slot that no other leg has made certain meanwhile.
serves :: KeysWalk -> Leg -> Bool
serves walk leg = not (legSlots leg `IntSet.isSubsetOf` walkCertain walk)

legSlots :: Leg -> IntSet
legSlots leg = legOwned leg <> IntMap.keysSet (legComing leg)

-- Ends a leg, given a look that shows the same identity.
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
    -- A slot that was leaving when the leg began, and rests now, was taken back: with keys, perhaps.
    atRest = owned `IntSet.difference` legLeaving leg `IntSet.difference` IntMap.keysSet leavingSince
    stamp = walkHalves walk + 1
    half target = Half {halfSource = lookNode look, halfTarget = target, halfIdentity = lookIdentity look, halfStamp = stamp, halfBoth = False}
    arrived slot known
      | IntMap.lookup slot (legComing leg) == Just (halfStamp known), IntMap.lookup slot (lookComing look) == Just (halfSource known) = known {halfBoth = True}
      | otherwise = known

-- Begins a new leg there, if the node has slots for one; drops an old leg.
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

-- | The slots whose keys the caller gets.
data Telling
  = TellAll
  | TellOf IntSet
  deriving stock (Eq, Show)

-- | The slots whose keys the caller gets while this node is walked. \(O(slots)\).
tellingOf :: Endpoint -> KeysWalk -> Telling
tellingOf endpoint walk = case Map.lookup endpoint (walkLegs walk) of
  Nothing -> TellOf IntSet.empty
  Just leg
    | IntSet.size (legSlots leg) == slotCount -> TellAll
    | otherwise -> TellOf (legSlots leg)
