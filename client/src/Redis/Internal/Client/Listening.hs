-- | The state of "Redis.Internal.Client.Subscribing": for each topic its subscribers and its
-- stage on each pub/sub connection, and for each pub/sub connection its state. This module has the types, and the
-- small changes that keep them consistent with each other.
module Redis.Internal.Client.Listening
  ( State (..),
    Settings (..),
    newState,

    -- * Topics
    SubscriberId,
    Entry (..),
    Standing (..),
    Stage (..),
    PendingGap,
    earliest,
    isConfirmed,
    topicAt,
    pubSubsFor,
    topicsAt,
    stageAt,
    putStage,
    dropStage,
    without,

    -- * Lines
    Servers (..),
    PubSubConnection (..),
    Duty (..),
    Link (..),
    LinkStage (..),
    Live (..),
    delayAfter,
    nextDue,

    -- * Asking
    Question (..),
    Ask (..),
    ask,
    sendQuestions,
    Action (..),
    emit,
    finish,

    -- * Looking
    subscribersAt,
    isHeard,
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
import Data.Maybe (catMaybes, isNothing, listToMaybe, mapMaybe)
import Data.Sequence (Seq, (|>))
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Backoff (delayFor)
import Redis.Internal.Client.Topic
import Redis.Internal.Config (AddressMapping, Backoff)
import Redis.Internal.Network.Runtime (Nanos, nanosFromSeconds)
import Redis.Internal.Protocol.Slot (Slot, keySlot)
import Redis.Internal.Routing.Topology (Trigger (..))
import System.Random (StdGen, randomR)

-- | The number of a subscription of the program.
type SubscriberId = Int

-- | The node that a connection for subscriptions leads to, and its duty.
data PubSubConnection = PubSubConnection
  { pubSubEndpoint :: Endpoint,
    pubSubDuty :: Duty
  }
  deriving stock (Eq, Ord, Show)

-- | The kind of topics that a pub/sub connection carries. Key events have pub/sub connections of their own: the program
-- may also want one of their patterns as an ordinary one, and a server knows a pattern only
-- once for each connection.
data Duty = ForMessages | ForKeyEvents
  deriving stock (Eq, Ord, Show)

-- | The servers, and their roles.
data Servers = Servers
  { -- | At least one endpoint.
    serversPrimaries :: [Endpoint],
    serversMembers :: Set Endpoint,
    serversOwner :: Slot -> Maybe Endpoint,
    serversClustered :: Bool
  }

-- | The settings, which do not change.
data Settings = Settings
  { settingsBackoff :: Backoff,
    -- | How long a pub/sub connection may be silent after a probe.
    settingsSilence :: Maybe Nanos,
    -- | The time between two probes.
    settingsBeat :: Nanos,
    -- | The greatest age of a slot map that is in use.
    settingsHorizon :: Nanos,
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

-- | The state of a pub/sub connection.
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

-- | An open connection.
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

-- | A question to a server.
data Question = Question
  { questionAsk :: Ask,
    -- | The topics without an answer.
    questionTopics :: [Topic],
    questionSent :: Nanos
  }
  deriving stock (Eq, Show)

-- | The kind of a question.
data Ask
  = Subscribe Kind
  | Unsubscribe Kind
  | -- | PING.
    Probe
  deriving stock (Eq, Ord, Show)

-- | The whole state.
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
    -- | When to ask for news because of topics without a node.
    stateSeekAt :: Nanos,
    stateNumber :: Int,
    stateRandom :: StdGen,
    -- | The questions and the actions of the current step, the last one first.
    stateAsks :: Map (PubSubConnection, Ask) [Topic],
    stateOut :: [Action]
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

-- | The state when no topic is wanted.
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
      stateSeekAt = 0,
      stateNumber = 0,
      stateRandom,
      stateAsks = Map.empty,
      stateOut = []
    }

isConfirmed :: Stage -> Bool
isConfirmed = \case
  Confirmed _ -> True
  _ -> False

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
    ShardChannel channel -> [PubSubConnection endpoint ForMessages | Just endpoint <- [serversOwner servers (keySlot channel)]]
    KeyEvents _ -> [PubSubConnection endpoint ForKeyEvents | endpoint <- serversPrimaries servers]
    _ -> [PubSubConnection endpoint ForMessages | Just endpoint <- [stateHome state]]

topicsAt :: PubSubConnection -> State -> [Topic]
topicsAt pubSub state = [name | (name, entry) <- Map.toList (stateTopics state), pubSub `Map.member` entryStages entry]

stageAt :: PubSubConnection -> Topic -> State -> Maybe Stage
stageAt pubSub name state = Map.lookup name (stateTopics state) >>= Map.lookup pubSub . entryStages

putStage :: Topic -> PubSubConnection -> Stage -> State -> State
putStage name pubSub stage state =
  state
    { stateTopics = Map.adjust (\entry -> entry {entryStages = Map.insert pubSub stage (entryStages entry)}) name (stateTopics state),
      stateUse = if isNothing (stageAt pubSub name state) then Map.insertWith (+) pubSub 1 (stateUse state) else stateUse state
    }

dropStage :: Topic -> PubSubConnection -> State -> State
dropStage name pubSub state =
  state
    { stateTopics = Map.adjust (\entry -> entry {entryStages = Map.delete pubSub (entryStages entry)}) name (stateTopics state),
      stateUse = if isNothing (stageAt pubSub name state) then stateUse state else Map.update (\count -> if count > 1 then Just (count - 1) else Nothing) pubSub (stateUse state)
    }

without :: SubscriberId -> Topic -> State -> State
without subscriber name state = state {stateTopics = Map.adjust (\entry -> entry {entrySubscribers = IntMap.delete subscriber (entrySubscribers entry)}) name (stateTopics state)}

-- | When the next @Tick@ is due; never, if nothing is wanted. \(O(n)\) in the pub/sub connections and in
-- the topics that are to be asked for again.
nextDue :: State -> Maybe Nanos
nextDue state = List.foldl' (\known one -> Just (maybe one (min one) known)) Nothing (concat [links, delayed, unplaced])
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
            Idle _ -> st'

    -- One command about shard channels concerns one slot.
    pieces what names = concatMap chunks $ case what of
      Subscribe OfShard -> bySlot names
      Unsubscribe OfShard -> bySlot names
      _ -> [names]
    bySlot names = Map.elems (Map.fromListWith (flip (<>)) [(keySlot (topicName name), [name]) | name <- names])
    chunks = \case
      [] -> []
      names -> let (some, others) = splitAt mostAtOnce names in some : chunks others

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
          state {stateLinks = Map.insert pubSub link {linkStage = Open live {liveQuestions = foldl' (|>) (liveQuestions live) questions}} (stateLinks state)}
  _ -> state

emit :: Action -> State -> State
emit action state = state {stateOut = action : stateOut state}

-- | The delay after so many failures.
delayAfter :: Int -> State -> (Nanos, State)
delayAfter failures state =
  let (random, rest) = randomR (0, 1) (stateRandom state)
   in (nanosFromSeconds (delayFor (settingsBackoff (stateSettings state)) failures random), state {stateRandom = rest})

earliest :: PendingGap -> PendingGap -> PendingGap
earliest (Just one) (Just other) = Just (min one other)
earliest one other = one <|> other

-- | The subscribers of a topic on this connection, if the server has confirmed it there.
subscribersAt :: State -> PubSubConnection -> Int -> Topic -> [SubscriberId]
subscribersAt state pubSub number name = case Map.lookup pubSub (stateLinks state) of
  Just Link {linkStage = Open live}
    | liveNumber live == number,
      Just entry <- Map.lookup name (stateTopics state),
      Just (Confirmed _) <- Map.lookup pubSub (entryStages entry) ->
      IntMap.keys (entrySubscribers entry)
  _ -> []

-- | Whether this subscriber hears the topic, or has heard it and is owed a gap.
isHeard :: State -> SubscriberId -> Topic -> Bool
isHeard state subscriber name = case Map.lookup name (stateTopics state) >>= IntMap.lookup subscriber . entrySubscribers of
  Just (Heard _) -> True
  _ -> False

-- | The time up to which everything that was published has come on this connection.
provenAt :: State -> PubSubConnection -> Int -> Maybe Nanos
provenAt state pubSub number = case Map.lookup pubSub (stateLinks state) of
  Just Link {linkStage = Open live} | liveNumber live == number -> Just (liveProven live)
  _ -> Nothing

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
