-- | What all commands that delete everything of a kind take.
module Redis.Internal.Command.Flush
  ( FlushOptions (..),
    flushDefaults,
    FlushMode (..),
    flushArguments,
  )
where

import Redis.Internal.Command.Make (Argument (..))

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

flushArguments :: FlushOptions -> [Argument]
flushArguments FlushOptions {flushMode} = case flushMode of
  Nothing -> []
  Just FlushSync -> [Plain "SYNC"]
  Just FlushAsync -> [Plain "ASYNC"]
