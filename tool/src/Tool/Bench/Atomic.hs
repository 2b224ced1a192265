{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | Words that several threads change.
--
-- Each operation is one instruction, and cheap as long as the word stays with one core. With an
-- addition in two steps, the scheduler could run another thread between them.
module Tool.Bench.Atomic
  ( add,
    take',
    replaceIf,
    least,
    greatest,
  )
where

import Control.Monad (unless, when)
import Data.Primitive.ByteArray (MutableByteArray (MutableByteArray), readByteArray)
import GHC.Exts (Int (I#), RealWorld, casIntArray#, fetchAddIntArray#, fetchSubIntArray#)
import GHC.IO (IO (IO))

-- | Adds to the word at an index.
add :: MutableByteArray RealWorld -> Int -> Int -> IO ()
add (MutableByteArray words') (I# index) (I# amount) =
  IO $ \state -> case fetchAddIntArray# words' index amount state of
    (# state', _ #) -> (# state', () #)
{-# INLINE add #-}

-- | Returns the value of the word and subtracts it from the word.
take' :: MutableByteArray RealWorld -> Int -> IO Int
take' array@(MutableByteArray words') index@(I# index#) = do
  held@(I# held#) <- readByteArray array index
  when (held /= 0) . IO $ \state -> case fetchSubIntArray# words' index# held# state of
    (# state', _ #) -> (# state', () #)
  pure held
{-# INLINE take' #-}

-- | Replaces the first value by the second, if the word has the first. Returns whether it had.
replaceIf :: MutableByteArray RealWorld -> Int -> Int -> Int -> IO Bool
replaceIf (MutableByteArray words') (I# index) old@(I# old#) (I# new) =
  IO $ \state -> case casIntArray# words' index old# new state of
    (# state', found #) -> (# state', I# found == old #)
{-# INLINE replaceIf #-}

-- | Lowers the word to a value, if that is less; or raises it, if that is more. Seldom has to store.
least, greatest :: MutableByteArray RealWorld -> Int -> Int -> IO ()
least = putIf (<)
{-# INLINE least #-}
greatest = putIf (>)
{-# INLINE greatest #-}

putIf :: (Int -> Int -> Bool) -> MutableByteArray RealWorld -> Int -> Int -> IO ()
putIf better array index value = go
  where
    go = do
      held <- readByteArray array index
      when (better value held) $ do
        done <- replaceIf array index held value
        unless done go
{-# INLINE putIf #-}
