-- | A command as the user writes it, with placeholders that are filled each time. It understands
-- the spellings of three tools side by side:
--
-- * redis-benchmark and valkey-benchmark: @__rand_int__@, @__rand_1st__@ to
--   @__rand_9th__@ (the same number wherever it occurs in a command),
--   @__data__@, @{tag}@;
-- * memtier_benchmark: @__key__@, @__data__@;
-- * resp-benchmark: @{key uniform N}@, @{key sequence N}@, @{key zipfian N}@,
--   @{value N}@, @{rand N}@, @{range N W}@.
--
-- Words are separated by blanks; quotes keep them together, as in @redis-cli@.
-- @{{@ and @}}@ are braces that mean nothing. A brace before anything but a
-- letter means nothing either, so that a script's tables need no care.
module Tool.Bench.Workload.Template
  ( Template (..),
    TemplateWord (..),
    Piece (..),
    commandTemplate,
    templateText,
  )
where

import Control.Monad (join, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (chr, digitToInt, isAlpha, isHexDigit, isSpace)
import Data.Text qualified as Text
import Tool.Bench.Workload.Distribution
import Tool.Bench.Workload.Syntax
import Tool.Text (argumentBytes)

-- | A command, with its name first.
newtype Template = Template [TemplateWord]
  deriving stock (Eq, Show)

-- | One word, or a pair of numbers.
data TemplateWord
  = -- | Pieces that are joined without blanks.
    OneWord [Piece]
  | -- | Two numbers below the first bound, which differ by the second.
    TwoNumbers Int Int
  deriving stock (Eq, Show)

-- | A part of a word.
data Piece
  = -- | Fixed text.
    Literal ByteString
  | -- | The number of a key in twelve digits, drawn separately at each place.
    RandomInt
  | -- | The number of a key in twelve digits, the same wherever the same index occurs.
    RandomNth Int
  | -- | The value of the 'DrawnKey'.
    Data
  | -- | A key of the workload, the same wherever it occurs.
    DrawnKey
  | -- | A hash tag, the same wherever it occurs.
    HashTag
  | -- | One of this number of keys in resp-benchmark's form, drawn by this distribution.
    NamedKey Distribution Int
  | -- | This many random letters.
    RandomValue Int
  | -- | A random number below this bound.
    RandomBelow Int
  deriving stock (Eq, Show)

commandTemplate :: Syntax Template
commandTemplate = do
  blanks
  found <- templateWords
  when (null found) $ complain "a command is missing"
  case found of
    OneWord [Literal _] : _ -> pure (Template found)
    _ -> complain "the name of a command must be a plain word, in a command that ends"

blanks :: Syntax ()
blanks = void (takeWhile' isSpace)

templateWords :: Syntax [TemplateWord]
templateWords =
  peek >>= \case
    Nothing -> pure []
    Just _ -> do
      range <- text "{range "
      first <- if range then twoNumbers else OneWord . joined <$> pieces Bare
      peek >>= \case
        Just next | not (isSpace next) -> complain "expected a blank between two words"
        _ -> blanks >> (first :) <$> templateWords
  where
    twoNumbers = do
      number <- positive maxNumber
      blanks
      width <- natural "a width" maxNumber
      close
      pure (TwoNumbers number width)

-- How the current word is quoted.
data Quote = Bare | Single | Double
  deriving stock (Eq)

pieces :: Quote -> Syntax [Piece]
pieces quote =
  peek >>= \case
    Nothing
      | quote == Bare -> pure []
      | otherwise -> complain "the quote is never closed; the text ends"
    Just next
      | quote == Bare, isSpace next -> pure []
      | quote == Bare, next == '\'' -> text "'" >> (Literal "" :) <$> pieces Single
      | quote == Bare, next == '"' -> text "\"" >> (Literal "" :) <$> pieces Double
      | quote == Single, next == '\'' -> text "'" >> afterQuote
      | quote == Double, next == '"' -> text "\"" >> afterQuote
      | next == '\\', quote == Double -> text "\\" >> ((:) <$> escaped <*> pieces quote)
      | next == '\\',
        quote == Single -> do
        quoted <- text "\\'"
        if quoted then more (Literal "'") else text "\\" >> more (Literal "\\")
      | next == '{' -> text "{" >> braced
      | next == '}' -> text "}" >> text "}" >> more (Literal "}")
      | next == '_' -> underscored
      | otherwise -> takeWhile' plain >>= more . literal
  where
    more piece = (piece :) <$> pieces quote
    plain char =
      char `notElem` ("{}_" :: String) && case quote of
        Bare -> not (isSpace char) && char `notElem` ("'\"" :: String)
        Single -> char `notElem` ("'\\" :: String)
        Double -> char `notElem` ("\"\\" :: String)
    afterQuote =
      peek >>= \case
        Nothing -> pure []
        Just next
          | isSpace next -> pure []
          | otherwise -> complain "expected a blank after the quote"
    braced =
      peek >>= \case
        Just '{' -> text "{" >> more (Literal "{")
        Just letter | isAlpha letter -> placeholder >>= more
        _ -> more (Literal "{")
    underscored =
      text "__" >>= \case
        False -> text "_" >> more (Literal "_")
        True -> do
          left <- rest
          case lookup True [(takeName known left, (known, piece)) | (known, piece) <- marks] of
            Just (known, piece) -> text (known <> "__") >> more piece
            Nothing
              -- Two underscores without two closing ones are plain text.
              | closes left ->
                complain
                  ( "there is no placeholder __"
                      <> Text.unpack (fst (Text.breakOn "__" (Text.pack left)))
                      <> "__"
                  )
              | otherwise -> more (Literal "__")
    takeName known left = take (length known + 2) left == known <> "__"
    closes left = case break (\char -> isSpace char || char `elem` ("'\"" :: String)) left of
      (word, _) -> case Text.breakOn "__" (Text.pack word) of
        (name, after) -> not (Text.null name) && not (Text.null after)
    marks =
      ("rand_int", RandomInt) :
      ("data", Data) :
      ("key", DrawnKey) :
        [ ("rand_" <> show number <> ordinal, RandomNth number)
          | (number, ordinal) <- zip [1 .. 9] (["st", "nd", "rd"] <> repeat "th")
        ]

literal :: String -> Piece
literal = Literal . argumentBytes

escaped :: Syntax Piece
escaped = do
  hex <- text "x"
  if hex
    then do
      digits <- rest
      case digits of
        high : low : _
          | isHexDigit high,
            isHexDigit low -> do
            _ <- text [high, low]
            pure (Literal (Char8.singleton (chr (16 * digitToInt high + digitToInt low))))
        _ -> complain "expected two hexadecimal digits"
    else
      oneOf
        "\\\\, \\\", \\n, \\r, \\t, \\a, \\b or \\xHH"
        [ ("\\", Literal "\\"),
          ("\"", Literal "\""),
          ("n", Literal "\n"),
          ("r", Literal "\r"),
          ("t", Literal "\t"),
          ("a", Literal "\a"),
          ("b", Literal "\b")
        ]

-- Reads what follows the brace.
placeholder :: Syntax Piece
placeholder =
  join $
    oneOf
      "{tag}, {key LAW N}, {value N}, {rand N} or {range N W} here ({{ is the brace itself)"
      [ ("tag}", pure HashTag),
        ("key ", namedKey <* close),
        ("value ", RandomValue <$> natural "a number of bytes" (1024 * 1024) <* close),
        ("rand ", RandomBelow <$> positive maxNumber <* close),
        ("range ", complain "{range N W} is two words: it stands by itself, without quotes,")
      ]
  where
    namedKey = do
      drawn <- law
      NamedKey drawn <$> positive (if needsTable drawn then mostInTable else maxNumber)
    law =
      oneOf
        "uniform, sequence or zipfian"
        [("uniform ", Uniform), ("sequence ", Sequential), ("zipfian ", Zipf 1.03)]

positive :: Int -> Syntax Int
positive most = do
  number <- natural "a number" most
  when (number == 0) $ complain "the number must be 1 at least"
  pure number

-- The largest bound of a number that is drawn from 32 bits.
maxNumber :: Int
maxNumber = 0xffffffff

close :: Syntax ()
close = expect "}"

-- Joins neighbouring literals. An empty word stays a word.
joined :: [Piece] -> [Piece]
joined = filled . go
  where
    go = \case
      Literal one : Literal other : others -> go (Literal (one <> other) : others)
      Literal "" : others@(_ : _) -> go others
      piece : others -> piece : dropEmpty (go others)
      [] -> []
    dropEmpty = filter (/= Literal "")
    filled = \case
      [] -> [Literal ""]
      some -> some

-- | The command for reports, cut after sixty characters.
templateText :: String -> String
templateText written = case splitAt 60 (unwords (words written)) of
  (all', "") -> all'
  (start, _) -> start <> "…"
