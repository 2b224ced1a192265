-- | Spans of time as people write them, @500us@, @0.124ms@, @30s@, @2h@, and as clocks
-- and calls of the system count them. No other module of this program, or of those that
-- share its modules, turns one unit into another.
module Tool.Span
  ( -- * In words
    parseSpan,
    renderSpan,
    roughly,

    -- * Moments
    sinceEpoch,
    dated,

    -- * In units
    nanosIn,
    microsIn,
    secondsIn,
    inMillis,
    inMicros,

    -- * Of a pace
    perSecond,
    remaining,
  )
where

import Data.Char (isDigit)
import Data.Time.Clock.POSIX (POSIXTime, posixSecondsToUTCTime)
import Data.Time.Format (defaultTimeLocale, formatTime)
import Text.Read (readMaybe)
import Tool.Text (fixed)

-- | Seconds from a number and a unit: @us@, @ms@, @s@, @m@ or @h@; without a
-- unit they are seconds. 'Left' says what is wrong.
parseSpan :: String -> Either String Double
parseSpan text = case (readMaybe (leadingZero number), lookup unit units) of
  (Just value, Just factor)
    | not (null number) ->
      if value * factor > longest
        then Left ("a span of time can be " <> renderSpan longest <> " at most, not " <> text)
        else Right (value * factor)
  (Just _, Nothing)
    | not (null number) ->
      Left ("no unit of time is called " <> show unit <> ": us, ms, s, m or h")
  _ -> Left ("not a span of time such as 500us, 0.124ms, 30s, 5m or 2h: " <> show text)
  where
    (number, unit) = span (\character -> isDigit character || character == '.') text
    leadingZero = \case
      '.' : rest -> "0." <> rest
      digits -> digits
    -- Four months: its microseconds are still a number.
    longest = 1e7
    units :: [(String, Double)]
    units = [("", 1), ("us", 1e-6), ("ms", 1e-3), ("s", 1), ("m", 60), ("h", 3600)]

-- | In the unit that fits, without digits that say nothing: minutes and hours only
-- where they are whole, so that whole seconds are read back as they were.
renderSpan :: Double -> String
renderSpan seconds
  | seconds <= 0 = "0s"
  | seconds < 1e-3 = short (seconds * 1e6) <> "us"
  | seconds < 1 = short (seconds * 1e3) <> "ms"
  | seconds >= 7200, Just hours <- whole (seconds / 3600) = show hours <> "h"
  | seconds >= 120, Just minutes <- whole (seconds / 60) = show minutes <> "m"
  | otherwise = short seconds <> "s"
  where
    whole value =
      let near = round value :: Int in if fromIntegral near == value then Just near else Nothing
    short value = trim (fixed 3 value)
    trim text
      | '.' `elem` text = reverse (dropPoint (dropWhile (== '0') (reverse text)))
      | otherwise = text
    dropPoint = \case
      '.' : rest -> rest
      rest -> rest

-- | A span that is only estimated, without what nobody can know of it: whole
-- seconds, and whole minutes from two of them on.
roughly :: Double -> Double
roughly seconds
  | seconds < 120 = fromIntegral (round seconds :: Int)
  | otherwise = 60 * fromIntegral (round (seconds / 60) :: Int)

-- | Nanoseconds since 1970.
sinceEpoch :: POSIXTime -> Int
sinceEpoch time = round (time * 1000000000)

-- | A moment, in nanoseconds since 1970, in the form that 'formatTime' is told; in UTC,
-- and to the second.
dated :: String -> Int -> String
dated form nanos =
  formatTime defaultTimeLocale form (posixSecondsToUTCTime (fromIntegral (nanos `div` 1000000000)))

-- | So many seconds in nanoseconds, as the clocks count.
nanosIn :: Double -> Int
nanosIn seconds = round (seconds * 1e9)

-- | So many seconds in microseconds, as calls that wait take them; never less.
microsIn :: Double -> Int
microsIn seconds = ceiling (seconds * 1e6)

-- | So many nanoseconds in seconds.
secondsIn :: Int -> Double
secondsIn nanos = fromIntegral nanos / 1e9

-- | So many nanoseconds in milliseconds.
inMillis :: Double -> Double
inMillis nanos = nanos / 1e6

-- | So many nanoseconds in microseconds.
inMicros :: Double -> Double
inMicros nanos = nanos / 1e3

-- | How many there were a second, of so many in so many nanoseconds.
perSecond :: Double -> Int -> Double
perSecond count nanos = count * 1e9 / fromIntegral (max 1 nanos)

-- | The minutes that are left, from the seconds that the whole was to take, the
-- part of it that is done, and the seconds since the start: the pace so far
-- counts, once there is one.
remaining :: Double -> Double -> Double -> Double
remaining whole done since
  | done < 20 = (whole - done) / 60
  | otherwise = (whole - done) * (since / done) / 60
