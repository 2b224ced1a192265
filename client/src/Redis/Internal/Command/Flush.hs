-- | The options of FLUSHALL, FLUSHDB, SCRIPT FLUSH, FUNCTION FLUSH and CLUSTER FLUSHSLOT.
module Redis.Internal.Command.Flush
  ( FlushMode (..),
    FlushOptions (..),
    flushDefaults,
    flushArguments,
  )
where

import Redis.Command.Build (Argument, arg)

-- | How the server frees the memory.
data FlushMode
  = -- | SYNC: at once, while all other clients wait.
    FlushSync
  | -- | ASYNC: in the background.
    FlushAsync
  deriving stock (Eq, Show)

-- | The options of commands that delete everything: keys, scripts or functions.
newtype FlushOptions = FlushOptions
  { -- | 'Nothing' means as the server is configured.
    flushMode :: Maybe FlushMode
  }
  deriving stock (Eq, Show)

-- | As the server is configured.
flushDefaults :: FlushOptions
flushDefaults = FlushOptions {flushMode = Nothing}

-- | The arguments for these options.
flushArguments :: FlushOptions -> [Argument]
flushArguments FlushOptions {flushMode} = case flushMode of
  Nothing -> []
  Just FlushSync -> [arg "SYNC"]
  Just FlushAsync -> [arg "ASYNC"]
