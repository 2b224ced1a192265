-- | Makes programs write UTF-8 wherever they run.
--
-- GHC's runtime takes the encoding from the locale. Services, containers and other machines without
-- a locale use ASCII, and the first character beyond it, as in "µs", would end the program. So
-- reports, pages and help are always UTF-8. The bytes of arguments that the locale could not decode
-- stay what they were.
module Tool.Utf8
  ( useUtf8,
  )
where

import GHC.IO.Encoding (mkTextEncoding, setLocaleEncoding)
import System.IO (hSetEncoding, stderr, stdin, stdout)

-- | Makes UTF-8 the encoding of the standard handles and of every handle that is opened from now
-- on. Bytes that are not UTF-8 are read and written unchanged. Call it once, before anything is
-- written.
useUtf8 :: IO ()
useUtf8 = do
  utf8 <- mkTextEncoding "UTF-8//ROUNDTRIP"
  setLocaleEncoding utf8
  mapM_ (`hSetEncoding` utf8) [stdin, stdout, stderr]
