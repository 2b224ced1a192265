-- | A publisher that numbers its messages, a subscriber, and the audit after them.
module Redis.PublishAudit
  ( Broadcast (..),
    underBroadcast,
    Account,
    awaitMore,
    gapsSoFar,
    audit,
  )
where

import Control.Concurrent.Async (link, withAsync)
import Control.Concurrent.STM
import Control.Monad (forever)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.Int (Int64)
import Data.Time.Clock (getCurrentTime)
import Redis
import Redis.MessageAudit
import Redis.Subscription
import Redis.TestKit.Wait (eventually)

-- | How to publish the messages, and the subscription that receives them.
data Broadcast = Broadcast
  { broadcastPublisher :: Client,
    broadcastPublish :: ByteString -> Command Int64,
    -- | The node that took the message published last, if there are several.
    broadcastTakenBy :: IO (Maybe Endpoint),
    broadcastSubscription :: Subscription,
    -- | Whether a message belongs to this broadcast.
    broadcastIs :: Message -> Bool
  }

-- | The messages published, and what was received, the latest first.
data Account = Account
  { accountSent :: IORef Round,
    accountHeard :: TVar [Heard],
    accountLast :: TVar Int
  }

-- | Waits for this many more messages, for half a minute at most.
awaitMore :: Account -> Int -> IO ()
awaitMore account count = do
  now <- readTVarIO (accountLast account)
  eventually 30 "more is heard" $ (>= now + count) <$> readTVarIO (accountLast account)

-- | How many gaps were reported.
gapsSoFar :: Account -> IO Int
gapsSoFar account = do
  events <- readTVarIO (accountHeard account)
  pure (length [() | HeardGap _ _ <- events])

-- | Publishes without a pause while the action runs, and goes on until the message published last
-- is received.
underBroadcast :: Broadcast -> (Account -> IO a) -> IO (a, Account)
underBroadcast Broadcast {broadcastPublisher, broadcastPublish, broadcastTakenBy, broadcastSubscription, broadcastIs} action = do
  account <- Account <$> newIORef newRound <*> newTVarIO [] <*> newTVarIO 0
  stop <- newTVarIO False
  let hearing what = modifyTVar' (accountHeard account) (what :)
      listening = forever $ do
        event <- nextEvent broadcastSubscription
        atomically $ case event of
          Gap gap -> hearing (HeardGap (gapSince gap) (gapUntil gap))
          Message message
            | broadcastIs message -> hearing (HeardMessage (numberOf message)) *> writeTVar (accountLast account) (numberOf message)
            | otherwise -> pure ()
      publishing number = do
        from <- getCurrentTime
        outcome <- tryRun broadcastPublisher (broadcastPublish (Char8.pack (show number)))
        to <- getCurrentTime
        node <- broadcastTakenBy
        modifyIORef' (accountSent account) (published number (Sent from to (either (const False) (const True) outcome) node))
        stopping <- readTVarIO stop
        if not stopping
          then publishing (number + 1)
          else do
            over <- registerDelay 100000
            received <- atomically ((True <$ (readTVar (accountLast account) >>= check . (== number))) `orElse` (False <$ (readTVar over >>= check)))
            if received then pure () else publishing (number + 1)
  withAsync listening $ \listener -> do
    link listener
    done <- newEmptyTMVarIO
    withAsync (publishing 1 *> atomically (putTMVar done ())) $ \publisher -> do
      link publisher
      result <- action account
      atomically (writeTVar stop True)
      atomically (takeTMVar done)
      pure (result, account)

-- The number is the whole payload, or the end of a key.
numberOf :: Message -> Int
numberOf = maybe 0 fst . Char8.readInt . snd . Char8.breakEnd (== '}') . messagePayload

-- | The violations, with the last messages of each node.
audit :: Servers -> Account -> IO [String]
audit servers account = do
  sent <- readIORef (accountSent account)
  history <- foldr heard sent <$> readTVarIO (accountHeard account)
  pure (judgeRound servers history <> judgeRound servers (nextRound history))
