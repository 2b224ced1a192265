-- | Commands as text for people: as one types them at a prompt, without secrets.
module Redis.Internal.Command.Shown
  ( shownArguments,
    shownLabel,
    shownPart,
    shownTransaction,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isAlphaNum, isAscii, isPrint)
import Numeric (showHex)
import Redis.Internal.Protocol.KeySpec (upper)

-- | The words on one line. Words that a prompt would split or not print are quoted, long
-- words are cut, and secrets are replaced by a mark. \(O(n)\).
shownArguments :: [ByteString] -> ByteString
shownArguments = Char8.unwords . map quoted . redacted

-- | A command as an error names it: its name, and the first of its keys. Only the first: a line of a
-- log stays short. \(O(n)\) in the name and that key.
shownLabel :: ByteString -> [ByteString] -> ByteString
shownLabel name keys = case keys of
  [] -> name
  [key] -> name <> " " <> quoted key
  key : _ -> name <> " " <> quoted key <> " ..."

-- | The command with this label, as one of several of a transaction. Positions count from 1.
shownPart :: Int -> Int -> ByteString -> ByteString
shownPart position count label =
  "transaction, command " <> number position <> " of " <> number count <> " (" <> label <> ")"
  where
    number = Char8.pack . show

-- | A transaction of the commands with these labels.
shownTransaction :: [ByteString] -> ByteString
shownTransaction labels = "transaction (" <> Char8.intercalate ", " (take 3 labels <> ["..." | not (null (drop 3 labels))]) <> ")"

-- | The words with a mark in the place of each password. \(O(n)\).
redacted :: [ByteString] -> [ByteString]
redacted commandArguments = case (map upper (take 2 commandArguments), commandArguments) of
  ("AUTH" : _, name : secrets) -> name : map (const hidden) secrets
  ("HELLO" : _, name : options) -> name : afterAuth 2 options
  (["ACL", "SETUSER"], acl : setuser : user : rules) -> acl : setuser : user : map rule rules
  (["CONFIG", "SET"], _) -> afterWords 2
  ("MIGRATE" : _, name : options) -> name : afterAuth 1 options
  (["SENTINEL", "CONFIG"], _) -> afterWords 3
  (["SENTINEL", "SET"], _) -> afterWords 3
  _ -> commandArguments
  where
    -- In HELLO, a user and a password follow AUTH; in MIGRATE, a password follows AUTH,
    -- and a user and a password follow AUTH2. A client's name may be AUTH, too.
    afterAuth :: Int -> [ByteString] -> [ByteString]
    afterAuth count = \case
      [] -> []
      word : given : rest
        | upper word == "SETNAME" -> word : given : afterAuth count rest
      word : rest
        | upper word == "AUTH" -> word : hiding count rest
        | upper word == "AUTH2" -> word : hiding 2 rest
        | otherwise -> word : afterAuth count rest
      where
        hiding :: Int -> [ByteString] -> [ByteString]
        hiding left words'
          | (secrets, others) <- splitAt left words' = map (const hidden) secrets <> afterAuth count others

    -- A rule with such a mark adds or removes a password, in clear or as a digest. A selector's rules are in one word.
    rule word = case Char8.uncons word of
      Just ('(', rules) -> "(" <> Char8.unwords (map rule (Char8.words rules))
      Just (mark, _) | mark `elem` (">#<!" :: String) -> Char8.singleton mark <> hidden
      _ -> word

    -- Names and values of settings, after this many words.
    afterWords count = let (begin, pairs) = splitAt count commandArguments in begin <> settings pairs
    settings = \case
      name : value : rest -> name : (if secretSetting (upper name) then hidden else value) : settings rest
      rest -> rest
    secretSetting name = any (`Char8.isInfixOf` name) ["PASS", "SECRET"] || "AUTH" `Char8.isSuffixOf` name

-- | The mark in the place of a secret.
hidden :: ByteString
hidden = "<secret>"

-- | A word as one types it: in quotes where needed, and cut if it is long.
quoted :: ByteString -> ByteString
quoted word
  | word == hidden = word
  | not (Char8.null word) && Char8.all plain word && Char8.length word <= longest = word
  | otherwise = Char8.pack (show' (Char8.unpack (Char8.take longest word)) <> more)
  where
    longest = 64
    plain char = isAscii char && (isAlphaNum char || char `elem` ("_-:.*{}|/@$+,=<>!#?^[]" :: String))
    show' text = "\"" <> concatMap escaped text <> "\""
    escaped char
      | char == '"' || char == '\\' = ['\\', char]
      | char == '\n' = "\\n"
      | char == '\r' = "\\r"
      | char == '\t' = "\\t"
      | isAscii char && isPrint char = [char]
      | otherwise = "\\x" <> replicate (2 - length (hex char)) '0' <> hex char
    hex char = showHex (fromEnum char) ""
    more = if Char8.length word > longest then "... (" <> show (Char8.length word) <> " bytes)" else ""
