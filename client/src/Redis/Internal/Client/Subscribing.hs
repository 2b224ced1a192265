-- | Compares the topics that the program wants to hear with the topics that servers have
-- confirmed, and acts on the difference: one state, one pure step.
-- "Redis.Internal.Client.Subscriptions" drives it.
--
-- A /subscriber/ is a subscription of the program. A /line/ is a connection for subscriptions to
-- one node. A topic has a stage on each line on which it should be heard:
--
-- > Waiting ──▶ Asked ──▶ Confirmed ──▶ Leaving ──▶ (none)
-- >    ▲          │           │            │
-- >    └──────────┴───────────┴────────────┘  wanted again, refused for now, lost
--
-- At most one question for a topic is on its way on a line. A server answers questions in
-- their order, so an answer belongs to the oldest open question. An answer that fits no
-- question is the server's own message: it has ended a shard channel, because the channel's
-- slot has moved.
--
-- | Event | What follows |
-- | --- | --- |
-- | 'Want', 'Unwant' | a subscriber's topics: asked for where due, left where no subscriber remains |
-- | 'Look' | the servers and their roles: topics are moved |
-- | 'Opened' | everything that waits on that line is asked for |
-- | 'NotOpened', 'Lost' | everything on the line waits, and owes a gap; ordinary channels go elsewhere |
-- | 'Said' | an answer; a confirmation pays the gap |
-- | @Tick@ | lines are tried again, probed, and given up when silent |
--
-- __The pending gap.__ A topic that was confirmed and is not any more owes its subscribers a gap. The
-- gap begins at the last moment before which everything published has certainly come. On a
-- line that is when the last answered question was sent: what was published before that
-- stands before the answer in the stream. The time of the last bytes would be too late,
-- because messages published by then may have been on their way still. That is why a line is
-- probed even while messages come. A topic that is moved because of the map owes more: its
-- old node may have been the wrong one for some time, and all that is known is that the map
-- in use is no older than the horizon.
module Redis.Internal.Client.Subscribing
  ( step,
    Event (..),
    Answer (..),
  )
where

import Data.ByteString (ByteString)
import Data.Foldable (foldl')
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isNothing)
import Data.Sequence (Seq (..))
import Data.Sequence qualified as Seq
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Client.Listening
import Redis.Internal.Client.Topic
import Redis.Internal.Network.Clock (Nanos, durationFromNanos)
import Redis.Internal.Protocol.Redirect
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Permanent (isPermanentCause)
import Redis.Internal.Routing.Topology (Trigger (..))
import System.Random (randomR)

-- | An event for the machine.
data Event
  = Want SubscriberId [Topic]
  | Unwant SubscriberId [Topic]
  | ServersChanged Servers
  | -- | The connection with this number was opened for the line.
    Opened Line Int
  | NotOpened Line Int ConnectionCause
  | Lost Line Int ConnectionCause
  | Said Line Int Answer
  | -- | Due at 'nextDue'. Has the time when each connection last received bytes.
    Tick (IntMap Nanos)

-- | A server's answer, as opposed to a message.
data Answer
  = -- | The topic is heard from here on.
    Began Kind ByteString
  | -- | The topic is not heard any more.
    Ended Kind ByteString
  | Ponged
  | Refusal ServerError
  deriving stock (Eq, Show)

-- | The state and the actions that follow from an event. \(O(\log n)\) for each topic of the
-- event; events about a line or the servers concern all topics.
step :: Nanos -> Event -> State -> (State, [Action])
step now event = finish now . handle now event

handle :: Nanos -> Event -> State -> State
handle now event state = case event of
  Want subscriber topics -> foldl' (want subscriber) state topics
  Unwant subscriber topics -> foldl' (unwant subscriber) state topics
  ServersChanged servers -> settleAll now (rehome (const False) state {stateServers = Just servers})
  Opened line number -> case Map.lookup line (stateLinks state) of
    Just link@Link {linkStage = Opening expected}
      | expected == number ->
        settleAt now line state {stateLinks = Map.insert line link {linkStage = Open (newLive number)} (stateLinks state)}
    _ -> emit (HangUp number ClosedLocally) state
  NotOpened line number cause -> case Map.lookup line (stateLinks state) of
    Just link@Link {linkStage = Opening expected}
      | expected == number -> notOpened line link cause state
    _ -> state
  Lost line number cause -> onLive line number (\live -> lose now line live cause) state
  Said line number answer -> onLive line number (\live -> said now line live answer) state
  Tick heard -> tick now heard state
  where
    want subscriber st name = settle now name st {stateTopics = Map.alter (Just . wanting subscriber . fromMaybe noEntry) name (stateTopics st)}
    wanting subscriber entry = entry {entrySubscribers = IntMap.insertWith (\_ old -> old) subscriber New (entrySubscribers entry)}
    noEntry = Entry {entrySubscribers = IntMap.empty, entryStages = Map.empty, entryMissed = Nothing}
    unwant subscriber st name = settle now name (without subscriber name st)

    newLive number =
      Live
        { liveNumber = number,
          liveSince = now,
          liveQuestions = Seq.empty,
          liveProven = now,
          liveProbeAt = now + settingsBeat (stateSettings state),
          liveProbed = Nothing,
          liveSilentAt = maxBound,
          liveAnswered = False
        }

    notOpened line link cause st0 =
      let failures = linkFailures link + 1
          (delay, st1) = delayAfter failures st0
          st2 = st1 {stateLinks = Map.insert line link {linkStage = Idle (now + delay), linkFailures = failures, linkTrouble = Just cause} (stateLinks st1)}
          refused = if isPermanentCause cause then foldl' (\st name -> refuse now line name (unreachable line cause) st) st2 (topicsAt line st2) else st2
       in settleAt now line (elsewhere line (emit (Tell (LostNode (lineEndpoint line))) refused))

unreachable :: Line -> ConnectionCause -> Error
unreachable line = ConnectionError . ConnectionFailure "" NotSent (lineEndpoint line)

-- | Acts on a connection if it is still the line's.
onLive :: Line -> Int -> (Live -> State -> State) -> State -> State
onLive line number act state = case Map.lookup line (stateLinks state) of
  Just Link {linkStage = Open live} | liveNumber live == number -> act live state
  _ -> state

-- | Handles the end of a connection.
lose :: Nanos -> Line -> Live -> ConnectionCause -> State -> State
lose now line live cause state = settleAt now line (elsewhere line (emit (Tell (LostNode (lineEndpoint line))) fallen))
  where
    -- A line that was well may be opened again at once, but not in an endless loop.
    (failures, pause, drawn)
      | liveAnswered live, now - liveSince live > settingsBeat (stateSettings state) = (0, 0, state)
      | otherwise =
        let count = maybe 0 linkFailures (Map.lookup line (stateLinks state)) + 1
            (delay, state') = delayAfter count state
         in (count, delay, state')
    fallen =
      foldl'
        fall
        drawn {stateLinks = Map.insert line Link {linkStage = Idle (now + pause), linkFailures = failures, linkTrouble = Just cause} (stateLinks drawn)}
        (topicsAt line drawn)
    fall st name = case stageAt line name st of
      Just (Asked pending) -> putStage name line (Waiting pending now) st
      Just (Confirmed _) -> putStage name line (Waiting (Just (liveProven live)) now) st
      Just Leaving -> dropStage name line st
      _ -> st

-- | Moves ordinary channels to another node, if there is one.
elsewhere :: Line -> State -> State
elsewhere line state
  | Just (lineEndpoint line) == stateHome state, lineDuty line == ForMessages = rehome (== lineEndpoint line) state
  | otherwise = state

-- | Chooses the node for ordinary channels, if there is none or it is to be avoided. The
-- caller settles the topics that have to move for it.
rehome :: (Endpoint -> Bool) -> State -> State
rehome avoided state = case stateServers state of
  Nothing -> state
  Just servers -> case stateHome state of
    Just home | home `Set.member` serversMembers servers, not (avoided home) -> state
    _ -> case filter (not . avoided) (serversPrimaries servers) of
      [] -> state {stateHome = List.find (const True) (serversPrimaries servers)}
      candidates ->
        let (index, random) = randomR (0, length candidates - 1) (stateRandom state)
         in state {stateHome = List.find (const True) (drop index candidates), stateRandom = random}

-- | Handles an answer of a server.
said :: Nanos -> Line -> Live -> Answer -> State -> State
said now line live answer state = case answer of
  Began kind name -> began now line (topicAt line kind name) (fst (answered (isNext (Subscribe kind) name)))
  Ended kind name -> case answered (isNext (Unsubscribe kind) name) of
    (state', True) -> gone (topicAt line kind name) state'
    (state', False) -> ended (topicAt line kind name) state'
  Ponged -> fst (answered ((== Probe) . questionAsk))
  Refusal problem -> case liveQuestions live of
    question :<| others -> refused problem question (withLive (proven question live {liveQuestions = others}) state)
    Empty -> state
  where
    isNext what name question = questionAsk question == what && map topicName (take 1 (questionTopics question)) == [name]

    -- Takes the answer to the oldest question, if it fits.
    answered fits = case liveQuestions live of
      question :<| others
        | fits question -> case drop 1 (questionTopics question) of
          [] -> (withLive (proven question live {liveQuestions = others}) state, True)
          more -> (withLive live {liveQuestions = question {questionTopics = more} :<| others, liveAnswered = True} state, True)
      _ -> (state, False)

    proven question it =
      it
        { liveProven = max (liveProven it) (questionSent question),
          liveProbed = if questionAsk question == Probe then Nothing else liveProbed it,
          liveAnswered = True
        }

    withLive it st = st {stateLinks = Map.adjust (\link -> link {linkStage = Open it, linkTrouble = Nothing}) line (stateLinks st)}

    gone name st = case stageAt line name st of
      Just Leaving -> settle now name (dropStage name line st)
      _ -> st

    -- The server itself has ended the topic.
    ended name st = case stageAt line name st of
      Just (Confirmed _) -> settle now name (emit (Tell (EndedShardChannel (lineEndpoint line))) (later soon (Just (liveProven live)) name st))
      _ -> st

    -- The failures that each delay is computed for. A server that ended a topic usually knows
    -- by now which node has it. A server that refuses one topic refuses many, so it is asked
    -- again much later.
    (soon, longest) = (3, 40)
    later failures pending name st =
      let (delay, st') = delayAfter failures st
       in putStage name line (Waiting pending (now + delay)) st'

    refused problem question st = case questionAsk question of
      Probe -> st
      Unsubscribe _ -> foldl' (flip gone) st (questionTopics question)
      Subscribe kind -> case (adviceOn (stateSettings st) line (maybe False serversClustered (stateServers st)) problem, questionTopics question) of
        (Again triggers, names) -> foldl' (flip delayed) (foldl' (flip (emit . Tell)) st triggers) names
        (Anew, _) -> lose now line live (HandshakeRefused problem) (emit (HangUp (liveNumber live) ClosedLocally) st)
        (Decided, [name]) -> refuse now line name (ReplyError problem) st
        -- One of several topics is refused; the server does not say which.
        (Decided, names) ->
          let (some, others) = splitAt (length names `quot` 2) names
           in sendQuestions now line [(Subscribe kind, some), (Subscribe kind, others)] st

    delayed name st = case stageAt line name st of
      Just (Asked pending) -> settle now name (later longest pending name st)
      _ -> st

-- | The reaction to a question that was refused.
data Advice
  = -- | Ask again later.
    Again [Trigger]
  | -- | Ask again on a new connection.
    Anew
  | Decided

adviceOn :: Settings -> Line -> Bool -> ServerError -> Advice
adviceOn settings line clustered problem = case parseRedirect problem of
  Just (Moved slot destination)
    | clustered -> Again [maybe (MovedToUnknown slot) (LearntMoved slot) (redirectEndpoint (settingsMapping settings) endpoint destination)]
  Just (Ask _ _) | clustered -> Again []
  Just TryAgain -> Again []
  Just ClusterDown -> Again [SawClusterDown]
  Just Loading -> Again [SawLoading endpoint]
  Just MasterDown -> Again [SawMasterDown endpoint]
  Just Unauthenticated -> Anew
  _
    | serverErrorCode problem == "BUSY" -> Again []
    | otherwise -> Decided
  where
    endpoint = lineEndpoint line

-- | Handles a server's confirmation of a topic.
began :: Nanos -> Line -> Topic -> State -> State
began now line name state = case (Map.lookup name (stateTopics state), stageAt line name state) of
  (Just entry, Just stage)
    | Just pending <- owing stage ->
      if IntMap.null (entrySubscribers entry) || line `notElem` linesFor state name
        then leave line name state
        else
          let owed = earliest pending (entryMissed entry)
              cleared = state {stateTopics = Map.insert name entry {entryMissed = Nothing} (stateTopics state)}
           in promote now name (maybe id (closeGap name) owed (putStage name line (Confirmed now) cleared))
  _ -> state
  where
    owing = \case
      Asked pending -> Just pending
      Waiting pending _ -> Just pending
      _ -> Nothing

-- | Reports a gap to the subscribers that have heard the topic before.
closeGap :: Topic -> Nanos -> State -> State
closeGap name since state = case Map.lookup name (stateTopics state) of
  Nothing -> state
  Just entry -> foldl' (flip emit) state [Missed subscriber name (max since from) | (subscriber, Heard from) <- IntMap.toList (entrySubscribers entry)]

-- | Handles a topic that the servers refuse.
refuse :: Nanos -> Line -> Topic -> Error -> State -> State
refuse now line name problem state = case Map.lookup name (stateTopics state) of
  Nothing -> state
  Just entry -> settle now name (foldl' told state {stateTopics = Map.insert name (refusedEntry entry) (stateTopics state)} (IntMap.toList (entrySubscribers entry)))
  where
    -- The open question has its answer.
    refusedEntry entry = entry {entrySubscribers = IntMap.empty, entryStages = Map.adjust unasked line (entryStages entry)}
    unasked = \case
      Asked _ -> Waiting Nothing now
      other -> other
    told st (subscriber, standing) = case standing of
      New -> emit (Refuse subscriber name problem) st
      Heard _ -> emit (EndSubscriber subscriber problem) st

-- | Moves a topic to the lines where it should be heard.
settle :: Nanos -> Topic -> State -> State
settle now name state = case Map.lookup name (stateTopics state) of
  Nothing -> state
  Just entry
    | IntMap.null (entrySubscribers entry) -> forget name (foldl' unheard state (Map.toList (entryStages entry)))
    | otherwise -> promote now name (foldl' (goOn now name) (placed now name entry state) (linesFor state name))
  where
    unheard st (line, stage) = case stage of
      Waiting _ _ -> dropStage name line st
      Asked _ -> putStage name line (Asked Nothing) st
      Confirmed _ -> leave line name st
      Leaving -> st

-- | Forgets a topic, unless a subscriber wants it or a line still has a stage for it.
forget :: Topic -> State -> State
forget name state = case Map.lookup name (stateTopics state) of
  Just entry
    | IntMap.null (entrySubscribers entry), Map.null (entryStages entry) -> state {stateTopics = Map.delete name (stateTopics state), stateUnplaced = Set.delete name (stateUnplaced state)}
  _ -> state

-- | Gives a topic a stage on each line where it should be heard, and takes it off all other
-- lines. The debts of those lines are passed on.
placed :: Nanos -> Topic -> Entry -> State -> State
placed now name entry state = settled {stateUnplaced = (if null wanted then Set.insert else Set.delete) name (stateUnplaced settled)}
  where
    wanted = linesFor state name
    added = filter (`Map.notMember` entryStages entry) wanted
    removed = filter ((`notElem` wanted) . fst) (Map.toList (entryStages entry))
    everywhere = case name of
      KeyEvents _ -> True
      _ -> False
    heard = or [True | Heard _ <- IntMap.elems (entrySubscribers entry)]
    horizon = now - settingsHorizon (stateSettings state)

    (left, owedByThem) = foldl' away (state, entryMissed entry) removed
    away (st, owed) (line, stage) = case stage of
      Waiting pending _ -> (dropStage name line st, earliest pending owed)
      Asked pending -> (putStage name line (Asked Nothing) st, earliest pending owed)
      Confirmed since -> (leave line name st, earliest (Just (max since (missedSince line))) owed)
      Leaving -> (st, owed)

    -- What is on its way from a line that is left is not heard any more. A topic may also have been
    -- elsewhere for as long as the map is old, but a node that is no primary any more has no newer key
    -- events.
    missedSince line = if everywhere then proven else min horizon proven
      where
        proven = case linkStage <$> Map.lookup line (stateLinks state) of
          Just (Open live) -> liveProven live
          _ -> horizon

    settled
      | not (null added) = foldl' (\st line -> putStage name line (Waiting pendingGapOfNew now) st) (owing Nothing left) added
      -- No other line takes the pending gap over, so it is paid here.
      | everywhere, not (null wanted) = maybe id (closeGap name) owedByThem (owing Nothing left)
      | otherwise = owing owedByThem left
    pendingGapOfNew
      | not heard = Nothing
      | everywhere = earliest (Just horizon) owedByThem
      | otherwise = owedByThem
    owing pending st = st {stateTopics = Map.adjust (\known -> known {entryMissed = pending}) name (stateTopics st)}

-- | Asks for a topic on a line where it waits, if that is possible now.
goOn :: Nanos -> Topic -> State -> Line -> State
goOn now name state line = case stageAt line name state of
  Just (Waiting pending notBefore)
    | notBefore > now -> state {stateDelayed = Set.insert (line, name) (stateDelayed state)}
    | Just Link {linkStage = Open _} <- Map.lookup line (stateLinks state) -> ask line Subscribe name (putStage name line (Asked pending) state)
    | otherwise -> openDue now line state
  _ -> state

-- | Opens a line, if its time has come.
openDue :: Nanos -> Line -> State -> State
openDue now line state = case Map.lookup line (stateLinks state) of
  Nothing -> opening Link {linkStage = Idle now, linkFailures = 0, linkTrouble = Nothing}
  Just link@Link {linkStage = Idle notBefore} | notBefore <= now -> opening link
  _ -> state
  where
    opening link =
      let number = stateNumber state + 1
       in emit (OpenLine line number) state {stateNumber = number, stateLinks = Map.insert line link {linkStage = Opening number} (stateLinks state)}

-- | Notes that a topic's subscribers hear it, once every line has confirmed it.
promote :: Nanos -> Topic -> State -> State
promote now name state = case Map.lookup name (stateTopics state) of
  Just entry
    | New `elem` entrySubscribers entry,
      isEverywhere entry ->
      state {stateTopics = Map.insert name entry {entrySubscribers = IntMap.map heard (entrySubscribers entry)} (stateTopics state)}
  _ -> state
  where
    wanted = linesFor state name
    isEverywhere entry = not (null wanted) && and [maybe False isConfirmed (Map.lookup line (entryStages entry)) | line <- wanted]
    heard = \case
      New -> Heard now
      since -> since

leave :: Line -> Topic -> State -> State
leave line name = ask line Unsubscribe name . putStage name line Leaving

settleAll :: Nanos -> State -> State
settleAll now state = foldl' (flip (settle now)) state (Map.keys (stateTopics state))

-- | Settles all topics that have a stage on this line.
settleAt :: Nanos -> Line -> State -> State
settleAt now line state = foldl' (flip (settle now)) state (topicsAt line state)

-- | Handles the passing of time.
tick :: Nanos -> IntMap Nanos -> State -> State
tick now heard state = seek (foldl' due (foldl' atLink state (Map.toList (stateLinks state))) waited)
  where
    settings = stateSettings state
    waited = [(line, name) | (line, name) <- Set.toList (stateDelayed state), isDue (stageAt line name state)]
    isDue = \case
      Just (Waiting _ notBefore) -> notBefore <= now
      _ -> True
    due st (line, name) = settle now name st {stateDelayed = Set.delete (line, name) (stateDelayed st)}

    atLink st (line, link) = case linkStage link of
      Idle _ | line `Map.member` stateUse st -> openDue now line st
      Open live -> alive st line link live
      _ -> st

    alive st line link live = case (settingsSilence settings, liveProbed live) of
      (Just limit, Just probed)
        | quiet <- now - max probed lastHeard,
          quiet >= limit ->
          let cause = SilentPeer (durationFromNanos (now - lastHeard)) in lose now line live cause (emit (HangUp (liveNumber live) cause) st)
        | otherwise -> beat st line link live {liveSilentAt = max probed lastHeard + limit}
      _ -> beat st line link live
      where
        lastHeard = IntMap.findWithDefault (liveSince live) (liveNumber live) heard

    beat st line link live
      | now < liveProbeAt live = kept live
      | isNothing (liveProbed live) =
        sendQuestions now line [(Probe, [])] (kept next {liveProbed = Just now, liveSilentAt = maybe maxBound (now +) (settingsSilence settings)})
      | otherwise = kept next
      where
        next = live {liveProbeAt = now + settingsBeat settings}
        kept it = st {stateLinks = Map.insert line link {linkStage = Open it} (stateLinks st)}

    -- The servers may have changed.
    seek st
      | now < stateSeekAt st = st
      | Just name <- Set.lookupMin (stateUnplaced st) =
        let (delay, st') = delayAfter 5 st
         in emit (Tell (missing name)) st' {stateSeekAt = now + delay}
      | otherwise = st
    missing = \case
      ShardChannel channel | Just _ <- stateServers state -> SawUncovered (keySlot channel)
      _ -> SawNobody
