-- | The times at which the commands in flight were sent: one for each block that was handed to the
-- transport, not for each command. They tell the reader how long the server took for each reply,
-- and cost one look at the clock for each block sent and for each read.
--
-- A ring of send times of a fixed size. They are noted under the connection's lock; the
-- reader alone takes them, without it. When there is no room for a send time, its commands
-- are taken for part of the block before: they then seem to have taken a little longer.
--
-- The two sides see each other's words as with "Redis.Internal.Network.PendingRing": a send time is made
-- before its bytes are sent, so before their replies come. A word that is seen too late makes a
-- time less exact, and nothing else depends on it.
module Redis.Internal.Network.SendTimes
  ( SendTimes,
    newSendTimes,
    addSendTime,
    takeSendTimes,
  )
where

import Control.Monad.Primitive (RealWorld)
import Data.Bits ((.&.))
import Data.Primitive.ByteArray
import Redis.Internal.Network.Clock (Nanos)

-- | The send times of one connection.
data SendTimes = SendTimes
  { -- | The number of send times ever made; a cache line further, how many of them the reader has
    -- passed; then two words for each send time.
    sendTimesWords :: MutableByteArray RealWorld,
    sendTimesMask :: Int
  }

-- | Send times for at least so many blocks in flight.
newSendTimes :: Int -> IO SendTimes
newSendTimes atLeast = do
  let size = until (>= atLeast) (* 2) 2
      wordCount = firstSendTime + 2 * size
  sendTimesWords <- newByteArray (wordCount * 8)
  setByteArray sendTimesWords 0 wordCount (0 :: Int)
  pure SendTimes {sendTimesWords, sendTimesMask = size - 1}

firstSendTime :: Int
firstSendTime = 16

-- | Notes that all commands up to this position that have no send time yet are sent at this time. Call
-- it under the lock. \(O(1)\).
addSendTime :: SendTimes -> Int -> Nanos -> IO ()
addSendTime SendTimes {sendTimesWords, sendTimesMask} position now = do
  made <- readByteArray sendTimesWords 0
  passed <- readByteArray sendTimesWords 8
  if made - passed <= sendTimesMask
    then do
      let word = firstSendTime + 2 * (made .&. sendTimesMask)
      writeByteArray sendTimesWords word position
      writeByteArray sendTimesWords (word + 1) now
      writeByteArray sendTimesWords 0 (made + 1)
    else writeByteArray sendTimesWords (firstSendTime + 2 * ((made - 1) .&. sendTimesMask)) position

-- | For each group of commands between two positions that were sent together, calls the action with
-- their number and the time. Only for the reader, with the positions in order. \(O(n)\) in the
-- send times.
takeSendTimes :: SendTimes -> Int -> Int -> (Int -> Nanos -> IO ()) -> IO ()
takeSendTimes SendTimes {sendTimesWords, sendTimesMask} from to act = go from
  where
    go position
      | position >= to = pure ()
      | otherwise = do
        made <- readByteArray sendTimesWords 0
        passed <- readByteArray sendTimesWords 8
        let word = firstSendTime + 2 * (passed .&. sendTimesMask)
        decide position word passed made

    decide position word passed made
      | made == (0 :: Int) = pure ()
      | otherwise = do
        end <- readByteArray sendTimesWords word
        sent <- readByteArray sendTimesWords (word + 1)
        if end > position
          then act (min end to - position) sent *> go (min end to)
          else
            if passed + 1 < made
              then writeByteArray sendTimesWords 8 (passed + 1) *> go position
              else -- The commands belong to the last send time, which a submitter is extending.
                act (to - position) sent
{-# INLINE takeSendTimes #-}
