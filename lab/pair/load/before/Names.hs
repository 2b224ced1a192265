-- | Names that differ between revisions, for revisions that have 'wait'.
module Names (awaitReply) where

import Redis (Pending, wait)

awaitReply :: Pending a -> IO a
awaitReply = wait
