-- | The parts of a workload as given on the command line, with weights: tests by name, and commands
-- in words, with placeholders that are filled each time, in the spellings of three tools:
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
  ( Task (..),
    taskName,
    Mix,
    mix,
    taskList,
    describeMix,
    Template (..),
    TemplateWord (..),
    Piece (..),
    commandTemplate,
  )
where

import Control.Monad (join, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (chr, digitToInt, isAlpha, isHexDigit, isSpace)
import Data.List (find, intercalate, isPrefixOf, nub, (\\))
import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Workload.Distribution
import Tool.Bench.Workload.Named (namedTests, testGroups)
import Tool.Bench.Workload.Syntax
import Tool.Text (argumentBytes)

-- | One kind of operation.
data Task
  = -- | A test by its name.
    TaskNamed String
  | -- | A command, as it was written and as it was understood.
    TaskCommand String Template
  deriving stock (Eq, Show)

taskName :: Task -> Text
taskName = \case
  TaskNamed name -> Text.pack name
  TaskCommand written _ -> Text.pack (templateText written)

-- | Tasks and their weights: how often each is drawn, relative to the others.
type Mix = NonEmpty (Int, Task)

-- | Reads @70:get,20:set,10:'INCR counter:__rand_int__'@. A weight of 1 may be left out. A command
-- must be in quotes, or stand last.
mix :: Syntax Mix
mix = do
  found <- separated "," weighted
  maybe (complain "a mix of nothing") pure (NonEmpty.nonEmpty found)
  where
    weighted = do
      left <- rest
      weight <- case span (`elem` ['0' .. '9']) left of
        (_ : _, ':' : _) -> do
          weight <- natural "a weight" 1000000
          expect ":"
          weight <$ when (weight == 0) (complain "a weight is 1 at least")
        _ -> pure 1
      (,) weight <$> task
    task =
      peek >>= \case
        Just quote | quote `elem` ("'\"" :: String) -> do
          _ <- text [quote]
          written <- takeWhile' (/= quote)
          closed <- text [quote]
          if closed then command written else complain "the quote is never closed; the text ends"
        _ -> takeWhile' (`notElem` (",\"'" :: String)) >>= name
    name written
      | any isSpace written = command written
      | otherwise = TaskNamed <$> known written
    command written = either complain (pure . TaskCommand written) (parse commandTemplate written)

-- | Names of tests, and of groups of tests, with commas between them. Each test is a run of its
-- own, named after the test, so no test may be there twice.
taskList :: Syntax [Task]
taskList = do
  found <- concat <$> separated "," names
  case found \\ nub found of
    again : _ -> complain (Text.unpack (taskName again) <> " is named twice")
    [] -> pure found
  where
    names = do
      written <- takeWhile' (/= ',')
      case lookup written testGroups of
        Just group -> pure (map TaskNamed group)
        Nothing -> (: []) . TaskNamed <$> known written

known :: String -> Syntax String
known written
  | written `elem` map fst namedTests = pure written
  | null written = complain "the name of a test is missing"
  | otherwise =
    complain $
      "there is no test " <> show written <> " (there are " <> unwords (map fst namedTests) <> ");"

-- | The text that 'mix' reads.
describeMix :: Mix -> String
describeMix = \case
  (_, one) :| [] -> written one
  several ->
    intercalate "," [show weight <> ":" <> written one | (weight, one) <- NonEmpty.toList several]
  where
    written = \case
      TaskNamed name -> name
      TaskCommand text' _ -> "'" <> text' <> "'"

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
      bound <- number maxNumber <* blanks
      TwoNumbers bound <$> natural "a width" (bound - 1) <* close

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
          case find ((`isPrefixOf` left) . fst) marks of
            Just (name, piece) -> text name >> more piece
            Nothing
              -- Two underscores without two closing ones are plain text.
              | closes left ->
                complain $
                  "there is no placeholder __"
                    <> Text.unpack (fst (Text.breakOn "__" (Text.pack left)))
                    <> "__"
              | otherwise -> more (Literal "__")
    closes left = case break (\char -> isSpace char || char `elem` ("'\"" :: String)) left of
      (word, _) -> case Text.breakOn "__" (Text.pack word) of
        (name, after) -> not (Text.null name) && not (Text.null after)
    marks =
      ("rand_int__", RandomInt) :
      ("data__", Data) :
      ("key__", DrawnKey) :
        [ ("rand_" <> show nth <> ordinal <> "__", RandomNth nth)
          | (nth, ordinal) <- zip [1 .. 9] (["st", "nd", "rd"] <> repeat "th")
        ]

literal :: String -> Piece
literal = Literal . argumentBytes

escaped :: Syntax Piece
escaped = do
  hex <- text "x"
  if hex
    then
      rest >>= \case
        high : low : _
          | isHexDigit high,
            isHexDigit low -> do
            expect [high, low]
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
        ("rand ", RandomBelow <$> number maxNumber <* close),
        ("range ", complain "{range N W} is two words: it stands by itself, without quotes,")
      ]
  where
    namedKey = do
      drawn <- law
      NamedKey drawn <$> number (if needsTable drawn then mostInTable else maxNumber)
    law =
      oneOf
        "uniform, sequence or zipfian"
        [("uniform ", Uniform), ("sequence ", Sequential), ("zipfian ", Zipf 1.03)]

number :: Int -> Syntax Int
number most = positive "a number" most "the number must be 1 at least"

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
