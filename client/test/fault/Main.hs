-- | Faults, with real servers: whatever breaks, every command ends, every caller gets its own
-- reply, nothing runs twice, and nothing is left behind.
module Main (main) where

import BytesSpec qualified
import CacheSpec qualified
import CallersSpec qualified
import ClosingSpec qualified
import ConnectionSpec qualified
import ControlSpec qualified
import CountersSpec qualified
import CredentialsSpec qualified
import DedicatedSpec qualified
import DroppedSpec qualified
import HandshakeSpec qualified
import ObservationSpec qualified
import Redis.TestKit.Wait (testWithin)
import RotationSpec qualified
import SubscriptionSpec qualified
import System.IO (BufferMode (LineBuffering), hSetBuffering, stdout)
import Test.Hspec (around_, describe, hspec)
import TimeLimitSpec qualified
import TracingSpec qualified
import WalksSpec qualified

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  hspec . around_ (testWithin 45) $ do
    describe "Connections" ConnectionSpec.spec
    describe "Bytes" BytesSpec.spec
    describe "Cache" CacheSpec.spec
    describe "Callers" CallersSpec.spec
    describe "Closing" ClosingSpec.spec
    describe "Commands" ControlSpec.spec
    describe "Handshake" HandshakeSpec.spec
    describe "Credentials" CredentialsSpec.spec
    describe "Credentials" RotationSpec.spec
    describe "Dedicated connections" DedicatedSpec.spec
    describe "Observation" ObservationSpec.spec
    describe "Counters" CountersSpec.spec
    describe "Tracing" TracingSpec.spec
    describe "Dropped" DroppedSpec.spec
    describe "Time limits" TimeLimitSpec.spec
    describe "Walks" WalksSpec.spec
    describe "Subscriptions" SubscriptionSpec.spec
