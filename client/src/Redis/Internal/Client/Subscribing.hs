-- | Compares the topics that the program wants to hear with the topics that servers have
-- confirmed, and acts on the difference. "Redis.Internal.Client.Subscriptions" drives it.
--
-- A /subscriber/ is a subscription of the program. A /pub/sub connection/ is a connection for subscriptions to
-- one node. It is a place that stays; numbered connections come and go at it. A topic has a stage on each pub/sub connection on which it should be heard:
--
-- > Waiting ──▶ Asked ──▶ Confirmed ──▶ Leaving ──▶ (none)
-- >    ▲          │           │            │
-- >    │          ▼           │            │
-- >    │       Outdated ───────┼──▶         │  wanted elsewhere meanwhile
-- >    └──────────┴───────────┴────────────┘  wanted again, refused for now, lost
--
-- At most one question for a topic is on its way on a pub/sub connection. A server answers questions in
-- their order, so an answer belongs to the oldest open question. An answer that fits no
-- question is the server's own message: it has ended a shard channel, because the channel's
-- slot has moved.
--
-- | Event | What follows |
-- | --- | --- |
-- | 'Want', 'Unwant' | a subscriber's topics: asked for where due, left where no subscriber remains |
-- | 'ServersChanged' | the servers and their roles: topics are moved |
-- | 'Opened' | everything that waits on that pub/sub connection is asked for |
-- | 'NotOpened', 'Lost' | everything on the pub/sub connection waits, and owes a gap; ordinary channels go elsewhere |
-- | 'Said' | an answer; a confirmation pays the gap |
-- | @Tick@ | pub/sub connections are tried again, probed, and given up when silent; topics that were refused for now are asked for again; news is asked for if a topic has no node |
--
-- __The pending gap.__ A topic that was confirmed and is not any more owes its subscribers a gap. The
-- gap begins at the last moment before which everything published has certainly come: when the last
-- answered question was sent on the pub/sub connection. At the time of the last bytes, messages published
-- by then may have been on their way still. That is why a pub/sub connection is probed even while
-- messages come. Nodes of a cluster forward messages to each other, so there the gap begins a while
-- before that. A topic that is moved because of the map owes more, and so does a shard channel that its
-- node ends: that node may have been the wrong one for as long as the map in use may be old, the horizon.
module Redis.Internal.Client.Subscribing
  ( -- * Steps
    State (..),
    Settings (..),
    newState,
    step,
    Event (..),
    Answer (..),
    Action (..),
    Question (..),
    Ask (..),
    nextDue,

    -- * Topics and connections
    SubscriberId,
    Entry (..),
    Standing (..),
    Stage (..),
    Servers (..),
    PubSubConnection (..),
    Duty (..),
    Link (..),
    LinkStage (..),
    Live (..),

    -- * Looking
    topicAt,
    pubSubsFor,
    subscribersAt,
    isHeard,
    owesAnswer,
    provenAt,
    idleUntil,
    lastTrouble,
  )
where

import Control.Applicative ((<|>))
import Data.ByteString (ByteString)
import Data.Foldable (foldl')
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, fromMaybe, isNothing, listToMaybe, mapMaybe)
import Data.Sequence (Seq (..), (|>))
import Data.Sequence qualified as Seq
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Client.EventQueue (Kind (..), Topic (..), topicKind, topicName)
import Redis.Internal.Config (AddressMapping, Backoff, delayFor)
import Redis.Internal.Network.Runtime (Nanos, durationFromNanos, nanosFromSeconds)
import Redis.Internal.Protocol.Redirect
import Redis.Internal.Protocol.Slot (Slot, keySlot)
import Redis.Internal.Routing.Topology (Trigger (..), isPermanentCause)
import System.Random (StdGen, randomR)

-- | The number of a subscription of the program.
type SubscriberId = Int

-- | The node that a connection for subscriptions leads to, and its duty.
data PubSubConnection = PubSubConnection
  { pubSubEndpoint :: Endpoint,
    pubSubDuty :: Duty
  }
  deriving stock (Eq, Ord, Show)

-- | The kind of topics that a pub/sub connection carries. Key events have their own: the program may also
-- want one of their patterns as an ordinary one, and a server knows a pattern only once for each connection.
data Duty = ForMessages | ForKeyEvents
  deriving stock (Eq, Ord, Show)

data Servers = Servers
  { -- | At least one endpoint.
    serversPrimaries :: [Endpoint],
    serversOwner :: Slot -> Maybe Endpoint,
    serversClustered :: Bool
  }

data Settings = Settings
  { settingsBackoff :: Backoff,
    -- | How long a pub/sub connection may be silent after a probe.
    settingsSilence :: Maybe Nanos,
    -- | The time between two probes.
    settingsBeat :: Nanos,
    -- | The greatest age of a slot map that is in use.
    settingsHorizon :: Nanos,
    -- | How long a message may take from one node of a cluster to another.
    settingsForwarding :: Nanos,
    -- | How long the other nodes may need to learn that a node has become a replica.
    settingsDemotion :: Nanos,
    -- | Translates the addresses in redirects to addresses that this client can reach.
    settingsMapping :: AddressMapping
  }

-- | Whether a subscriber hears a topic yet.
data Standing
  = -- | The topic was not confirmed since the subscriber wanted it.
    New
  | -- | The topic was confirmed at this time. The subscriber hears it, but for gaps.
    Heard Nanos
  deriving stock (Eq, Show)

-- | The time since which messages may be missed, if any may be.
type PendingGap = Maybe Nanos

-- | The stage of a topic on a pub/sub connection.
data Stage
  = -- | The server is to be asked for the topic, not before this time.
    Waiting PendingGap Nanos
  | Asked PendingGap
  | -- | The server was asked, and has not answered; meanwhile the topic was to be heard elsewhere. Its messages from here may be
    -- older than those, so the server is asked once more.
    Outdated
  | -- | The server confirmed the topic at this time.
    Confirmed Nanos
  | -- | The server was told that the topic is not wanted any more, and has not answered.
    Leaving
  deriving stock (Eq, Show)

data Entry = Entry
  { entrySubscribers :: IntMap Standing,
    entryStages :: Map PubSubConnection Stage,
    -- | The pending gap that belongs to no pub/sub connection.
    entryMissed :: PendingGap
  }

data Link = Link
  { linkStage :: LinkStage,
    -- | Failures since the pub/sub connection was last known to be well.
    linkFailures :: Int,
    -- | Why the pub/sub connection failed last, until it is well again.
    linkTrouble :: Maybe ConnectionCause
  }

data LinkStage
  = -- | The pub/sub connection must not be opened before this time.
    Idle Nanos
  | Opening Int
  | Open Live

data Live = Live
  { liveNumber :: Int,
    liveSince :: Nanos,
    -- | The questions without an answer, the oldest first.
    liveQuestions :: Seq Question,
    -- | Everything that was published before this time has come.
    liveProven :: Nanos,
    liveProbeAt :: Nanos,
    -- | When the probe was sent that has no answer yet.
    liveProbed :: Maybe Nanos,
    -- | When to check whether the pub/sub connection was silent for too long.
    liveSilentAt :: Nanos,
    liveAnswered :: Bool
  }

data Question = Question
  { questionAsk :: Ask,
    -- | The topics without an answer.
    questionTopics :: [Topic],
    questionSent :: Nanos
  }
  deriving stock (Eq, Show)

data Ask
  = Subscribe Kind
  | Unsubscribe Kind
  | -- | PING.
    Probe
  deriving stock (Eq, Ord, Show)

data State = State
  { stateSettings :: Settings,
    stateServers :: Maybe Servers,
    -- | The one node that ordinary channels and patterns are heard at.
    stateHome :: Maybe Endpoint,
    stateTopics :: Map Topic Entry,
    stateLinks :: Map PubSubConnection Link,
    -- | How many topics have a stage on each pub/sub connection.
    stateUse :: Map PubSubConnection Int,
    -- | Topics that are to be asked for again later.
    stateDelayed :: Set (PubSubConnection, Topic),
    -- | Topics for which no node is known.
    stateUnplaced :: Set Topic,
    -- | The shard channels that their nodes have ended.
    stateEnded :: Map Topic EndedAt,
    -- | When to ask for news because of topics without a node.
    stateSeekAt :: Nanos,
    stateNumber :: Int,
    stateRandom :: StdGen,
    -- | The questions and the actions of the current step, the last one first.
    stateAsks :: Map (PubSubConnection, Ask) [Topic],
    stateOut :: [Action]
  }

-- | A node that ended a shard channel, until it may have the channel again.
data EndedAt = EndedAt
  { endedAt :: Endpoint,
    endedUntil :: Nanos,
    -- | Whether it has accepted the channel nevertheless. A replica does, and does not get the messages before its primary knows
    -- of it. So the channel waits for another map.
    endedAccepts :: Bool
  }

-- | An action for the driver. Actions are done in their order.
data Action
  = OpenPubSub PubSubConnection Int
  | Send Int [Question]
  | HangUp Int ConnectionCause
  | -- | The subscriber may have missed messages of this topic from this time until now.
    Missed SubscriberId Topic Nanos
  | -- | The server refuses the topic, which the subscriber has not been hearing.
    Refuse SubscriberId Topic Error
  | -- | The server refuses a topic that the subscriber has been hearing.
    EndSubscriber SubscriberId Error
  | Tell Trigger
  deriving stock (Eq, Show)

newState :: Settings -> StdGen -> State
newState stateSettings stateRandom =
  State
    { stateSettings,
      stateServers = Nothing,
      stateHome = Nothing,
      stateTopics = Map.empty,
      stateLinks = Map.empty,
      stateUse = Map.empty,
      stateDelayed = Set.empty,
      stateUnplaced = Set.empty,
      stateEnded = Map.empty,
      stateSeekAt = 0,
      stateNumber = 0,
      stateRandom,
      stateAsks = Map.empty,
      stateOut = []
    }

-- | The topic that a server's name stands for.
topicAt :: PubSubConnection -> Kind -> ByteString -> Topic
topicAt pubSub kind name = case (kind, pubSubDuty pubSub) of
  (OfChannel, _) -> Channel name
  (OfPattern, ForMessages) -> Pattern name
  (OfPattern, ForKeyEvents) -> KeyEvents name
  (OfShard, _) -> ShardChannel name

-- | The pub/sub connections on which a topic should be heard.
pubSubsFor :: State -> Topic -> [PubSubConnection]
pubSubsFor state name = case stateServers state of
  Nothing -> []
  Just servers -> case name of
    ShardChannel channel -> [PubSubConnection endpoint ForMessages | Just endpoint <- [serversOwner servers (keySlot channel)], not (isDoubted endpoint)]
    KeyEvents _ -> [PubSubConnection endpoint ForKeyEvents | endpoint <- serversPrimaries servers]
    _ -> [PubSubConnection endpoint ForMessages | Just endpoint <- [stateHome state]]
  where
    isDoubted endpoint = maybe False (\ended -> endedAccepts ended && endedAt ended == endpoint) (Map.lookup name (stateEnded state))

topicsAt :: PubSubConnection -> State -> [Topic]
topicsAt pubSub state = [name | (name, entry) <- Map.toList (stateTopics state), pubSub `Map.member` entryStages entry]

stageAt :: PubSubConnection -> Topic -> State -> Maybe Stage
stageAt pubSub name state = Map.lookup name (stateTopics state) >>= Map.lookup pubSub . entryStages

-- | Acts on a topic, if it is known.
onEntry :: Topic -> (Entry -> State -> State) -> State -> State
onEntry name act state = maybe state (`act` state) (Map.lookup name (stateTopics state))

changeEntry :: Topic -> (Entry -> Entry) -> State -> State
changeEntry name change state = state {stateTopics = Map.adjust change name (stateTopics state)}

putStage :: Topic -> PubSubConnection -> Stage -> State -> State
putStage name pubSub stage state =
  changeEntry name (\entry -> entry {entryStages = Map.insert pubSub stage (entryStages entry)}) $
    if isNothing (stageAt pubSub name state) then state {stateUse = Map.insertWith (+) pubSub 1 (stateUse state)} else state

dropStage :: Topic -> PubSubConnection -> State -> State
dropStage name pubSub state =
  changeEntry name (\entry -> entry {entryStages = Map.delete pubSub (entryStages entry)}) $
    if isNothing (stageAt pubSub name state) then state else state {stateUse = Map.update (\count -> if count > 1 then Just (count - 1) else Nothing) pubSub (stateUse state)}

-- | The connection, if it is open and has this number.
liveAt :: State -> PubSubConnection -> Int -> Maybe Live
liveAt state pubSub number = case linkStage <$> Map.lookup pubSub (stateLinks state) of
  Just (Open live) | liveNumber live == number -> Just live
  _ -> Nothing

putLink :: PubSubConnection -> Link -> State -> State
putLink pubSub link state = state {stateLinks = Map.insert pubSub link (stateLinks state)}

-- | When the next @Tick@ is due; never, if nothing is wanted. \(O(n)\) in the pub/sub connections and in
-- the topics that are to be asked for again.
nextDue :: State -> Maybe Nanos
nextDue state = List.foldl' (\known one -> Just (maybe one (min one) known)) Nothing (concat [links, delayed, unplaced, map endedUntil (Map.elems (stateEnded state))])
  where
    links = mapMaybe ofLink (Map.toList (stateLinks state))
    ofLink (pubSub, link) = case linkStage link of
      Idle notBefore | pubSub `Map.member` stateUse state -> Just notBefore
      Open live -> Just (min (liveProbeAt live) (maybe maxBound (const (liveSilentAt live)) (liveProbed live)))
      _ -> Nothing
    delayed = catMaybes [stageAt pubSub name state >>= notBeforeOf | (pubSub, name) <- Set.toList (stateDelayed state)]
    notBeforeOf = \case
      Waiting _ notBefore -> Just notBefore
      _ -> Just 0
    unplaced = [stateSeekAt state | not (Set.null (stateUnplaced state))]

-- | Adds a topic to a question that is sent at the end of this step.
ask :: PubSubConnection -> (Kind -> Ask) -> Topic -> State -> State
ask pubSub what name state = state {stateAsks = Map.insertWith (<>) (pubSub, what (topicKind name)) [name] (stateAsks state)}

-- | Sends the questions of this step, and gives up pub/sub connections that no topic needs.
finish :: Nanos -> State -> (State, [Action])
finish now state = (done {stateOut = []}, reverse (stateOut done))
  where
    asked = Map.foldlWithKey' (\st (pubSub, what) names -> sendQuestions now pubSub (map ((,) what) (pieces what (reverse names))) st) state {stateAsks = Map.empty} (stateAsks state)
    done = foldl' giveUp asked (Map.toList (Map.difference (stateLinks asked) (stateUse asked)))

    giveUp st (pubSub, link) =
      let st' = st {stateLinks = Map.delete pubSub (stateLinks st)}
       in case linkStage link of
            Open live -> emit (HangUp (liveNumber live) ClosedLocally) st'
            Opening number -> emit (HangUp number ClosedLocally) st'
            -- The home goes from one to the next, and back: each keeps its backoff.
            Idle _ | linkFailures link > 0, pubSubEndpoint pubSub `elem` foldMap serversPrimaries (stateServers st) -> st
            Idle _ -> st'

    -- One command about shard channels concerns one slot.
    pieces what names = concatMap chunks (if what `elem` [Subscribe OfShard, Unsubscribe OfShard] then bySlot names else [names])
    bySlot names = Map.elems (Map.fromListWith (flip (<>)) [(keySlot (topicName name), [name]) | name <- names])
    chunks = takeWhile (not . null) . List.unfoldr (Just . splitAt mostAtOnce)

-- | The most topics in one command: a server does nothing else while it handles the command.
mostAtOnce :: Int
mostAtOnce = 1000

-- | Sends questions on a pub/sub connection, if it is open.
sendQuestions :: Nanos -> PubSubConnection -> [(Ask, [Topic])] -> State -> State
sendQuestions now pubSub asks state = case Map.lookup pubSub (stateLinks state) of
  Just link@Link {linkStage = Open live} ->
    let questions = [Question {questionAsk, questionTopics, questionSent = now} | (questionAsk, questionTopics) <- asks]
     in emit
          (Send (liveNumber live) questions)
          (putLink pubSub link {linkStage = Open live {liveQuestions = foldl' (|>) (liveQuestions live) questions}} state)
  _ -> state

emit :: Action -> State -> State
emit action state = state {stateOut = action : stateOut state}

delayAfter :: Int -> State -> (Nanos, State)
delayAfter failures state =
  let (random, rest) = randomR (0, 1) (stateRandom state)
   in (nanosFromSeconds (delayFor (settingsBackoff (stateSettings state)) failures random), state {stateRandom = rest})

-- | The numbers of failures that stand for delays where none are counted. A server that ended a topic usually knows by
-- now which node has it. A server that refuses one topic refuses many.
soon, seldom, longest :: Int
(soon, seldom, longest) = (3, 5, 40)

earliest :: PendingGap -> PendingGap -> PendingGap
earliest (Just one) (Just other) = Just (min one other)
earliest one other = one <|> other

-- | The subscribers of a topic on this connection, if the server has confirmed it there.
subscribersAt :: State -> PubSubConnection -> Int -> Topic -> [SubscriberId]
subscribersAt state pubSub number name = case (liveAt state pubSub number, Map.lookup name (stateTopics state)) of
  (Just _, Just entry) | Just (Confirmed _) <- Map.lookup pubSub (entryStages entry) -> IntMap.keys (entrySubscribers entry)
  _ -> []

-- | Whether this subscriber hears the topic, or has heard it and is owed a gap.
isHeard :: State -> SubscriberId -> Topic -> Bool
isHeard state subscriber name = case Map.lookup name (stateTopics state) >>= IntMap.lookup subscriber . entrySubscribers of
  Just (Heard _) -> True
  _ -> False

-- | Whether the server still owes an answer about topics on this connection.
owesAnswer :: State -> PubSubConnection -> Int -> Bool
owesAnswer state pubSub number = any (any ((/= Probe) . questionAsk) . liveQuestions) (liveAt state pubSub number)

-- | The time up to which everything that was published has come on this connection.
provenAt :: State -> PubSubConnection -> Int -> Maybe Nanos
provenAt state pubSub number = liveProven <$> liveAt state pubSub number

-- | The last failure of a pub/sub connection on which one of these topics should be heard.
lastTrouble :: [Topic] -> State -> Maybe (Endpoint, ConnectionCause)
lastTrouble names state =
  listToMaybe
    [ (pubSubEndpoint pubSub, cause)
      | name <- names,
        pubSub <- pubSubsFor state name,
        Just Link {linkTrouble = Just cause} <- [Map.lookup pubSub (stateLinks state)]
    ]

-- | The time before which a pub/sub connection will not be opened, if it is not open.
idleUntil :: State -> PubSubConnection -> Maybe Nanos
idleUntil state pubSub = case linkStage <$> Map.lookup pubSub (stateLinks state) of
  Just (Idle notBefore) -> Just notBefore
  _ -> Nothing

data Event
  = Want SubscriberId [Topic]
  | Unwant SubscriberId [Topic]
  | ServersChanged Servers
  | -- | The connection with this number was opened for the pub/sub connection.
    Opened PubSubConnection Int
  | NotOpened PubSubConnection Int ConnectionCause
  | Lost PubSubConnection Int ConnectionCause
  | Said PubSubConnection Int Answer
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
-- event; events about a pub/sub connection or the servers concern all topics.
step :: Nanos -> Event -> State -> (State, [Action])
step now event = finish now . handle now event

handle :: Nanos -> Event -> State -> State
handle now event state = case event of
  Want subscriber topics -> foldl' (want subscriber) state topics
  Unwant subscriber topics -> foldl' (unwant subscriber) state topics
  ServersChanged servers -> foldl' (flip (settle now)) (rehome (const False) state {stateServers = Just servers}) (Map.keys (stateTopics state))
  Opened pubSub number -> case opening pubSub number of
    Just link -> settleAt now pubSub (putLink pubSub link {linkStage = Open (newLive pubSub number)} state)
    Nothing -> emit (HangUp number ClosedLocally) state
  NotOpened pubSub number cause -> maybe state (\link -> notOpened pubSub link cause state) (opening pubSub number)
  Lost pubSub number cause -> onLive pubSub number (\live -> lose now pubSub live cause) state
  Said pubSub number answer -> onLive pubSub number (\live -> said now pubSub live answer) state
  Tick heard -> tick now heard state
  where
    want subscriber st name = settle now name st {stateTopics = Map.alter (Just . wanting subscriber . fromMaybe noEntry) name (stateTopics st)}
    wanting subscriber entry = entry {entrySubscribers = IntMap.insertWith (\_ old -> old) subscriber New (entrySubscribers entry)}
    noEntry = Entry {entrySubscribers = IntMap.empty, entryStages = Map.empty, entryMissed = Nothing}
    opening pubSub number = listToMaybe [link | Just link@Link {linkStage = Opening expected} <- [Map.lookup pubSub (stateLinks state)], expected == number]
    unwant subscriber st name = settle now name (changeEntry name (\entry -> entry {entrySubscribers = IntMap.delete subscriber (entrySubscribers entry)}) st)

    newLive pubSub number =
      Live
        { liveNumber = number,
          liveSince = now,
          liveQuestions = Seq.empty,
          liveProven = now - forwardingAt pubSub state,
          liveProbeAt = now + settingsBeat (stateSettings state),
          liveProbed = Nothing,
          liveSilentAt = maxBound,
          liveAnswered = False
        }

    notOpened pubSub link cause st0 =
      let failures = linkFailures link + 1
          (delay, st1) = delayAfter failures st0
          st2 = putLink pubSub link {linkStage = Idle (now + delay), linkFailures = failures, linkTrouble = Just cause} st1
          unreachable = ConnectionError (ConnectionFailure "" NotSent (pubSubEndpoint pubSub) cause)
          refused = foldl' (\st name -> refuse now pubSub name unreachable st) st2 (if isPermanentCause cause then topicsAt pubSub st2 else [])
       in settleAt now pubSub (elsewhere pubSub (emit (Tell (LostNode (pubSubEndpoint pubSub))) refused))

-- | Acts on a connection if it is still the pub/sub connection's.
onLive :: PubSubConnection -> Int -> (Live -> State -> State) -> State -> State
onLive pubSub number act state = maybe state (`act` state) (liveAt state pubSub number)

lose :: Nanos -> PubSubConnection -> Live -> ConnectionCause -> State -> State
lose now pubSub live cause state = foldl' (flip (settle now)) (elsewhere pubSub (emit (Tell (LostNode (pubSubEndpoint pubSub))) fallen)) known
  where
    -- Those that were being left, too: they may be wanted again.
    known = topicsAt pubSub drawn
    -- A pub/sub connection that was well may be opened again at once, but not in an endless loop.
    (failures, pause, drawn)
      | liveAnswered live, now - liveSince live > settingsBeat (stateSettings state) = (0, 0, state)
      | otherwise =
        let count = maybe 0 linkFailures (Map.lookup pubSub (stateLinks state)) + 1
            (delay, state') = delayAfter count state
         in (count, delay, state')
    link = Link {linkStage = Idle (now + pause), linkFailures = failures, linkTrouble = Just cause}
    fallen = foldl' fall (putLink pubSub link drawn) known
    fall st name = case stageAt pubSub name st of
      Just (Asked pending) -> putStage name pubSub (Waiting pending now) st
      Just (Confirmed _) -> putStage name pubSub (Waiting (Just (liveProven live)) now) st
      Just Leaving -> dropStage name pubSub st
      Just Outdated -> dropStage name pubSub st
      _ -> st

-- | Moves ordinary channels to another node, if there is one.
elsewhere :: PubSubConnection -> State -> State
elsewhere pubSub state
  | Just (pubSubEndpoint pubSub) == stateHome state, pubSubDuty pubSub == ForMessages = rehome (== pubSubEndpoint pubSub) state
  | otherwise = state

-- | Chooses the node for ordinary channels, if there is none or it is to be avoided. The
-- caller settles the topics that have to move for it.
rehome :: (Endpoint -> Bool) -> State -> State
rehome avoided state = case (stateServers state, stateHome state) of
  (Nothing, _) -> state
  -- A node that is a primary no more may have been cut off, and nobody tells what it has missed.
  (Just servers, Just home) | home `elem` serversPrimaries servers, not (avoided home) -> state
  (Just servers, _) -> case filter (not . avoided) (serversPrimaries servers) of
    [] -> state {stateHome = listToMaybe (serversPrimaries servers)}
    candidates ->
      let (index, random) = randomR (0, length candidates - 1) (stateRandom state)
       in state {stateHome = listToMaybe (drop index candidates), stateRandom = random}

-- | How long a message may be on its way to a node that answers: another node may have taken it.
forwardingAt :: PubSubConnection -> State -> Nanos
forwardingAt pubSub state
  | maybe False serversClustered (stateServers state), pubSubDuty pubSub == ForMessages = settingsForwarding (stateSettings state)
  | otherwise = 0

said :: Nanos -> PubSubConnection -> Live -> Answer -> State -> State
said now pubSub live answer state = case answer of
  Began kind name -> began now pubSub (topicAt pubSub kind name) (fst (answered (isNext (Subscribe kind) name)))
  Ended kind name -> case answered (isNext (Unsubscribe kind) name) of
    (state', True) -> gone (topicAt pubSub kind name) state'
    (state', False) -> ended (topicAt pubSub kind name) state'
  Ponged -> fst (answered ((== Probe) . questionAsk))
  Refusal problem -> case liveQuestions live of
    -- The refusal of a question to end a shard channel, which the node's own end has answered already.
    question :<| _ | isOfSlot problem, questionAsk question `notElem` [Subscribe OfShard, Unsubscribe OfShard] -> state
    -- It proves nothing, because it may be of such a question.
    question :<| others -> refused problem question (withLive (proven question live {liveQuestions = others}) {liveProven = liveProven live} state)
    Empty -> state
  where
    isOfSlot problem = case parseRedirect problem of
      Just (Moved _ _) -> True
      Just ClusterDown -> True
      _ -> False
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
        { -- A server may end a shard channel by itself before it sees this question.
          liveProven = if questionAsk question == Unsubscribe OfShard then liveProven it else max (liveProven it) (questionSent question - forwardingAt pubSub state),
          liveProbed = if questionAsk question == Probe then Nothing else liveProbed it,
          liveAnswered = True
        }

    withLive it st = st {stateLinks = Map.adjust (\link -> link {linkStage = Open it, linkTrouble = Nothing}) pubSub (stateLinks st)}

    gone name st = case stageAt pubSub name st of
      Just Leaving -> settle now name (dropStage name pubSub st)
      _ -> st

    -- The server itself has ended the topic.
    ended name st = case stageAt pubSub name st of
      Just (Confirmed _) -> settle now name (emit (Tell (EndedShardChannel endpoint)) (later soon (Just (min (horizonAt now st) (liveProven live))) name (noteEnd st)))
      _ -> st
      where
        endpoint = pubSubEndpoint pubSub
        noteEnd known = known {stateEnded = Map.insert name (EndedAt endpoint (now + settingsDemotion (stateSettings st)) False) (stateEnded known)}

    later failures pending name st =
      let (delay, st') = delayAfter failures st
       in putStage name pubSub (Waiting pending (now + delay)) st'

    refused problem question st = case questionAsk question of
      Probe -> st
      Unsubscribe _ -> foldl' (flip gone) st (questionTopics question)
      Subscribe kind -> case (adviceOn (stateSettings st) pubSub (maybe False serversClustered (stateServers st)) problem, questionTopics question) of
        (Again triggers, names) -> foldl' (flip delayed) (foldl' (flip (emit . Tell)) st triggers) names
        (Anew, _) -> lose now pubSub live (HandshakeRefused problem) (emit (HangUp (liveNumber live) ClosedLocally) st)
        (Decided, [name]) -> refuse now pubSub name (ReplyError problem) st
        -- One of several topics is refused; the server does not say which.
        (Decided, names) ->
          let (some, others) = splitAt (length names `quot` 2) names
           in sendQuestions now pubSub [(Subscribe kind, some), (Subscribe kind, others)] st

    delayed name st = case stageAt pubSub name st of
      Just (Asked pending) -> settle now name (later longest pending name st)
      Just Outdated -> settle now name (dropStage name pubSub st)
      _ -> st

-- | The reaction to a question that was refused.
data Advice
  = -- | Ask again later.
    Again [Trigger]
  | -- | Ask again on a new connection.
    Anew
  | Decided

adviceOn :: Settings -> PubSubConnection -> Bool -> ServerError -> Advice
adviceOn settings pubSub clustered problem = case parseRedirect problem of
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
    endpoint = pubSubEndpoint pubSub

began :: Nanos -> PubSubConnection -> Topic -> State -> State
began now pubSub name state = case (Map.lookup name (stateTopics state), stageAt pubSub name state) of
  (Just entry, Just stage)
    | Just pending <- pendingOf stage ->
      let owed = earliest pending (entryMissed entry)
       in if IntMap.null (entrySubscribers entry) || pubSub `notElem` pubSubsFor state name
            then leave pubSub name state
            else case Map.lookup name (stateEnded state) of
              Just ended
                | endedAt ended == pubSubEndpoint pubSub ->
                  settle now name (leave pubSub name (owing owed name state {stateEnded = Map.insert name ended {endedAccepts = True} (stateEnded state)}))
              _ -> promote now name (maybe id (closeGap name) owed (putStage name pubSub (Confirmed now) (owing Nothing name state)))
  (Just _, Just Outdated) -> leave pubSub name state
  _ -> state
  where
    pendingOf = \case
      Asked pending -> Just pending
      Waiting pending _ -> Just pending
      _ -> Nothing

-- | Reports a gap to the subscribers that have heard the topic before.
closeGap :: Topic -> Nanos -> State -> State
closeGap name since = onEntry name $ \entry state ->
  foldl' (flip emit) state [Missed subscriber name (max since from) | (subscriber, Heard from) <- IntMap.toList (entrySubscribers entry)]

-- | Notes the pending gap of a topic that belongs to no pub/sub connection.
owing :: PendingGap -> Topic -> State -> State
owing pending name = changeEntry name (\entry -> entry {entryMissed = pending})

refuse :: Nanos -> PubSubConnection -> Topic -> Error -> State -> State
refuse now pubSub name problem = onEntry name $ \entry state ->
  settle now name (foldl' told (changeEntry name refusedEntry state) (IntMap.toList (entrySubscribers entry)))
  where
    -- The open question has its answer.
    refusedEntry entry = entry {entrySubscribers = IntMap.empty, entryStages = Map.adjust unasked pubSub (entryStages entry)}
    unasked = \case
      Asked _ -> Waiting Nothing now
      Outdated -> Waiting Nothing now
      other -> other
    told st (subscriber, standing) = case standing of
      New -> emit (Refuse subscriber name problem) st
      Heard _ -> emit (EndSubscriber subscriber problem) st

-- | Moves a topic to the pub/sub connections where it should be heard.
settle :: Nanos -> Topic -> State -> State
settle now name = onEntry name $ \entry state ->
  if IntMap.null (entrySubscribers entry)
    then forget name (foldl' unheard state (Map.toList (entryStages entry)))
    else promote now name (foldl' (goOn now name) (placed now name entry state) (pubSubsFor state name))
  where
    unheard st (pubSub, stage) = case stage of
      Waiting _ _ -> dropStage name pubSub st
      Asked _ -> putStage name pubSub (Asked Nothing) st
      Outdated -> st
      Confirmed _ -> leave pubSub name st
      Leaving -> st

-- | Forgets a topic, unless a subscriber wants it or a pub/sub connection still has a stage for it.
forget :: Topic -> State -> State
forget name = onEntry name $ \entry state ->
  if IntMap.null (entrySubscribers entry) && Map.null (entryStages entry)
    then state {stateTopics = Map.delete name (stateTopics state), stateUnplaced = Set.delete name (stateUnplaced state)}
    else state

-- | Gives a topic a stage on each pub/sub connection where it should be heard, and takes it off all
-- others, whose pending gaps are passed on.
placed :: Nanos -> Topic -> Entry -> State -> State
placed now name entry state = settled {stateUnplaced = (if null wanted then Set.insert else Set.delete) name (stateUnplaced settled)}
  where
    wanted = pubSubsFor state name
    added = filter (`Map.notMember` entryStages entry) wanted
    removed = filter ((`notElem` wanted) . fst) (Map.toList (entryStages entry))
    everywhere = case name of
      KeyEvents _ -> True
      _ -> False
    heard = or [True | Heard _ <- IntMap.elems (entrySubscribers entry)]
    horizon = horizonAt now state

    (left, owedByThem) = foldl' away (state, entryMissed entry) removed
    away (st, owed) (pubSub, stage) = case stage of
      Waiting pending _ -> (dropStage name pubSub st, earliest (wrongFor pending) owed)
      Asked pending -> (putStage name pubSub Outdated st, earliest (wrongFor pending) owed)
      Outdated -> (st, owed)
      Confirmed _ -> (leave pubSub name st, earliest (Just (missedSince pubSub)) owed)
      Leaving -> (st, owed)

    wrongFor = case name of
      ShardChannel _ -> fmap (min horizon)
      _ -> id

    -- A topic may have been elsewhere for as long as the map is old, but a node that is no primary any more
    -- has no newer key events.
    missedSince pubSub = if everywhere then proven else min horizon proven
      where
        proven = case linkStage <$> Map.lookup pubSub (stateLinks state) of
          Just (Open live) -> liveProven live
          _ -> horizon

    settled
      | not (null added) = foldl' (\st pubSub -> putStage name pubSub (Waiting pendingGapOfNew now) st) (owing Nothing name left) added
      -- No other pub/sub connection takes the pending gap over, so it is paid here.
      | everywhere, not (null wanted) = maybe id (closeGap name) owedByThem (owing Nothing name left)
      | otherwise = owing owedByThem name left
    pendingGapOfNew
      | not heard = Nothing
      | everywhere = earliest (Just horizon) owedByThem
      | otherwise = owedByThem

-- | The earliest time at which the map in use may have been made, as long as refreshes succeed at nodes
-- that are not cut off. A slot that has left its node has done so since then.
horizonAt :: Nanos -> State -> Nanos
horizonAt now state = now - settingsHorizon (stateSettings state)

-- | Asks for a topic on a pub/sub connection where it waits, if that is possible now.
goOn :: Nanos -> Topic -> State -> PubSubConnection -> State
goOn now name state pubSub = case stageAt pubSub name state of
  Just (Waiting pending notBefore)
    | notBefore > now -> state {stateDelayed = Set.insert (pubSub, name) (stateDelayed state)}
    | Just Link {linkStage = Open _} <- Map.lookup pubSub (stateLinks state) -> ask pubSub Subscribe name (putStage name pubSub (Asked pending) state)
    | otherwise -> openDue now pubSub state
  _ -> state

openDue :: Nanos -> PubSubConnection -> State -> State
openDue now pubSub state = case Map.lookup pubSub (stateLinks state) of
  Nothing -> opening Link {linkStage = Idle now, linkFailures = 0, linkTrouble = Nothing}
  Just link@Link {linkStage = Idle notBefore} | notBefore <= now -> opening link
  _ -> state
  where
    opening link =
      let number = stateNumber state + 1
       in emit (OpenPubSub pubSub number) (putLink pubSub link {linkStage = Opening number} state {stateNumber = number})

-- | Notes that a topic's subscribers hear it, once every pub/sub connection has confirmed it.
promote :: Nanos -> Topic -> State -> State
promote now name = onEntry name $ \entry state ->
  let wanted = pubSubsFor state name
      confirmed = [pubSub | pubSub <- wanted, Just (Confirmed _) <- [Map.lookup pubSub (entryStages entry)]]
   in if not (null wanted) && confirmed == wanted then changeEntry name (\known -> known {entrySubscribers = IntMap.map heard (entrySubscribers known)}) state else state
  where
    heard = \case
      New -> Heard now
      since -> since

leave :: PubSubConnection -> Topic -> State -> State
leave pubSub name = ask pubSub Unsubscribe name . putStage name pubSub Leaving

settleAt :: Nanos -> PubSubConnection -> State -> State
settleAt now pubSub state = foldl' (flip (settle now)) state (topicsAt pubSub state)

tick :: Nanos -> IntMap Nanos -> State -> State
tick now heard state = seek (foldl' due (foldl' atLink known (Map.toList (stateLinks state))) waited)
  where
    (left, past) = Map.partition ((> now) . endedUntil) (stateEnded state)
    known = foldl' (flip (settle now)) state {stateEnded = left} (Map.keys past)
    settings = stateSettings state
    waited = [(pubSub, name) | (pubSub, name) <- Set.toList (stateDelayed state), isDue (stageAt pubSub name state)]
    isDue = \case
      Just (Waiting _ notBefore) -> notBefore <= now
      _ -> True
    due st (pubSub, name) = settle now name st {stateDelayed = Set.delete (pubSub, name) (stateDelayed st)}

    atLink st (pubSub, link) = case linkStage link of
      Idle _ | pubSub `Map.member` stateUse st -> openDue now pubSub st
      Open live -> alive st pubSub link live
      _ -> st

    alive st pubSub link live = case (settingsSilence settings, liveProbed live) of
      (Just limit, Just probed)
        | quiet <- now - max probed lastHeard,
          quiet >= limit ->
          let cause = SilentPeer (durationFromNanos (now - lastHeard)) in lose now pubSub live cause (emit (HangUp (liveNumber live) cause) st)
        | otherwise -> beat st pubSub link live {liveSilentAt = max probed lastHeard + limit}
      _ -> beat st pubSub link live
      where
        lastHeard = IntMap.findWithDefault (liveSince live) (liveNumber live) heard

    beat st pubSub link live
      | now < liveProbeAt live = kept live
      | isNothing (liveProbed live) =
        sendQuestions now pubSub [(Probe, [])] (kept next {liveProbed = Just now, liveSilentAt = maybe maxBound (now +) (settingsSilence settings)})
      | otherwise = kept next
      where
        next = live {liveProbeAt = now + settingsBeat settings}
        kept it = putLink pubSub link {linkStage = Open it} st

    -- The servers may have changed.
    seek st
      | now < stateSeekAt st = st
      | Just name <- Set.lookupMin (stateUnplaced st) =
        let (delay, st') = delayAfter seldom st
         in emit (Tell (missing name)) st' {stateSeekAt = now + delay}
      | otherwise = st
    missing = \case
      ShardChannel channel | Just _ <- stateServers state -> SawUncovered (keySlot channel)
      _ -> SawNobody
