-- | The client in clusters: real ones, and fake nodes whose replies real ones do not send on
-- demand.
module Main (main) where

import BeliefSpec qualified
import CacheSpec qualified
import CommandsSpec qualified
import DatabasesSpec qualified
import GroupSpec qualified
import LentSpec qualified
import LiveSpec qualified
import LookingSpec qualified
import MappingSpec qualified
import ObservedSpec qualified
import PolicySpec qualified
import ReadingSpec qualified
import RedirectSpec qualified
import RefusedSpec qualified
import ReplicaReadsSpec qualified
import ResendSpec qualified
import RightsSpec qualified
import RotationSpec qualified
import ScanSpec qualified
import ScriptsSpec qualified
import SentinelSpec qualified
import SlotCacheSpec qualified
import SubscriptionSpec qualified
import Test.Hspec (hspec)
import TogetherSpec qualified
import TransactionSpec qualified
import UnknownCommandSpec qualified
import WaitersSpec qualified

main :: IO ()
main = hspec $ do
  PolicySpec.spec
  RedirectSpec.spec
  RefusedSpec.spec
  ReplicaReadsSpec.spec
  ReadingSpec.spec
  MappingSpec.spec
  DatabasesSpec.spec
  RotationSpec.spec
  ResendSpec.spec
  RightsSpec.spec
  ScriptsSpec.spec
  SlotCacheSpec.spec
  UnknownCommandSpec.spec
  TogetherSpec.spec
  WaitersSpec.spec
  LookingSpec.spec
  ObservedSpec.spec
  LentSpec.spec
  CommandsSpec.spec
  CacheSpec.spec
  TransactionSpec.spec
  SubscriptionSpec.spec
  LiveSpec.spec
  GroupSpec.spec
  BeliefSpec.spec
  SentinelSpec.spec
  ScanSpec.spec
