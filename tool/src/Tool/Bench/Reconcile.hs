-- | Does the server agree? A count that only the client has seen proves nothing:
-- so the servers' own statistics are read before the first command and after
-- the last, and must have grown by exactly what was sent.
module Tool.Bench.Reconcile
  ( CountsBefore,
    countsBefore,
    reconcile,
    compareCounts,
  )
where

import Control.Exception (displayException, try)
import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import Redis.Error (Error)
import Tool.Bench.Counts (CommandCounts (..), grownBy)
import Tool.Bench.Document (Agreement (..))
import Tool.Connect (Target, serverCounts)

-- | The servers' counts when it began, or why there are none.
newtype CountsBefore = CountsBefore (Either String CommandCounts)

-- | Reads them. A server that refuses INFO is no error: the comparison is left
-- out, and the report says so.
countsBefore :: Target -> IO CountsBefore
countsBefore = fmap CountsBefore . counts

counts :: Target -> IO (Either String CommandCounts)
counts target = either (Left . refused) Right <$> try (serverCounts target)
  where
    refused :: Error -> String
    refused problem = "the servers do not tell: " <> displayException problem

-- | Compares what was answered since with what the servers counted since. Only
-- when nothing that was sent is still on its way.
reconcile :: Target -> CountsBefore -> Int -> CommandCounts -> IO Agreement
reconcile target (CountsBefore before) errors client = do
  after <- counts target
  pure (compareCounts before after errors client)

-- | The same, once all is known: before, after, errors, answered.
compareCounts ::
  Either String CommandCounts ->
  Either String CommandCounts ->
  Int ->
  CommandCounts ->
  Agreement
compareCounts (Left reason) _ _ _ = NotComparable (Text.pack reason)
compareCounts _ (Left reason) _ _ = NotComparable (Text.pack reason)
compareCounts (Right before) (Right after) errors client
  | errors > 0 = NotComparable "commands failed, and nobody knows which of them ran"
  | grown == client = Agrees (countsByName grown)
  | otherwise = Disagrees (Map.unionWith (+) (countsByName client) (0 <$ countsByName grown)) (countsByName grown)
  where
    grown = grownBy client before after
