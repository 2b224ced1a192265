module Main (main) where

import ConnectionPartsSpec qualified
import Control.Concurrent (setNumCapabilities)
import Data.Version (makeVersion)
import DecodeSpec qualified
import MultiplexerSpec qualified
import MuxFaultsSpec qualified
import MuxRoomSpec qualified
import MuxSleepSpec qualified
import PoolOrderSpec qualified
import System.Info (compilerVersion)
import System.Timeout (timeout)
import Test.Hspec
import WakeupSpec qualified

main :: IO ()
main = hspec . timed $ do
  DecodeSpec.spec
  ConnectionPartsSpec.spec
  WakeupSpec.spec
  mapM_ onCapabilities [1, 2]
  PoolOrderSpec.spec

-- | What threads do to each other, on one capability and on several.
--
-- Not everything on several with GHC 9.0. About one run in two hundred of the
-- property with callers that are interrupted ended in a segmentation fault of
-- its runtime, at @unmaskAsyncExceptions#@: a thread's queue of exceptions that
-- wait for it (@blocked_exceptions@, which only the runtime touches) held a
-- message of another kind (@MSG_TRY_WAKEUP@). The property's transport is in
-- memory and calls no C for it. With GHC 9.10 it did not happen in 270 runs.
onCapabilities :: Int -> Spec
onCapabilities count =
  describe ("with " <> show count <> " capabilities") . beforeAll_ (setNumCapabilities count) $ do
    MultiplexerSpec.spec (count == 1 || compilerVersion > makeVersion [9, 0])
    MuxFaultsSpec.spec
    MuxRoomSpec.spec
    MuxSleepSpec.spec

-- | Fails every test that takes longer than half a minute.
timed :: Spec -> Spec
timed = around_ $ \test ->
  timeout 30000000 test >>= maybe (expectationFailure "took longer than half a minute") pure
