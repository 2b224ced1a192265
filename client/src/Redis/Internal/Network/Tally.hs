{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | Counts of a client's connections to a node, for as long as the client lives: connections come
-- and go, their counts stay.
--
-- Counts are words that any thread adds to with one atomic step. Times go into a histogram of a
-- fixed size. It has a lane for each capability, so that readers on different capabilities do not
-- write to the same words.
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

-- | The tally of the connections of one kind to one node.
data Tally = Tally
  { -- | The counts of the node, for all kinds of connections together.
    tallyCounts :: MutableByteArray RealWorld,
    -- | The times of this kind of connection.
    tallyTimes :: MutableByteArray RealWorld,
    tallyLanes :: Int
  }

-- | An empty tally with so many lanes.
newTally :: Int -> IO Tally
newTally lanes = do
  tallyCounts <- zeroes (length [minBound .. maxBound :: Count])
  newTimes lanes tallyCounts

-- | A tally for another kind of connection to the same node: with the same counts and its own
-- times.
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

-- | The things that are counted.
data Count
  = ConnectionsOpened
  | -- | Connections that ended without being closed by this client.
    ConnectionsLost
  | -- | Attempts to open a connection that failed.
    ConnectsFailed
  | RedirectsMoved
  | RedirectsAsk
  | -- | Commands that were sent here after an attempt had failed.
    CommandsResent
  | -- | Errors that callers got, by what a caller may conclude about its command.
    ErrorsNotSent
  | ErrorsRefused
  | ErrorsMaybe
  | -- | Commands that failed because their connection ended, before and after they were sent.
    CutUnsent
  | CutSent
  deriving stock (Eq, Show, Enum, Bounded)

-- | Adds one to a count. \(O(1)\).
countOne :: Tally -> Count -> IO ()
countOne tally what = countBy tally what 1

-- | Adds so many to a count. \(O(1)\).
countBy :: Tally -> Count -> Int -> IO ()
countBy tally what = addTo (tallyCounts tally) (fromEnum what)

-- | The present value of a count. \(O(1)\).
countOf :: Tally -> Count -> IO Int
countOf tally what = readByteArray (tallyCounts tally) (fromEnum what)

-- | Counts an error that a caller got.
countError :: Tally -> Delivery -> IO ()
countError tally = \case
  NotSent -> countOne tally ErrorsNotSent
  RefusedBeforeRun -> countOne tally ErrorsRefused
  MaybeExecuted -> countOne tally ErrorsMaybe

-- | Records that so many commands took so many nanoseconds each, in the lane of a capability.
-- \(O(1)\).
recordTimes :: Tally -> Int -> Int -> Int -> IO ()
recordTimes Tally {tallyTimes, tallyLanes} lane many nanos = do
  addTo tallyTimes (start + 1 + bucketOf nanos) many
  addTo tallyTimes start (many * max 0 nanos)
  where
    start = laneWords * (lane `rem` tallyLanes)

addTo :: MutableByteArray RealWorld -> Int -> Int -> IO ()
addTo (MutableByteArray words#) (I# index#) (I# amount#) = IO $ \s -> case fetchAddIntArray# words# index# amount# s of
  (# s', _ #) -> (# s', () #)

-- | The times of all lanes. A time that is recorded meanwhile may be in the sum and in no bucket
-- yet, or the other way round.
timesSeen :: Tally -> IO RoundTrips
timesSeen Tally {tallyTimes, tallyLanes} = do
  total <- summed 0
  buckets <- forM [1 .. bucketCount] summed
  pure (roundTripsOf total buckets)
  where
    summed :: Int -> IO Int
    summed word = sum <$> forM [0 .. tallyLanes - 1] (\lane -> readByteArray tallyTimes (laneWords * lane + word))

-- | The size of a lane in words: the sum and the buckets, in whole cache lines.
laneWords :: Int
laneWords = (1 + bucketCount + 7) `quot` 8 * 8
