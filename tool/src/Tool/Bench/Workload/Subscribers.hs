-- | The subscribers to the messages that a workload publishes. Each has a connection of its own and
-- counts its messages.
module Tool.Bench.Workload.Subscribers
  ( withSubscribers,
    Heard (..),
  )
where

import Data.IORef
import Redis (Client, Config)
import Redis qualified
import Redis.Command (decodedBy)
import Redis.Config qualified as Config
import Redis.Decode (mismatch)
import Redis.Value (Value (..))
import Tool.Bench.Time (monotonic, sleepUntil)
import Tool.Bench.Workload.Alone (channel)
import Tool.Span (nanosIn)

-- | What the subscribers received.
newtype Heard = Heard
  { -- | Messages, summed over all subscribers.
    heardMessages :: Int
  }
  deriving stock (Eq, Show)

-- | Runs an action while this number of subscribers listen to 'channel'. Then waits for at most
-- this number of seconds until they have received as many messages as the function of the action's
-- result says. Throws the library's error if they cannot subscribe. Needs RESP3.
withSubscribers :: Config -> Int -> Double -> (a -> Int) -> IO a -> IO (a, Heard)
withSubscribers config subscribers limit wanted action = do
  heard <- newIORef 0
  let listening =
        Config.setHooks Config.noHooks {Config.hookPush = Just (\_ push -> note heard push)} config
      seat :: Int -> IO b -> IO b
      seat 0 body = body
      seat more body =
        Redis.withClient listening $ \client -> subscribed client (seat (more - 1) body)
  seat subscribers $ do
    result <- action
    now <- monotonic
    waitFor heard (wanted result) (now + nanosIn limit)
    (,) result . Heard <$> readIORef heard
  where
    note heard = \case
      Push (BulkString "message" : _) -> atomicModifyIORef' heard (\before -> (before + 1, ()))
      _ -> pure ()
    waitFor heard count latest = do
      got <- readIORef heard
      now <- monotonic
      if got >= count || now >= latest
        then pure ()
        else sleepUntil (min latest (now + 5000000)) >> waitFor heard count latest

-- Subscribes for as long as the body runs. The confirmation of a subscription is a push and not a
-- reply. So a PING follows it: its reply is the first reply, and it comes when the subscription is
-- active.
subscribed :: Client -> IO b -> IO b
subscribed client body = Redis.withDedicated client (Redis.AtKey channel) $ \connection -> do
  first <- Redis.submitOn connection (Redis.raw ["SUBSCRIBE", channel] `decodedBy` pong)
  _ <- Redis.submitOn connection (Redis.raw ["PING"])
  Redis.awaitReply first
  body
  where
    pong = \case
      SimpleString "PONG" -> Right ()
      other -> mismatch "PONG" other
