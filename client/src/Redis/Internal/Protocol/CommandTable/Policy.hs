module Redis.Internal.Protocol.CommandTable.Policy (Answerer (..), Merge (..), whereAnswered, failsHalfway, overtakes) where

import Redis.Internal.Protocol.CommandTable
import Redis.Internal.Protocol.CommandTable.Merge (Merge (..))

data Answerer = AnyNodeAnswers | EveryPrimaryAnswers Merge | EveryNodeAnswers Merge | OneNodesOwn deriving stock (Eq, Show)


whereAnswered :: CommandEntry -> Answerer
whereAnswered e = case entryName e of
  "DBSIZE" -> EveryPrimaryAnswers MergeSum
  "KEYS" -> EveryPrimaryAnswers MergeConcatenated
  "FLUSHALL" -> EveryPrimaryAnswers MergeAllSucceeded
  "SCAN" -> OneNodesOwn
  _ -> AnyNodeAnswers

failsHalfway :: CommandEntry -> Bool
failsHalfway e = entryName e `elem` ["EVAL", "EVALSHA", "FCALL", "EXEC", "MIGRATE"]

overtakes :: CommandEntry -> Bool
overtakes e = entryName e `elem` ["SCRIPT|KILL", "FUNCTION|KILL", "CLIENT|KILL", "CLIENT|UNPAUSE", "CLIENT|UNBLOCK", "SHUTDOWN"]
