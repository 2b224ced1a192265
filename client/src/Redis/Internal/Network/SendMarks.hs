-- | Marks of when the commands in flight were sent: one for each block that was handed to the
-- transport, not for each command. They tell the reader how long the server took for each reply,
-- and cost one look at the clock for each block sent and for each read.
--
-- A ring of marks of a fixed size. Marks are made under the connection's lock; the
-- reader alone takes them, without it. When there is no room for a mark, its commands
-- are taken for part of the block before: they then seem to have taken a little longer.
--
-- The two sides see each other's words as with "Redis.Internal.Network.PendingRing": a mark is made
-- before its bytes are sent, so before their replies come. A word that is seen too late makes a
-- time less exact, and nothing else depends on it.
module Redis.Internal.Network.SendMarks
  ( SendMarks,
    newSendMarks,
    addMark,
    takeMarks,
  )
where

import Control.Monad.Primitive (RealWorld)
import Data.Bits ((.&.))
import Data.Primitive.ByteArray
import Redis.Internal.Network.Clock (Nanos)

-- | The marks of one connection.
data SendMarks = SendMarks
  { -- | The number of marks ever made; a cache line further, how many of them the reader has
    -- passed; then two words for each mark.
    marksWords :: MutableByteArray RealWorld,
    marksMask :: Int
  }

-- | Marks for at least so many blocks in flight.
newSendMarks :: Int -> IO SendMarks
newSendMarks atLeast = do
  let size = until (>= atLeast) (* 2) 2
      wordCount = firstMark + 2 * size
  marksWords <- newByteArray (wordCount * 8)
  setByteArray marksWords 0 wordCount (0 :: Int)
  pure SendMarks {marksWords, marksMask = size - 1}

firstMark :: Int
firstMark = 16

-- | Notes that all commands up to this position that have no mark yet are sent at this time. Call
-- it under the lock. \(O(1)\).
addMark :: SendMarks -> Int -> Nanos -> IO ()
addMark SendMarks {marksWords, marksMask} position now = do
  made <- readByteArray marksWords 0
  passed <- readByteArray marksWords 8
  if made - passed <= marksMask
    then do
      let word = firstMark + 2 * (made .&. marksMask)
      writeByteArray marksWords word position
      writeByteArray marksWords (word + 1) now
      writeByteArray marksWords 0 (made + 1)
    else writeByteArray marksWords (firstMark + 2 * ((made - 1) .&. marksMask)) position

-- | For each group of commands between two positions that were sent together, calls the action with
-- their number and the time. Only for the reader, with the positions in order. \(O(n)\) in the
-- marks.
takeMarks :: SendMarks -> Int -> Int -> (Int -> Nanos -> IO ()) -> IO ()
takeMarks SendMarks {marksWords, marksMask} from to act = go from
  where
    go position
      | position >= to = pure ()
      | otherwise = do
        made <- readByteArray marksWords 0
        passed <- readByteArray marksWords 8
        let word = firstMark + 2 * (passed .&. marksMask)
        decide position word passed made

    decide position word passed made
      | made == (0 :: Int) = pure ()
      | otherwise = do
        end <- readByteArray marksWords word
        sent <- readByteArray marksWords (word + 1)
        if end > position
          then act (min end to - position) sent *> go (min end to)
          else
            if passed + 1 < made
              then writeByteArray marksWords 8 (passed + 1) *> go position
              else -- The commands belong to the last mark, which a submitter is extending.
                act (to - position) sent
{-# INLINE takeMarks #-}
