-- | How to delete everything, which servers do in several places.
module Redis.Internal.Command.Flush
  ( FlushMode (..),
    FlushOptions (..),
    flushDefaults,
    flushArguments,
  )
where

import Redis.Command.Build (Argument, arg)

-- | How to give the memory back.
--
-- @since 0.1.0.0
data FlushMode
  = -- | While everybody waits.
    FlushSync
  | -- | In the background.
    FlushAsync
  deriving stock (Eq, Show)

-- | How to delete everything: keys, scripts or functions.
--
-- @since 0.1.0.0
newtype FlushOptions = FlushOptions
  { -- | 'Nothing' is as the server is set up.
    flushMode :: Maybe FlushMode
  }
  deriving stock (Eq, Show)

-- | As the server is set up.
--
-- @since 0.1.0.0
flushDefaults :: FlushOptions
flushDefaults = FlushOptions {flushMode = Nothing}

-- | As the server takes them.
flushArguments :: FlushOptions -> [Argument]
flushArguments FlushOptions {flushMode} = case flushMode of
  Nothing -> []
  Just FlushSync -> [arg "SYNC"]
  Just FlushAsync -> [arg "ASYNC"]
