-- | A lifetime as the options of SET, GETEX and their kin for the fields of hashes.
module Redis.Internal.Command.Expiry
  ( expireIn,
    expireAt,
  )
where

import Data.Time.Clock (UTCTime)
import Redis.Command.Build
import Redis.Duration (Duration, inMilliseconds, inWholeSeconds)
import Redis.Internal.Command.Argument (unixMilliseconds)

-- | EX, or PX for what is no whole number of seconds.
expireIn :: Duration -> [Argument]
expireIn duration = case inWholeSeconds duration of
  Just whole -> [arg "EX", int whole]
  Nothing -> [arg "PX", int (inMilliseconds duration)]

-- | PXAT.
expireAt :: UTCTime -> [Argument]
expireAt time = [arg "PXAT", arg (unixMilliseconds time)]
