-- | The inbox of a subscription: it keeps the order and its limit, and reports what it drops.
module InboxSpec (spec) where

import Control.Concurrent.STM
import Control.Monad (forM_)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (toList)
import Data.Time.Clock (UTCTime (..), addUTCTime)
import Redis.Error
import Redis.Internal.Client.EventQueue
import Test.Hspec hiding (before)
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "an inbox" $ do
  prop "gives what was put, in order, or a gap in the place of what it dropped" $
    forAll (chooseInt (2, 20)) $ \capacity -> forAll genMoves $ \moves -> ioProperty $ do
      (heard, most) <- played DropOldest capacity moves
      let put = sum [count | Put count <- moves]
      pure (counterexample (show heard) (most <= capacity .&&. faultsOf put heard === []))

  it "has a gap begin where the oldest of what it dropped may have been published, whichever connection brought it first" $ do
    queue <- newEventQueue DropOldest 2 (at 0)
    -- Two connections for one topic, of which the second lags.
    atomically (putBatch queue (at 11) (Batch (at 10) [event 1]))
    atomically (putBatch queue (at 12) (Batch (at 8) [event 2]))
    atomically (putBatch queue (at 13) (Batch (at 12) (map event [3, 4])))
    map told . toList <$> atomically (takeEvents queue) `shouldReturn` [Left (8, 13), Right 4]

  prop "that presses back gives all that was put" $
    forAll genMoves $ \moves -> ioProperty $ do
      (heard, _) <- played BackPressure 5 moves
      pure ([number | Right number <- heard] === [1 .. sum [count | Put count <- moves]])

  it "that ends when it is full gives what fitted, then says why" $ do
    queue <- newEventQueue EndWhenFull 3 (at 0)
    atomically (putBatch queue (at 1) (Batch (at 0) (map event [1, 2])))
    atomically (putBatch queue (at 2) (Batch (at 1) (map event [3 .. 10])))
    forM_ [1 .. 3] $ \number -> atomically (takeEvent queue) `shouldReturn` event number
    atomically (takeEvent queue) `shouldThrow` (== SubscriberTooSlow 3)

-- | One operation on the inbox.
data Move = Put Int | TakeOne | TakeAll
  deriving stock (Show)

genMoves :: Gen [Move]
genMoves = listOf (frequency [(3, Put <$> chooseInt (0, 30)), (4, pure TakeOne), (1, pure TakeAll)])

-- | Plays the moves. Returns the numbers, and the gaps by their seconds, in order; and the most
-- messages that the inbox held.
played :: WhenFull -> Int -> [Move] -> IO ([Either (Int, Int) Int], Int)
played whenFull capacity moves = do
  queue <- newEventQueue whenFull capacity (at 0)
  let go next heard most = \case
        [] -> do
          rest <- drained queue
          pure (heard <> rest, most)
        move : others -> do
          (next', more) <- case move of
            Put count -> (next + count, []) <$ atomically (putBatch queue (at (next + count)) (Batch (at (next - 1)) (map event [next .. next + count - 1])))
            TakeOne -> (,) next <$> atomically ((pure <$> takeEvent queue) `orElse` pure [])
            TakeAll -> (,) next <$> atomically ((toList <$> takeEvents queue) `orElse` pure [])
          room <- atomically (eventQueueRoom queue)
          go next' (heard <> map told more) (max most (capacity - room)) others
  go 1 [] 0 moves
  where
    drained queue = map told <$> atomically ((toList <$> takeEvents queue) `orElse` pure [])

told :: Event -> Either (Int, Int) Int
told = \case
  Message message -> Right (maybe 0 fst (Char8.readInt (messagePayload message)))
  Gap gap -> Left (secondsOf (gapSince gap), secondsOf (gapUntil gap))

-- | The faults in such a result. Each number is published at its own second, and must come once, or
-- lie in the gap before the next number.
faultsOf :: Int -> [Either (Int, Int) Int] -> [String]
faultsOf put = go 0 []
  where
    go before gaps = \case
      [] -> ["the end is missing" | before < put]
      Left gap : rest -> go before (gap : gaps) rest
      Right number : rest ->
        ["twice: " <> show number | number <= before]
          <> ["missing: " <> show one | one <- [before + 1 .. number - 1], not (any (\(from, to) -> from <= one && one <= to) gaps)]
          <> ["a gap for nothing before " <> show number | number == before + 1, not (null gaps)]
          <> go number [] rest

event :: Int -> Event
event number = Message (MessageOf (Channel "news") "news" (Char8.pack (show number)))

at :: Int -> UTCTime
at second = addUTCTime (fromIntegral second) (UTCTime (toEnum 0) 0)

secondsOf :: UTCTime -> Int
secondsOf time = round (utctDayTime time)
