-- | The messages that were published, those that were received, and whether that is right: each
-- message that the servers accepted once and in order, or in a gap that was reported at its place.
--
-- Pure. A round ends when its last message has been received. Then it is judged and dropped, so
-- that a run of hours keeps no more than a run of minutes.
module Redis.MessageAudit
  ( Round,
    newRound,
    nextRound,
    roundSize,
    roundOver,
    Sent (..),
    published,
    Heard (..),
    heard,
    Servers (..),
    judgeRound,
  )
where

import Data.Foldable (toList)
import Data.List (foldl')
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Time.Clock (UTCTime)
import Redis (Endpoint)

-- | Messages by their numbers, and what was received, the latest first.
data Round = Round
  { -- | Of earlier rounds, those that a node has yet to deliver.
    roundSent :: Map Int Sent,
    -- | Messages of earlier rounds that may still arrive.
    roundDoubts :: Map Int Sent,
    roundHeard :: [Heard],
    -- | The last message of the round before.
    roundBefore :: Int
  }

-- | When a message was published, whether a server accepted it, and which, if there are several.
data Sent = Sent
  { sentFrom :: UTCTime,
    sentTo :: UTCTime,
    sentTaken :: Bool,
    sentNode :: Maybe Endpoint
  }
  deriving stock (Eq, Show)

-- | A message by its number, or a gap between two times.
data Heard
  = HeardMessage Int
  | HeardGap UTCTime UTCTime
  deriving stock (Eq, Show)

-- | Whether several nodes pass messages to each other.
data Servers
  = OneServer
  | -- | Then a message that was published within a gap may come again, through the node to which
    -- the subscription moved.
    SeveralServers
  deriving stock (Eq)

-- | The first round.
newRound :: Round
newRound = Round {roundSent = Map.empty, roundDoubts = Map.empty, roundHeard = [], roundBefore = 0}

-- | The round after this one. It keeps the last messages of a node that were not received yet.
nextRound :: Round -> Round
nextRound one =
  newRound
    { roundBefore = maybe (roundBefore one) fst (Map.lookupMax (roundSent one)),
      roundSent = Map.filterWithKey (owing (progressOf SeveralServers one)) (roundSent one),
      roundDoubts = Map.drop (Map.size doubts - 1000) doubts
    }
  where
    doubts = roundDoubts one <> Map.filter (not . sentTaken) (roundSent one)

-- | The number of messages that were published in the round.
roundSize :: Round -> Int
roundSize = Map.size . roundSent

-- | Whether the last message of the round has been received.
roundOver :: Round -> Bool
roundOver one = case (Map.lookupMax (roundSent one), roundHeard one) of
  (Just (number, _), HeardMessage latest : _) -> number == latest
  _ -> False

-- | Adds a message that was published.
published :: Int -> Sent -> Round -> Round
published number sent one = one {roundSent = Map.insert number sent (roundSent one)}

-- | Adds a message or a gap that was received.
heard :: Heard -> Round -> Round
heard what one = one {roundHeard = what : roundHeard one}

-- | The violations of a round. A message of the round before that is still missing is one of them.
--
-- Messages that several nodes took have no order: a node whose replica has become the primary still
-- takes them, and forwards them. So each node's messages are judged for themselves. A message whose
-- publishing is in doubt may arrive late, because its bytes may wait at a frozen server while others
-- go by a new connection. It may come between a gap and the first message behind the gap, so it does
-- not end what the gap covers.
judgeRound :: Servers -> Round -> [String]
judgeRound servers one =
  reverse (progressFaults past)
    <> ["never heard " <> show (take 5 lost) <> ", the gaps " <> show (progressGaps past) | let lost = Map.keys (Map.filterWithKey (owing past) earlier), not (null lost)]
  where
    past = progressOf servers one
    earlier = Map.takeWhileAntitone (<= roundBefore one) (roundSent one)

-- | How far the judge has come.
data Progress = Progress
  { progressMarks :: Map (Maybe Endpoint) Mark,
    -- | The latest first.
    progressGaps :: [(UTCTime, UTCTime)],
    -- | The latest first.
    progressFaults :: [String]
  }

-- | The latest message of a node, and the number of gaps that were reported by its latest accepted one.
data Mark = Mark
  { markNumber :: Int,
    markGaps :: Int
  }

-- | The mark of the node that took the message.
markOf :: Sent -> Progress -> Mark
markOf sent = Map.findWithDefault Mark {markNumber = 0, markGaps = 0} (sentNode sent) . progressMarks

-- | The gaps since the node's latest accepted message.
gapsSince :: Mark -> Progress -> [(UTCTime, UTCTime)]
gapsSince mark past = take (length (progressGaps past) - markGaps mark) (progressGaps past)

-- | Whether the message was accepted, lies in no gap, and is not received yet.
owing :: Progress -> Int -> Sent -> Bool
owing past number sent = sentTaken sent && number > markNumber mark && not (covered (gapsSince mark past) sent)
  where
    mark = markOf sent past

covered :: [(UTCTime, UTCTime)] -> Sent -> Bool
covered gaps sent = or [sentTo sent >= since && sentFrom sent <= until' | (since, until') <- gaps]

progressOf :: Servers -> Round -> Progress
progressOf servers one = foldl' step Progress {progressMarks = Map.empty, progressGaps = [], progressFaults = []} (reverse (roundHeard one))
  where
    known = roundSent one <> roundDoubts one
    step past = \case
      HeardGap since until' -> past {progressGaps = (since, until') : progressGaps past}
      HeardMessage number -> case Map.lookup number known of
        Nothing
          | servers == SeveralServers -> past
          | otherwise -> fault ("heard " <> show number <> " after " <> show (maximum (roundBefore one : map markNumber (toList (progressMarks past)))))
        Just sent
          | number > markNumber mark -> moved {progressFaults = [missed | not (null missing)] <> progressFaults past}
          | mayComeLate -> past
          | otherwise -> fault ("heard " <> show number <> " after " <> show (markNumber mark))
          where
            mark = markOf sent past
            moved = past {progressMarks = Map.insert (sentNode sent) Mark {markNumber = number, markGaps = if sentTaken sent then length (progressGaps past) else markGaps mark} (progressMarks past)}
            missing = [other | other@(_, lost) <- between (markNumber mark) number, sentNode lost == sentNode sent, owing past (fst other) lost]
            missed =
              "missed " <> show (take 5 (map fst missing)) <> " between " <> show (markNumber mark) <> " and " <> show number
                <> (", and there was no such gap: " <> show (map snd (take 1 missing)) <> ", the gaps " <> show (gapsSince mark past))
            mayComeLate = not (sentTaken sent) || servers == SeveralServers && covered (progressGaps past) sent
        where
          fault what = past {progressFaults = what : progressFaults past}
    between low high = Map.toList (fst (Map.split high (snd (Map.split low (roundSent one)))))
