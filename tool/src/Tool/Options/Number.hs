-- | Numbers on the command line.
--
-- A number that does not fit its type is refused. Without this check it would wrap around, so that
-- with @--keys 18446744073709551617@ there would be one key.
module Tool.Options.Number
  ( wholeNumber,
    numberOption,
    seconds,
    between,
  )
where

import Options.Applicative (Parser, ReadM, eitherReader, option, showDefault, value)
import Text.Read (readMaybe)
import Tool.Options.Help (described)

-- | Reads a whole number that fits its type.
wholeNumber :: forall number. (Bounded number, Integral number) => ReadM number
wholeNumber = eitherReader $ \text -> case readMaybe text of
  Nothing -> Left ("not a whole number: " <> show text)
  Just number
    | number < lowest -> Left ("not below " <> show lowest <> ": " <> text)
    | number > highest -> Left ("not above " <> show highest <> ": " <> text)
    | otherwise -> Right (fromInteger number)
  where
    lowest = toInteger (minBound :: number)
    highest = toInteger (maxBound :: number)

-- | An option with this name that takes a whole number. Takes its default and its help.
numberOption ::
  (Bounded number, Integral number, Show number) => String -> number -> String -> Parser number
numberOption name standard text =
  option wholeNumber (described name "N" text <> value standard <> showDefault)

-- | An option with this name that takes seconds. Takes its default and its help.
seconds :: String -> Double -> String -> Parser Double
seconds name standard text =
  option readSeconds (described name "SECONDS" text <> value standard <> showDefault)

readSeconds :: ReadM Double
readSeconds = eitherReader $ \text -> case readMaybe text of
  Just number | number >= 0 && number <= 1e7 -> Right number
  _ -> Left ("not a number of seconds: " <> show text)

-- | The error for the option of this name if its value is not between these two numbers.
between :: String -> Int -> Int -> Int -> Maybe String
between name lowest highest number
  | number < lowest || number > highest =
    Just
      ( name
          <> " must be from "
          <> show lowest
          <> " to "
          <> show highest
          <> ", not "
          <> show number
      )
  | otherwise = Nothing
