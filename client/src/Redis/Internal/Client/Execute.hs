-- | Running one command to its end: place it, send it, and, if it fails, do
-- what the retry policy says until there is a result.
--
-- The ordinary path is short: one look-up, one submit, one decode. Everything
-- else (@recover@, split commands, blocking commands, commands whose keys the
-- server must name) is kept out of it.
module Redis.Internal.Client.Execute
  ( Core (..),
    execute,
    start,
    Started,
    awaitStarted,
    settled,
    observed,
    policyOf,
    ordinaryReply,
    replyError,
    conditionAfter,
    decoded,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.MVar
import Control.Exception (SomeException, mask_, throwIO, try)
import Control.Monad (void, when)
import Data.ByteString (ByteString)
import Data.Either (partitionEithers)
import Data.Foldable (traverse_)
import Data.IORef
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import GHC.Exts (lazy)
import Redis.Command
import Redis.Commands.Raw (rawFacts)
import Redis.Error
import Redis.Internal.Commands.Build (routeOfKeys)
import Redis.Internal.Commands.Waiting (withRemaining)
import Redis.Internal.Config
import Redis.Internal.Network.Clock
import Redis.Internal.Network.Dedicated
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.Multiplexer (submitCommand)
import Redis.Internal.Network.OrderCounts (noOrderKey)
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Network.Worker (spawn)
import Redis.Internal.Protocol.CommandTable
import Redis.Internal.Protocol.Encode (request)
import Redis.Internal.Protocol.Redirect (Redirect (Unauthenticated), parseRedirect)
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.Retry (Course, Decision (..), Policy (..), Role (Primary), Sent (..), Target (..), courseAttempts, decide, newCourse)
import Redis.Internal.Routing.Retry qualified as Retry
import Redis.Internal.Routing.Router
import Redis.Value
import System.Random (randomRIO)
import System.Timeout (timeout)

-- | What running a command needs.
data Core = Core
  { coreConfig :: Config,
    coreRouter :: Router,
    coreClosed :: IORef Bool,
    -- | What the server said of commands that the table lacks, by name. Of those
    -- that it does not know either nothing is kept: there is no end of them, and
    -- a module may bring one later.
    coreLearnt :: IORef (Map.Map ByteString CommandEntry)
  }

-- | A command under way.
data Started a
  = -- | What it is, when it was begun, where it was sent, and where its reply
    -- arrives. As data it takes half of what a closure takes, which is copied
    -- for every command in flight.
    Underway Core (Command a) Nanos Place ResponseSlot
  | Started (IO (Either Error a))

-- | Blocks until there is a result; may be interrupted, and called again.
awaitStarted :: Started a -> IO (Either Error a)
awaitStarted = \case
  Underway core command began place slot ->
    waitArrival slot >>= \case
      Plain value -> do
        noteAnswer (coreRouter core) place
        pure $! decoded command value
      Troubled outcome aftermath ->
        decodedFrom command <$> sharedAftermath aftermath (Rest (\keep -> settle keep core command began newCourse place Plainly outcome))
  Started wait -> wait

-- | One whose result is known.
settled :: Either Error a -> Started a
settled = Started . pure

-- | Adds an action for when the result is had first, however many await it.
observed :: Started a -> (Either Error a -> IO ()) -> IO (Started a)
observed started note = do
  unnoted <- newIORef True
  pure . Started $ do
    result <- awaitStarted started
    first <- atomicModifyIORef' unnoted ((,) False)
    result <$ when first (note result)

-- | Runs a command. Blocks until there is a result.
execute :: Core -> Command a -> IO (Either Error a)
execute core given = case commandKind command of
  Ordinary -> do
    began <- coarseNanos
    placed <- placeOf (coreRouter core) (commandFacts command) (commandRoute command)
    case placed of
      Just place -> do
        slot <- submitToNodeAsync (poolOf place) (commandRequest command)
        waitArrival slot >>= \case
          Plain value -> do
            noteAnswer (coreRouter core) place
            pure $! decoded command value
          -- Nobody else waits for it.
          Troubled outcome _ -> decodedFrom command <$> settle nobodyGoesOn core command began newCourse place Plainly outcome
      Nothing -> decodedFrom command <$> again nobodyGoesOn core command began newCourse SameRoute
  Special -> startSpecial CallerWaits core command >>= awaitStarted
  where
    command = unsplit given

-- | Submits a command without waiting for its reply. Blocks only while there
-- is no room for it, no connection, or nobody to send it to.
start :: Core -> Command a -> IO (Started a)
start core given = startFor CallerGoesOn core (unsplit given)

-- | The same, for a caller who may be about to wait.
startFor :: Caller -> Core -> Command a -> IO (Started a)
startFor caller core command = case commandKind command of
  Ordinary -> startPlaced core command
  Special -> startSpecial caller core command
{-# INLINE startFor #-}

-- Submits a command to its place.
startPlaced :: Core -> Command a -> IO (Started a)
startPlaced core command = do
  began <- coarseNanos
  placed <- placeToStart core command began
  case placed of
    Right place -> do
      slot <- submitToNodeAsync (poolOf place) (commandRequest command)
      pure $! Underway core command began place slot
    Left failure -> do
      aftermath <- newAftermath
      pure . Started $
        decodedFrom command <$> sharedAftermath aftermath (Rest (\keep -> recover keep core command began newCourse Nothing Plainly failure))
{-# INLINE startPlaced #-}

-- | A command as it is: GHC 9.0 would otherwise hand its parts over and put them
-- together again, 11 words per command.
unsplit :: Command a -> Command a
unsplit = lazy
{-# INLINE unsplit #-}

-- | Whether a command needs more than a place and a reply.
data Kind = Ordinary | Special

commandKind :: Command a -> Kind
commandKind Command {commandRoute, commandFacts = Facts {factBlocking, factScope}} = case commandRoute of
  OneKey _ | NonBlocking <- factBlocking, SharedConnection <- factScope -> Ordinary
  AnyNode | NonBlocking <- factBlocking, SharedConnection <- factScope -> Ordinary
  _ -> Special
{-# INLINE commandKind #-}

poolOf :: Place -> MultiplexPool
poolOf place = nodePoolFor (placeRole place) (placeNode place)

-- | A reply that is neither an error nor a push, without its attributes.
ordinaryReply :: Value -> Maybe Value
ordinaryReply = \case
  ErrorReply _ -> Nothing
  WithAttributes _ value -> ordinaryReply value
  value -> Just value
{-# INLINE ordinaryReply #-}

-- | What the command's decoder makes of a reply.
decoded :: Command a -> Value -> Either Error a
decoded command value = either (Left . UnexpectedReply) Right (commandDecode command value)

-- | The same, if there is a reply.
decodedFrom :: Command a -> Either Error Value -> Either Error a
decodedFrom command result = result >>= decoded command

-- | The place of a command that is started. Waits for one on the caller's
-- thread, until the next refresh ends: what it starts afterwards must not
-- overtake this.
placeToStart :: Core -> Command a -> Nanos -> IO (Either Error Place)
placeToStart core command began =
  placeOf (coreRouter core) facts route >>= \case
    Just place -> pure (Right place)
    Nothing -> do
      remaining <- remainingSeconds core facts began
      placeEventually (coreRouter core) remaining False facts route
  where
    facts = commandFacts command
    route = commandRoute command
{-# INLINE placeToStart #-}

-- | A thread of its own, whose result can be awaited.
inBackground :: IO (Either Error a) -> IO (Started a)
inBackground action = do
  result <- newEmptyMVar
  void . spawn "redis command" $ try action >>= putMVar result
  pure . Started $ readMVar result >>= either (\(failure :: SomeException) -> throwIO failure) pure

-- | Says what remains to be done if this thread is interrupted.
type Keep = Rest -> IO ()

-- | For a thread that waits alone.
nobodyGoesOn :: Keep
nobodyGoesOn _ = pure ()

-- | The plain reply that an attempt came to, or what the next attempt does.
settle :: Keep -> Core -> Command a -> Nanos -> Course -> Place -> Sent -> Outcome -> IO (Either Error Value)
settle keep core command began course place sent = \case
  Reply value -> do
    noteAnswer (coreRouter core) place
    case ordinaryReply value of
      Just plain -> pure (Right plain)
      Nothing -> recover keep core command began course (Just place) sent (replyError value)
  Failure failure -> do
    noteFailure (coreRouter core) place failure
    recover keep core command began course (Just place) sent failure

-- | The error that an error reply is.
replyError :: Value -> Error
replyError value = case withoutAttributes value of
  ErrorReply text -> ReplyError (serverErrorFromText text)
  other -> UnexpectedReply DecodeError {decodeErrorPath = [], decodeErrorExpected = "a reply", decodeErrorGot = take 100 (show other)}

-- | Asks the policy and does as it says.
recover :: Keep -> Core -> Command a -> Nanos -> Course -> Maybe Place -> Sent -> Error -> IO (Either Error Value)
recover keep core command began course place sent failure = do
  closed <- readIORef (coreClosed core)
  random <- randomRIO (0, 1)
  remaining <- remainingSeconds core (commandFacts command) began
  let Retry.Outcome {Retry.outcomeDecision, Retry.outcomeEffects, Retry.outcomeCourse} =
        decide
          -- Once the client is closed there is no next attempt.
          (if closed then (policyOf core) {policyMaxAttempts = 0} else policyOf core)
          (commandFacts command)
          course
          Retry.Failure
            { Retry.failureError = failure,
              Retry.failureNode = nodeEndpoint . placeNode <$> place,
              Retry.failureRole = maybe Primary placeTakenFor place,
              Retry.failureSent = sent,
              Retry.failureRemaining = remaining,
              Retry.failureRandom = random
            }
  traverse_ (carryOut (coreRouter core) began) outcomeEffects
  case outcomeDecision of
    GiveUp final -> pure (Left (if closed && errorDelivery final == NotSent then ClientClosed else named final))
    RetryNow target -> kept (\keep' -> again keep' core command began outcomeCourse target)
    RetryAfter delay target -> do
      due <- (+ nanosFromSeconds delay) <$> preciseNanos
      kept $ \keep' -> do
        now <- preciseNanos
        threadDelay (ceiling (secondsFromNanos (due - now) * 1e6))
        again keep' core command began outcomeCourse target
  where
    kept rest = keep (Rest rest) >> rest keep

    -- The server found keys of several slots where this client saw one.
    named = \case
      ReplyError ServerError {serverErrorCode = "CROSSSLOT"} -> RefusedError (CrossSlot (commandName command))
      other -> other

-- | The bounds of this client.
policyOf :: Core -> Policy
policyOf core =
  Policy
    { policyMaxAttempts = configMaxAttempts (coreConfig core),
      policyBackoff = configBackoff (coreConfig core),
      policyClustered = isClustered (coreRouter core)
    }

-- | Seconds until the command's time is over; the time that it waits on the
-- server is its own.
remainingSeconds :: Core -> Facts -> Nanos -> IO (Maybe Double)
remainingSeconds core facts began = case allowed of
  Nothing -> pure Nothing
  Just limit -> do
    now <- coarseNanos
    pure (Just (limit - secondsFromNanos (now - began)))
  where
    allowed = case factBlocking facts of
      NonBlocking -> configCommandTimeout (coreConfig core)
      BlocksFor limit -> (+ limit) <$> configCommandTimeout (coreConfig core)
      BlocksForever -> Nothing

-- | One more attempt.
again :: Keep -> Core -> Command a -> Nanos -> Course -> Target -> IO (Either Error Value)
again keep core command began course target = do
  remaining <- remainingSeconds core facts began
  placed <- case target of
    SameRoute -> placeEventually router remaining False facts (commandRoute command)
    PrimaryRoute -> placeEventually router remaining True facts (commandRoute command)
    ToNode endpoint -> placeAt router endpoint
    AskingNode endpoint -> placeAt router endpoint
  case placed of
    Left failure -> recover keep core command began course Nothing Plainly failure
    Right place -> do
      let sent = case target of
            AskingNode _ -> WithAsking
            _ -> Plainly
      now <- coarseNanos
      -- What it has waited already, here or elsewhere, it need not wait again.
      let current = if courseAttempts course == 0 then command else withRemaining (secondsFromNanos (now - began)) command
          then' keep' = settle keep' core command began course place sent
      attempt (\reply -> keep (Rest (\keep' -> reply >>= then' keep'))) core current began place sent >>= then' keep
  where
    router = coreRouter core
    facts = commandFacts command

-- | Sends a command once more and waits, for as many seconds as are left of its
-- time: the connection would allow it the whole of it anew. When it has been
-- sent, the action is told how to wait for what becomes of it: whoever does so
-- instead does not send it once more. (Of a command that the server may keep
-- waiting nothing is told: its connection ends with who waits.)
attempt :: (IO Outcome -> IO ()) -> Core -> Command a -> Nanos -> Place -> Sent -> IO Outcome
attempt tell core command began place sent = case factBlocking (commandFacts command) of
  NonBlocking -> do
    -- Masked, so that what interrupts it finds nothing submitted: it can be
    -- interrupted where it waits for a connection, or for room, only.
    submitted <- mask_ . inTime $ do
      slots <- case sent of
        Plainly -> (: []) <$> submitToNodeAsync (poolOf place) encoded
        WithAsking -> submitRunToNode (poolOf place) [asking, encoded]
      -- Who goes on with the waiting of another may come when the time is over: what
      -- is there is there.
      let reply =
            traverse trySlotResult slots >>= \found -> case sequence found of
              Just outcomes -> pure (lastOf outcomes)
              Nothing -> maybe (late MaybeExecuted) lastOf <$> inTime (traverse waitSlotResult slots)
      reply <$ tell reply
    fromMaybe (pure (late NotSent)) submitted
  BlocksFor limit -> onLease (Just limit)
  BlocksForever -> onLease Nothing
  where
    encoded = commandRequest command
    asking = request ["ASKING"]
    late delivery = Failure (TimeoutError delivery (fromMaybe 0 (configCommandTimeout (coreConfig core))))
    inTime action = remainingSeconds core (commandFacts command) began >>= \left -> within left action
    within = maybe (fmap Just) (timeout . ceiling . (* 1e6) . max 0 . min 1e9)

    -- A run of two has two outcomes; that of ASKING says nothing that the
    -- command's own does not.
    lastOf = List.foldl' (\_ outcome -> outcome) (Failure ClientClosed)

    -- The server answers at the latest when its own limit is over; what the
    -- client adds is the time an ordinary command has.
    onLease serverLimit = do
      leased <- withLease (nodeDedicated (placeNode place)) $ \mux -> do
        let whole = case sent of
              Plainly -> submitCommand mux noOrderKey encoded
              WithAsking -> submitCommand mux noOrderKey asking >> submitCommand mux noOrderKey encoded
            patience = (+) <$> serverLimit <*> configCommandTimeout (coreConfig core)
        answered <- maybe (fmap Just) (timeout . ceiling . (* 1e6) . min 1e9) patience whole
        pure $ case (answered, patience) of
          (Just outcome, _) -> (outcome, conditionAfter outcome)
          (Nothing, Just waited) -> (Failure (TimeoutError MaybeExecuted waited), Spoilt)
          (Nothing, Nothing) -> (Failure ClientClosed, Spoilt)
      pure (either Failure id leased)

-- | What a reply leaves of a lent connection: one whose server has forgotten who
-- it is will be told so again, whoever has it next.
conditionAfter :: Outcome -> Condition
conditionAfter = \case
  Reply value
    | ErrorReply text <- withoutAttributes value,
      parseRedirect (serverErrorFromText text) == Just Unauthenticated ->
      Spoilt
  _ -> Clean

-- | What the thread that starts a command does next.
data Caller = CallerWaits | CallerGoesOn

-- | Starts a command that is not ordinary.
startSpecial :: Caller -> Core -> Command a -> IO (Started a)
startSpecial caller core command
  | AskServer commandWords <- commandRoute command =
    -- Learns the keys first, then starts it for good.
    learn core commandWords >>= \case
      Left failure -> pure (settled (Left failure))
      Right (facts, route) ->
        startFor caller core command {commandFacts = facts `besides` commandFacts command, commandRoute = retyped route}
  | ConnectionState <- factScope (commandFacts command) =
    pure (settled (Left (RefusedError (NeedsDedicatedConnection (commandName command)))))
  | not (isClustered (coreRouter core)) = whole
  | otherwise = case commandRoute command of
    SameSlot keys
      | not (sameSlot keys) -> pure (settled (Left (RefusedError (CrossSlot (commandName command)))))
    Splittable plan@SplitPlan {splitKeys}
      | not (sameSlot splitKeys) -> startSplit core (commandFacts command) plan
    _ -> whole
  where
    sameSlot (key :| keys) = all ((== keySlot key) . keySlot) keys

    whole = case factBlocking (commandFacts command) of
      NonBlocking -> startPlaced core command
      _ -> case caller of
        -- On the caller's own thread: a thread in between would have to be
        -- stopped when the caller is.
        CallerWaits -> pure (Started fromTheStart)
        CallerGoesOn -> inBackground fromTheStart

    fromTheStart = do
      began <- coarseNanos
      decodedFrom command <$> again nobodyGoesOn core command began newCourse SameRoute

    -- What the caller has said of the command stays true.
    besides learnt given =
      learnt
        { factRepeatable = factRepeatable learnt || factRepeatable given,
          factBlocking = case factBlocking given of
            NonBlocking -> factBlocking learnt
            blocking -> blocking,
          factScope = case factScope given of
            SharedConnection -> factScope learnt
            ConnectionState -> ConnectionState
        }

    -- A route learnt from the server never splits, so it has no answer type.
    retyped :: Route b -> Route a
    retyped = \case
      OneKey key -> OneKey key
      SameSlot keys -> SameSlot keys
      _ -> AnyNode

-- | Starts the parts of a command over several slots, all at once. The facts
-- are those of the whole, and so of every part.
startSplit :: Core -> Facts -> SplitPlan a -> IO (Started a)
startSplit core facts SplitPlan {splitKeys, splitPart, splitMerge} = do
  parts <- traverse (\positions -> (,) positions <$> start core (splitPart positions) {commandFacts = facts}) groups
  pure . Started $ do
    -- Every part is awaited, also when one fails: it has been sent.
    results <- traverse (\(positions, part) -> fmap ((,) positions) <$> awaitStarted part) parts
    pure $ case partitionEithers results of
      ([], done) -> Right (splitMerge done)
      (failures@(first : _), done)
        | factReadOnly facts || null done && all ((/= MaybeExecuted) . errorDelivery) failures -> Left first
        -- The failed part alone would say that nothing has run.
        | otherwise -> Left (RoutingError MaybeExecuted (PartsFailed (length failures) (length results) first))
  where
    groups =
      Map.elems . Map.map NonEmpty.reverse $
        List.foldl'
          (\bySlot (position, key) -> Map.insertWith (<>) (keySlot key) (position :| []) bySlot)
          Map.empty
          (zip [0 ..] (NonEmpty.toList splitKeys))

-- | Facts and keys of a command that the table lacks, from the server, which is
-- asked for the keys only where they decide where a command goes. What is learnt
-- of a command's name is kept.
--
-- A command that the server does not know either, or of which it says nothing
-- (a user may not be allowed to ask), is taken for a write and goes to any node:
-- the node runs it, says what is wrong with it, or names the one that it is for.
learn :: Core -> [ByteString] -> IO (Either Error (Facts, Route ()))
learn core = \case
  [] -> pure (Left (RefusedError EmptyCommand))
  commandWords@(name : _) -> do
    known <- readIORef (coreLearnt core)
    entry <- case Map.lookup (commandWordsName [name]) known of
      Just entry -> pure (Right (Just entry))
      Nothing -> askEntry name
    case entry of
      Left failure -> pure (Left failure)
      Right Nothing -> pure (Right (writeFacts, AnyNode))
      Right (Just found) -> do
        keys <- case commandKeys found commandWords of
          Just keys -> pure (Right keys)
          Nothing
            | isClustered (coreRouter core) -> askKeys commandWords
            | otherwise -> pure (Right [])
        pure ((\present -> (rawFacts found commandWords, routeOfKeys present)) <$> keys)
  where
    askEntry name =
      execute core (ask Right ["COMMAND", "INFO", name]) >>= \case
        Right (Array (info : _))
          | Just entry <- entryFromReply info -> do
            atomicModifyIORef' (coreLearnt core) (\known -> (Map.insert (commandWordsName [name]) entry known, ()))
            pure (Right (Just entry))
        Right _ -> pure (Right Nothing)
        Left (ReplyError _) -> pure (Right Nothing)
        Left failure -> pure (Left failure)

    askKeys commandWords =
      execute core (ask keysOf (["COMMAND", "GETKEYS"] <> commandWords)) >>= \case
        Right keys -> pure (Right keys)
        -- "The command has no key arguments" and the like.
        Left (ReplyError _) -> pure (Right [])
        Left failure -> pure (Left failure)

    keysOf = \case
      Array values -> Right [key | BulkString key <- values]
      other -> Left DecodeError {decodeErrorPath = [], decodeErrorExpected = "keys", decodeErrorGot = take 100 (show other)}

    ask :: (Value -> Either DecodeError b) -> [ByteString] -> Command b
    ask decoder arguments =
      Command
        { commandName = "COMMAND",
          commandRequest = request arguments,
          commandRoute = AnyNode,
          commandFacts = readFacts,
          commandDecode = decoder
        }
