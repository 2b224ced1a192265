-- | What names may be made of: those in settings, and hosts in the replies of servers.
module Redis.Internal.Name (isName, isHostName) where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString

-- | Whether it is visible ASCII, and not empty. \(O(n)\).
isName :: ByteString -> Bool
isName text = not (ByteString.null text) && ByteString.all (\byte -> byte > 0x20 && byte < 0x7f) text

-- | Whether a server can mean it as a host: a name of at most 255 characters. @?@, which servers say
-- for a host that they do not know, passes. \(O(n)\).
isHostName :: ByteString -> Bool
isHostName text = ByteString.length text <= 255 && isName text
