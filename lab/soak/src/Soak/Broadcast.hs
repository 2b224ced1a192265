-- | The messages that a caller published, those that it received, and whether that is right.
--
-- Pure. A round ends when its last message has been received. Then it is judged and dropped, so
-- that a run of hours keeps no more than a run of minutes.
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

-- | Messages by their numbers, and what was received, the latest first.
data Round = Round
  { roundSent :: Map Int Sent,
    -- | Messages of earlier rounds that may still arrive.
    roundDoubts :: Map Int Sent,
    roundHeard :: [Heard],
    roundLast :: Int
  }

-- | When a message was published, and whether the server acknowledged it.
data Sent = Sent
  { sentFrom :: UTCTime,
    sentTo :: UTCTime,
    sentTaken :: Bool
  }
  deriving stock (Eq, Show)

-- | A message by its number, or a gap between two times.
data Heard
  = HeardMessage Int
  | HeardGap UTCTime UTCTime
  deriving stock (Eq, Show)

-- | The first round.
newRound :: Round
newRound = Round {roundSent = Map.empty, roundDoubts = Map.empty, roundHeard = [], roundLast = 0}

-- | The round after this one.
nextRound :: Round -> Round
nextRound one =
  newRound
    { roundLast = maybe (roundLast one) fst (Map.lookupMax (roundSent one)),
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

-- | The violations of a round. The flag says whether nodes pass messages to each other: then a
-- message that was published within a gap may arrive again, from the node to which the subscription
-- moved. A message whose publishing is in doubt may arrive late, because its bytes may wait at a
-- frozen server while others go by a new connection. It may come between a gap and the first message
-- behind the gap, so it does not end what the gap covers.
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
          [ "missed " <> show (take 5 (map fst missing)) <> " between " <> show previous <> " and " <> show number
              <> (", and there was no such gap: " <> show (map snd (take 1 missing)) <> ", the gaps " <> show gaps)
            | let missing = [lost | lost <- between previous number, sentTaken (snd lost), not (covered gaps (snd lost))],
              not (null missing)
          ]
            <> go number (if maybe True sentTaken (Map.lookup number known) then [] else gaps) told rest
    mayComeLate told late = not (sentTaken late) || severalNodes && covered told late
    between low high = Map.toList (fst (Map.split high (snd (Map.split low sent))))
    covered gaps lost = or [sentTo lost >= since && sentFrom lost <= until' | (since, until') <- gaps]
