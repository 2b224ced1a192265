-- | Operations that the user wrote. The library is asked once where the keys are and what kind of
-- command it is, with a mark in every place: in later commands the words stand at the same
-- positions. For a command that only reads, an empty reply is a miss.
module Tool.Bench.Workload.Custom
  ( custom,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toLower, toUpper)
import Data.Maybe (fromMaybe, isNothing)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding (decodeLatin1)
import Redis.Command
import Redis.Command.Build qualified as Build
import Redis.Commands.Raw (raw)
import Redis.Decode (Decoder)
import Redis.Value (Value (..), withoutAttributes)
import Tool.Bench.Workload.Dataset
import Tool.Bench.Workload.Distribution
import Tool.Bench.Workload.Keys
import Tool.Bench.Workload.Random
import Tool.Bench.Workload.Template
import Tool.Bench.Workload.Values

-- | The kind that sends this template, under this name. The step writes the workload's keys, for
-- commands that read them. 'Left' says in one line why the template cannot be run.
custom :: Dataset -> Step -> Text -> Template -> Either String Kind
custom dataset allKeys name (Template templateWords)
  | factScope facts == ConnectionState =
    Left (Text.unpack name <> ": this changes what its connection is, so nobody could share it")
  | otherwise =
    Right
      Kind
        { kindName = name,
          kindStats = if runsOthers || inParts || sentByUs then Nothing else Just [(statistic, 1)],
          kindMake = \kind stream -> do
            (filled, number) <- fill stream
            pure (Drawn kind (-1) (made filled (verdict number))),
          kindSteps = [allKeys | readsStrings],
          kindDeletes = not (factReadOnly facts || keepsKeys)
        }
  where
    fill = filler dataset templateWords
    marked = concat (zipWith (mark anyNumber) [0 ..] templateWords)
    -- Not a word of the template: a key may be called 0.
    anyNumber =
      mconcat . take 1 . filter (`notElem` [word | OneWord [Literal word] <- templateWords]) $
        iterate ("0" <>) "0"
    sample = raw marked
    facts = commandFacts sample
    upperName = Char8.map toUpper (mconcat (take 1 marked))
    -- As in @INFO commandstats@.
    statistic = decodeLatin1 (Char8.map barred (commandName sample))
    barred char = if char == ' ' then '|' else toLower char
    runsOthers = upperName `elem` ["EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO"]
    -- This program and its library send these, too.
    sentByUs = upperName `elem` Char8.words "CLIENT CLUSTER COMMAND CONFIG DBSIZE INFO"
    keepsKeys
      | upperName == "SET" = length templateWords == 3
      | otherwise =
        upperName
          `elem` Char8.words
            "APPEND DECR DECRBY ECHO GEOADD GETSET HINCRBY HINCRBYFLOAT HMSET HSET HSETNX INCR INCRBY \
            \INCRBYFLOAT LINSERT LPUSH LPUSHX LSET MSET MSETNX PERSIST PFADD PING PUBLISH RPUSH RPUSHX \
            \SADD SETBIT SETNX SETRANGE XADD ZADD ZINCRBY"
    -- In a cluster the library sends keys of several slots in commands of their own, and some
    -- commands without keys to all nodes. The servers count each.
    inParts =
      shapeClustered (datasetShape dataset) && case map sameSlot keyWords of
        first : others -> isNothing first || any (/= first) others
        [] -> null (commandKeys sample)
    keyWords
      | length (commandKeys sample) < 2 = []
      | otherwise = [parts | (place, word@(OneWord parts)) <- zip [0 ..] templateWords, any (`elem` commandKeys sample) (mark anyNumber place word)]
    drawsKey = or [DrawnKey `elem` parts | OneWord parts <- templateWords]
    readsStrings =
      drawsKey
        && upperName
          `elem` Char8.words "GET GETEX STRLEN GETRANGE EXISTS TTL PTTL TYPE TOUCH MGET SUBSTR"
    made = madeLike sample marked
    verdict
      | upperName == "GET", [_, OneWord [DrawnKey]] <- templateWords = valueOfKey dataset
      | factReadOnly facts = const (foundOrNot upperName)
      | otherwise = const (\_ -> Right Done)

-- What all keys of this form have in their slot, as far as the form tells: a tag, or the whole key.
sameSlot :: [Piece] -> Maybe ByteString
sameSlot parts = case parts of
  [Literal whole] -> Just (fromMaybe whole (tagIn whole))
  Literal begin : _ | Just tag <- tagIn begin -> Just tag
  _
    | HashTag `elem` parts, not (or [Char8.elem '{' fixed | Literal fixed <- parts]) -> Just "{}"
    | [DrawnKey] <- parts -> Just "{key}"
    | otherwise -> Nothing
  where
    tagIn word = case Char8.break (== '}') (ByteString.drop 1 (Char8.dropWhile (/= '{') word)) of
      (tag, rest) | not (ByteString.null tag || ByteString.null rest) -> Just tag
      _ -> Nothing

-- Takes the name of the command, which decides whether a number or an empty text means nothing.
foundOrNot :: ByteString -> Decoder Outcome
foundOrNot name value = Right $ case withoutAttributes value of
  Null -> Miss
  Array values | all ((== Null) . withoutAttributes) values -> Miss
  Map [] -> Miss
  Set [] -> Miss
  Integer 0 | name `elem` counting -> Miss
  Integer (-2) | name `elem` Char8.words "TTL PTTL EXPIRETIME PEXPIRETIME" -> Miss
  BulkString "" | name `elem` ["GETRANGE", "SUBSTR"] -> Miss
  SimpleString "none" | name == "TYPE" -> Miss
  _ -> Hit
  where
    counting = Char8.words "EXISTS HEXISTS HLEN HSTRLEN LLEN SCARD SISMEMBER STRLEN TOUCH XLEN ZCARD"

-- The words of a template, with a mark in every place that is filled: the first argument in those
-- of numbers, a mark of its own in every other.
mark :: ByteString -> Int -> TemplateWord -> [ByteString]
mark anyNumber place = \case
  OneWord [Literal fixed] -> [fixed]
  OneWord _ -> ["\0word " <> Char8.pack (show place)]
  TwoNumbers _ _ -> [anyNumber, anyNumber]

-- A command of these words: keys stand at the same positions as in its marked sample. For a command
-- without keys, or one that the library does not know, the library decides each time.
madeLike :: Command a -> [ByteString] -> [ByteString] -> Decoder Outcome -> Command Outcome
madeLike sample marked
  | null keyWords = \filled verdict -> raw filled `decodedBy` verdict
  | otherwise = Build.command name . zipWith ($) places . drop (length nameWords)
  where
    keyWords = commandKeys sample
    nameWords = Char8.words (commandName sample)
    !name = Build.nameOf (commandName sample)
    places =
      [ if word `elem` keyWords then Build.key else Build.arg
        | word <- drop (length nameWords) marked
      ]

-- The draws that all places of one command share.
data Draws = Draws
  { drawsNumber :: Int,
    drawsTag :: ByteString,
    drawsNth :: [(Int, ByteString)]
  }

-- The words of a command, and the number of the key that was drawn for it.
filler :: Dataset -> [TemplateWord] -> Stream -> IO ([ByteString], Int)
filler dataset templateWords = \stream -> do
  number <- if needsKey then drawKey dataset stream else pure 0
  tag <- if HashTag `elem` used then hashTag . below 16384 . upper <$> step stream else pure ""
  nth <- traverse (\nth -> (,) nth <$> digits stream) nths
  found <- traverse (\fill -> fill (Draws number tag nth) stream) fillers
  pure (concat found, number)
  where
    used = concat [parts | OneWord parts <- templateWords]
    needsKey = DrawnKey `elem` used || Data `elem` used
    nths = [nth | nth <- [1 .. 9], RandomNth nth `elem` used]
    fillers = map ready templateWords
    hashTag slot =
      "{" <> Char8.pack (reverse (take 5 (reverse (show (100000 + slot :: Int))))) <> "}"
    digits stream = keyOf (datasetDigits dataset) . below (shapeKeys shape) . upper <$> step stream
    shape = datasetShape dataset
    ready :: TemplateWord -> Draws -> Stream -> IO [ByteString]
    ready = \case
      OneWord [Literal fixed] -> \_ _ -> pure [fixed]
      OneWord [one] -> let made = piece one in \draws stream -> (: []) <$> made draws stream
      OneWord parts ->
        let made = map piece parts
         in \draws stream -> (: []) . ByteString.concat <$> traverse (\make -> make draws stream) made
      TwoNumbers bound width -> \_ stream -> do
        low <- below (max 1 (bound - width)) . upper <$> step stream
        pure [Char8.pack (show low), Char8.pack (show (low + width))]

    piece :: Piece -> Draws -> Stream -> IO ByteString
    piece = \case
      Literal fixed -> \_ _ -> pure fixed
      RandomInt -> \_ stream -> digits stream
      RandomNth nth -> \draws _ -> pure (fromMaybe "" (lookup nth (drawsNth draws)))
      Data -> \draws _ -> pure (valueOf (datasetValues dataset) (drawsNumber draws))
      DrawnKey -> \draws _ -> pure (keyOf (datasetKeys dataset) (drawsNumber draws))
      HashTag -> \draws _ -> pure (drawsTag draws)
      NamedKey law count ->
        let chooser = newChooser law count (shapeThreads shape)
         in \_ stream -> step stream >> namedKey <$> choose chooser stream
      RandomValue size ->
        let values = newValues (shapeSeed shape) (SizeFixed size) (shapeCompressible shape)
         in \_ stream -> valueOf values . fromIntegral . upper <$> step stream
      RandomBelow bound -> \_ stream -> Char8.pack . show . below bound . upper <$> step stream

-- @key_0000000042@: made each time, for there may be more than fit a table.
namedKey :: Int -> ByteString
namedKey number = "key_" <> Char8.replicate (10 - Char8.length shown) '0' <> shown
  where
    shown = Char8.pack (show number)
