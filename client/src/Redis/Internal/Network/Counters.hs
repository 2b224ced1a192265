{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | Counts of a client's connections to a node, for as long as the client lives: connections come
-- and go, their counts stay.
--
-- Counts are words that any thread adds to with one atomic step. Times go into a histogram of a
-- fixed size. It has a lane for each capability, so that readers on different capabilities do not
-- write to the same words.
module Redis.Internal.Network.Counters
  ( Counters (..),
    newCounters,
    siblingCounters,

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

-- | The counters of the connections of one kind to one node.
data Counters = Counters
  { -- | The counts of the node, for all kinds of connections together.
    countersCounts :: MutableByteArray RealWorld,
    -- | The times of this kind of connection.
    countersTimes :: MutableByteArray RealWorld,
    countersLanes :: Int
  }

-- | Empty counters with so many lanes.
newCounters :: Int -> IO Counters
newCounters lanes = do
  countersCounts <- zeroes (length [minBound .. maxBound :: Count])
  newTimes lanes countersCounts

-- | Counters for another kind of connection to the same node: with the same counts and its own
-- times.
siblingCounters :: Int -> Counters -> IO Counters
siblingCounters lanes = newTimes lanes . countersCounts

newTimes :: Int -> MutableByteArray RealWorld -> IO Counters
newTimes lanes countersCounts = do
  countersTimes <- zeroes (laneWords * countersLanes)
  pure Counters {countersCounts, countersTimes, countersLanes}
  where
    countersLanes = max 1 lanes

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
countOne :: Counters -> Count -> IO ()
countOne counters what = countBy counters what 1

-- | Adds so many to a count. \(O(1)\).
countBy :: Counters -> Count -> Int -> IO ()
countBy counters what = addTo (countersCounts counters) (fromEnum what)

-- | The present value of a count. \(O(1)\).
countOf :: Counters -> Count -> IO Int
countOf counters what = readByteArray (countersCounts counters) (fromEnum what)

-- | Counts an error that a caller got.
countError :: Counters -> Delivery -> IO ()
countError counters = \case
  NotSent -> countOne counters ErrorsNotSent
  RefusedBeforeRun -> countOne counters ErrorsRefused
  MaybeExecuted -> countOne counters ErrorsMaybe

-- | Records that so many commands took so many nanoseconds each, in the lane of a capability.
-- \(O(1)\).
recordTimes :: Counters -> Int -> Int -> Int -> IO ()
recordTimes Counters {countersTimes, countersLanes} lane many nanos = do
  addTo countersTimes (start + 1 + bucketOf nanos) many
  addTo countersTimes start (many * max 0 nanos)
  where
    start = laneWords * (lane `rem` countersLanes)

addTo :: MutableByteArray RealWorld -> Int -> Int -> IO ()
addTo (MutableByteArray words#) (I# index#) (I# amount#) = IO $ \s -> case fetchAddIntArray# words# index# amount# s of
  (# s', _ #) -> (# s', () #)

-- | The times of all lanes. A time that is recorded meanwhile may be in the sum and in no bucket
-- yet, or the other way round.
timesSeen :: Counters -> IO RoundTrips
timesSeen Counters {countersTimes, countersLanes} = do
  total <- summed 0
  buckets <- forM [1 .. bucketCount] summed
  pure (roundTripsOf total buckets)
  where
    summed :: Int -> IO Int
    summed word = sum <$> forM [0 .. countersLanes - 1] (\lane -> readByteArray countersTimes (laneWords * lane + word))

-- | The size of a lane in words: the sum and the buckets, in whole cache lines.
laneWords :: Int
laneWords = (1 + bucketCount + 7) `quot` 8 * 8
