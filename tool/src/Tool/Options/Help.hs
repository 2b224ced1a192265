-- | The text of @--help@: the descriptions of options, and the options in groups.
module Tool.Options.Help
  ( described,
    optionalOption,
    inGroups,
  )
where

import Control.Applicative (optional)
import Data.Char (isSpace)
import Data.List (find, isPrefixOf)
import Options.Applicative (Mod, OptionFields, Parser, ReadM, help, long, metavar, option)
import Options.Applicative.Types (OptName (OptLong, OptShort))

-- | Describes an option by its name, the placeholder of its value, and its help.
described :: String -> String -> String -> Mod OptionFields a
described name meta text = long name <> metavar meta <> help text

-- | An option that may be left out. Takes its reader and its description.
optionalOption :: ReadM a -> String -> String -> String -> Parser (Maybe a)
optionalOption reader name meta text = optional (option reader (described name meta text))

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
      dropWhile
        ( not
            . ("  " `isPrefixOf`)
        )
        (dropWhile (\line -> "Usage:" `isPrefixOf` line || "      " `isPrefixOf` line) top)
    usage = case words (concat (take 1 top)) of
      "Usage:" : path -> ["Usage: " <> unwords (takeWhile isName path) <> " [OPTION …]", ""]
      _ -> take 1 top
    isName word = take 1 word `notElem` ["[", "("]
    titles = map fst groups <> ["Other"]
    section title = case [entry | entry <- entries, titleOf entry == title] of
      [] -> []
      some -> (title <> ":") : concat some <> [""]
    titleOf entry = maybe "Other" fst (find (any (`elem` namesOf entry) . snd) groups)

-- | Splits lines into entries: each begins with an option and includes its continuation lines.
entriesOf :: [String] -> [[String]]
entriesOf = \case
  [] -> []
  line : others ->
    let (more, next) = break begins others
     in (line : more) : entriesOf next
  where
    begins line = "  -" `isPrefixOf` line

-- | The names of the option at the begin of an entry.
namesOf :: [String] -> [OptName]
namesOf entry =
  concatMap name (splitOn (takeWhile (not . isSpace) (dropWhile isSpace (concat (take 1 entry)))))
  where
    name = \case
      '-' : '-' : word -> [OptLong word]
      ['-', short] -> [OptShort short]
      _ -> []
    splitOn text = case break (== ',') text of
      (one, _ : others) -> one : splitOn others
      (one, []) -> [one]
