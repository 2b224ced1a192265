-- | SHA-1, by which servers know scripts.
--
-- It is OpenSSL's, which is linked for TLS anyway.
module Redis.Internal.Command.Sha1 (sha1Hex) where

import Control.Monad (void)
import Data.ByteString (ByteString)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.ByteString.Lazy qualified as Lazy
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.Word (Word8)
import Foreign.C.Types (CChar, CSize (..))
import Foreign.Marshal.Utils (fillBytes)
import Foreign.Ptr (Ptr)
import System.IO.Unsafe (unsafeDupablePerformIO)

-- | The digest in 40 hexadecimal digits. \(O(n)\).
sha1Hex :: ByteString -> ByteString
sha1Hex text = Lazy.toStrict (Builder.toLazyByteString (Builder.byteStringHex digest))
  where
    -- Dupable: it only fills memory that it has just allocated.
    digest = unsafeDupablePerformIO . ByteString.Internal.create digestBytes $ \to -> do
      -- An OpenSSL that was set up to refuse SHA-1 writes nothing. The digest is then one
      -- that no server knows.
      fillBytes to 0 digestBytes
      ByteString.Unsafe.unsafeUseAsCStringLen text $ \(from, size) ->
        void (opensslSha1 from (fromIntegral size) to)
    digestBytes = 20

-- An unsafe call, because it neither blocks nor calls back, and scripts are short.
foreign import ccall unsafe "SHA1"
  opensslSha1 :: Ptr CChar -> CSize -> Ptr Word8 -> IO (Ptr Word8)
