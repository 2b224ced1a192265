-- | What a server's own count says of a generator's figures. Pure.
--
-- Somebody asks the server again and again how often it ran a command. Between which
-- answers a run began and ended is certain, however busy the machine is; so the count
-- of a run lies between two numbers, and a figure outside of them is wrong, by a factor
-- or by a count, and not by chance.
module Lab.Differential.Served
  ( Look (..),
    inWindow,
    ofLast,
  )
where

import Data.Maybe (listToMaybe)
import Tool.Bench.Cpu (Nanos)

-- | A question to the server.
data Look = Look
  { -- | When it was asked, and when it had answered: nanoseconds since 1970.
    lookAsked :: Nanos,
    lookTold :: Nanos,
    -- | How often it had run the command.
    lookCalls :: Int
  }
  deriving stock (Eq, Show)

-- | The least and the most that it can have run from the one time to the other, given
-- questions in their order. 'Nothing' if none was before, or none after.
inWindow :: (Nanos, Nanos) -> [Look] -> Maybe (Int, Int)
inWindow (from, to) looks = do
  before <- lastOf [one | one <- looks, lookTold one <= from]
  after <- listToMaybe [one | one <- looks, lookAsked one >= to]
  let inside = [lookCalls one | one <- looks, lookAsked one >= from, lookTold one <= to]
      least = maybe 0 (uncurry (-)) ((,) <$> lastOf inside <*> listToMaybe inside)
  pure (least, lookCalls after - lookCalls before)

-- | The least and the most nanoseconds in which it can have run the last so many.
-- 'Nothing' if no question was before them.
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
