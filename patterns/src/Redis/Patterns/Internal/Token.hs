-- | Words for commands: random tokens, unique and impossible to guess, and numbers.
module Redis.Patterns.Internal.Token (newToken, number) where

import Control.Monad (when)
import Data.ByteString (ByteString)
import Data.ByteString.Builder (byteStringHex, toLazyByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Internal qualified as Internal
import Data.ByteString.Lazy qualified as Lazy
import Data.Word (Word8)
import Foreign.C.Error (throwErrno)
import Foreign.C.Types (CInt (..), CSize (..))
import Foreign.Ptr (Ptr)

-- At most 256 bytes. It blocks only until the system has gathered its first entropy.
foreign import ccall unsafe "getentropy"
  getEntropy :: Ptr Word8 -> CSize -> IO CInt

-- | This many random bytes from the operating system, at most 256, as twice as many hexadecimal digits.
newToken :: Int -> IO ByteString
newToken size =
  fmap (Lazy.toStrict . toLazyByteString . byteStringHex) . Internal.create size $ \bytes -> do
    failed <- getEntropy bytes (fromIntegral size)
    when (failed /= 0) (throwErrno "getentropy")

number :: Show number => number -> ByteString
number = Char8.pack . show
