{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | What a client counts about its connections to a node, for as long as it lives:
-- connections come and go, their counts stay.
--
-- Counts are words that any thread adds to with one atomic step. Times go into a
-- histogram of a fixed size, a lane for each capability, so that readers on different
-- ones do not write to the same words.
module Redis.Internal.Network.Tally
  ( Tally (..),
    newTally,
    besideTally,

    -- * Counts
    Count (..),
    countOne,
    countBy,
    countOf,
    countError,

    -- * Times
    recordTimes,
    timesSeen,
  )
where

import Control.Monad (forM)
import Control.Monad.Primitive (RealWorld)
import Data.Primitive.ByteArray
import GHC.Exts (Int (I#), fetchAddIntArray#)
import GHC.IO (IO (IO))
import Redis.Error (Delivery (..))
import Redis.Internal.Network.RoundTrips

-- | Where the connections of one kind to one node count.
data Tally = Tally
  { -- | The node's, of all kinds of connections.
    tallyCounts :: MutableByteArray RealWorld,
    -- | Of this kind.
    tallyTimes :: MutableByteArray RealWorld,
    tallyLanes :: Int
  }

-- | One with nothing in it, with so many lanes.
newTally :: Int -> IO Tally
newTally lanes = do
  tallyCounts <- zeroes (length [minBound .. maxBound :: Count])
  newTimes lanes tallyCounts

-- | For another kind of connections to the same node.
besideTally :: Int -> Tally -> IO Tally
besideTally lanes = newTimes lanes . tallyCounts

newTimes :: Int -> MutableByteArray RealWorld -> IO Tally
newTimes lanes tallyCounts = do
  tallyTimes <- zeroes (laneWords * tallyLanes)
  pure Tally {tallyCounts, tallyTimes, tallyLanes}
  where
    tallyLanes = max 1 lanes

zeroes :: Int -> IO (MutableByteArray RealWorld)
zeroes size = do
  words' <- newByteArray (size * 8)
  words' <$ setByteArray words' 0 size (0 :: Int)

-- | What is counted.
data Count
  = ConnectionsOpened
  | -- | Of those, without being asked to.
    ConnectionsLost
  | -- | Attempts to open one.
    ConnectsFailed
  | RedirectsMoved
  | RedirectsAsk
  | -- | Commands that were sent here after an attempt had failed.
    CommandsResent
  | -- | Errors that callers got, by what they may conclude.
    ErrorsNotSent
  | ErrorsRefused
  | ErrorsMaybe
  | -- | Commands that ended with their connection, before and after they were sent.
    CutUnsent
  | CutSent
  deriving stock (Eq, Show, Enum, Bounded)

-- | One more. \(O(1)\).
countOne :: Tally -> Count -> IO ()
countOne tally what = countBy tally what 1

-- | So many more.
countBy :: Tally -> Count -> Int -> IO ()
countBy tally what = addTo (tallyCounts tally) (fromEnum what)

-- | How many so far.
countOf :: Tally -> Count -> IO Int
countOf tally what = readByteArray (tallyCounts tally) (fromEnum what)

-- | An error that a caller got.
countError :: Tally -> Delivery -> IO ()
countError tally = \case
  NotSent -> countOne tally ErrorsNotSent
  RefusedBeforeRun -> countOne tally ErrorsRefused
  MaybeExecuted -> countOne tally ErrorsMaybe

-- | So many things took so many nanoseconds each. In the lane of a capability. \(O(1)\).
recordTimes :: Tally -> Int -> Int -> Int -> IO ()
recordTimes Tally {tallyTimes, tallyLanes} lane many nanos = do
  addTo tallyTimes (start + 1 + bucketOf nanos) many
  addTo tallyTimes start (many * max 0 nanos)
  where
    start = laneWords * (lane `rem` tallyLanes)

addTo :: MutableByteArray RealWorld -> Int -> Int -> IO ()
addTo (MutableByteArray words#) (I# index#) (I# amount#) = IO $ \s -> case fetchAddIntArray# words# index# amount# s of
  (# s', _ #) -> (# s', () #)

-- | Of all lanes. What is recorded meanwhile may be in the sum and in no bucket yet, or the
-- other way round.
timesSeen :: Tally -> IO RoundTrips
timesSeen Tally {tallyTimes, tallyLanes} = do
  total <- summed 0
  buckets <- forM [1 .. bucketCount] summed
  pure (roundTripsOf total buckets)
  where
    summed :: Int -> IO Int
    summed word = sum <$> forM [0 .. tallyLanes - 1] (\lane -> readByteArray tallyTimes (laneWords * lane + word))

-- | The sum and the buckets, in whole cache lines.
laneWords :: Int
laneWords = (1 + bucketCount + 7) `quot` 8 * 8
