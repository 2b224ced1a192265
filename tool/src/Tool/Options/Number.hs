-- | Whole numbers on the command line.
--
-- A number that does not fit its type is refused: read as such, it would come
-- out as another one, and @--keys 18446744073709551617@ would measure one key.
module Tool.Options.Number
  ( wholeNumber,
  )
where

import Options.Applicative (ReadM, eitherReader)
import Text.Read (readMaybe)

-- | A whole number that fits.
wholeNumber :: forall number. (Bounded number, Integral number) => ReadM number
wholeNumber = eitherReader $ \text -> case readMaybe text of
  Nothing -> Left ("not a whole number: " <> show text)
  Just number
    | number < toInteger (minBound :: number) -> Left ("not below " <> show (toInteger (minBound :: number)) <> ": " <> text)
    | number > toInteger (maxBound :: number) -> Left ("not above " <> show (toInteger (maxBound :: number)) <> ": " <> text)
    | otherwise -> Right (fromInteger number)
