module Redis.Patterns.TimeSpec (spec) where

import Control.Monad (replicateM)
import Redis.Duration
import Redis.Patterns.Internal.Time
import Test.Hspec

spec :: Spec
spec = do
  it "never goes back" $ do
    moments <- replicateM 1000 instantNow
    and (zipWith (<=) moments (drop 1 moments)) `shouldBe` True

  -- Linux counts the time since it started with the time for which it was suspended. Where it never was, the
  -- monotonic clock says the same, except in a time namespace (unshare --time --boottime).
  it "goes on while the machine is suspended" $ do
    sinceStart <- Instant . seconds . read . takeWhile (/= ' ') <$> readFile "/proc/uptime"
    moment <- instantNow
    moment `shouldSatisfy` (>= sinceStart)
