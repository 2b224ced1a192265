-- | Spans of time as users write them, @500us@, @0.124ms@, @30s@, @2h@, and as clocks and system
-- calls count them. This is the only module, of this program and of those that share its modules,
-- that converts units of time.
module Tool.Span
  ( numberAndUnit,
    parseSpan,
    renderSpan,
    roughly,
    sinceEpoch,
    dated,
    nanosIn,
    microsIn,
    secondsIn,
    inMillis,
    inMicros,
    perSecond,
    remaining,
  )
where

import Control.Monad (guard)
import Data.Char (isDigit)
import Data.List (isSuffixOf)
import Data.Time.Clock.POSIX (POSIXTime, posixSecondsToUTCTime)
import Data.Time.Format (defaultTimeLocale, formatTime)
import Text.Read (readMaybe)
import Tool.Text (fixedShort)

-- | The number at the begin of a text, if it can be read, and what follows it. @.5@ is a half, and
-- @5.@ is five.
numberAndUnit :: String -> (Maybe Double, String)
numberAndUnit text = (guard (any isDigit digits) *> readMaybe ('0' : digits <> ['0' | "." `isSuffixOf` digits]), unit)
  where
    (digits, unit) = span (\character -> isDigit character || character == '.') text

-- | Reads seconds from a number and a unit: @us@, @ms@, @s@, @m@ or @h@. Without a unit they are
-- seconds. 'Left' says what is wrong.
parseSpan :: String -> Either String Double
parseSpan text = case (number, lookup unit units) of
  (Just value, Just factor)
    | value * factor > longest ->
      Left ("a span of time can be " <> renderSpan longest <> " at most, not " <> text)
    | otherwise -> Right (value * factor)
  (Just _, Nothing) -> Left ("no unit of time is called " <> show unit <> ": us, ms, s, m or h")
  _ -> Left ("not a span of time such as 500us, 0.124ms, 30s, 5m or 2h: " <> show text)
  where
    (number, unit) = numberAndUnit text
    -- Four months: in microseconds this still fits a number.
    longest = 1e7
    units :: [(String, Double)]
    units = [("", 1), ("us", 1e-6), ("ms", 1e-3), ("s", 1), ("m", 60), ("h", 3600)]

-- | Writes a span in the unit that fits, without meaningless digits. It uses minutes and hours only
-- for whole ones, so that whole seconds are read back unchanged.
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
    short = fixedShort 3

-- | An estimated span without meaningless precision: whole seconds, and from two minutes on whole
-- minutes.
roughly :: Double -> Double
roughly seconds
  | seconds < 120 = fromIntegral (round seconds :: Int)
  | otherwise = 60 * fromIntegral (round (seconds / 60) :: Int)

-- | Nanoseconds since 1970.
sinceEpoch :: POSIXTime -> Int
sinceEpoch time = round (time * 1000000000)

-- | Formats a moment, in nanoseconds since 1970, as 'formatTime' does; in UTC, to the second.
dated :: String -> Int -> String
dated form nanos =
  formatTime defaultTimeLocale form (posixSecondsToUTCTime (fromIntegral (nanos `div` 1000000000)))

-- | Seconds in nanoseconds, the unit of the clocks.
nanosIn :: Double -> Int
nanosIn seconds = round (seconds * 1e9)

-- | Seconds in microseconds, the unit of calls that wait. Rounded up.
microsIn :: Double -> Int
microsIn seconds = ceiling (seconds * 1e6)

secondsIn :: Int -> Double
secondsIn nanos = fromIntegral nanos / 1e9

inMillis :: Double -> Double
inMillis nanos = nanos / 1e6

inMicros :: Double -> Double
inMicros nanos = nanos / 1e3

-- | The rate per second of a count in this number of nanoseconds.
perSecond :: Double -> Int -> Double
perSecond count nanos = count * 1e9 / fromIntegral (max 1 nanos)

-- | The minutes that are left, from the planned seconds of the whole, the seconds of it that are
-- done, and the seconds since the start. Uses the pace so far, as soon as there is one.
remaining :: Double -> Double -> Double -> Double
remaining whole done since
  | done < 20 = (whole - done) / 60
  | otherwise = (whole - done) * (since / done) / 60
