-- | Generators and helpers that the properties share.
module Support
  ( timed,
    node,
    slotAt,
    anyBytes,
    anySlot,
    anyNode,
    anyClaims,
    topologySettings,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty)
import Data.Maybe (mapMaybe)
import Redis.Error
import Redis.Internal.Config (backoffDefaults)
import Redis.Internal.Protocol.Slot
import Redis.Internal.Routing.SlotMap (Claim (..))
import Redis.Internal.Routing.Topology (Rule, Settings (..))
import System.Timeout (timeout)
import Test.Hspec
import Test.QuickCheck

-- | Fails every test that takes longer than a minute.
timed :: Spec -> Spec
timed = around_ $ \test -> do
  ended <- timeout 60000000 test
  maybe (expectationFailure "took longer than a minute") pure ended

-- | The node with this number.
node :: Int -> Endpoint
node number = TcpEndpoint ("10.0.0." <> Char8.pack (show number)) 6379

-- | The slot with this number, taken modulo the number of slots.
slotAt :: Int -> Slot
slotAt number = case mapMaybe slotFromInt [number `mod` slotCount] of
  slot : _ -> slot
  [] -> minBound

anyBytes :: Gen ByteString
anyBytes = ByteString.pack <$> arbitrary

anySlot :: Gen Slot
anySlot = slotAt <$> choose (0, slotCount - 1)

-- | One of eight nodes.
anyNode :: Gen Endpoint
anyNode = node <$> choose (1, 8)

-- | Ranges that may overlap, leave gaps or be reversed, of nodes that may be primaries in one claim
-- and replicas in another.
anyClaims :: Gen [Claim]
anyClaims = few $ do
  ranges <- few ((,) <$> anySlot <*> anySlot)
  primary <- oneof [pure Nothing, Just <$> anyNode, Just <$> anyNode]
  replicas <- few anyNode
  pure Claim {claimRanges = ranges, claimPrimary = primary, claimReplicas = replicas}
  where
    few gen = choose (0, 5) >>= (`vectorOf` gen)

-- | Settings for these servers, with these seeds. One refresh in a minute, unless there is a reason.
topologySettings :: Rule -> NonEmpty Endpoint -> Settings
topologySettings rule seeds =
  Settings
    { settingsRule = rule,
      settingsSeeds = seeds,
      settingsInterval = 60,
      settingsThrottle = 1,
      settingsBackoff = backoffDefaults,
      settingsAnswerWithin = 2,
      settingsGather = 0.1,
      settingsSample = 3,
      settingsMovedGrace = 2
    }
