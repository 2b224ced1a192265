-- | The state of "Redis.Internal.Client.Subscribing": for each topic its subscribers and its
-- stage on each line, and for each line its connection. This module has the types, and the
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
    linesFor,
    topicsAt,
    stageAt,
    putStage,
    dropStage,
    without,

    -- * Lines
    Servers (..),
    Line (..),
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
import Redis.Internal.Network.Clock (Nanos, nanosFromSeconds)
import Redis.Internal.Protocol.Slot (Slot, keySlot)
import Redis.Internal.Routing.Topology (Trigger (..))
import System.Random (StdGen, randomR)

-- | The number of a subscription of the program.
type SubscriberId = Int

-- | The node that a connection for subscriptions leads to, and its duty.
data Line = Line
  { lineEndpoint :: Endpoint,
    lineDuty :: Duty
  }
  deriving stock (Eq, Ord, Show)

-- | The kind of topics that a line carries. Key events have lines of their own: the program
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
    -- | How long a line may be silent after a probe.
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

-- | The stage of a topic on a line.
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
    entryStages :: Map Line Stage,
    -- | The pending gap that belongs to no line.
    entryMissed :: PendingGap
  }

-- | The state of a line.
data Link = Link
  { linkStage :: LinkStage,
    -- | Failures since the line was last known to be well.
    linkFailures :: Int,
    -- | Why the line failed last, until it is well again.
    linkTrouble :: Maybe ConnectionCause
  }

data LinkStage
  = -- | The line must not be opened before this time.
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
    -- | When to check whether the line was silent for too long.
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
    stateLinks :: Map Line Link,
    -- | How many topics have a stage on each line.
    stateUse :: Map Line Int,
    -- | Topics that are to be asked for again later.
    stateDelayed :: Set (Line, Topic),
    -- | Topics for which no node is known.
    stateUnplaced :: Set Topic,
    -- | When to ask for news because of topics without a node.
    stateSeekAt :: Nanos,
    stateNumber :: Int,
    stateRandom :: StdGen,
    -- | The questions and the actions of the current step, the last one first.
    stateAsks :: Map (Line, Ask) [Topic],
    stateOut :: [Action]
  }

-- | An action for the driver. Actions are done in their order.
data Action
  = OpenLine Line Int
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
topicAt :: Line -> Kind -> ByteString -> Topic
topicAt line kind name = case (kind, lineDuty line) of
  (OfChannel, _) -> Channel name
  (OfPattern, ForMessages) -> Pattern name
  (OfPattern, ForKeyEvents) -> KeyEvents name
  (OfShard, _) -> ShardChannel name

-- | The lines on which a topic should be heard.
linesFor :: State -> Topic -> [Line]
linesFor state name = case stateServers state of
  Nothing -> []
  Just servers -> case name of
    ShardChannel channel -> [Line endpoint ForMessages | Just endpoint <- [serversOwner servers (keySlot channel)]]
    KeyEvents _ -> [Line endpoint ForKeyEvents | endpoint <- serversPrimaries servers]
    _ -> [Line endpoint ForMessages | Just endpoint <- [stateHome state]]

topicsAt :: Line -> State -> [Topic]
topicsAt line state = [name | (name, entry) <- Map.toList (stateTopics state), line `Map.member` entryStages entry]

stageAt :: Line -> Topic -> State -> Maybe Stage
stageAt line name state = Map.lookup name (stateTopics state) >>= Map.lookup line . entryStages

putStage :: Topic -> Line -> Stage -> State -> State
putStage name line stage state =
  state
    { stateTopics = Map.adjust (\entry -> entry {entryStages = Map.insert line stage (entryStages entry)}) name (stateTopics state),
      stateUse = if isNothing (stageAt line name state) then Map.insertWith (+) line 1 (stateUse state) else stateUse state
    }

dropStage :: Topic -> Line -> State -> State
dropStage name line state =
  state
    { stateTopics = Map.adjust (\entry -> entry {entryStages = Map.delete line (entryStages entry)}) name (stateTopics state),
      stateUse = if isNothing (stageAt line name state) then stateUse state else Map.update (\count -> if count > 1 then Just (count - 1) else Nothing) line (stateUse state)
    }

without :: SubscriberId -> Topic -> State -> State
without subscriber name state = state {stateTopics = Map.adjust (\entry -> entry {entrySubscribers = IntMap.delete subscriber (entrySubscribers entry)}) name (stateTopics state)}

-- | When the next @Tick@ is due; never, if nothing is wanted. \(O(n)\) in the lines and in
-- the topics that are to be asked for again.
nextDue :: State -> Maybe Nanos
nextDue state = List.foldl' (\known one -> Just (maybe one (min one) known)) Nothing (concat [links, delayed, unplaced])
  where
    links = mapMaybe ofLink (Map.toList (stateLinks state))
    ofLink (line, link) = case linkStage link of
      Idle notBefore | line `Map.member` stateUse state -> Just notBefore
      Open live -> Just (min (liveProbeAt live) (maybe maxBound (const (liveSilentAt live)) (liveProbed live)))
      _ -> Nothing
    delayed = catMaybes [stageAt line name state >>= notBeforeOf | (line, name) <- Set.toList (stateDelayed state)]
    notBeforeOf = \case
      Waiting _ notBefore -> Just notBefore
      _ -> Just 0
    unplaced = [stateSeekAt state | not (Set.null (stateUnplaced state))]

-- | Adds a topic to a question that is sent at the end of this step.
ask :: Line -> (Kind -> Ask) -> Topic -> State -> State
ask line what name state = state {stateAsks = Map.insertWith (<>) (line, what (topicKind name)) [name] (stateAsks state)}

-- | Sends the questions of this step, and gives up lines that no topic needs.
finish :: Nanos -> State -> (State, [Action])
finish now state = (done {stateOut = []}, reverse (stateOut done))
  where
    asked = Map.foldlWithKey' (\st (line, what) names -> sendQuestions now line (map ((,) what) (pieces what (reverse names))) st) state {stateAsks = Map.empty} (stateAsks state)
    done = foldl' giveUp asked (Map.toList (Map.difference (stateLinks asked) (stateUse asked)))

    giveUp st (line, link) =
      let st' = st {stateLinks = Map.delete line (stateLinks st)}
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

-- | Sends questions on a line, if it is open.
sendQuestions :: Nanos -> Line -> [(Ask, [Topic])] -> State -> State
sendQuestions now line asks state = case Map.lookup line (stateLinks state) of
  Just link@Link {linkStage = Open live} ->
    let questions = [Question {questionAsk, questionTopics, questionSent = now} | (questionAsk, questionTopics) <- asks]
     in emit
          (Send (liveNumber live) questions)
          state {stateLinks = Map.insert line link {linkStage = Open live {liveQuestions = foldl' (|>) (liveQuestions live) questions}} (stateLinks state)}
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
subscribersAt :: State -> Line -> Int -> Topic -> [SubscriberId]
subscribersAt state line number name = case Map.lookup line (stateLinks state) of
  Just Link {linkStage = Open live}
    | liveNumber live == number,
      Just entry <- Map.lookup name (stateTopics state),
      Just (Confirmed _) <- Map.lookup line (entryStages entry) ->
      IntMap.keys (entrySubscribers entry)
  _ -> []

-- | Whether this subscriber hears the topic, or has heard it and is owed a gap.
isHeard :: State -> SubscriberId -> Topic -> Bool
isHeard state subscriber name = case Map.lookup name (stateTopics state) >>= IntMap.lookup subscriber . entrySubscribers of
  Just (Heard _) -> True
  _ -> False

-- | The time up to which everything that was published has come on this connection.
provenAt :: State -> Line -> Int -> Maybe Nanos
provenAt state line number = case Map.lookup line (stateLinks state) of
  Just Link {linkStage = Open live} | liveNumber live == number -> Just (liveProven live)
  _ -> Nothing

-- | The last failure of a line on which one of these topics should be heard.
lastTrouble :: [Topic] -> State -> Maybe (Endpoint, ConnectionCause)
lastTrouble names state =
  listToMaybe
    [ (lineEndpoint line, cause)
      | name <- names,
        line <- linesFor state name,
        Just Link {linkTrouble = Just cause} <- [Map.lookup line (stateLinks state)]
    ]

-- | The time before which a line will not be opened, if it is not open.
idleUntil :: State -> Line -> Maybe Nanos
idleUntil state line = case linkStage <$> Map.lookup line (stateLinks state) of
  Just (Idle notBefore) -> Just notBefore
  _ -> Nothing
