-- | Helpers that the unit tests share.
module Support
  ( timed,
    naiveRequest,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import System.Timeout (timeout)
import Test.Hspec

-- | Fails every test that takes longer than a minute.
timed :: Spec -> Spec
timed = around_ $ \test -> do
  ended <- timeout 60000000 test
  maybe (expectationFailure "took longer than a minute") pure ended

-- | A command on the wire, encoded in the simplest way.
naiveRequest :: [ByteString] -> ByteString
naiveRequest arguments =
  ByteString.concat (line '*' (length arguments) : concatMap bulk arguments)
  where
    bulk argument = [line '$' (ByteString.length argument), argument, "\r\n"]
    line mark number = Char8.pack (mark : show number <> "\r\n")
