-- | Programs that write UTF-8 wherever they run.
--
-- GHC's runtime takes the encoding from the locale. Services, containers and
-- other machines without one have ASCII, and the first sign beyond it, as in
-- "µs", would end the program. Reports, pages and help are UTF-8 instead,
-- everywhere. What a locale made of the bytes of an argument is turned back into
-- these bytes.
module Tool.Utf8
  ( useUtf8,
  )
where

import GHC.IO.Encoding (mkTextEncoding, setLocaleEncoding)
import System.IO (hSetEncoding, stderr, stdin, stdout)

-- | Makes UTF-8 the encoding of the standard handles and of every handle that is
-- opened from now on. Bytes that are not UTF-8 are read and written as they are.
-- To be called once, before anything is written.
useUtf8 :: IO ()
useUtf8 = do
  utf8 <- mkTextEncoding "UTF-8//ROUNDTRIP"
  setLocaleEncoding utf8
  mapM_ (`hSetEncoding` utf8) [stdin, stdout, stderr]
