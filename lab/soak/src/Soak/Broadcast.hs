-- | What somebody published, what they heard of it, and whether that is right.
--
-- Pure. A round is over when the last message has been heard; then it is judged, and
-- forgotten, so that a run of hours keeps no more than one of minutes.
module Soak.Broadcast
  ( Round,
    newRound,
    nextRound,
    roundSize,
    roundOver,
    Sent (..),
    published,
    Heard (..),
    heard,
    judgeRound,
  )
where

import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Time.Clock (UTCTime)

-- | Messages by their numbers, and what was heard, the latest first.
data Round = Round
  { roundSent :: Map Int Sent,
    -- | Of rounds before: what may still come.
    roundDoubts :: Map Int Sent,
    roundHeard :: [Heard],
    roundLast :: Int
  }

-- | When a message was published, and whether the server said that it was.
data Sent = Sent
  { sentFrom :: UTCTime,
    sentTo :: UTCTime,
    sentTaken :: Bool
  }
  deriving stock (Eq, Show)

-- | A message by its number, or a gap from then to then.
data Heard
  = HeardMessage Int
  | HeardGap UTCTime UTCTime
  deriving stock (Eq, Show)

-- | The first one.
newRound :: Round
newRound = Round {roundSent = Map.empty, roundDoubts = Map.empty, roundHeard = [], roundLast = 0}

-- | The one after it.
nextRound :: Round -> Round
nextRound one =
  newRound
    { roundLast = maybe (roundLast one) fst (Map.lookupMax (roundSent one)),
      roundDoubts = Map.drop (Map.size doubts - 1000) doubts
    }
  where
    doubts = roundDoubts one <> Map.filter (not . sentTaken) (roundSent one)

-- | How many messages were published in it.
roundSize :: Round -> Int
roundSize = Map.size . roundSent

-- | Whether the last of them has been heard.
roundOver :: Round -> Bool
roundOver one = case (Map.lookupMax (roundSent one), roundHeard one) of
  (Just (number, _), HeardMessage latest : _) -> number == latest
  _ -> False

-- | A message was published.
published :: Int -> Sent -> Round -> Round
published number sent one = one {roundSent = Map.insert number sent (roundSent one)}

-- | Something was heard.
heard :: Heard -> Round -> Round
heard what one = one {roundHeard = what : roundHeard one}

-- | What is wrong with a round, given whether nodes pass messages to each other: then
-- one that was published within a gap may come again, by the node that the subscription
-- went to. One whose publishing is in doubt may come late, because its bytes may lie
-- before a frozen server while others go by a new connection.
judgeRound :: Bool -> Round -> [String]
judgeRound severalNodes one = go (roundLast one) [] [] (reverse (roundHeard one))
  where
    sent = roundSent one
    known = sent <> roundDoubts one
    go :: Int -> [(UTCTime, UTCTime)] -> [(UTCTime, UTCTime)] -> [Heard] -> [String]
    go previous gaps told = \case
      [] -> []
      HeardGap since until' : rest -> go previous ((since, until') : gaps) ((since, until') : told) rest
      HeardMessage number : rest
        | number <= previous ->
          ["heard " <> show number <> " after " <> show previous | not (maybe severalNodes (mayComeLate told) (Map.lookup number known))]
            <> go previous gaps told rest
        | otherwise ->
          [ "missed " <> show (take 5 missing) <> " between " <> show previous <> " and " <> show number <> ", and there was no such gap"
            | let missing = [name | (name, lost) <- between previous number, sentTaken lost, not (covered gaps lost)],
              not (null missing)
          ]
            <> go number [] told rest
    mayComeLate told late = not (sentTaken late) || severalNodes && covered told late
    between low high = Map.toList (fst (Map.split high (snd (Map.split low sent))))
    covered gaps lost = or [sentTo lost >= since && sentFrom lost <= until' | (since, until') <- gaps]
