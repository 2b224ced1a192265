-- | Round trip times in buckets, and the marks that tell when an answered command was sent.
module Redis.Internal.Network.CountersSpec (spec) where

import Data.IORef
import Data.List (sort)
import Redis.Duration (inMicroseconds)
import Redis.Internal.Network.Counters
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Runtime (Nanos)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

-- | Times of all sizes.
newtype Nanoseconds = Nanoseconds Int
  deriving stock (Show)

instance Arbitrary Nanoseconds where
  arbitrary = do
    size <- choose (0, 40)
    Nanoseconds <$> choose (0, 2 ^ (size :: Int))

ofTimes :: [Int] -> RoundTrips
ofTimes times = roundTripsOf (sum times) [length (filter ((== bucket) . bucketOf) times) | bucket <- [0 .. bucketCount - 1]]

-- | An event on a connection.
data Happening
  = -- | This many commands are sent together.
    Sends Int
  | -- | One read brings this many replies, or all that are awaited if these are fewer.
    Replies Int
  deriving stock (Show)

instance Arbitrary Happening where
  arbitrary = oneof [Sends . getPositive <$> arbitrary, Replies . getPositive <$> arbitrary]

spec :: Spec
spec = do
  describe "the bucket of a time" $ do
    prop "ends after it, and begins no more than an eighth before" $ \(Nanoseconds nanos) ->
      let bucket = bucketOf nanos
          begins = if bucket == 0 then Just 0 else bucketEnd (bucket - 1)
       in conjoin
            [ maybe True (nanos <) (bucketEnd bucket),
              maybe False (<= nanos) begins,
              bucket == 0 || maybe True (\end -> maybe False (\start -> (end - start) * 8 <= start) begins) (bucketEnd bucket)
            ]
    prop "is no smaller for a longer time" $ \(Nanoseconds one) (Nanoseconds other) ->
      bucketOf (min one other) <= bucketOf (max one other)

  describe "round trips" $ do
    prop "are as many as there were, in all lanes together, and as long" $ \recorded lanes -> ioProperty $ do
      counters <- newCounters (1 + lanes `mod` 4)
      beside <- siblingCounters 1 counters
      sequence_ [recordTimes counters connection many nanos | (NonNegative connection, Positive many, Nanoseconds nanos) <- recorded]
      seen <- timesSeen counters
      other <- timesSeen beside
      pure (conjoin [seen === ofTimes (concat [replicate many nanos | (_, Positive many, Nanoseconds nanos) <- recorded]), other === mempty])
    prop "of two are those of both" $ \one other ->
      let timesOf given = [nanos | Nanoseconds nanos <- given]
       in ofTimes (timesOf one) <> ofTimes (timesOf other) === ofTimes (timesOf one <> timesOf other)
    prop "tell a time within which a part was answered, too long by an eighth at most" $ \(NonEmpty given) ->
      forAll (choose (0, 1)) $ \part ->
        let times = sort [min nanos (2 ^ (35 :: Int)) | Nanoseconds nanos <- given]
            exact = times !! (max 1 (ceiling (part * fromIntegral (length times) :: Double)) - 1)
         in case roundTripWithin part (ofTimes times) of
              Nothing -> property False
              Just told ->
                let nanos = fromIntegral (inMicroseconds told) * 1000 :: Int
                 in counterexample (show (exact, nanos)) (nanos >= exact && nanos <= max 2000 (exact + exact `quot` 8 + 1001))

  describe "marks of what was sent" $ do
    prop "find every reply once, with the time of its own block while there are few, and never a later one" $ \happenings -> ioProperty $ do
      let size = 4
      marks <- newSendTimes size
      found <- newIORef []
      -- Takes the time, how many commands were sent and answered so far, and the events.
      let go _ _ _ [] = pure ()
          go now sent answered (happening : rest) = case happening of
            Sends many -> do
              addSendTime marks (sent + many) now
              go (now + 1) (sent + many) answered rest
            Replies many -> do
              let upTo = min sent (answered + many)
              takeSendTimes marks answered upTo (\count at -> modifyIORef found (<> replicate count at))
              go (now + 1) sent upTo rest
      go 1 0 0 happenings
      times <- readIORef found
      let (expected, most) = model happenings
      pure $
        conjoin
          [ length times === length expected,
            counterexample (show (times, expected)) (and (zipWith (<=) times expected)),
            counterexample (show (times, expected)) (most > size || times == expected)
          ]

-- | For each answered command the time when it was sent; and the most blocks in flight, counting
-- the block that was last answered.
model :: [Happening] -> ([Nanos], Int)
model = go 1 [] 1
  where
    go _ _ most [] = ([], most)
    go now flying most (happening : rest) = case happening of
      Sends many ->
        let flying' = flying <> [(now, many)]
         in go (now + 1) flying' (max most (1 + length flying')) rest
      Replies many ->
        let (came, left) = answer many flying
            (later, most') = go (now + 1) left most rest
         in (came <> later, most')
    answer 0 flying = ([], flying)
    answer _ [] = ([], [])
    answer many ((at, count) : others)
      | many < count = (replicate many at, (at, count - many) : others)
      | otherwise = let (came, left) = answer (many - count) others in (replicate count at <> came, left)
