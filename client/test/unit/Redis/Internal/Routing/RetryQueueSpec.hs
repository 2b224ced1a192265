module Redis.Internal.Routing.RetryQueueSpec (spec) where

import Redis.Internal.Protocol.Slot (slotFromInt)
import Redis.Internal.Routing.RetryQueue
import Test.Hspec

spec :: Spec
spec = describe "a slot that had nobody" $ do
  let known = pure (Just (1 :: Int))
      unknown = pure (Nothing :: Maybe Int)
      place uncovered = unlessUncovered uncovered . slotFromInt

  it "has nobody for the commands behind, although a node is known by then" $ do
    uncovered <- newUncoveredSlots
    place uncovered 5 unknown `shouldReturn` Nothing
    place uncovered 5 known `shouldReturn` Nothing

  it "is nothing to other slots" $ do
    uncovered <- newUncoveredSlots
    place uncovered 5 unknown `shouldReturn` Nothing
    place uncovered 6 known `shouldReturn` Just 1
    place uncovered 6 unknown `shouldReturn` Nothing

  it "is forgotten with its batch" $ do
    one <- newUncoveredSlots
    place one 5 unknown `shouldReturn` Nothing
    next <- newUncoveredSlots
    place next 5 known `shouldReturn` Just 1

  it "is not said of commands without a slot" $ do
    uncovered <- newUncoveredSlots
    unlessUncovered uncovered Nothing unknown `shouldReturn` Nothing
    unlessUncovered uncovered Nothing known `shouldReturn` Just 1
