-- | What "Redis.Internal.Client.Subscribing" knows: for each topic who wants it and how
-- far it is on which line, and for each line how it stands. Here are the parts, and the
-- small changes that keep them in step with each other.
module Redis.Internal.Client.Listening
  ( State (..),
    Settings (..),
    newState,

    -- * Topics
    Hearer,
    Entry (..),
    Standing (..),
    Stage (..),
    Debt,
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
    hearersAt,
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
import Data.Maybe (catMaybes, isNothing, mapMaybe)
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

-- | A subscription of the program's, by its number.
type Hearer = Int

-- | Where a connection for subscriptions leads, and what for.
data Line = Line
  { lineEndpoint :: Endpoint,
    lineDuty :: Duty
  }
  deriving stock (Eq, Ord, Show)

-- | What a line carries. Key events have lines of their own: one of their patterns may
-- also be wanted as an ordinary one, and a server knows it once for each connection.
data Duty = ForMessages | ForKeyEvents
  deriving stock (Eq, Ord, Show)

-- | Who the servers are.
data Servers = Servers
  { -- | At least one.
    serversPrimaries :: [Endpoint],
    serversMembers :: Set Endpoint,
    serversOwner :: Slot -> Maybe Endpoint,
    serversClustered :: Bool
  }

-- | What stays the same.
data Settings = Settings
  { settingsBackoff :: Backoff,
    -- | How long a line that was probed may be silent.
    settingsSilence :: Maybe Nanos,
    -- | Between two probes.
    settingsBeat :: Nanos,
    -- | No look at the servers is older.
    settingsHorizon :: Nanos,
    -- | Where the nodes that redirects name are reached.
    settingsMapping :: AddressMapping
  }

-- | How a hearer stands to a topic.
data Standing
  = -- | Not confirmed yet since it was wanted.
    New
  | -- | Heard since then, but for the gaps.
    Heard Nanos
  deriving stock (Eq, Show)

-- | Since when something may be missed, if something may.
type Debt = Maybe Nanos

-- | How far a topic is on a line.
data Stage
  = -- | To be asked for, not before this time.
    Waiting Debt Nanos
  | Asked Debt
  | -- | Since then.
    Confirmed Nanos
  | -- | The server was told that it is not wanted, and has not answered.
    Leaving
  deriving stock (Eq, Show)

data Entry = Entry
  { entryHearers :: IntMap Standing,
    entryStages :: Map Line Stage,
    -- | What is owed by no line.
    entryMissed :: Debt
  }

-- | A line, as it stands.
data Link = Link
  { linkStage :: LinkStage,
    -- | Since it was last known to be well.
    linkFailures :: Int,
    -- | Why it failed last, until it is well again.
    linkTrouble :: Maybe ConnectionCause
  }

data LinkStage
  = -- | Not to be opened before then.
    Idle Nanos
  | Opening Int
  | Open Live

-- | An open connection.
data Live = Live
  { liveNumber :: Int,
    liveSince :: Nanos,
    -- | Unanswered, the oldest first.
    liveQuestions :: Seq Question,
    -- | What was published before this has come.
    liveProven :: Nanos,
    liveProbeAt :: Nanos,
    -- | When the probe was sent that is not answered.
    liveProbed :: Maybe Nanos,
    -- | When it may have been silent for too long.
    liveSilentAt :: Nanos,
    liveAnswered :: Bool
  }

-- | What a server is asked.
data Question = Question
  { questionAsk :: Ask,
    -- | Those that are not answered.
    questionTopics :: [Topic],
    questionSent :: Nanos
  }
  deriving stock (Eq, Show)

-- | What is asked.
data Ask
  = Subscribe Kind
  | Unsubscribe Kind
  | -- | PING.
    Probe
  deriving stock (Eq, Ord, Show)

-- | Everything that is known.
data State = State
  { stateSettings :: Settings,
    stateServers :: Maybe Servers,
    -- | The one node that ordinary channels are heard at.
    stateHome :: Maybe Endpoint,
    stateTopics :: Map Topic Entry,
    stateLinks :: Map Line Link,
    -- | How many topics have a stage there.
    stateUse :: Map Line Int,
    -- | To be asked for again later.
    stateDelayed :: Set (Line, Topic),
    -- | Nobody is known to have them.
    stateUnplaced :: Set Topic,
    -- | When to ask for news of those.
    stateSeekAt :: Nanos,
    stateNumber :: Int,
    stateRandom :: StdGen,
    -- | Of this step: what is to be asked, and to be done, last first.
    stateAsks :: Map (Line, Ask) [Topic],
    stateOut :: [Action]
  }

-- | What to do, in this order.
data Action
  = OpenLine Line Int
  | Send Int [Question]
  | HangUp Int ConnectionCause
  | -- | Of this topic the hearer may have missed something from then until now.
    Missed Hearer Topic Nanos
  | -- | The server will not; the hearer has not been hearing it.
    Refuse Hearer Topic Error
  | -- | The same, for one that has.
    EndHearer Hearer Error
  | Tell Trigger
  deriving stock (Eq, Show)

-- | Nothing is wanted.
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

-- | What it is that a server names so.
topicAt :: Line -> Kind -> ByteString -> Topic
topicAt line kind name = case (kind, lineDuty line) of
  (OfChannel, _) -> Channel name
  (OfPattern, ForMessages) -> Pattern name
  (OfPattern, ForKeyEvents) -> KeyEvents name
  (OfShard, _) -> ShardChannel name

-- | Where a topic should be heard.
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

without :: Hearer -> Topic -> State -> State
without hearer name state = state {stateTopics = Map.adjust (\entry -> entry {entryHearers = IntMap.delete hearer (entryHearers entry)}) name (stateTopics state)}

-- | When the next @Tick@ is due; never, if nothing is wanted. \(O(n)\) in the lines and
-- in what is to be asked again.
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

-- | To be asked at the end of this step, with others.
ask :: Line -> (Kind -> Ask) -> Topic -> State -> State
ask line what name state = state {stateAsks = Map.insertWith (<>) (line, what (topicKind name)) [name] (stateAsks state)}

-- | Asks what is to be asked, and gives up lines that nobody needs.
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

    -- A command about channels of shards is about one slot.
    pieces what names = concatMap chunks $ case what of
      Subscribe OfShard -> bySlot names
      Unsubscribe OfShard -> bySlot names
      _ -> [names]
    bySlot names = Map.elems (Map.fromListWith (flip (<>)) [(keySlot (topicName name), [name]) | name <- names])
    chunks = \case
      [] -> []
      names -> let (some, others) = splitAt mostAtOnce names in some : chunks others

-- | Topics of one command. A server does nothing else meanwhile.
mostAtOnce :: Int
mostAtOnce = 1000

-- | Asks on a line, if it is open.
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

-- | After so many failures.
delayAfter :: Int -> State -> (Nanos, State)
delayAfter failures state =
  let (random, rest) = randomR (0, 1) (stateRandom state)
   in (nanosFromSeconds (delayFor (settingsBackoff (stateSettings state)) failures random), state {stateRandom = rest})

earliest :: Debt -> Debt -> Debt
earliest (Just one) (Just other) = Just (min one other)
earliest one other = one <|> other

-- | Who hears what comes on this connection under this name, and as what.
hearersAt :: State -> Line -> Int -> Topic -> [Hearer]
hearersAt state line number name = case Map.lookup line (stateLinks state) of
  Just Link {linkStage = Open live}
    | liveNumber live == number,
      Just entry <- Map.lookup name (stateTopics state),
      Just (Confirmed _) <- Map.lookup line (entryStages entry) ->
      IntMap.keys (entryHearers entry)
  _ -> []

-- | Whether this hearer hears the topic, or has heard it and is owed a gap.
isHeard :: State -> Hearer -> Topic -> Bool
isHeard state hearer name = case Map.lookup name (stateTopics state) >>= IntMap.lookup hearer . entryHearers of
  Just (Heard _) -> True
  _ -> False

-- | Up to when everything that was published has come on this connection.
provenAt :: State -> Line -> Int -> Maybe Nanos
provenAt state line number = case Map.lookup line (stateLinks state) of
  Just Link {linkStage = Open live} | liveNumber live == number -> Just (liveProven live)
  _ -> Nothing

-- | Why a line that is needed cannot be had.
lastTrouble :: State -> Maybe (Endpoint, ConnectionCause)
lastTrouble state = List.find (const True) [(lineEndpoint line, cause) | (line, Link {linkTrouble = Just cause}) <- Map.toList (stateLinks state)]

-- | Before when it will not be opened, if it is not open.
idleUntil :: State -> Line -> Maybe Nanos
idleUntil state line = case linkStage <$> Map.lookup line (stateLinks state) of
  Just (Idle notBefore) -> Just notBefore
  _ -> Nothing
