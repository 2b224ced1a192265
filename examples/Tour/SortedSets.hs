-- | Sorted sets: members in the order of their scores.
module Tour.SortedSets (tour) where

import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

-- The braces put both keys in one slot of a cluster, which commands with several sets need.
tour :: Client -> IO ()
tour client = fresh client ("example:{sortedsets}:may" :| ["example:{sortedsets}:june"]) $ do
  run client (Redis.zadd "example:{sortedsets}:may" (("ada", 41) :| [("grace", 58), ("barbara", 50)])) >>= print
  run client (Redis.zadd "example:{sortedsets}:june" (("grace", 7.5) :| [])) >>= print

  -- A best result: the score changes only if the new one is greater, and the command counts the
  -- changes.
  let better = Redis.zaddDefaults {Redis.zaddCondition = Just Redis.ZaddGreater, Redis.zaddChanged = True}
  run client (Redis.zaddWith better "example:{sortedsets}:may" (("ada", 60) :| [("grace", 3)])) >>= print
  run client (Redis.zincrby "example:{sortedsets}:may" 2.5 "barbara") >>= print

  -- One member's score, and its rank from the top.
  run client (Redis.zscore "example:{sortedsets}:may" "ada") >>= print
  run client (Redis.zrevrank "example:{sortedsets}:may" "barbara") >>= print

  -- The best two members; those with a score of 55 or more; the number of those above 58.
  let down = Redis.zrangeDefaults {Redis.zrangeRev = True}
  run client (Redis.zrangeWithscoresWith down "example:{sortedsets}:may" (Redis.ByRank 0 1)) >>= print
  run client (Redis.zrangeWith Redis.zrangeDefaults "example:{sortedsets}:may" (Redis.ByScore (Redis.ScoreInclusive 55) Redis.ScoreHighest Redis.WholeRange)) >>= print
  run client (Redis.zcount "example:{sortedsets}:may" (Redis.ScoreExclusive 58) Redis.ScoreHighest) >>= print

  -- Several sets together: their scores are added.
  run client (Redis.zinterWithscores ("example:{sortedsets}:may" :| ["example:{sortedsets}:june"])) >>= print

  -- Remove the best member.
  run client (Redis.zpopmax "example:{sortedsets}:may") >>= print
