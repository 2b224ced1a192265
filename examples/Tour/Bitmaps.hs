-- | Bitmaps: strings as sequences of bits, and small numbers packed into them.
module Tour.Bitmaps (tour) where

import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

-- The braces put the keys in one slot of a cluster, which BITOP needs.
tour :: Client -> IO ()
tour client = fresh client ("example:{bitmaps}:may" :| ["example:{bitmaps}:june", "example:{bitmaps}:both", "example:{bitmaps}:numbers"]) $ do
  -- Visitors: one bit for each user's number. The result is the bit's previous value.
  run client (Redis.setbit "example:{bitmaps}:may" 1000 True) >>= print
  _ <- run client (Redis.setbit "example:{bitmaps}:may" 7 True)
  _ <- run client (Redis.setbit "example:{bitmaps}:june" 7 True)
  run client (Redis.getbit "example:{bitmaps}:may" 1000) >>= print

  -- The number of bits set, in total and in the first byte; and the position of the first.
  run client (Redis.bitcount "example:{bitmaps}:may") >>= print
  run client (Redis.bitcountWith Redis.bitcountDefaults {Redis.bitcountRange = Just (Redis.FromByteTo 0 0)} "example:{bitmaps}:may") >>= print
  run client (Redis.bitpos "example:{bitmaps}:may" True) >>= print

  -- The visitors of both months. The result is the size of the new string in bytes.
  run client (Redis.bitop "example:{bitmaps}:both" (Redis.BitAnd ("example:{bitmaps}:may" :| ["example:{bitmaps}:june"]))) >>= print
  run client (Redis.bitcount "example:{bitmaps}:both") >>= print

  -- Numbers of four bits: the second one, which stays at 15 when it is full.
  let second = Redis.BitfieldIncrby Redis.OverflowSaturates (Redis.Unsigned 4) (Redis.AtNumber 1)
  run client (Redis.bitfield "example:{bitmaps}:numbers" (second 9 :| [second 9, second (-1)])) >>= print
  run client (Redis.bitfieldRo "example:{bitmaps}:numbers" ((Redis.Unsigned 4, Redis.AtNumber 1) :| [])) >>= print
