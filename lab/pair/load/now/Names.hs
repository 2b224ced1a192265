-- | What revisions call differently, as it is called now.
module Names (awaitReply) where

import Redis (awaitReply)
