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
import Redis.Command
import Redis.Error
import Redis.Internal.Client.Execute
import Redis.Internal.Config
import Redis.Internal.Network.Dedicated
import Redis.Internal.Network.Multiplexer (Multiplexer, submitCommand)
import Redis.Internal.Network.OrderCounts (noOrderKey)
import Redis.Internal.Network.ResponseSlot (Outcome (..))
import Redis.Internal.Routing.Nodes
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
    dedicatedCondition :: IORef Condition
  }

-- | Lends a connection to the node of a key, or to any node.
lease :: Core -> Maybe ByteString -> (forall s. Dedicated s -> IO a) -> IO (Either Error a)
lease core key action =
  placeEventually (coreRouter core) patience True writeFacts (maybe AnyNode OneKey key) >>= \case
    Left failure -> pure (Left failure)
    Right place -> withLease (nodeDedicated (placeNode place)) $ \mux -> do
      condition <- newIORef Clean
      result <- action Dedicated {dedicatedMux = mux, dedicatedTimeout = patience, dedicatedCondition = condition}
      (,) result <$> readIORef condition
  where
    patience = configCommandTimeout (coreConfig core)

-- | Runs a command on a dedicated connection, once.
--
-- @since 0.1.0.0
tryRunOn :: Dedicated s -> Command a -> IO (Either Error a)
tryRunOn Dedicated {dedicatedMux, dedicatedTimeout, dedicatedCondition} command = do
  -- Before it is sent: an exception in between must find it noted.
  case factScope facts of
    ConnectionState -> writeIORef dedicatedCondition Spoilt
    SharedConnection -> pure ()
  answered <-
    limited (submitCommand dedicatedMux noOrderKey (commandRequest command))
      -- The user may catch what interrupts this and go on.
      `onException` writeIORef dedicatedCondition Spoilt
  case answered of
    Just (Reply value) -> pure $ case ordinaryReply value of
      Just plain -> decoded command plain
      Nothing -> Left (replyError value)
    Just (Failure failure) -> pure (Left failure)
    Nothing -> do
      -- Its reply may still come; nobody may take it for the next one's.
      writeIORef dedicatedCondition Spoilt
      pure (Left (TimeoutError MaybeExecuted (fromMaybe 0 patience)))
  where
    facts = commandFacts command
    patience = case factBlocking facts of
      NonBlocking -> dedicatedTimeout
      BlocksFor serverLimit -> (+ serverLimit) <$> dedicatedTimeout
      BlocksForever -> Nothing
    limited = maybe (fmap Just) (timeout . ceiling . (* 1e6) . min 1e9) patience
