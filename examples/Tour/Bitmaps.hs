-- | Bitmaps: strings, bit by bit, and small numbers packed into them.
module Tour.Bitmaps (tour) where

import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

-- The braces put the keys in one slot of a cluster: BITOP wants that.
tour :: Client -> IO ()
tour client = fresh client ("example:{bitmaps}:may" :| ["example:{bitmaps}:june", "example:{bitmaps}:both", "example:{bitmaps}:numbers"]) $ do
  -- Who was there: a bit per number of a user. The answer is what the bit was.
  run client (Redis.setbit "example:{bitmaps}:may" 1000 True) >>= print
  _ <- run client (Redis.setbit "example:{bitmaps}:may" 7 True)
  _ <- run client (Redis.setbit "example:{bitmaps}:june" 7 True)
  run client (Redis.getbit "example:{bitmaps}:may" 1000) >>= print

  -- How many there were: in all, and of the first byte; and the first of them.
  run client (Redis.bitcount "example:{bitmaps}:may") >>= print
  run client (Redis.bitcountWith Redis.bitcountDefaults {Redis.bitcountRange = Just (Redis.FromByteTo 0 0)} "example:{bitmaps}:may") >>= print
  run client (Redis.bitpos "example:{bitmaps}:may" True) >>= print

  -- Who was there in both months. The answer is how many bytes that has.
  run client (Redis.bitop "example:{bitmaps}:both" (Redis.BitAnd ("example:{bitmaps}:may" :| ["example:{bitmaps}:june"]))) >>= print
  run client (Redis.bitcount "example:{bitmaps}:both") >>= print

  -- Numbers of four bits: the second one, which stays at 15 when it is full.
  let second = Redis.BitfieldIncrby Redis.OverflowSaturates (Redis.Unsigned 4) (Redis.AtNumber 1)
  run client (Redis.bitfield "example:{bitmaps}:numbers" (second 9 :| [second 9, second (-1)])) >>= print
  run client (Redis.bitfieldRo "example:{bitmaps}:numbers" ((Redis.Unsigned 4, Redis.AtNumber 1) :| [])) >>= print
