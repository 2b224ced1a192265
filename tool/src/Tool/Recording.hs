-- | A recording: the text of @MONITOR@ ("Tool.Monitor"), one command per line. Commands that cannot
-- be replayed are left out and counted by reason; the others keep their distance in time and the
-- order of their client.
module Tool.Recording
  ( Recording (..),
    Recorded (..),
    parseRecording,
    recordingSpan,
    recordingNames,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toLower)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, isNothing)
import Tool.Monitor

-- | The commands that can be replayed, in the order of their times.
data Recording = Recording
  { recordingCommands :: [Recorded],
    -- | The number of different clients that sent them.
    recordingClients :: Int,
    -- | The numbers of commands left out, by reason.
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
