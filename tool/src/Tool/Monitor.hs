-- | The lines of @MONITOR@, which of their commands can be run again, and recordings: one line per
-- command. Times are the server's, in microseconds.
--
-- > 1339518083.107412 [0 127.0.0.1:60866] "set" "greeting" "hello"
module Tool.Monitor
  ( Observed (..),
    Origin (..),
    parseLine,
    LineProblem (..),
    Obstacle (..),
    obstacle,
    obstacleText,
    Recording (..),
    Recorded (..),
    parseRecording,
    recordingSpan,
    recordingNames,
  )
where

import Control.Monad (when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (digitToInt, isDigit, isHexDigit, toLower)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, isNothing)
import Data.Set (Set)
import Data.Set qualified as Set
import Data.Word (Word8)

-- | A command that a server ran.
data Observed = Observed
  { -- | Microseconds since 1970, by the server's clock.
    observedMicros :: Int,
    observedDatabase :: Int,
    observedOrigin :: Origin,
    -- | The command's name as the client wrote it, and its arguments. Not empty.
    observedWords :: [ByteString]
  }
  deriving stock (Eq, Show)

-- | The sender of a command.
data Origin
  = -- | A client, by its address as the server writes it.
    OriginClient ByteString
  | -- | A script or a function. The command of the client that runs it has a line of its own.
    OriginScript
  deriving stock (Eq, Ord, Show)

-- | Why a line cannot be read: the position in bytes, from 0, and what was expected there.
data LineProblem = LineProblem
  { lineProblemAt :: Int,
    lineProblemExpected :: String
  }
  deriving stock (Eq, Show)

-- | Reads a line, given without its line end. \(O(n)\).
parseLine :: ByteString -> Either LineProblem Observed
parseLine line = do
  (seconds, afterSeconds) <- number "a time" line
  afterPoint <- expect '.' afterSeconds
  (fraction, afterTime) <- number "microseconds" afterPoint
  let digits = ByteString.length afterPoint - ByteString.length afterTime
  when (digits /= 6) $ problem afterPoint "six digits"
  afterBracket <- expect ' ' afterTime >>= expect '['
  (database, afterDatabase) <- number "the number of a database" afterBracket
  afterSpace <- expect ' ' afterDatabase
  -- An address has no blank, but one of IPv6 has brackets.
  let (origin, afterOrigin) = ByteString.breakSubstring "] \"" afterSpace
  when (ByteString.null origin || ByteString.null afterOrigin) $ problem afterSpace "an address and ]"
  arguments <- expect ']' afterOrigin >>= quotedWords
  pure
    Observed
      { observedMicros = seconds * 1000000 + fraction,
        observedDatabase = database,
        observedOrigin = if origin == "lua" then OriginScript else OriginClient origin,
        observedWords = arguments
      }
  where
    position rest = ByteString.length line - ByteString.length rest
    problem :: ByteString -> String -> Either LineProblem a
    problem rest text = Left (LineProblem (position rest) text)
    -- Twelve digits are enough for seconds. More digits are an error.
    number what rest =
      let digits = Char8.takeWhile isDigit rest
       in case Char8.readInt digits of
            Just (value, _)
              | ByteString.length digits <= 12 ->
                Right (value, ByteString.drop (ByteString.length digits) rest)
            _ -> problem rest what
    expect wanted rest = case Char8.uncons rest of
      Just (character, others) | character == wanted -> Right others
      _ -> problem rest (show wanted)
    quotedWords rest
      | ByteString.null rest = Right []
      | otherwise = do
        begun <- expect ' ' rest >>= expect '"'
        (word, others) <- quoted begun
        (word :) <$> quotedWords others
    -- Most words have no escape: those are slices of the line.
    quoted rest =
      let (plain, others) = Char8.break (\character -> character == '"' || character == '\\') rest
       in case Char8.uncons others of
            Just ('"', after) -> Right (plain, after)
            Just (_, after) -> do
              (byte, afterEscape) <- escape after
              (word, end) <- quoted afterEscape
              Right (ByteString.concat [plain, ByteString.singleton byte, word], end)
            Nothing -> problem others "\""
    escape rest = case Char8.uncons rest of
      Just (letter, others)
        | Just byte <- lookup letter escapes -> Right (byte, others)
      Just ('x', others)
        | Just (high, afterHigh) <- Char8.uncons others,
          Just (low, afterLow) <- Char8.uncons afterHigh,
          isHexDigit high && isHexDigit low ->
          Right (fromIntegral (16 * digitToInt high + digitToInt low), afterLow)
      _ -> problem rest "an escape"

escapes :: [(Char, Word8)]
escapes = [('n', 10), ('r', 13), ('t', 9), ('a', 7), ('b', 8), ('"', 34), ('\\', 92)]

-- | Why a command of a recording is not replayed.
data Obstacle
  = -- | A script ran it. The script is replayed, and runs it again.
    ObstacleScripted
  | -- | It concerns its connection or the server and not the data: @AUTH@,
    -- @CLIENT@, @CONFIG@, @SHUTDOWN@ …
    ObstacleAdministration
  | -- | It changes the meaning of later commands on its connection, which many callers share in a
    -- replay: @MULTI@, @WATCH@, @SUBSCRIBE@ …
    ObstacleConnectionState
  | -- | It may block: @BLPOP@, @WAIT@ …
    ObstacleBlocking
  | -- | It ran in a database other than 0.
    ObstacleDatabase
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The text for the report, after a count.
obstacleText :: Obstacle -> String
obstacleText = \case
  ObstacleScripted -> "run by a script that is replayed itself"
  ObstacleAdministration -> "about connections or the server"
  ObstacleConnectionState -> "of transactions and subscriptions"
  ObstacleBlocking -> "that may wait"
  ObstacleDatabase -> "in a database other than 0"

-- | The obstacle to a replay of the command. 'Nothing': it can be replayed. \(O(1)\).
obstacle :: Observed -> Maybe Obstacle
obstacle observed
  | observedOrigin observed == OriginScript = Just ObstacleScripted
  | otherwise = case observedWords observed of
    [] -> Just ObstacleAdministration
    name : arguments
      | lower `Set.member` connectionState -> Just ObstacleConnectionState
      | lower `Set.member` administration -> Just ObstacleAdministration
      | observedDatabase observed /= 0 -> Just ObstacleDatabase
      | lower `Set.member` blocking -> Just ObstacleBlocking
      | lower `Set.member` streams, any ((== "block") . lowered) arguments -> Just ObstacleBlocking
      | otherwise -> Nothing
      where
        lower = lowered name
  where
    lowered = Char8.map toLower

connectionState, administration, blocking, streams :: Set ByteString
connectionState =
  named
    "multi exec discard watch unwatch subscribe unsubscribe psubscribe punsubscribe \
    \ssubscribe sunsubscribe monitor select asking readonly readwrite"
administration =
  named
    "auth hello quit reset client config acl info command cluster debug slowlog latency \
    \memory module shutdown failover replicaof slaveof replconf psync sync save bgsave \
    \bgrewriteaof lastsave swapdb"
blocking = named "blpop brpop blmove blmpop brpoplpush bzpopmin bzpopmax bzmpop wait waitaof"
streams = named "xread xreadgroup"

named :: ByteString -> Set ByteString
named = Set.fromList . Char8.words

-- * Recordings

-- | The commands that can be replayed, in the order of their times: they keep their distance and the
-- order of their client. The others are left out, and counted by reason.
data Recording = Recording
  { recordingCommands :: [Recorded],
    -- | The number of different clients that sent them.
    recordingClients :: Int,
    recordingLeftOut :: Map Obstacle Int
  }
  deriving stock (Eq, Show)

data Recorded = Recorded
  { -- | Microseconds after the first command.
    recordedAt :: Int,
    -- | The number of its client, from 0.
    recordedClient :: Int,
    -- | The name in lower case, with the subcommand after a bar, like the names in the server's
    -- counts: @get@, @xgroup|create@.
    recordedName :: ByteString,
    recordedWords :: [ByteString]
  }
  deriving stock (Eq, Show)

-- | Reads a file. Ignores empty lines, and a first line that is @OK@. 'Left' has the number of the
-- line that cannot be read, from 1, and the problem. \(O(n \log n)\).
parseRecording :: ByteString -> Either (Int, LineProblem) Recording
parseRecording text = finished <$> traverse parsed (zip [1 ..] (Char8.lines text))
  where
    parsed (number, line)
      | ByteString.null bare || (number == 1 && bare == "OK") = Right Nothing
      | otherwise = either (Left . (,) number) (Right . Just) (parseLine bare)
      where
        bare = Char8.filter (/= '\r') line
    finished observed =
      let all' = List.sortOn observedMicros (catMaybes observed)
          good = [one | one <- all', isNothing (obstacle one)]
          start = maybe 0 (observedMicros . fst) (List.uncons good)
          clients = numbered (map observedOrigin good)
       in Recording
            { recordingCommands =
                [ Recorded
                    { recordedAt = observedMicros one - start,
                      recordedClient = Map.findWithDefault 0 (observedOrigin one) clients,
                      recordedName = nameOf (observedWords one),
                      recordedWords = observedWords one
                    }
                  | one <- good
                ],
              recordingClients = Map.size clients,
              recordingLeftOut =
                Map.fromListWith (+) [(reason, 1) | one <- all', Just reason <- [obstacle one]]
            }

-- | Seconds from the first command to the last. \(O(n)\).
recordingSpan :: Recording -> Double
recordingSpan recording =
  fromIntegral (List.foldl' max 0 (map recordedAt (recordingCommands recording))) / 1e6

-- | The number of commands of each name. \(O(n \log n)\).
recordingNames :: Recording -> Map ByteString Int
recordingNames recording =
  Map.fromListWith (+) [(recordedName one, 1) | one <- recordingCommands recording]

-- Each new origin gets the next number.
numbered :: [Origin] -> Map Origin Int
numbered = List.foldl' add Map.empty
  where
    add known one
      | one `Map.member` known = known
      | otherwise = Map.insert one (Map.size known) known

-- The name under which the server counts a command: some are counted by subcommand.
nameOf :: [ByteString] -> ByteString
nameOf = \case
  name : sub : _ | lower name `elem` containers -> lower name <> "|" <> lower sub
  name : _ -> lower name
  [] -> ""
  where
    lower = Char8.map toLower
    containers = ["object", "xgroup", "xinfo", "script", "function", "pubsub"]
