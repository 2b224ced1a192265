module Main (main) where

import ConnectionPartsSpec qualified
import Control.Concurrent (setNumCapabilities)
import DecodeSpec qualified
import MultiplexerSpec qualified
import MuxFaultsSpec qualified
import MuxRoomSpec qualified
import PoolOrderSpec qualified
import System.Timeout (timeout)
import Test.Hspec

main :: IO ()
main = hspec . timed $ do
  DecodeSpec.spec
  ConnectionPartsSpec.spec
  mapM_ onCapabilities [1, 2]
  PoolOrderSpec.spec

-- | What threads do to each other, on one capability and on several.
onCapabilities :: Int -> Spec
onCapabilities count =
  describe ("with " <> show count <> " capabilities") . beforeAll_ (setNumCapabilities count) $ do
    MultiplexerSpec.spec (count == 1)
    MuxFaultsSpec.spec
    MuxRoomSpec.spec

-- | Fails every test that takes longer than half a minute.
timed :: Spec -> Spec
timed = around_ $ \test ->
  timeout 30000000 test >>= maybe (expectationFailure "took longer than half a minute") pure
