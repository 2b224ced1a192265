-- | Compares a generator's figures with the server's own count. Pure.
--
-- Something asks the server again and again how often it has run a command. It is certain between
-- which answers a run began and ended, however busy the machine is. So the count of a run lies
-- between two numbers. A figure outside of them is wrong, by a factor or by a count, and not by
-- chance.
module Lab.Differential.Served
  ( Look (..),
    inWindow,
    ofLast,
  )
where

import Data.Maybe (listToMaybe)
import Tool.Bench.Time (Nanos)

-- | A question to the server, with its answer.
data Look = Look
  { -- | When the question was sent, and when the answer had come: nanoseconds since 1970.
    lookAsked :: Nanos,
    lookTold :: Nanos,
    -- | How often the server had run the command.
    lookCalls :: Int
  }
  deriving stock (Eq, Show)

-- | The least and the most commands that the server can have run between two times, given questions
-- in order. 'Nothing' if there was no question before, or none after.
inWindow :: (Nanos, Nanos) -> [Look] -> Maybe (Int, Int)
inWindow (from, to) looks = do
  before <- lastOf [one | one <- looks, lookTold one <= from]
  after <- listToMaybe [one | one <- looks, lookAsked one >= to]
  let inside = [lookCalls one | one <- looks, lookAsked one >= from, lookTold one <= to]
      least = maybe 0 (uncurry (-)) ((,) <$> lastOf inside <*> listToMaybe inside)
  pure (least, lookCalls after - lookCalls before)

-- | The least and the most nanoseconds in which the server can have run the last commands, this
-- many of them. 'Nothing' if there was no question before them.
ofLast :: Int -> [Look] -> Maybe (Nanos, Nanos)
ofLast count looks = do
  end <- lookCalls <$> lastOf looks
  before <- lastOf [one | one <- looks, lookCalls one <= end - count]
  done <- listToMaybe [one | one <- looks, lookCalls one == end]
  let inside = [one | one <- looks, lookCalls one > end - count, lookCalls one < end]
      least = maybe 0 (\(first, final) -> max 0 (lookAsked final - lookTold first)) ((,) <$> listToMaybe inside <*> lastOf inside)
  pure (least, lookTold done - lookAsked before)

lastOf :: [a] -> Maybe a
lastOf = listToMaybe . reverse
