-- | Spans of time as people write them: @500us@, @0.124ms@, @30s@, @2h@.
module Tool.Span
  ( parseSpan,
    renderSpan,
    roughly,
  )
where

import Data.Char (isDigit)
import Text.Read (readMaybe)
import Tool.Text (fixed)

-- | Seconds from a number and a unit: @us@, @ms@, @s@, @m@ or @h@; without a
-- unit they are seconds. 'Left' says what is wrong.
parseSpan :: String -> Either String Double
parseSpan text = case (readMaybe (leadingZero number), lookup unit units) of
  (Just value, Just factor)
    | not (null number) ->
      if value * factor > longest then Left ("a span of time can be " <> renderSpan longest <> " at most, not " <> text) else Right (value * factor)
  (Just _, Nothing) | not (null number) -> Left ("no unit of time is called " <> show unit <> ": us, ms, s, m or h")
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
    whole value = let near = round value :: Int in if fromIntegral near == value then Just near else Nothing
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
