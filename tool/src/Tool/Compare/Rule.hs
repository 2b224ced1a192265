-- | Rules such as @throughput<-5%@ that make a comparison fail if they hold.
module Tool.Compare.Rule
  ( Rule (..),
    Bound (..),
    parseRule,
    broken,
  )
where

import Control.Monad (unless)
import Data.Char (isSpace)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Chart (format)
import Tool.Compare
import Tool.Span (numberAndUnit)
import Tool.Text (fixed)

-- | A rule. The comparison fails if it holds.
data Rule = Rule
  { ruleMetric :: Metric,
    -- | Whether the rule holds above the bound. Otherwise it holds below.
    ruleAbove :: Bool,
    ruleBound :: Bound
  }
  deriving stock (Eq, Show)

-- | What a metric is compared with.
data Bound
  = -- | The change from the first value to the second, in percent of the first.
    Relative Double
  | -- | The second value itself: nanoseconds, bytes, commands per second, or a count.
    Absolute Double
  deriving stock (Eq, Show)

-- | Reads @NAME\<NUMBER@ or @NAME>NUMBER@, where the number has @%@ or a unit. The error says what
-- is wrong, and where.
parseRule :: String -> Either String Rule
parseRule written = do
  metric <- maybe (at 1 noMetric) Right (metricByName (Text.pack name))
  (above, rest) <- case fromSign of
    '<' : rest -> Right (False, rest)
    '>' : rest -> Right (True, rest)
    "" -> at (length text + 1) "< or > is missing"
    other : _ -> at (length name + 1) ("< or > is missing before " <> show other)
  let place = length text - length rest + 1
  bound <- number metric place rest
  unless (above || possible bound) $
    at place $
      "it is never below " <> rest
        <> (case bound of Relative _ -> ""; Absolute _ -> ": a change is written with %")
  Right Rule {ruleMetric = metric, ruleAbove = above, ruleBound = bound}
  where
    text = filter (not . isSpace) written
    (name, fromSign) = break (`elem` ("<>=" :: String)) text
    noMetric
      | name == "" = "the name of a number is missing"
      | otherwise =
        "there is no number " <> show name
          <> "; there are throughput, mean, p50, p75, p90, p95, p99, p99.9, \
             \p99.99, p99.999, max, cpu, memory, errors, misses"
    at :: Int -> String -> Either String a
    at place problem =
      Left ("--fail-if " <> show text <> ", character " <> show place <> ": " <> problem)
    number metric place shown = case found of
      Nothing ->
        at place ("a number is missing" <> (if shown == "" then "" else ", not " <> show shown))
      Just value -> case unit of
        "%" -> Right (Relative (signed value))
        _ | Just factor <- lookup unit (units metric) -> Right (Absolute (signed value * factor))
        _ ->
          at (place + length shown - length unit) $
            "no unit of " <> Text.unpack (metricName metric) <> ": " <> show unit
      where
        (sign, unsigned) = if take 1 shown `elem` ["+", "-"] then splitAt 1 shown else ("", shown)
        (found, unit) = numberAndUnit unsigned
        signed value = if sign == "-" then negate value else value :: Double
    -- No metric is below zero, or falls by more than all of it.
    possible = \case
      Relative change -> change > -100
      Absolute least -> least > 0
    units = \case
      Throughput -> [("", 1), ("k", 1e3), ("M", 1e6)]
      MemoryPeak -> [("", 1), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)]
      metric | metric `elem` [Errors, Misses] -> [("", 1)]
      _ -> [("", 1), ("ns", 1), ("us", 1e3), ("\181s", 1e3), ("ms", 1e6), ("s", 1e9)]

-- | Why a cell breaks the rule, if it does. With the flag, only a significant difference breaks a
-- relative rule.
broken :: Bool -> Rule -> Cell -> Maybe Text
broken onlySignificant rule cell = case ruleBound rule of
  Relative bound
    | onlySignificant && changeVerdict change `notElem` [Better, Worse] -> Nothing
    | beyond bound percentage -> Just (said (signedPercent percentage) (signedPercent bound))
  Absolute bound
    | beyond bound (changeAfter change) ->
      Just (said (format unit (changeAfter change)) (format unit bound))
  _ -> Nothing
  where
    change = changeOf (cellBefore cell) (cellAfter cell) (ruleMetric rule)
    unit = metricUnit (ruleMetric rule)
    beyond bound value = if ruleAbove rule then value > bound else value < bound
    percentage
      | changeBefore change == changeAfter change = 0
      | changeBefore change == 0 = 1 / 0
      | otherwise = 100 * (changeAfter change / changeBefore change - 1)
    said value bound =
      Text.concat
        [cellName cell, ": ", metricName (ruleMetric rule), " is ", value, side, bound]
    side = if ruleAbove rule then ", above " else ", below "
    signedPercent value
      | isInfinite value = "no longer 0"
      | otherwise = (if value > 0 then "+" else "") <> Text.pack (fixed 2 value) <> " %"
