-- | Numbers on the command line.
--
-- A number that does not fit its type is refused: read as such, it would come
-- out as another one, and @--keys 18446744073709551617@ would measure one key.
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

-- | A whole number that fits.
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

-- | An option of this name that takes a whole number, what it is without, and
-- its help.
numberOption ::
  (Bounded number, Integral number, Show number) => String -> number -> String -> Parser number
numberOption name standard text =
  option wholeNumber (described name "N" text <> value standard <> showDefault)

-- | An option of this name that takes seconds, what it is without, and its help.
seconds :: String -> Double -> String -> Parser Double
seconds name standard text =
  option readSeconds (described name "SECONDS" text <> value standard <> showDefault)

readSeconds :: ReadM Double
readSeconds = eitherReader $ \text -> case readMaybe text of
  Just number | number >= 0 && number <= 1e7 -> Right number
  _ -> Left ("not a number of seconds: " <> show text)

-- | What is wrong with the option of this name if it is not from the one number to the
-- other.
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
