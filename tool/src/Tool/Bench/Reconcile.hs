-- | Does the server agree? A count that only the client has seen proves nothing:
-- so the servers' own statistics are read before the first command and after
-- the last, and must have grown by exactly what was sent.
--
-- Where reads go to replicas, a read is counted where it ran, and a write again
-- on every replica that repeats it: so of a command either the masters' count
-- must be right, or that of all servers together.
module Tool.Bench.Reconcile
  ( CountsBefore,
    countsBefore,
    reconcile,
    Calls,
    compareCounts,
  )
where

import Control.Exception (displayException, try)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Redis.Error (Error)
import Tool.Bench.Counts (CommandCounts (..))
import Tool.Bench.Document (Agreement (..))
import Tool.Connect (Target, serverCalls)

-- | How often each command ran, on masters and on replicas.
type Calls = (CommandCounts, CommandCounts)

-- | The servers' counts when it began, or why there are none.
newtype CountsBefore = CountsBefore (Either Text Calls)

-- | Reads them. A server that refuses INFO is no error: the comparison is left
-- out, and the report says so.
countsBefore :: Target -> IO CountsBefore
countsBefore = fmap CountsBefore . counts

counts :: Target -> IO (Either Text Calls)
counts target = either (Left . refused) Right <$> try (serverCalls target)
  where
    refused :: Error -> Text
    refused problem = "the servers do not tell: " <> Text.pack (displayException problem)

-- | Compares what was answered since, by command, with what the servers counted
-- since. Only when nothing that was sent is still on its way.
reconcile :: Target -> CountsBefore -> Int -> CommandCounts -> IO Agreement
reconcile target (CountsBefore before) errors client = do
  after <- counts target
  pure (compareCounts before after errors client)

-- | The same, once all is known: before, after, errors, answered.
compareCounts :: Either Text Calls -> Either Text Calls -> Int -> CommandCounts -> Agreement
compareCounts (Left reason) _ _ _ = NotComparable reason
compareCounts _ (Left reason) _ _ = NotComparable reason
compareCounts (Right before) (Right after) errors client
  | errors > 0 = NotComparable "commands failed, and nobody knows which of them ran"
  | grown == client = Agrees (countsByName grown)
  | otherwise = Disagrees (Map.unionWith (+) (countsByName client) (0 <$ seen)) seen
  where
    seen = countsByName grown
    -- What the client sent, and the common commands that it did not: servers
    -- also count what others ask them, INFO for one.
    grown = CommandCounts (Map.mapWithKey right (Map.unionWith (+) (countsByName client) watched))
    watched = Map.fromList [("get", 0), ("set", 0)]
    right name expected
      | everywhere == expected = everywhere
      | otherwise = onMasters
      where
        onMasters = growth fst name
        everywhere = onMasters + growth snd name
    growth side name = at (side after) name - at (side before) name
    at found name = Map.findWithDefault 0 name (countsByName found)
