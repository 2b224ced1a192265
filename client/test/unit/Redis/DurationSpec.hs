-- | Durations, and how commands send them.
module Redis.DurationSpec (spec) where

import Redis.Commands
import Redis.Duration
import Redis.Internal.Command (commandArguments)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "A duration" $ do
  it "is the same in every unit" $ do
    seconds 1 `shouldBe` milliseconds 1000
    minutes 1 `shouldBe` seconds 60
    hours 1 `shouldBe` minutes 60
    days 1 `shouldBe` hours 24

  prop "in milliseconds is rounded up" $ \micros ->
    let exact = fromIntegral (micros :: Int) / 1e6
        whole = fromIntegral (inMilliseconds (seconds exact)) / 1000
     in counterexample (show whole) (whole >= exact - 1e-9 && whole < exact + 0.001 + 1e-9)

  it "does not wrap round, however long it is" $ do
    map (> mempty) [seconds (1 / 0), days maxBound, minutes maxBound <> minutes maxBound] `shouldBe` [True, True, True]
    map (< mempty) [seconds (-1 / 0), days minBound, minutes minBound <> minutes minBound] `shouldBe` [True, True, True]
    map ((< 0) . inMilliseconds) [seconds (-1 / 0), minBound] `shouldBe` [True, True]
    seconds (0 / 0) `shouldBe` mempty

  it "is rounded up to what a command takes" $ do
    commandArguments (expire "k" (seconds 1.5)) `shouldBe` ["EXPIRE", "k", "2"]
    commandArguments (pexpire "k" (seconds 0.0001)) `shouldBe` ["PEXPIRE", "k", "1"]
    commandArguments (expire "k" (seconds (-1.5))) `shouldBe` ["EXPIRE", "k", "-1"]
    commandArguments (setWith setDefaults {setExpiry = ExpireIn (seconds 60)} "k" "v") `shouldBe` ["SET", "k", "v", "EX", "60"]
    commandArguments (setWith setDefaults {setExpiry = ExpireIn (seconds 1.5)} "k" "v") `shouldBe` ["SET", "k", "v", "PX", "1500"]

  it "that is over is not for ever to a command that waits" $ do
    commandArguments (brpop (pure "k") (Just mempty)) `shouldBe` ["BRPOP", "k", "0.002000"]
    commandArguments (brpop (pure "k") (Just (seconds (-1)))) `shouldBe` ["BRPOP", "k", "0.002000"]
    commandArguments (brpop (pure "k") Nothing) `shouldBe` ["BRPOP", "k", "0"]
    commandArguments (wait 1 (Just mempty)) `shouldBe` ["WAIT", "1", "1"]
    commandArguments (wait 1 Nothing) `shouldBe` ["WAIT", "1", "0"]
