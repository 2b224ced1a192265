module Redis.Internal.Protocol.CommandTable.Policy (Answerer (..), Merge (..), whereAnswered, failsHalfway) where

import Redis.Internal.Protocol.CommandTable

data Answerer = AnyNodeAnswers | EveryPrimaryAnswers Merge | EveryNodeAnswers Merge | OneNodesOwn deriving stock (Eq, Show)

data Merge = MergeSum | MergeMin | MergeMax | MergeAnd | MergeOr | MergeAllSucceeded | MergeOneSucceeded | MergeConcatenated | MergeAnyReply deriving stock (Eq, Show)

whereAnswered :: CommandEntry -> Answerer
whereAnswered e = case entryName e of
  "DBSIZE" -> EveryPrimaryAnswers MergeSum
  "KEYS" -> EveryPrimaryAnswers MergeConcatenated
  "FLUSHALL" -> EveryPrimaryAnswers MergeAllSucceeded
  "SCAN" -> OneNodesOwn
  _ -> AnyNodeAnswers

failsHalfway :: CommandEntry -> Bool
failsHalfway e = entryName e `elem` ["EVAL", "EVALSHA", "FCALL", "EXEC", "MIGRATE"]
