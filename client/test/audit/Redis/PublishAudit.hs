-- | A publisher that numbers its messages, a subscriber, and the audit after them: the subscriber
-- must receive each message that the server accepted once and in order, or the message lies in a
-- gap that was reported at its place.
module Redis.PublishAudit
  ( Broadcast (..),
    underBroadcast,
    Account,
    awaitMore,
    gapsSoFar,
    Servers (..),
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
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Time.Clock (UTCTime, getCurrentTime)
import Redis
import Redis.Subscription
import Redis.TestKit.Wait (eventually)

-- | When a message was published, whether a server accepted it, and which.
data Sent = Sent
  { sentFrom :: UTCTime,
    sentTo :: UTCTime,
    sentTaken :: Bool,
    sentNode :: Maybe Endpoint
  }

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

-- | The messages published, and the events received.
data Account = Account
  { accountSent :: IORef (Map Int Sent),
    accountHeard :: TVar [Event],
    accountLast :: TVar Int
  }

-- | Waits for this many more messages, for half a minute at most.
awaitMore :: Account -> Int -> IO ()
awaitMore account count = do
  now <- readTVarIO (accountLast account)
  eventually 30 "more is heard" $ (>= now + count) <$> readTVarIO (accountLast account)

-- | How many gaps were reported.
gapsSoFar :: Account -> IO Int
gapsSoFar account = length . gapsOf <$> accountEvents account

-- | All events received, in order.
accountEvents :: Account -> IO [Event]
accountEvents account = reverse <$> readTVarIO (accountHeard account)

-- | Publishes without a pause while the action runs, and goes on until the message published last
-- is received.
underBroadcast :: Broadcast -> (Account -> IO a) -> IO (a, Account)
underBroadcast Broadcast {broadcastPublisher, broadcastPublish, broadcastTakenBy, broadcastSubscription, broadcastIs} action = do
  account <- Account <$> newIORef Map.empty <*> newTVarIO [] <*> newTVarIO 0
  stop <- newTVarIO False
  published <- newTVarIO (0 :: Int)
  let listening = forever $ do
        event <- nextEvent broadcastSubscription
        case event of
          Message message | not (broadcastIs message) -> pure ()
          _ -> atomically $ do
            modifyTVar' (accountHeard account) (event :)
            case event of
              Message message -> writeTVar (accountLast account) (numberOf message)
              Gap _ -> pure ()
      publishing number = do
        from <- getCurrentTime
        outcome <- tryRun broadcastPublisher (broadcastPublish (Char8.pack (show number)))
        to <- getCurrentTime
        node <- broadcastTakenBy
        modifyIORef' (accountSent account) (Map.insert number (Sent from to (either (const False) (const True) outcome) node))
        atomically (writeTVar published number)
        stopping <- readTVarIO stop
        if not stopping
          then publishing (number + 1)
          else do
            over <- registerDelay 100000
            heard <- atomically ((True <$ (readTVar (accountLast account) >>= check . (== number))) `orElse` (False <$ (readTVar over >>= check)))
            if heard then pure () else publishing (number + 1)
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

gapsOf :: [Event] -> [Gap]
gapsOf events = [gap | Gap gap <- events]

-- | Whether several nodes pass messages to each other.
data Servers
  = OneServer
  | -- | Then a message that was published within a gap may come again, through the node to which
    -- the subscription moved.
    SeveralServers

-- | The faults, and how many messages were lost within gaps.
audit :: Servers -> Account -> IO ([String], Int)
audit servers account = do
  sent <- readIORef (accountSent account)
  faultsOf servers sent <$> accountEvents account

-- Messages that several nodes took have no order: a node whose replica has become the primary takes
-- them, too, and forwards them. So each node's messages are checked for themselves.
faultsOf :: Servers -> Map Int Sent -> [Event] -> ([String], Int)
faultsOf servers sent = go Map.empty [] 0
  where
    -- Takes the message before of each node, with the number of gaps told by then, and all gaps, the last first.
    go :: Map (Maybe Endpoint) (Int, Int) -> [Gap] -> Int -> [Event] -> ([String], Int)
    go latest told lost = \case
      [] -> (["never heard " <> show (take 5 unheard) <> " with " <> show told | let unheard = concatMap never (Map.toList bySender), not (null unheard)], lost)
      Gap gap : rest -> go latest (gap : told) lost rest
      Message message : rest
        | number <= previous, mayComeAgain -> go latest told lost rest
        | number <= previous -> finding ("heard " <> show number <> " after " <> show previous) (go latest told lost rest)
        | null uncovered -> onwards
        | otherwise -> finding ("missed " <> show (take 5 uncovered) <> " between " <> show previous <> " and " <> show number <> " with " <> show gaps) onwards
        where
          number = numberOf message
          node = Map.lookup number sent >>= sentNode
          (previous, before) = Map.findWithDefault (0, 0) node latest
          gaps = take (length told - before) told
          missing = takenBetween previous number node
          uncovered = [name | (name, one) <- missing, not (any (`covers` one) gaps)]
          onwards = go (Map.insert node (number, length told) latest) told (lost + length missing) rest
          mayComeAgain = case servers of
            OneServer -> False
            SeveralServers -> maybe False (\one -> any (`covers` one) told) (Map.lookup number sent)
      where
        bySender = Map.fromListWith max [(sentNode one, number) | (number, one) <- Map.toList sent, sentTaken one]
        -- Of a node that took no more, the last messages.
        never (node, final) = [name | let (previous, _) = Map.findWithDefault (0, 0) node latest, (name, one) <- takenBetween previous (final + 1) node, not (any (`covers` one) told)]
    takenBetween low high node = [(name, one) | (name, one) <- Map.toList (fst (Map.split high (snd (Map.split low sent)))), sentTaken one, sentNode one == node]
    finding what (others, count) = (what : others, count)
    covers gap one = sentTo one >= gapSince gap && sentFrom one <= gapUntil gap
