-- | What revisions call differently, for those that say 'wait'.
module Names (awaitReply) where

import Redis (Pending, wait)

awaitReply :: Pending a -> IO a
awaitReply = wait
