-- | A dedicated connection in the hands of a user.
--
-- "Redis.Internal.Protocol.Session" follows the state that the server holds for the connection, in the
-- order of the replies. A connection is closed if a command left any state behind.
module Redis.Internal.Client.Lease
  ( Dedicated (dedicatedCore),
    LeaseTarget (..),
    lease,
    tryRunOn,
    startOn,
    startUntracedOn,
    startRunOn,
    tracedOn,
    wasLostReading,
    writesInDoubt,
  )
where

import Control.Exception (mask_, onException)
import Data.ByteString (ByteString)
import Data.Foldable (for_, toList)
import Data.IORef
import Data.List.NonEmpty (NonEmpty ((:|)), nonEmpty)
import Data.Maybe (fromMaybe)
import Redis.Error
import Redis.Internal.Client.Core
import Redis.Internal.Client.Execute (Pending, onConnection, outcomeOf, replyTo, settled, startTraced, toItsEnd)
import Redis.Internal.Client.RetryEngine (policyFor)
import Redis.Internal.Client.Trace
import Redis.Internal.Command
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Dedicated
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Encode (requestExceeds, requestIsOne, requestWhole)
import Redis.Internal.Protocol.Session (Session, answerOf, effectOf, isAsLeft, newSession, sessionDatabase)
import Redis.Internal.Protocol.Session qualified as Session
import Redis.Internal.Protocol.Slot (Slot, keySlot)
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.RetryPolicy
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.Target

-- | A connection that no other caller uses. The type variable ties it to the action that
-- it was lent to: it cannot be used after that action.
data Dedicated s = Dedicated
  { dedicatedMux :: Multiplexer,
    dedicatedCore :: Core,
    dedicatedNode :: Endpoint,
    -- | Reports an error to the router.
    dedicatedLearn :: Maybe Slot -> Facts -> Error -> IO (),
    dedicatedLoan :: IORef Loan
  }

data Loan = Loan
  { loanSession :: Session,
    -- | How many commands were sent and not answered.
    loanOutstanding :: Int,
    -- | Whether a caller was interrupted or gave up waiting: later replies belong to nobody.
    loanAbandoned :: Bool,
    -- | The commands of the user that may write, and were neither answered nor certainly not sent.
    loanWrites :: Int,
    -- | The errors of the commands that the lost connection did not answer, if they certainly have changed
    -- nothing.
    loanLosses :: [Error]
  }

-- | Which node a dedicated connection should lead to.
data LeaseTarget
  = -- | The primary that serves the key.
    AtKey ByteString
  | -- | The node at this endpoint.
    AtNode Endpoint
  | -- | Any primary.
    AnyPrimary
  deriving stock (Eq, Show)

-- | Lends a connection to an action. 'Left' if there is no node or no connection.
lease :: Core -> LeaseTarget -> (forall s. Dedicated s -> IO a) -> IO (Either Error a)
lease core place action =
  coarseNanos >>= leaseUntil . deadlineFor core writeFacts
  where
    leaseUntil deadline =
      located (deadlineAt deadline) >>= \case
        Left failed -> Left <$> unlessClosed core failed
        Right found -> do
          let learn = learnFrom core found
          lent <- withLease (nodeDedicated (destinationNode found)) deadline $ \mux -> do
            loan <- newIORef Loan {loanSession = asLeft, loanOutstanding = 0, loanAbandoned = False, loanWrites = 0, loanLosses = []}
            result <- action (Dedicated mux core (nodeEndpoint (destinationNode found)) learn loan)
            (,) result . conditionOf <$> readIORef loan
          either (learn Nothing writeFacts) (\_ -> pure ()) lent
          either (fmap Left . unlessClosed core) (pure . Right) lent

    config = coreConfig core
    cluster = coreCluster core
    asLeft = newSession (configDatabase config) (fromMaybe "" (configClientName config))

    located deadline = case place of
      AtKey key -> destinationEventually cluster deadline writeFacts (TargetPrimary (keySlot key))
      AnyPrimary -> destinationEventually cluster deadline writeFacts TargetAnyNode
      AtNode endpoint ->
        hasNode cluster deadline endpoint >>= \case
          Right True -> destinationEventually cluster deadline writeFacts (TargetNode endpoint)
          refused -> pure (refused >> Left (RefusedError (NoSuchNode endpoint)))

    conditionOf Loan {loanSession, loanOutstanding, loanAbandoned}
      | isAsLeft asLeft loanSession && loanOutstanding == 0 && not loanAbandoned = Clean
      | otherwise = Spoilt

-- | Tells the router what a failure shows about the servers.
learnFrom :: Core -> Destination -> Maybe Slot -> Facts -> Error -> IO ()
learnFrom core place slot facts failure = do
  noteFailure (coreCluster core) place failure
  let RetryDecision {decisionEffects} =
        decide
          (policyFor (coreConfig core) (coreCluster core) (maybe TargetAnyNode TargetSlot slot) False)
          facts
          noAttempts
          FailedAttempt
            { failedError = failure,
              failedNode = Just (nodeEndpoint (destinationNode place)),
              failedRole = destinationTakenFor place,
              failedRemaining = Nothing,
              failedRandom = 0
            }
  for_ decisionEffects $ \case
    effect@(Tell _) -> carryOut (coreCluster core) 0 effect
    -- An error on a lent connection is no reason to replace the shared ones.
    Reconnect _ -> dropIdle (destinationNode place)

-- | Runs a command on a dedicated connection, once.
tryRunOn :: Dedicated s -> Command a -> IO (Either Error a)
tryRunOn dedicated given = tracedOn dedicated (oneCommand (commandArguments given)) (runUntracedOn dedicated given)

-- | Runs commands that belong together on a dedicated connection, and tells the user's hook.
tracedOn :: Dedicated s -> Subject -> (IO () -> IO (Either Error a)) -> IO (Either Error a)
tracedOn dedicated subject act = case dedicatedHook dedicated of
  Nothing -> act (pure ())
  Just hook -> toItsEnd (beginTraceOn dedicated hook subject) (act . enteredOn dedicated)

dedicatedHook :: Dedicated s -> Maybe CommandHook
dedicatedHook = hookCommand . configHooks . coreConfig . dedicatedCore

beginTraceOn :: Dedicated s -> CommandHook -> Subject -> IO Trace
beginTraceOn dedicated hook subject = do
  session <- loanSession <$> readIORef (dedicatedLoan dedicated)
  beginTrace (dedicatedCore dedicated) hook (atNode (sessionDatabase session) (dedicatedNode dedicated) subject)

-- | Notes that the command stands in the queue of the connection.
enteredOn :: Dedicated s -> Trace -> IO ()
enteredOn dedicated trace = sentTo trace (dedicatedNode dedicated) *> enteredQueue trace

-- | Like 'tryRunOn', without the hook. The action runs when the command has been submitted.
runUntracedOn :: Dedicated s -> Command a -> IO () -> IO (Either Error a)
runUntracedOn dedicated given entered
  | Just refusal <- refusedOn dedicated given = pure (Left (RefusedError refusal))
  | otherwise =
    outcomeOf given
      <$> (submitOnLoan dedicated (mayWrite given) given >>= \slot -> entered *> waitSlotResult slot)
        -- The user may catch the exception and go on using the connection.
        `onException` change dedicated (\loan -> loan {loanAbandoned = True})

-- | Submits a command to a dedicated connection, without waiting for its reply.
startOn :: Dedicated s -> Command a -> IO (Pending a)
startOn dedicated given = case dedicatedHook dedicated of
  Nothing -> startUntracedOn dedicated given (pure ())
  Just hook -> startTraced (beginTraceOn dedicated hook (oneCommand (commandArguments given))) (startUntracedOn dedicated given . enteredOn dedicated)

-- | Like 'startOn', without the hook. The action runs when the command has been submitted.
startUntracedOn :: Dedicated s -> Command a -> IO () -> IO (Pending a)
startUntracedOn dedicated given entered
  | Just refusal <- refusedOn dedicated given = pure (settled (Left (RefusedError refusal)))
  | otherwise = do
    slot <- submitOnLoan dedicated (mayWrite given) given
    onConnection given slot <$ entered

mayWrite :: Command a -> Bool
mayWrite = not . factReadOnly . commandFacts

-- | Submits MULTI and the commands behind it, up to the first that is not sent: those behind must not run without it.
-- The caller has refused what cannot be sent at all.
startRunOn :: Dedicated s -> NonEmpty (Command a) -> IO (Either Error (NonEmpty (Pending a)))
startRunOn dedicated (given :| others) = do
  -- Nothing is written before EXEC.
  slot <- submitOnLoan dedicated False given
  trySlotResult slot >>= \case
    Just (Failure failure) | errorDelivery failure == NotSent -> pure (Left (naming given failure))
    _ -> fmap (onConnection given slot :|) <$> maybe (pure (Right [])) (fmap (fmap toList) . startRunOn dedicated) (nonEmpty others)

-- | Why a command is not sent on a lent connection.
refusedOn :: Dedicated s -> Command a -> Maybe Refusal
refusedOn Dedicated {dedicatedCore} given
  | null (commandArguments given) = Just EmptyCommand
  | not (requestIsOne (commandRequest given)) = Just NotOneLine
  | Unsendable why <- commandRoute given = Just why
  | commandRequest given `requestExceeds` longestArgument dedicatedCore = Just (ArgumentTooLong (commandName given))
  | PerNode _ _ <- commandRoute given = severalNodes
  | AskServer _ (Just (PerNode _ _)) <- commandRoute given = severalNodes
  | otherwise = Nothing
  where
    severalNodes = Just (NeedsSeveralNodes (commandName given))

change :: Dedicated s -> (Loan -> Loan) -> IO ()
change dedicated f = atomicModifyIORef' (dedicatedLoan dedicated) (\loan -> (f loan, ()))

-- | Submits a command, given whether it may write by itself. Its reply steps the session, in the order of the replies.
submitOnLoan :: Dedicated s -> Bool -> Command a -> IO ResponseSlot
submitOnLoan dedicated writes given = mask_ $ do
  -- Counted before it is sent: after an exception in between it must be counted already.
  change dedicated (\loan -> loan {loanOutstanding = loanOutstanding loan + 1, loanWrites = loanWrites loan + writing})
  slot <- newTellingSlot (\outcome -> change dedicated (answered outcome) *> counted outcome)
  !deadline <- deadlineFor (dedicatedCore dedicated) (commandFacts given) <$> coarseNanos
  slot <$ submitTo (dedicatedMux dedicated) (termsUntil deadline) whole slot
  where
    -- The long form: commands here are not sent again, and within MULTI they could not be.
    whole = requestWhole (commandRequest given)
    writing = fromEnum writes
    effect = effectOf (commandArguments given)
    -- Here and not where somebody awaits the reply: the replies within a transaction are awaited by nobody.
    counted outcome = for_ (either Just (const Nothing) (replyTo given outcome)) $ \failure -> do
      countFailure (coreCluster (dedicatedCore dedicated)) (Just (dedicatedNode dedicated)) failure
      case failure of
        -- It shows nothing about the node.
        TimeoutError _ -> pure ()
        _ -> dedicatedLearn dedicated (slotOf (targetOf given)) (commandFacts given) failure
    answered outcome loan = case outcome of
      Reply value ->
        loan
          { loanOutstanding = loanOutstanding loan - 1,
            loanWrites = loanWrites loan - writing,
            loanSession = Session.step effect (answerOf value) (loanSession loan)
          }
      -- A reply that comes too late belongs to nobody, either.
      Failure failure ->
        loan
          { loanAbandoned = True,
            loanWrites = loanWrites loan - (if errorDelivery failure == NotSent then writing else 0),
            loanLosses = [naming given failure | harmless failure] <> loanLosses loan
          }
    harmless failure = case failure of
      ConnectionError ConnectionFailure {connectionDelivery} -> factReadOnly (commandFacts given) || connectionDelivery == NotSent
      _ -> False

-- | Whether this is the error of a command on this connection that certainly changed nothing.
wasLostReading :: Dedicated s -> Error -> IO Bool
wasLostReading dedicated failure = elem failure . loanLosses <$> readIORef (dedicatedLoan dedicated)

-- | Whether a command of the user that may write was lost, or is not answered yet.
writesInDoubt :: Dedicated s -> IO Bool
writesInDoubt dedicated = (> 0) . loanWrites <$> readIORef (dedicatedLoan dedicated)
