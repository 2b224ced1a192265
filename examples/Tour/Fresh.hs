-- | Keeps an example's keys from outliving it, and removes those of an earlier run.
module Tour.Fresh (fresh) where

import Control.Exception (bracket_)
import Control.Monad (void)
import Data.ByteString (ByteString)
import Redis
import Redis.Commands qualified as Redis

-- | Deletes these keys before and after the action.
fresh :: Client -> NonEmpty ByteString -> IO a -> IO a
fresh client names = bracket_ delete delete
  where
    delete = void (run client (Redis.del names))
