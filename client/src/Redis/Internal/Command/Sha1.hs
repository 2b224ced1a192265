-- | SHA-1, whose digests name scripts on a server.
module Redis.Internal.Command.Sha1 (sha1Hex) where

import Crypto.Hash.SHA1 qualified as Sha1
import Data.ByteString (ByteString)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Lazy qualified as Lazy

-- | The digest in 40 hexadecimal digits. \(O(n)\).
sha1Hex :: ByteString -> ByteString
sha1Hex = Lazy.toStrict . Builder.toLazyByteString . Builder.byteStringHex . Sha1.hash
