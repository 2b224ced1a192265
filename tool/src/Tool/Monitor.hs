-- | The lines of @MONITOR@, and which of their commands can be run again. Times are the server's,
-- in microseconds.
--
-- > 1339518083.107412 [0 127.0.0.1:60866] "set" "greeting" "hello"
module Tool.Monitor
  ( -- * Lines
    Observed (..),
    Origin (..),
    parseLine,
    LineProblem (..),

    -- * What can be replayed
    Obstacle (..),
    obstacle,
    obstacleText,
  )
where

import Data.Bits (shiftL, (.|.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isDigit, toLower)
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
  if digits /= 6 then problem afterPoint "six digits" else pure ()
  afterBracket <- expect ' ' afterTime >>= expect '['
  (database, afterDatabase) <- number "the number of a database" afterBracket
  afterSpace <- expect ' ' afterDatabase
  -- An address has no blank, but one of IPv6 has brackets.
  let (origin, afterOrigin) = ByteString.breakSubstring "] \"" afterSpace
  if ByteString.null origin || ByteString.null afterOrigin
    then problem afterSpace "an address and ]"
    else pure ()
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
      Just ('n', others) -> Right (10, others)
      Just ('r', others) -> Right (13, others)
      Just ('t', others) -> Right (9, others)
      Just ('a', others) -> Right (7, others)
      Just ('b', others) -> Right (8, others)
      Just ('"', others) -> Right (34, others)
      Just ('\\', others) -> Right (92, others)
      Just ('x', others)
        | Just (high, afterHigh) <- ByteString.uncons others,
          Just (low, afterLow) <- ByteString.uncons afterHigh,
          Just one <- hexDigit high,
          Just two <- hexDigit low ->
          Right (one `shiftL` 4 .|. two, afterLow)
      _ -> problem rest "an escape"

hexDigit :: Word8 -> Maybe Word8
hexDigit byte
  | byte >= 48 && byte <= 57 = Just (byte - 48)
  | byte >= 97 && byte <= 102 = Just (byte - 87)
  | byte >= 65 && byte <= 70 = Just (byte - 55)
  | otherwise = Nothing

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
  Set.fromList
    ( Char8.words
        "multi exec discard watch unwatch subscribe unsubscribe psubscribe punsubscribe \
        \ssubscribe sunsubscribe monitor select asking readonly readwrite"
    )
administration =
  Set.fromList
    ( Char8.words
        "auth hello quit reset client config acl info command cluster debug slowlog latency \
        \memory module shutdown failover replicaof slaveof replconf psync sync save bgsave \
        \bgrewriteaof lastsave swapdb"
    )
blocking =
  Set.fromList
    ( Char8.words
        "blpop brpop blmove blmpop brpoplpush bzpopmin bzpopmax bzmpop wait waitaof"
    )
streams = Set.fromList ["xread", "xreadgroup"]
