-- | Expiries, as the commands for strings, keys and fields of hashes take them.
module Redis.Internal.Command.Expiry
  ( Expiry (..),
    newLifetime,
    changedLifetime,
    ExpireCondition (..),
    expireConditionWord,
  )
where

import Data.Time.Clock (UTCTime)
import Redis.Command.Build
import Redis.Duration (Duration, inMilliseconds, inWholeSeconds)
import Redis.Internal.Command.Argument (unixMilliseconds)

-- | How long a value lives after it is set.
data Expiry
  = -- | Without an expiry, whatever expiry the replaced value had.
    NoExpiry
  | -- | KEEPTTL (since 6.0.0): with the expiry that the replaced value had.
    KeepExpiry
  | -- | EX, or PX if the time is not a whole number of seconds.
    ExpireIn Duration
  | -- | PXAT (since 6.2.0).
    ExpireAt UTCTime
  deriving stock (Eq, Show)

-- | The arguments for the expiry of a value that the command sets.
newLifetime :: Expiry -> [Argument]
newLifetime = lifetime [] [arg "KEEPTTL"]

-- | The arguments for the expiry of a value that the command leaves as it is.
changedLifetime :: Expiry -> [Argument]
changedLifetime = lifetime [arg "PERSIST"] []

-- | Takes the arguments for no expiry, and those for keeping the expiry.
lifetime :: [Argument] -> [Argument] -> Expiry -> [Argument]
lifetime none same = \case
  NoExpiry -> none
  KeepExpiry -> same
  ExpireIn duration -> case inWholeSeconds duration of
    Just whole -> [arg "EX", int whole]
    Nothing -> [arg "PX", int (inMilliseconds duration)]
  ExpireAt time -> [arg "PXAT", arg (unixMilliseconds time)]

-- | The condition under which an expiry is changed. GT and LT treat a value without an
-- expiry as one that expires later than any other.
data ExpireCondition
  = -- | NX: only if there is no expiry.
    OnlyIfNoExpiry
  | -- | XX: only if there is an expiry.
    OnlyIfExpiry
  | -- | GT: only if there is an expiry, and the new one is later.
    OnlyIfLater
  | -- | LT: only if the new expiry is sooner, or there is none yet.
    OnlyIfSooner
  deriving stock (Eq, Show)

expireConditionWord :: Maybe ExpireCondition -> [Argument]
expireConditionWord = \case
  Nothing -> []
  Just OnlyIfNoExpiry -> [arg "NX"]
  Just OnlyIfExpiry -> [arg "XX"]
  Just OnlyIfLater -> [arg "GT"]
  Just OnlyIfSooner -> [arg "LT"]
