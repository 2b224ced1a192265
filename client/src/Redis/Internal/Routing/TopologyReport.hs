-- | A server's report of all servers, and the choice of the report that is accepted.
--
-- In a cluster, the report that most nodes hold is accepted. Of reports with equally many votes,
-- the highest epoch counts, then the most slots covered, then the latest answer.
--
-- Of sentinels' reports, the one with the highest epoch is accepted: a fail-over raises the
-- epoch, and sentinels with a lower one have not heard of it yet, however many they are. If
-- most of the sentinels asked hold an epoch that is lower than the one accepted before, that
-- is a new beginning: somebody has made the sentinels forget.
--
-- In a group without sentinels, no server has the last word. A primary is trusted if it is
-- the one in use, if its data continue the data of the one in use, or if most of the servers
-- asked lead to it. Trusted primaries come first, then those that more servers lead to, then
-- those whose data no other primary continues, then the one in use. So a primary that comes
-- back after a replica was promoted does not take commands back, and a stranger that answers
-- fast does not win over a primary that is slow.
module Redis.Internal.Routing.TopologyReport
  ( TopologyReport (..),
    GroupReport (..),
    groupMap,

    -- * Choosing
    Rule (..),
    Accepted (..),
    nothingAccepted,
    acceptedFrom,
    chooseReport,
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
import Redis.Internal.Protocol.Slot (slotCount, slotFromInt)
import Redis.Internal.Routing.SlotMap

-- | A server's report of all servers.
data TopologyReport = TopologyReport
  { reportMap :: SlotMap,
    -- | The epoch that the server knows, if it was asked: the current epoch of the cluster, or
    -- the config epoch of the primary that a sentinel names.
    reportEpoch :: Maybe Int,
    -- | 'Nothing' for a cluster.
    reportGroup :: Maybe GroupReport
  }
  deriving stock (Eq, Show)

-- | The further parts of a report of a primary and its replicas.
data GroupReport = GroupReport
  { reportPrimary :: Endpoint,
    -- | Identifies the server that was asked: one server may be asked by two addresses.
    reportAsked :: ByteString,
    -- | Identifies the primary, whatever its address.
    reportRun :: ByteString,
    -- | The history of the primary's data.
    reportHistory :: ByteString,
    -- | The history that these data continue.
    reportHistoryBefore :: ByteString,
    -- | The sentinels, the one that was asked among them.
    reportSentinels :: [Endpoint]
  }
  deriving stock (Eq, Show)

-- | The map of a group: one shard that serves every slot.
groupMap :: Endpoint -> [Endpoint] -> SlotMap
groupMap primary replicas =
  slotMapFromClaims
    [ Claim {claimRanges = [(first, final)], claimPrimary = Just primary, claimReplicas = replicas}
      | Just first <- [slotFromInt 0],
        Just final <- [slotFromInt (slotCount - 1)]
    ]

-- | The kind of servers that are asked, which decides how a report is chosen.
data Rule
  = -- | Nodes of a cluster.
    OfCluster
  | -- | Servers of a group.
    OfMembers
  | OfSentinels
  deriving stock (Eq, Show, Enum, Bounded)

-- | The parts of the last accepted report that later choices depend on.
data Accepted = Accepted
  { acceptedEpoch :: Maybe Int,
    acceptedPrimary :: Maybe Endpoint,
    acceptedHistory :: ByteString
  }
  deriving stock (Eq, Show)

-- | The state before any report was accepted.
nothingAccepted :: Accepted
nothingAccepted = Accepted {acceptedEpoch = Nothing, acceptedPrimary = Nothing, acceptedHistory = ""}

-- | The state after this report was accepted.
acceptedFrom :: TopologyReport -> Accepted
acceptedFrom TopologyReport {reportEpoch, reportGroup} =
  Accepted
    { acceptedEpoch = reportEpoch,
      acceptedPrimary = reportPrimary <$> reportGroup,
      acceptedHistory = maybe "" reportHistory reportGroup
    }

-- | The report to accept, given how many servers were asked, and their reports, the latest
-- first. 'Nothing' if no report can be accepted.
chooseReport :: Rule -> Accepted -> Int -> [TopologyReport] -> Maybe TopologyReport
chooseReport rule accepted asked reports = case rule of
  OfCluster -> best byVotes (alike reports)
  OfSentinels -> best byEpoch (map newest (filter isNotOlder (alike reports)))
  OfMembers -> best byTrust (alike reports)
  where
    -- The sort is stable, so that the latest stays first among equals.
    best :: Ord rank => ([TopologyReport] -> rank) -> [[TopologyReport]] -> Maybe TopologyReport
    best rank groups = listToMaybe (List.sortOn rank groups) >>= spelledAsBefore

    -- Prefers the address in use: a server may have two, and there are connections to that one.
    spelledAsBefore like = listToMaybe ([report | report <- like, Just group <- [reportGroup report], Just (reportPrimary group) == acceptedPrimary accepted] <> like)

    byVotes like = (Down (length like), Down (epochOf like), Down (maximum (0 : map (slotMapCovered . reportMap) (take 1 like))))

    byEpoch like = (Down (epochOf like), Down (votes like), not (isInUse like))
    -- Equal reports get the highest epoch among them.
    newest like = [report {reportEpoch = epochOf like} | report <- like]
    isNotOlder like = epochOf like >= acceptedEpoch accepted || isMost like

    byTrust like = (not (isTrusted like), Down (votes like), isSucceeded like, not (isInUse like))
    isTrusted like = accepted == nothingAccepted || isInUse like || isMost like || any continues (mapMaybe reportGroup like)
    continues group =
      isHistory (acceptedHistory accepted)
        && acceptedHistory accepted `elem` [reportHistory group, reportHistoryBefore group]
    isSucceeded like = or [isHistory (reportHistory group) && reportHistory group `elem` successors | group <- take 1 (mapMaybe reportGroup like)]
    successors = [reportHistoryBefore group | group <- mapMaybe reportGroup reports, reportHistoryBefore group /= reportHistory group]
    isInUse like = or [Just (reportPrimary group) == acceptedPrimary accepted | group <- mapMaybe reportGroup like]

    isMost like = 2 * votes like > asked
    epochOf like = maximum (Nothing : map reportEpoch like)

-- | How many different servers hold these reports.
votes :: [TopologyReport] -> Int
votes = Set.size . Set.fromList . map reportAsked . mapMaybe reportGroup

-- | Whether it names a history. A server whose data continue no other's sends only zeros.
isHistory :: ByteString -> Bool
isHistory = ByteString.any (/= 48)

-- | Whether most of those asked hold one report, so that the others need not be waited for.
-- Never for sentinels: the one that has heard of the latest fail-over may answer last.
mostAgree :: Rule -> Int -> [TopologyReport] -> Bool
mostAgree rule asked reports = case rule of
  OfCluster -> any ((> asked) . (* 2) . length) (alike reports)
  OfMembers -> any ((> asked) . (* 2) . votes) (alike reports)
  OfSentinels -> False

-- | Groups reports that say the same.
alike :: [TopologyReport] -> [[TopologyReport]]
alike = List.foldl' place []
  where
    place groups report = case List.break (isLike report) groups of
      (others, like : rest) -> others <> ((like <> [report]) : rest)
      (others, []) -> others <> [[report]]
    isLike report = any (sameReport report) . take 1
    sameReport a b = case (reportGroup a, reportGroup b) of
      (Just groupA, Just groupB) -> reportRun groupA == reportRun groupB
      _ -> sameOwners (reportMap a) (reportMap b)
