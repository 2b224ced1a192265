-- | Names that differ between revisions, as they are now.
module Names (awaitReply) where

import Redis (awaitReply)
