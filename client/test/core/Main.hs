module Main (main) where

import AdmissionQueueSpec qualified
import ConnectionPartsSpec qualified
import Control.Concurrent (setNumCapabilities)
import CredentialStoreSpec qualified
import DecodeSpec qualified
import EventDispatcherSpec qualified
import ExactSpec qualified
import InboxSpec qualified
import MultiplexerSpec qualified
import MuxEdgesSpec qualified
import MuxFaultsSpec qualified
import MuxRoomSpec qualified
import MuxSleepSpec qualified
import MuxTimeSpec qualified
import PoolOrderSpec qualified
import Redis.TestKit.Wait (testWithin)
import RepeatedSpec qualified
import ReplyChecksSpec qualified
import Test.Hspec
import WakeupSpec qualified

main :: IO ()
main = hspec . around_ (testWithin 120) $ do
  DecodeSpec.spec
  ExactSpec.spec
  RepeatedSpec.spec
  InboxSpec.spec
  ConnectionPartsSpec.spec
  AdmissionQueueSpec.spec
  EventDispatcherSpec.spec
  CredentialStoreSpec.spec
  WakeupSpec.spec
  mapM_ onCapabilities [1, 2]
  PoolOrderSpec.spec

-- | The specs of what threads do to each other, with this number of capabilities.
--
-- The property with callers that are interrupted has one thrower for each caller: two exceptions on
-- their way to one masked thread crash the runtime of GHC, in every version that was tried
-- (docs/ghc-throwto.md).
onCapabilities :: Int -> Spec
onCapabilities count =
  describe ("with " <> show count <> " capabilities") . beforeAll_ (setNumCapabilities count) $ do
    MultiplexerSpec.spec
    MuxFaultsSpec.spec
    MuxRoomSpec.spec
    MuxSleepSpec.spec
    MuxTimeSpec.spec
    MuxEdgesSpec.spec
    ReplyChecksSpec.spec
