-- | A server's view of all servers, and the choice of the view that is believed.
--
-- In a cluster, the view that most nodes hold is believed. Of views with equally many votes,
-- the highest epoch counts, then the most slots covered, then the latest answer.
--
-- Of sentinels' views, the one with the highest epoch is believed: a fail-over raises the
-- epoch, and sentinels with a lower one have not heard of it yet, however many they are. If
-- most of the sentinels asked hold an epoch that is lower than the one believed before, that
-- is a new beginning: somebody has made the sentinels forget.
--
-- In a group without sentinels, no server has the last word. A primary is trusted if it is
-- the one in use, if its data continue the data of the one in use, or if most of the servers
-- asked lead to it. Trusted primaries come first, then those that more servers lead to, then
-- those whose data no other primary continues, then the one in use. So a primary that comes
-- back after a replica was promoted does not take commands back, and a stranger that answers
-- fast does not win over a primary that is slow.
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

-- | A server's view of all servers.
data View = View
  { viewMap :: SlotMap,
    -- | The epoch that the server knows, if it was asked: the current epoch of the cluster, or
    -- the config epoch of the primary that a sentinel names.
    viewEpoch :: Maybe Int,
    -- | 'Nothing' for a cluster.
    viewGroup :: Maybe GroupView
  }
  deriving stock (Eq, Show)

-- | The further parts of a view of a primary and its replicas.
data GroupView = GroupView
  { viewPrimary :: Endpoint,
    -- | Identifies the server that was asked: one server may be asked by two addresses.
    viewAsked :: ByteString,
    -- | Identifies the primary, whatever its address.
    viewRun :: ByteString,
    -- | The history of the primary's data.
    viewHistory :: ByteString,
    -- | The history that these data continue.
    viewHistoryBefore :: ByteString,
    -- | The sentinels, the one that was asked among them.
    viewSentinels :: [Endpoint]
  }
  deriving stock (Eq, Show)

-- | The map of a group: one shard that serves every slot.
groupMap :: Endpoint -> [Endpoint] -> SlotMap
groupMap primary replicas =
  slotMapFromClaims
    [ Claim {claimRanges = [(first, final)], claimPrimary = Just primary, claimReplicas = replicas}
      | Just first <- [listToMaybe allSlots],
        Just final <- [listToMaybe (reverse allSlots)]
    ]

-- | The kind of servers that are asked, which decides how a view is chosen.
data Rule
  = -- | Nodes of a cluster.
    OfCluster
  | -- | Servers of a group.
    OfMembers
  | OfSentinels
  deriving stock (Eq, Show, Enum, Bounded)

-- | The parts of the last believed view that later choices depend on.
data Believed = Believed
  { believedEpoch :: Maybe Int,
    believedPrimary :: Maybe Endpoint,
    believedHistory :: ByteString
  }
  deriving stock (Eq, Show)

-- | The state before any view was believed.
nothingBelieved :: Believed
nothingBelieved = Believed {believedEpoch = Nothing, believedPrimary = Nothing, believedHistory = ""}

-- | The state after this view was believed.
believedFrom :: View -> Believed
believedFrom View {viewEpoch, viewGroup} =
  Believed
    { believedEpoch = viewEpoch,
      believedPrimary = viewPrimary <$> viewGroup,
      believedHistory = maybe "" viewHistory viewGroup
    }

-- | The view to believe, given how many servers were asked, and their views, the latest
-- first. 'Nothing' if no view can be believed.
chooseView :: Rule -> Believed -> Int -> [View] -> Maybe View
chooseView rule believed asked views = case rule of
  OfCluster -> best byVotes (alike views)
  OfSentinels -> best byEpoch (map newest (filter isNotOlder (alike views)))
  OfMembers -> best byTrust (alike views)
  where
    -- The sort is stable, so that the latest stays first among equals.
    best :: Ord rank => ([View] -> rank) -> [[View]] -> Maybe View
    best rank groups = listToMaybe (List.sortOn rank groups) >>= spelledAsBefore

    -- Prefers the address in use: a server may have two, and there are connections to that one.
    spelledAsBefore like = listToMaybe ([view | view <- like, Just group <- [viewGroup view], Just (viewPrimary group) == believedPrimary believed] <> like)

    byVotes like = (Down (length like), Down (epochOf like), Down (maximum (0 : map (slotMapCovered . viewMap) (take 1 like))))

    byEpoch like = (Down (epochOf like), Down (votes like), not (isInUse like))
    -- Equal views get the highest epoch among them.
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

-- | How many different servers hold these views.
votes :: [View] -> Int
votes = Set.size . Set.fromList . map viewAsked . mapMaybe viewGroup

-- | Whether it names a history. A server whose data continue no other's sends only zeros.
isHistory :: ByteString -> Bool
isHistory = ByteString.any (/= 48)

-- | Whether most of those asked hold one view, so that the others need not be waited for.
-- Never for sentinels: the one that has heard of the latest fail-over may answer last.
mostAgree :: Rule -> Int -> [View] -> Bool
mostAgree rule asked views = case rule of
  OfCluster -> any ((> asked) . (* 2) . length) (alike views)
  OfMembers -> any ((> asked) . (* 2) . votes) (alike views)
  OfSentinels -> False

-- | Groups views that say the same.
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
