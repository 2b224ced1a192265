-- | What a server says of the others, and which of several views is believed.
--
-- In a cluster the one that most hold; of those with as many votes the one of the
-- highest epoch, then the one that covers most, then the latest.
--
-- Of sentinels the one of the highest epoch: a fail-over raises it, and whoever holds a
-- lower one has not heard yet, be they ever so many. Only when most of those asked hold
-- one that is lower than what was believed before is that a new beginning: somebody has
-- had the sentinels forget.
--
-- Of a group without sentinels nobody has the last word. A primary is trusted if it is
-- the one in use, if its data go on from those of the one in use, or if most of those
-- asked lead to it. Of several the trusted come first, then those to whom more lead, then
-- those from whose data no other's go on, then the one in use. So a primary that
-- comes back after a replica was promoted takes nothing back, and a stranger that
-- answers fast does not win over a primary that is slow.
module Redis.Internal.Routing.View
  ( View (..),
    GroupView (..),
    groupMap,

    -- * Choosing
    Rule (..),
    Believed (..),
    nothingBelieved,
    believedFrom,
    chooseView,
    mostAgree,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.List qualified as List
import Data.Maybe (listToMaybe, mapMaybe)
import Data.Ord (Down (Down))
import Data.Set qualified as Set
import Redis.Error (Endpoint)
import Redis.Internal.Protocol.Slot (allSlots)
import Redis.Internal.Routing.SlotMap

-- | What a server says.
data View = View
  { viewMap :: SlotMap,
    -- | As that server knows it, if it was asked: the config epoch of the cluster, or
    -- of the primary that a sentinel names.
    viewEpoch :: Maybe Int,
    -- | 'Nothing' of a cluster.
    viewGroup :: Maybe GroupView
  }
  deriving stock (Eq, Show)

-- | What a view of a primary and its replicas has besides.
data GroupView = GroupView
  { viewPrimary :: Endpoint,
    -- | Who was asked: one server may be asked by two addresses.
    viewAsked :: ByteString,
    -- | The primary, whatever its address.
    viewRun :: ByteString,
    -- | Of its data.
    viewHistory :: ByteString,
    -- | The history that these data go on from.
    viewHistoryBefore :: ByteString,
    -- | The sentinels, the one that was asked among them.
    viewSentinels :: [Endpoint]
  }
  deriving stock (Eq, Show)

-- | One shard that serves every slot.
groupMap :: Endpoint -> [Endpoint] -> SlotMap
groupMap primary replicas =
  slotMapFromClaims
    [ Claim {claimRanges = [(first, final)], claimPrimary = Just primary, claimReplicas = replicas}
      | Just first <- [listToMaybe allSlots],
        Just final <- [listToMaybe (reverse allSlots)]
    ]

-- | Who is asked, and so what counts.
data Rule
  = -- | Nodes of a cluster.
    OfCluster
  | -- | Servers of a group.
    OfMembers
  | OfSentinels
  deriving stock (Eq, Show, Enum, Bounded)

-- | What was believed before.
data Believed = Believed
  { believedEpoch :: Maybe Int,
    believedPrimary :: Maybe Endpoint,
    believedHistory :: ByteString
  }
  deriving stock (Eq, Show)

-- | Nobody has been asked yet.
nothingBelieved :: Believed
nothingBelieved = Believed {believedEpoch = Nothing, believedPrimary = Nothing, believedHistory = ""}

-- | What is believed with a view.
believedFrom :: View -> Believed
believedFrom View {viewEpoch, viewGroup} =
  Believed
    { believedEpoch = viewEpoch,
      believedPrimary = viewPrimary <$> viewGroup,
      believedHistory = maybe "" viewHistory viewGroup
    }

-- | The view to believe, given how many were asked and what they said, the latest
-- first. 'Nothing' if none can be.
chooseView :: Rule -> Believed -> Int -> [View] -> Maybe View
chooseView rule believed asked views = case rule of
  OfCluster -> best byVotes (alike views)
  OfSentinels -> best byEpoch (map newest (filter isNotOlder (alike views)))
  OfMembers -> best byTrust (alike views)
  where
    -- The sort is stable, so that the latest stays first among equals.
    best :: Ord rank => ([View] -> rank) -> [[View]] -> Maybe View
    best rank groups = listToMaybe (List.sortOn rank groups) >>= spelledAsBefore

    -- A server may have two names, and the one in use leads to connections.
    spelledAsBefore like = listToMaybe ([view | view <- like, Just group <- [viewGroup view], Just (viewPrimary group) == believedPrimary believed] <> like)

    byVotes like = (Down (length like), Down (epochOf like), Down (maximum (0 : map (slotMapCovered . viewMap) (take 1 like))))

    byEpoch like = (Down (epochOf like), Down (votes like), not (isInUse like))
    -- What is believed is what the one who has heard most says.
    newest like = [view {viewEpoch = epochOf like} | view <- like]
    isNotOlder like = epochOf like >= believedEpoch believed || isMost like

    byTrust like = (not (isTrusted like), Down (votes like), isSucceeded like, not (isInUse like))
    isTrusted like = believed == nothingBelieved || isInUse like || isMost like || any continues (mapMaybe viewGroup like)
    continues group =
      isHistory (believedHistory believed)
        && believedHistory believed `elem` [viewHistory group, viewHistoryBefore group]
    isSucceeded like = or [isHistory (viewHistory group) && viewHistory group `elem` successors | group <- take 1 (mapMaybe viewGroup like)]
    successors = [viewHistoryBefore group | group <- mapMaybe viewGroup views, viewHistoryBefore group /= viewHistory group]
    isInUse like = or [Just (viewPrimary group) == believedPrimary believed | group <- mapMaybe viewGroup like]

    isMost like = 2 * votes like > asked
    epochOf like = maximum (Nothing : map viewEpoch like)

-- | How many servers say so.
votes :: [View] -> Int
votes = Set.size . Set.fromList . map viewAsked . mapMaybe viewGroup

-- | A name, and not the noughts of a server that goes on from nobody's data.
isHistory :: ByteString -> Bool
isHistory = ByteString.any (/= 48)

-- | Whether most of those asked hold one view, so that the others need not be waited
-- for. A sentinel that has heard more than all others may be the last to answer.
mostAgree :: Rule -> Int -> [View] -> Bool
mostAgree rule asked views = case rule of
  OfCluster -> any ((> asked) . (* 2) . length) (alike views)
  OfMembers -> any ((> asked) . (* 2) . votes) (alike views)
  OfSentinels -> False

-- | Those together that say the same.
alike :: [View] -> [[View]]
alike = List.foldl' place []
  where
    place groups view = case List.break (isLike view) groups of
      (others, like : rest) -> others <> ((like <> [view]) : rest)
      (others, []) -> others <> [[view]]
    isLike view = any (sameView view) . take 1
    sameView a b = case (viewGroup a, viewGroup b) of
      (Just groupA, Just groupB) -> viewRun groupA == viewRun groupB
      _ -> sameOwners (viewMap a) (viewMap b)
