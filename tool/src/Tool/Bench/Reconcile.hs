-- | Compares the counts of the client with those of the servers, which must have grown by exactly
-- the number of commands that were sent. Where reads go to replicas, every replica counts a write
-- again: so for each command either the primaries' count must be right, or that of all servers
-- together.
module Tool.Bench.Reconcile
  ( CountsBefore,
    countsBefore,
    reconcile,
    Calls,
    compareCounts,
  )
where

import Control.Exception (displayException, try)
import Data.Bifunctor (first)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Redis.Error (Error)
import Tool.Bench.Document (Agreement (..))
import Tool.Connect (CommandCounts (..), Target, serverCalls)

-- | How often each command ran, on primaries and on replicas.
type Calls = (CommandCounts, CommandCounts)

-- | The servers' counts at the start, or why there are none.
newtype CountsBefore = CountsBefore (Either Text Calls)

-- | Reads the servers' counts. A server that refuses INFO is no error: there is no comparison then,
-- and the report says so.
countsBefore :: Target -> IO CountsBefore
countsBefore = fmap CountsBefore . counts

counts :: Target -> IO (Either Text Calls)
counts target = first refused <$> try @Error (serverCalls target)
  where
    refused problem = "the servers do not tell: " <> Text.pack (displayException problem)

-- | Compares the commands that were answered since then, by name, with those that the servers
-- counted since. Use it only when no command is on its way any more. Where commands failed there is
-- nothing to compare, and it does not ask the servers, which may be away.
reconcile :: Target -> CountsBefore -> Int -> CommandCounts -> IO Agreement
reconcile target (CountsBefore before) errors client = do
  after <- if errors > 0 then pure before else counts target
  pure (compareCounts before after errors client)

-- | Compares counts. Takes the servers' counts before and after, the number of errors, and the
-- client's counts.
compareCounts :: Either Text Calls -> Either Text Calls -> Int -> CommandCounts -> Agreement
compareCounts (Left reason) _ _ _ = NotComparable reason
compareCounts _ (Left reason) _ _ = NotComparable reason
compareCounts (Right before) (Right after) errors client
  | errors > 0 = NotComparable "commands failed, and nobody knows which of them ran"
  | grown == client = Agrees (countsByName grown)
  | otherwise = Disagrees (Map.unionWith (+) (countsByName client) (0 <$ seen)) seen
  where
    seen = countsByName grown
    -- The commands that the client sent, and the common commands that it did not send. The servers
    -- also count what others send them, such as INFO.
    grown = CommandCounts (Map.mapWithKey right (Map.unionWith (+) (countsByName client) watched))
    watched = Map.fromList [("get", 0), ("set", 0)]
    right name expected = if everywhere == expected then everywhere else onPrimaries
      where
        onPrimaries = growth fst
        everywhere = onPrimaries + growth snd
        growth side = at (side after) name - at (side before) name
    -- Redis before 7 counts a subcommand such as script|load under its command.
    at found name =
      Map.findWithDefault
        (Map.findWithDefault 0 (Text.takeWhile (/= '|') name) (countsByName found))
        name
        (countsByName found)
