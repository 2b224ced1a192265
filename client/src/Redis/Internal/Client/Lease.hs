-- | A dedicated connection in the hands of a user.
module Redis.Internal.Client.Lease
  ( Dedicated,
    lease,
    tryRunOn,
  )
where

import Control.Exception (onException)
import Data.ByteString (ByteString)
import Data.IORef
import Data.Maybe (fromMaybe)
import Redis.Error
import Redis.Internal.Client.Core
import Redis.Internal.Client.Own (conditionAfter)
import Redis.Internal.Command
import Redis.Internal.Config
import Redis.Internal.Network.Dedicated
import Redis.Internal.Network.Multiplexer (Multiplexer, submitCommand, usualTerms)
import Redis.Internal.Network.ResponseSlot (Outcome (..))
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.Retry
import Redis.Internal.Routing.Router
import System.Timeout (timeout)

-- | A connection that nobody else uses. The type variable ties it to the
-- action that it was lent to: it cannot be used after it was given back.
--
-- @since 0.1.0.0
data Dedicated s = Dedicated
  { dedicatedMux :: Multiplexer,
    -- | Seconds for an ordinary command.
    dedicatedTimeout :: Maybe Double,
    -- | Nothing is retried here, but the rest of the client, and the next lease,
    -- need not make the same mistake.
    dedicatedLearn :: Facts -> Error -> IO (),
    dedicatedCondition :: IORef Condition
  }

-- | Lends a connection to the node of a key, or to any node.
lease :: Core -> Maybe ByteString -> (forall s. Dedicated s -> IO a) -> IO (Either Error a)
lease core key action =
  placeEventually (coreRouter core) patience writeFacts (maybe AtAnyNode (AtSlot . keySlot) key) >>= \case
    Left failure -> pure (Left failure)
    Right place -> do
      let learn = learnFrom core place
      lent <- withLease (nodeDedicated (placeNode place)) $ \mux -> do
        condition <- newIORef Clean
        result <-
          action
            Dedicated
              { dedicatedMux = mux,
                dedicatedTimeout = patience,
                dedicatedLearn = learn,
                dedicatedCondition = condition
              }
        (,) result <$> readIORef condition
      either (learn writeFacts) (\_ -> pure ()) lent
      pure lent
  where
    patience = configCommandTimeout (coreConfig core)

-- | Tells the router what a failure says of the cluster.
learnFrom :: Core -> Place -> Facts -> Error -> IO ()
learnFrom core place facts failure = do
  noteFailure (coreRouter core) place failure
  let Verdict {verdictEffects} =
        decide
          policy
          facts
          newCourse
          FailedAttempt
            { failedError = failure,
              failedNode = Just (nodeEndpoint (placeNode place)),
              failedRole = placeTakenFor place,
              failedSent = Plainly,
              failedRemaining = Nothing,
              failedRandom = 0
            }
  -- Shared connections are not to blame for what a lent one was told.
  sequence_ [carryOut (coreRouter core) 0 effect | effect@(Tell _) <- verdictEffects]
  where
    policy =
      Policy
        { policyMaxAttempts = configMaxAttempts (coreConfig core),
          policyBackoff = configBackoff (coreConfig core),
          policyClustered = isClustered (coreRouter core)
        }

-- | Runs a command on a dedicated connection, once.
--
-- @since 0.1.0.0
tryRunOn :: Dedicated s -> Command a -> IO (Either Error a)
tryRunOn _ command | null (commandWords command) = pure (Left (RefusedError EmptyCommand))
tryRunOn Dedicated {dedicatedMux, dedicatedTimeout, dedicatedLearn, dedicatedCondition} command = do
  -- Before it is sent: an exception in between must find it noted.
  case factScope facts of
    ConnectionState -> writeIORef dedicatedCondition Spoilt
    OwnConnection -> writeIORef dedicatedCondition Spoilt
    _ -> pure ()
  answered <-
    limited (submitCommand dedicatedMux usualTerms (commandRequest command))
      -- The user may catch what interrupts this and go on.
      `onException` writeIORef dedicatedCondition Spoilt
  case answered of
    Just outcome@(Reply value) -> case fromReply facts value of
      Right plain -> pure (decoded command plain)
      Left refusal -> do
        case conditionAfter outcome of
          Spoilt -> writeIORef dedicatedCondition Spoilt
          Clean -> pure ()
        failed refusal
    Just (Failure failure) -> failed failure
    Nothing -> do
      -- Its reply may still come; nobody may take it for the next one's.
      writeIORef dedicatedCondition Spoilt
      pure (Left (TimeoutError MaybeExecuted (fromMaybe 0 patience)))
  where
    facts = commandFacts command
    failed failure = Left failure <$ dedicatedLearn facts failure
    patience = case factBlocking facts of
      NonBlocking -> dedicatedTimeout
      BlocksFor serverLimit -> (+ serverLimit) <$> dedicatedTimeout
      BlocksForever -> Nothing
    limited = maybe (fmap Just) (timeout . ceiling . (* 1e6) . min 1e9) patience
