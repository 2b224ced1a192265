-- | What the options of all modes share: their descriptions and their help in groups, numbers, and
-- values from a list. A number that does not fit its type is refused, where it would wrap around.
module Tool.Options.Common
  ( described,
    usually,
    optionalOption,
    numberOption,
    spanOption,
    seconds,
    inGroups,
    wholeNumber,
    readWith,
    choice,
    splitAll,
    refused,
    between,
    namedTwice,
  )
where

import Control.Monad (guard, mfilter)
import Data.Char (isSpace)
import Data.List (find, group, isPrefixOf, sort)
import Data.Maybe (listToMaybe)
import Data.Text qualified as Text
import Options.Applicative
import Options.Applicative.Types (OptName (OptLong, OptShort))
import Text.Read (readMaybe)
import Tool.Span (parseSpan, renderSpan)

-- | Describes an option by its name, the placeholder of its value, and its help.
described :: String -> String -> String -> Mod OptionFields a
described name meta text = long name <> metavar meta <> help text

-- | A default, and how the help writes it.
usually :: (a -> String) -> a -> Mod OptionFields a
usually render standard = value standard <> showDefaultWith render

-- | An option that may be left out. Takes its reader and its description.
optionalOption :: ReadM a -> String -> String -> String -> Parser (Maybe a)
optionalOption reader name meta text = optional (option reader (described name meta text))

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
  where
    readSeconds =
      readWith ("not a number of seconds: " <>) $
        mfilter (\number -> number >= 0 && number <= 1e7) . readMaybe

-- | An option with this name that takes a span of time. Takes its default in seconds and its help.
spanOption :: String -> Double -> String -> Parser Double
spanOption name standard text =
  option
    (eitherReader parseSpan)
    (described name "SPAN" text <> usually renderSpan standard)

-- | A reader from a function, with the error for a text that it refuses. The error gets the text in
-- quotes.
readWith :: (String -> String) -> (String -> Maybe a) -> ReadM a
readWith refusal parse = eitherReader $ \text -> maybe (Left (refusal (show text))) Right (parse text)

-- | One of these values by its name, or the error, which begins with these words.
choice :: String -> (a -> String) -> [a] -> String -> Either String a
choice what name known text =
  maybe (Left (what <> ", not " <> show text)) Right (find ((== text) . name) known)

-- | The parts between these characters, at least one.
splitAll :: Char -> String -> [String]
splitAll separator = map Text.unpack . Text.split (== separator) . Text.pack

-- | The error, if this holds.
refused :: Bool -> String -> Maybe String
refused wrong problem = problem <$ guard wrong

-- | The error for the option of this name if its value is not between these two numbers.
between :: String -> Int -> Int -> Int -> Maybe String
between name lowest highest number =
  refused (number < lowest || number > highest) . unwords $
    [name, "must be from", show lowest, "to", show highest <> ",", "not", show number]

-- | The first word that is there twice.
namedTwice :: [String] -> Maybe String
namedTwice names = listToMaybe [name | name : _ : _ <- group (sort names)]

-- | Puts the options of a help text under the first group that has them, in the order of the groups
-- and, within each group, of the text; other options under "Other". Drops the line at the top that
-- lists all options.
inGroups :: [(String, [OptName])] -> String -> String
inGroups groups text = unlines (usage <> description <> concatMap section titles <> rest)
  where
    (top, below) = break (== "Available options:") (lines text)
    (entriesText, rest) = break null (drop 1 below)
    entries = entriesOf entriesText
    -- The continuation of the usage is indented far.
    description =
      dropWhile (not . ("  " `isPrefixOf`)) $
        dropWhile (\line -> any (`isPrefixOf` line) ["Usage:", "      "]) top
    usage = case words (concat (take 1 top)) of
      "Usage:" : path -> ["Usage: " <> unwords (takeWhile isName path) <> " [OPTION …]", ""]
      _ -> take 1 top
    isName word = take 1 word `notElem` ["[", "("]
    titles = map fst groups <> ["Other"]
    section title = case [entry | entry <- entries, titleOf entry == title] of
      [] -> []
      found -> (title <> ":") : concat found <> [""]
    titleOf entry = maybe "Other" fst (find (any (`elem` namesOf entry) . snd) groups)

-- | Splits lines into entries: each begins with an option and includes its continuation lines.
entriesOf :: [String] -> [[String]]
entriesOf = \case
  [] -> []
  line : others ->
    let (more, next) = break ("  -" `isPrefixOf`) others
     in (line : more) : entriesOf next

-- | The names of the option at the begin of an entry.
namesOf :: [String] -> [OptName]
namesOf entry =
  concatMap name (splitAll ',' (takeWhile (not . isSpace) (dropWhile isSpace (concat (take 1 entry)))))
  where
    name = \case
      '-' : '-' : word -> [OptLong word]
      ['-', letter] -> [OptShort letter]
      _ -> []
