module Redis.Internal.Routing.NodesSpec (spec) where

import Data.List qualified as List
import Redis.Internal.Routing.Nodes
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Routing.Nodes" $ do
  it "takes one time-out for nothing remarkable" $
    snd (observe MissedReply healthy) `shouldBe` Unremarkable

  it "suspects a node that missed several replies in a row" $
    signs (replicate suspectAfterTimeouts MissedReply) `shouldBe` replicate (suspectAfterTimeouts - 1) Unremarkable <> [Suspicious]

  it "suspects a node at every lost connection" $
    signs [LostConnection, LostConnection] `shouldBe` [Suspicious, Suspicious]

  it "holds a node to be down after several failures in a row" $ do
    isDown (healthAfter (replicate (downAfterFailures - 1) LostConnection)) `shouldBe` False
    isDown (healthAfter (replicate downAfterFailures LostConnection)) `shouldBe` True

  prop "is healthy after any answer, whatever came before" $
    forAll anyObservations $ \observations ->
      healthAfter (observations <> [AnsweredCommand]) === healthy .&&. isHealthy (healthAfter (observations <> [AnsweredCommand]))

  prop "counts time-outs only while nothing is answered" $
    forAll anyObservations $ \observations ->
      let answered = observations <> [AnsweredCommand]
       in last' (signs (answered <> replicate (suspectAfterTimeouts - 1) MissedReply)) === Unremarkable
  where
    anyObservations = listOf (elements [minBound .. maxBound])
    healthAfter = List.foldl' (\health observation -> fst (observe observation health)) healthy
    last' list = List.foldl' (\_ sign -> sign) Unremarkable (drop (length list - 1) list)

signs :: [Observation] -> [Sign]
signs = go healthy
  where
    go health = \case
      [] -> []
      observation : rest -> let (next, sign) = observe observation health in sign : go next rest
