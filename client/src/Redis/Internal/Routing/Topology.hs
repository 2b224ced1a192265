-- | Decides when to ask for a cluster's map, or for the primary of a group, whom to ask, and
-- which answer to accept.
--
-- A group is a map of one shard that serves every slot.
--
-- A driver thread hands an event and the time to 'step', and carries out the actions. Commands never
-- wait for it: they go by the last published map, and by the redirects they get.
--
-- Guarantees:
--
-- * At most one refresh is in flight, and two never start closer together than
--   the throttle. A trigger that comes while a refresh is in flight leads to another one after it,
--   since the answers may be older than the trigger. Only a sentinel's announcement of a switch ends
--   the refresh: that one may wait for a primary that hangs. The next one begins at once.
-- * A MOVED changes its one slot at once. Answers gathered before it, or so
--   soon after it that the node asked may not have heard of the move, do not undo it. The
--   same holds for a switch that sentinels have announced, or that this client has found.
-- * In a cluster, the configured seeds, which may have left it long ago, are asked only if no known
--   node answers.
--
-- In a cluster, the report that most nodes hold is accepted. Of reports with equally many votes, the
-- highest epoch counts, then the most slots covered, then the latest answer.
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
module Redis.Internal.Routing.Topology
  ( -- * Settings
    Settings (..),
    settingsFromConfig,

    -- * State
    State (stateMap),
    newState,
    refreshInFlight,
    nextWake,

    -- * Steps
    Seconds,
    Event (..),
    Trigger (..),
    Action (..),
    RefreshId,
    step,
    fixedStep,

    -- * Reports
    TopologyReport (..),
    GroupReport (..),
    groupMap,

    -- * Choosing a report
    Rule (..),
    Accepted (..),
    nothingAccepted,
    acceptedFrom,
    chooseReport,

    -- * Failures that last
    isPermanent,
    isPermanentCause,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust, listToMaybe, mapMaybe)
import Data.Ord (Down (Down))
import Data.Set (Set)
import Data.Set qualified as Set
import Data.Tuple (swap)
import Redis.Duration (seconds)
import Redis.Error
import Redis.Internal.Command (unlike)
import Redis.Internal.Config (Backoff, Config (..), delayFor)
import Redis.Internal.Config qualified as Config
import Redis.Internal.Network.Handshake (passes)
import Redis.Internal.Protocol.Slot (Slot, slotCount, slotFromInt)
import Redis.Internal.Routing.SlotMap
import System.Random (StdGen, uniformR)

-- | A point in time, or a span of it, on a clock that never goes back.
type Seconds = Double

data Settings = Settings
  { -- | The kind of servers that are asked.
    settingsRule :: Rule,
    -- | Asked at the start, and when no other node answers; in a group always.
    settingsSeeds :: NonEmpty Endpoint,
    -- | The time between periodic refreshes; jittered by a tenth.
    settingsInterval :: Seconds,
    -- | The least time between the starts of two refreshes. Stretched by up to a
    -- half at random, and in proportion to the size of large clusters.
    settingsThrottle :: Seconds,
    -- | The delays after refreshes that failed.
    settingsBackoff :: Backoff,
    -- | How long a node has for its answer.
    settingsAnswerWithin :: Seconds,
    -- | How long to wait for more answers once there is one.
    settingsGather :: Seconds,
    -- | How many nodes to ask at first.
    settingsSample :: Int,
    -- | How long a MOVED, or a switch of sentinels, outranks answers to later questions: nodes
    -- and sentinels learn of it by gossip.
    settingsMovedGrace :: Seconds
  }
  deriving stock (Eq, Show)

settingsFromConfig :: Config -> NonEmpty Endpoint -> Settings
settingsFromConfig config seeds =
  Settings
    { settingsRule = case configTopology config of
        Config.Sentinels _ _ -> OfSentinels
        Config.Group _ -> OfMembers
        _ -> OfCluster,
      settingsSeeds = seeds,
      settingsInterval = configRefreshInterval config,
      settingsThrottle = configRefreshThrottle config,
      settingsBackoff = configBackoff config,
      settingsAnswerWithin = min 2 (configConnectTimeout config),
      settingsGather = 0.1,
      settingsSample = 3,
      settingsMovedGrace = 2
    }

-- | An observation that may make a refresh necessary.
data Trigger
  = -- | The slot is served by this node, whether it was known or not.
    LearntMoved Slot Endpoint
  | -- | The slot is served by a node whose address the server does not know.
    MovedToUnknown Slot
  | -- | No node is known that serves the slot.
    SawUncovered Slot
  | -- | No node is known at all.
    SawNobody
  | -- | The node refused connections, or a connection to it was lost.
    LostNode Endpoint
  | -- | The node does not answer any more, though its connections stand
    -- ("Redis.Internal.Routing.Nodes").
    SilentNode Endpoint
  | -- | The node was taken for a primary, and refused a write.
    SawReadOnly Endpoint
  | SawClusterDown
  | SawMasterDown Endpoint
  | -- | The node was taken for a primary, and is still loading its data.
    SawLoading Endpoint
  | -- | The node was taken for a replica of a primary whose slots it does not copy.
    SawStrayReplica Endpoint
  | -- | The node ended a subscription to a shard channel, as a node does that no longer
    -- serves the channel's slot.
    EndedShardChannel Endpoint
  | -- | The first node says that the second is its primary.
    LearntRedirect Endpoint Endpoint
  | -- | A sentinel has announced that the second node is the primary instead of the first.
    SentinelsSwitched Endpoint Endpoint
  | -- | A sentinel has announced something else, or may have while this client was not listening.
    SentinelsStirred
  deriving stock (Eq, Ord, Show)

-- | Tells the answers of one refresh from those of an earlier one.
type RefreshId = Int

data Event
  = Triggered Trigger
  | -- | The answer of a node that was asked: its report, or why there is none.
    Answered RefreshId Endpoint (Either Error TopologyReport)
  | -- | Time has passed; due at 'nextWake'.
    Tick
  deriving stock (Eq, Show)

data Action
  = -- | Ask each of these nodes for its report, all at once, over the open connections to it.
    -- Each has so many seconds; after that it counts as failed.
    AskNodes RefreshId Seconds [Endpoint]
  | -- | Ask these nodes over connections made for the question, so that the names of the
    -- seeds are resolved again.
    AskSeeds RefreshId Seconds [Endpoint]
  | -- | Route by this map from now on.
    Publish SlotMap
  | -- | Listen to these sentinels, and no others.
    HearSentinels [Endpoint]
  | -- | No server gave a usable report. The refresh is tried again. But if all reasons stay the
    -- same until somebody changes a setting, it is tried only when a command needs it, or with the
    -- next periodic refresh.
    RefreshFailed [(Endpoint, Error)]
  deriving stock (Eq, Show)

-- | How nodes are asked together, and which.
type Round = (RefreshId -> Seconds -> [Endpoint] -> Action, [Endpoint])

data Refresh = Refresh
  { refreshId :: RefreshId,
    refreshStarted :: Seconds,
    -- | The nodes of this round that have not answered yet.
    refreshWaiting :: Set Endpoint,
    refreshAsked :: Int,
    -- | The reports so far, the latest first.
    refreshReports :: [TopologyReport],
    refreshReasons :: [(Endpoint, Error)],
    -- | When to go on without the nodes that have not answered.
    refreshUntil :: Seconds,
    refreshRounds :: [Round]
  }

data State = State
  { stateSettings :: Settings,
    stateRandom :: StdGen,
    stateMap :: SlotMap,
    -- | Slots that a MOVED changed: the node, and when it was learnt.
    stateMoved :: Map Slot (Endpoint, Seconds),
    -- | Servers that sentinels named as the primary before a switch, and when this client learnt
    -- of the switch.
    stateLeft :: Map Endpoint Seconds,
    stateRefresh :: Maybe Refresh,
    stateNextId :: RefreshId,
    -- | Whether a refresh is wanted that starts from now on.
    stateWanted :: Bool,
    stateNotBefore :: Seconds,
    statePeriodic :: Seconds,
    -- | Refreshes that failed since the last one that succeeded.
    stateFailures :: Int,
    stateAccepted :: Accepted,
    -- | The sentinels, as they name each other.
    stateSentinels :: [Endpoint],
    -- | Until when replicas may be on their way to a new primary, so that refreshes are frequent.
    stateUnsettled :: Seconds
  }

-- | A state that knows no map and wants a refresh at once: step it with 'Tick'.
newState :: Settings -> StdGen -> Seconds -> State
newState settings random now =
  State
    { stateSettings = settings,
      stateRandom = random,
      stateMap = emptySlotMap,
      stateMoved = Map.empty,
      stateLeft = Map.empty,
      stateRefresh = Nothing,
      stateNextId = 1,
      stateWanted = True,
      stateNotBefore = now,
      statePeriodic = now + settingsInterval settings,
      stateFailures = 0,
      stateAccepted = nothingAccepted,
      stateSentinels = [],
      stateUnsettled = now
    }

refreshInFlight :: State -> Maybe RefreshId
refreshInFlight = fmap refreshId . stateRefresh

-- | When to step with 'Tick' at the latest.
nextWake :: State -> Seconds
nextWake State {stateRefresh, stateWanted, stateNotBefore, statePeriodic} =
  maybe (if stateWanted then stateNotBefore else max stateNotBefore statePeriodic) refreshUntil stateRefresh

-- | The state and the actions that follow from an event. \(O(n \log n)\) in the nodes, and
-- \(O(slots)\) when a map is made.
step :: Seconds -> Event -> State -> (State, [Action])
step now event state = case event of
  Triggered trigger ->
    let (learnt, actions) = learn now trigger state
     in actions `before` advance now learnt
  Answered answeredId endpoint answer
    | Just refresh <- stateRefresh state,
      refreshId refresh == answeredId,
      Set.member endpoint (refreshWaiting refresh) ->
      advance now state {stateRefresh = Just (hear now state endpoint answer refresh)}
    | otherwise -> advance now state
  Tick -> advance now state

before :: [Action] -> (State, [Action]) -> (State, [Action])
before earlier (state, later) = (state, earlier <> later)

learn :: Seconds -> Trigger -> State -> (State, [Action])
learn now trigger state = case trigger of
  LearntMoved slot endpoint
    | settingsRule (stateSettings state) == OfCluster ->
      let moved = state {stateMoved = Map.insert slot (endpoint, now) (stateMoved state)}
          isNews = slotOwner (stateMap state) slot /= Just endpoint
       in -- If not, another caller was redirected, too, and its MOVED has been handled.
          if isNews then publish (withMoved slot endpoint (stateMap state)) moved {stateWanted = True} else (moved, [])
  -- A switch is rare, and commands wait for its result: the throttle does not count, and the
  -- refresh in flight ends. Each sentinel announces a switch; only the first announcement is news.
  SentinelsSwitched old new
    | settingsRule (stateSettings state) == OfSentinels ->
      let isNews = maybe True (\at -> now >= at + settingsMovedGrace (stateSettings state)) (Map.lookup old (stateLeft state))
          switched = if isNews then (leave now old new state) {stateRefresh = Nothing} else state
       in (unsettled now switched {stateWanted = True, stateNotBefore = min now (stateNotBefore state)}, [])
  SentinelsStirred -> (unsettled now state {stateWanted = True}, [])
  -- Before the first map every command says so, and the refresh in flight is for all of them.
  SawNobody | comesFirst -> (state, [])
  SawUncovered _ | comesFirst -> (state, [])
  _ -> (state {stateWanted = True}, [])
  where
    comesFirst = isJust (stateRefresh state) && null (slotMapShards (stateMap state))

-- | Puts a map in use, if it differs from the current one.
publish :: SlotMap -> State -> (State, [Action])
publish slotMap state
  | slotMap == stateMap state = (state, [])
  | otherwise = (state {stateMap = slotMap}, [Publish slotMap])

-- | The server that a client of a standalone server uses after a trigger, given the configured server
-- and the one in use, if it is another one. The configured server may redirect the client; when the
-- other one is lost, the client returns. Nobody is asked.
fixedStep :: Endpoint -> Endpoint -> Trigger -> Maybe Endpoint
fixedStep configured current trigger = case trigger of
  LearntRedirect from target | from == current, target /= current -> Just target
  LostNode lost | lost == current, configured /= current -> Just configured
  _ -> Nothing

-- | Goes as far as is possible at this time.
advance :: Seconds -> State -> (State, [Action])
advance now state@State {stateRefresh, stateWanted, stateNotBefore, statePeriodic} = case stateRefresh of
  Just refresh | isDecided now state refresh -> conclude now refresh state
  Nothing | now >= stateNotBefore && (stateWanted || now >= statePeriodic) -> start now state
  _ -> (state, [])

hear :: Seconds -> State -> Endpoint -> Either Error TopologyReport -> Refresh -> Refresh
hear now State {stateSettings, stateLeft} endpoint answer refresh = case answer of
  Right report
    | hasLeft report -> failed outdated
    | slotMapCovered (reportMap report) > 0 ->
      heard
        { refreshReports = report : refreshReports refresh,
          refreshUntil = case settingsRule stateSettings of
            -- Every answer has the same weight, and a stranger may be the fastest.
            OfMembers -> refreshUntil refresh
            _ -> min (refreshUntil refresh) (now + settingsGather stateSettings)
        }
    | otherwise -> failed (unlike "a slot map with slots" "a slot map without slots" "")
  Left reason -> failed reason
  where
    heard = refresh {refreshWaiting = Set.delete endpoint (refreshWaiting refresh)}
    failed reason = heard {refreshReasons = (endpoint, reason) : refreshReasons refresh}
    -- The sentinel has not heard of the switch yet. Nor does this answer limit the time of those
    -- that have.
    hasLeft report = or [at >= refreshStarted refresh - settingsMovedGrace stateSettings | Just group <- [reportGroup report], Just at <- [Map.lookup (reportPrimary group) stateLeft]]

-- | Whether the refresh need not or cannot wait for more answers: all are in, time is up, or
-- most of the nodes asked agree.
isDecided :: Seconds -> State -> Refresh -> Bool
isDecided now State {stateSettings} Refresh {refreshWaiting, refreshUntil, refreshReports, refreshAsked} =
  Set.null refreshWaiting || now >= refreshUntil || mostAgree (settingsRule stateSettings) refreshAsked refreshReports

start :: Seconds -> State -> (State, [Action])
start now state@State {stateSettings, stateNextId} =
  case rounds of
    first : later ->
      ask now first begun {stateRandom = afterPeriod} (blank later)
    [] -> (begun, [])
  where
    known = Set.toAscList (slotMapNodes (stateMap state))
    (shuffled, afterShuffle) = shuffle known (stateRandom state)
    (stretch, afterStretch) = uniformR (1, 1.5 :: Double) afterShuffle
    (period, afterPeriod) = uniformR (0.9, 1.1 :: Double) afterStretch
    (sample, others) = splitAt (settingsSample stateSettings) shuffled
    seeds = List.nub (NonEmpty.toList (settingsSeeds stateSettings))
    rounds = case settingsRule stateSettings of
      OfCluster ->
        [(AskNodes, sample) | not (null sample)]
          -- Enough to find a living node when most have died, and not so many that all of a
          -- large cluster is asked.
          <> [(AskNodes, take 8 others) | not (null others)]
          <> map ((,) AskSeeds) (chunks 8 seeds)
      -- Asks every server: it is not known beforehand which one is the primary.
      OfMembers -> [(AskNodes, List.nub (known <> seeds))]
      OfSentinels ->
        [(AskSeeds, stateSentinels state) | not (null (stateSentinels state))]
          <> map ((,) AskSeeds) (chunks 8 (seeds List.\\ stateSentinels state))
    size = 1 + fromIntegral (length known) / 100
    begun =
      state
        { stateNextId = stateNextId + 1,
          stateWanted = False,
          stateNotBefore = now + settingsThrottle stateSettings * stretch * size,
          statePeriodic = now + (if now < stateUnsettled state then min settleSeconds else id) (settingsInterval stateSettings) * period
        }
    blank later =
      Refresh
        { refreshId = stateNextId,
          refreshStarted = now,
          refreshWaiting = Set.empty,
          refreshAsked = 0,
          refreshReports = [],
          refreshReasons = [],
          refreshUntil = now,
          refreshRounds = later
        }

ask :: Seconds -> Round -> State -> Refresh -> (State, [Action])
ask now (action, endpoints) state refresh =
  ( state {stateRefresh = Just refresh {refreshWaiting = Set.fromList endpoints, refreshAsked = length endpoints, refreshUntil = now + within}},
    [action (refreshId refresh) within endpoints]
  )
  where
    within = settingsAnswerWithin (stateSettings state)

-- | Ends a round, and with it the refresh, unless there are other nodes to ask.
conclude :: Seconds -> Refresh -> State -> (State, [Action])
conclude now refresh state@State {stateSettings, stateMoved} = case chooseReport (settingsRule stateSettings) (stateAccepted state) (refreshAsked refresh) (refreshReports refresh) of
  Just report | settingsRule stateSettings /= OfCluster -> settle now (refreshReports refresh) report ended {stateFailures = 0}
  Just report ->
    let current (_, learntAt) = learntAt >= refreshStarted refresh - settingsMovedGrace stateSettings
        moved = Map.filter current stateMoved
        overlaid =
          Map.foldlWithKey' (\slotMap slot (endpoint, _) -> withMoved slot endpoint slotMap) (reportMap report) moved
     in publish overlaid ended {stateMoved = moved, stateFailures = 0}
  Nothing -> case refreshRounds refresh of
    next : later -> ask now next state refresh {refreshReasons = reasons, refreshRounds = later}
    [] ->
      let failures = stateFailures state + 1
          (draw, random) = uniformR (0, 1) (stateRandom state)
          retryAt = now + delayFor (settingsBackoff stateSettings) failures draw
       in ( ended
              { stateFailures = failures,
                stateRandom = random,
                stateWanted = not (all (isPermanent . snd) reasons),
                stateNotBefore = max retryAt (stateNotBefore state)
              },
            [RefreshFailed (reverse reasons)]
          )
  where
    ended = state {stateRefresh = Nothing}
    reasons =
      [(endpoint, TimeoutError (TimeoutFailure "" NotSent (seconds (settingsAnswerWithin stateSettings)) Nothing)) | endpoint <- Set.toDescList (refreshWaiting refresh)]
        <> [(reportPrimary group, outdated) | report <- refreshReports refresh, Just group <- [reportGroup report]]
        <> refreshReasons refresh

-- | Why the report of a sentinel that has not heard of the last fail-over is no answer.
outdated :: Error
outdated = unlike "the primary of the latest fail-over" "a primary of an earlier one" "SENTINEL MASTER"

-- | Accepts a report of a primary and its replicas.
settle :: Seconds -> [TopologyReport] -> TopologyReport -> State -> (State, [Action])
settle now reports report state = actions `before` publish (reportMap report) believing
  where
    accepted = acceptedFrom report
    sentinels = Set.toAscList (Set.fromList (concat [reportSentinels group | Just group <- map reportGroup reports]))
    actions = [HearSentinels sentinels | sentinels /= stateSentinels state]
    changed = case (acceptedPrimary (stateAccepted state), acceptedPrimary accepted) of
      (old, new) | old == new -> state
      (Just old, Just new) | settingsRule (stateSettings state) == OfSentinels -> unsettled now (leave now old new state)
      _ -> unsettled now state
    believing = changed {stateAccepted = accepted, stateSentinels = sentinels}

-- | Records that the first is no longer the primary, but the second.
leave :: Seconds -> Endpoint -> Endpoint -> State -> State
leave now old new state@State {stateSettings, stateLeft} =
  state {stateLeft = Map.insert old now (Map.delete new (Map.filter (> now - settingsMovedGrace stateSettings) stateLeft))}

-- | Makes refreshes frequent for some time, because more may change: no report has a replica
-- before it has copied all data of its new primary.
unsettled :: Seconds -> State -> State
unsettled now state = state {stateUnsettled = now + 5 * settleSeconds, statePeriodic = min (statePeriodic state) (now + settleSeconds)}

settleSeconds :: Seconds
settleSeconds = 2

chunks :: Int -> [a] -> [[a]]
chunks size = takeWhile (not . null) . List.unfoldr (Just . splitAt size)

shuffle :: [a] -> StdGen -> ([a], StdGen)
shuffle items random = (map snd (List.sortOn fst (zip keys items)), after)
  where
    (after, keys) = List.mapAccumL (\generator _ -> swap (uniformR (minBound, maxBound :: Int) generator)) random items

-- | Whether asking again would fail the same way: a wrong password, a certificate that is
-- not trusted, a server that is no node of a cluster, a name that sentinels do not know.
isPermanent :: Error -> Bool
isPermanent = \case
  ConnectionError ConnectionFailure {connectionCause = cause} -> isPermanentCause cause
  ReplyError ServerError {serverErrorCode, serverErrorMessage} ->
    serverErrorCode == "NOPERM"
      || serverErrorCode == "ERR" && any (`Char8.isPrefixOf` serverErrorMessage) ["This instance has cluster support disabled", "No such master with that name"]
  _ -> False

-- | Like 'isPermanent', for the reason why a connection could not be opened.
isPermanentCause :: ConnectionCause -> Bool
isPermanentCause = \case
  TlsFailed _ -> True
  -- For example a wrong password, a database that does not exist, or a proxy's own words.
  HandshakeRefused said -> not (passes said)
  _ -> False

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

nothingAccepted :: Accepted
nothingAccepted = Accepted {acceptedEpoch = Nothing, acceptedPrimary = Nothing, acceptedHistory = ""}

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
mostAgree rule asked reports = rule /= OfSentinels && any ((> asked) . (* 2) . holders) (alike reports)
  where
    holders = if rule == OfCluster then length else votes

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
