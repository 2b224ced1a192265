module Redis.Patterns.PendingSpec (spec) where

import Data.Int (Int64)
import Data.List.NonEmpty qualified as NonEmpty
import Redis
import Redis.Commands (PendingEntry (..), StreamId (..))
import Redis.Patterns.Worker
import Redis.Patterns.Worker.Pending
import Test.Hspec
import Test.QuickCheck

-- | A worker's settings, and a pending entry: whether it rests or belongs to a consumer, how long
-- it has been idle, and how often it was delivered.
data Sight = Sight Int64 Int64 Int Bool Int64 Int64
  deriving stock (Show)

instance Arbitrary Sight where
  arbitrary = Sight <$> choose (1, 5000) <*> choose (1, 5000) <*> choose (1, 8) <*> arbitrary <*> choose (0, 20000) <*> choose (1, 12)

settingsOf :: Sight -> Worker
settingsOf (Sight first abandoned tries _ _ _) =
  (worker "s" "g")
    { workerMaxAttempts = tries,
      workerClaimAfter = milliseconds abandoned,
      workerBackoff = backoffDefaults {backoffFirst = milliseconds first, backoffCap = milliseconds 10000}
    }

entryOf :: Sight -> PendingEntry
entryOf (Sight _ _ _ rests idle deliveries) =
  PendingEntry
    { pendingEntryId = StreamId 1 0,
      pendingEntryConsumer = if rests then resting else "somebody",
      pendingEntryIdle = milliseconds idle,
      pendingEntryDeliveries = deliveries
    }

spec :: Spec
spec = do
  it "leaves alone what it has in hand, whatever the server says of it" . property $ \sight ->
    verdict (settingsOf sight) True (entryOf sight) === Leave
  it "has no dead letter of more words than a command may have" $ do
    -- A letter has six facts.
    let facts = ("dead:reason", "no such address") :| replicate 5 ("dead:fact", "")
        lengthOf count = NonEmpty.length <$> letterFields facts (replicate count ("field", ""))
    lengthOf 0 `shouldBe` Right 6
    lengthOf 524280 `shouldBe` Right 524286
    lengthOf 524281 `shouldBe` Left (RefusedError (UnfitArgument "XADD" "more than 1048576 words"))
  it "does nothing before the rest is over, or the time after which an entry counts as left" . property $ \sight@(Sight _ _ _ rests idle deliveries) ->
    let settings = settingsOf sight
        due = if rests then retryDelay (workerBackoff settings) deliveries else workerClaimAfter settings
     in (verdict settings False (entryOf sight) == Leave) === (milliseconds idle < due)
  it "gives an entry out as often as it may be, and not once more" . property $ \sight@(Sight _ _ tries _ _ deliveries) ->
    case verdict (settingsOf sight) False (entryOf sight) of
      Leave -> property True
      TakeOver _ -> property (deliveries < fromIntegral tries)
      Bury _ -> property (deliveries >= fromIntegral tries)
  it "demands of the server that nobody has touched the entry for as long as it has seen, at most" . property $ \sight@(Sight _ _ _ _ idle _) ->
    case verdict (settingsOf sight) False (entryOf sight) of
      Leave -> True
      TakeOver wait -> wait <= milliseconds idle && wait >= shortestWait (settingsOf sight)
      Bury wait -> wait <= milliseconds idle && wait >= shortestWait (settingsOf sight)
