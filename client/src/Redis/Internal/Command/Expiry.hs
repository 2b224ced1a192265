-- | How long values live, which commands for strings, keys and fields of hashes have in
-- common.
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

-- | How long a value that is set shall live.
--
-- @since 0.1.0.0
data Expiry
  = -- | For ever, whatever the value it replaces had.
    NoExpiry
  | -- | KEEPTTL (since 6.0.0): as long as the value it replaces would have.
    KeepExpiry
  | -- | EX, or PX for what is no whole number of seconds.
    ExpireIn Duration
  | -- | PXAT (since 6.2.0).
    ExpireAt UTCTime
  deriving stock (Eq, Show)

-- | Of a value that is set.
newLifetime :: Expiry -> [Argument]
newLifetime = lifetime [] [arg "KEEPTTL"]

-- | Of a value that stays.
changedLifetime :: Expiry -> [Argument]
changedLifetime = lifetime [arg "PERSIST"] []

-- | Given what is said for none, and for the one that is there.
lifetime :: [Argument] -> [Argument] -> Expiry -> [Argument]
lifetime none same = \case
  NoExpiry -> none
  KeepExpiry -> same
  ExpireIn duration -> case inWholeSeconds duration of
    Just whole -> [arg "EX", int whole]
    Nothing -> [arg "PX", int (inMilliseconds duration)]
  ExpireAt time -> [arg "PXAT", arg (unixMilliseconds time)]

-- | When to change an expiry. To GT and LT what has none lives for ever.
--
-- @since 0.1.0.0
data ExpireCondition
  = -- | NX: if there is none.
    OnlyIfNoExpiry
  | -- | XX: if there is one.
    OnlyIfExpiry
  | -- | GT: if there is one, and the new one is later.
    OnlyIfLater
  | -- | LT: if the new one is sooner, or there is none.
    OnlyIfSooner
  deriving stock (Eq, Show)

expireConditionWord :: Maybe ExpireCondition -> [Argument]
expireConditionWord = \case
  Nothing -> []
  Just OnlyIfNoExpiry -> [arg "NX"]
  Just OnlyIfExpiry -> [arg "XX"]
  Just OnlyIfLater -> [arg "GT"]
  Just OnlyIfSooner -> [arg "LT"]
