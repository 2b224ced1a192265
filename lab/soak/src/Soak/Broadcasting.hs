-- | Callers that publish messages and receive them.
module Soak.Broadcasting
  ( broadcasts,
  )
where

import Control.Concurrent.STM
import Control.Exception (try)
import Control.Monad (forM_, when)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.List.NonEmpty qualified as NonEmpty
import Data.Time.Clock (getCurrentTime)
import Redis.Commands qualified as Redis
import Redis.MessageAudit
import Redis.Subscription hiding (Event)
import Soak.Audit
import Soak.Book
import Soak.Caller
import Soak.Places

-- | Publishes numbers on a channel of its own, and receives them: all of them, in order, except
-- within a gap.
broadcasts :: TVar Gate -> Caller -> IO ()
broadcasts gate caller = looping gate caller $ do
  ended <- try . withSubscription (clientOf caller) topics $ \subscription -> do
    state <- newIORef (1 :: Int, newRound)
    looping gate caller (once subscription state)
  -- On a busy machine the subscription may not begin in time. Then it is tried again.
  case ended of
    Left problem | not (isExpected problem) -> note caller (Wrong ("a subscription ended: " <> show problem))
    _ -> pure ()
  where
    -- In a cluster, messages on an ordinary channel that are published at different nodes have no
    -- order.
    sharded = servers == SeveralServers
    name = keyName (keyOf caller "p" 0)
    topics = (if sharded then shardChannel else channel) name
    publish = (if sharded then Redis.spublish else Redis.publish) name
    servers = if length (placeTags (callerPlace caller)) > 3 then SeveralServers else OneServer
    (publisher, taker) = speakerPublisher (callerSpeaker caller)
    once subscription state = do
      (number, _) <- readIORef state
      from <- getCurrentTime
      outcome <- plainly (speakingBy publisher caller) (publish (Char8.pack (show number)))
      to <- getCurrentTime
      node <- taker
      let taken = case outcome of Answered _ -> True; _ -> False
      modifyIORef' state (\(_, current) -> (number + 1, published number (Sent from to taken (if sharded then node else Nothing)) current))
      -- Takes the messages that are there now; the others are received in the next turn.
      over <- registerDelay 20000
      events <- atomically ((NonEmpty.toList <$> nextEventsSTM subscription) `orElse` ([] <$ (readTVar over >>= check)))
      forM_ events $ \event -> modifyIORef' state (fmap (heard (heardOf event)))
      (_, current) <- readIORef state
      when (roundSize current >= 200 && roundOver current) $ do
        mapM_ (note caller . Wrong . (Char8.unpack name <>) . (": " <>)) (judgeRound servers current)
        writeIORef state (number + 1, nextRound current)
      when (roundSize current == 6000) $
        note caller (Wrong (Char8.unpack name <> ": of 6000 messages the last was never heard"))
    heardOf = \case
      Message message -> HeardMessage (maybe 0 fst (Char8.readInt (messagePayload message)))
      Gap gap -> HeardGap (gapSince gap) (gapUntil gap)
