-- | Commands that several nodes answer: how a command is split into parts, and how the replies
-- become one.
module Redis.Internal.Client.FanOut
  ( Part (..),
    partsOf,
    partOf,
    aggregateParts,
    aggregateNodes,
  )
where

import Data.Bifunctor (first)
import Data.ByteString (ByteString)
import Data.Either (partitionEithers)
import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import Redis.Error
import Redis.Internal.Command
import Redis.Internal.Command.Make (routeOfUnknown)
import Redis.Internal.Protocol.CommandTable.Aggregation
import Redis.Internal.Protocol.Encode (request)
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Value

-- | A part of a command: the positions of its keys among those of the whole, in
-- order, and the command for them.
data Part = Part
  { partPositions :: NonEmpty Int,
    partCommand :: Command Value
  }

-- | One part for each slot, of a command over these keys, each key with so many words. All
-- parts have the facts of the whole command. \(O(n \log n)\).
partsOf :: Command a -> Int -> NonEmpty ByteString -> [Part]
partsOf given stride keys =
  map (partOf given . NonEmpty.reverse) (Map.elems bySlot)
  where
    things = zip [0 ..] (chunks (drop 1 (commandArguments given)))
    chunks = takeWhile (not . null) . List.unfoldr (Just . List.splitAt stride)
    bySlot = Map.fromListWith (<>) [(keySlot key, thing :| []) | (key, thing) <- zip (NonEmpty.toList keys) things]

-- | The part for these keys, each with its position and its words, which begin with the key.
partOf :: Command a -> NonEmpty (Int, [ByteString]) -> Part
partOf given group =
  Part
    { partPositions = NonEmpty.map fst group,
      partCommand =
        Command
          { commandRequest = request (take 1 (commandArguments given) <> concatMap snd group),
            commandRoute = routeOfUnknown (concatMap (take 1 . snd) group),
            commandFacts = commandFacts given,
            commandDecode = Right
          }
    }

-- | One reply from the replies to all parts, or the error: arrays joined in the order of the
-- keys, integers added up, and otherwise the first part's reply, such as OK. \(O(n \log n)\).
aggregateParts :: Facts -> [(Part, Either Error Value)] -> Either Error Value
aggregateParts facts results = case partitionEithers [(,) part <$> result | (part, result) <- results] of
  ([], []) -> Left (RefusedError EmptyCommand)
  ([], done@((_, one) : others)) -> case withoutAttributes one of
    Array _ -> Array . IntMap.elems . IntMap.fromList . concat <$> traverse placed done
    Integer _ -> mergedBy AggSum (one :| map snd others)
    _ -> Right one
  (failures@(failed : _), done)
    | factReadOnly facts || null done && all ((/= MaybeExecuted) . errorDelivery) failures -> Left failed
    -- The error of the failed part alone would say that nothing has run.
    | otherwise -> Left (RoutingError (RoutingFailure "" MaybeExecuted (PartsFailed (FailedParts (length failures) (length results) failed))))
  where
    placed (part, reply) = case withoutAttributes reply of
      Array elements
        | length elements == length (partPositions part) -> Right (zip (NonEmpty.toList (partPositions part)) elements)
      other -> Left (unfit (show (length (partPositions part)) <> " elements") other)

-- | One reply from the replies of several nodes, or the error.
aggregateNodes :: Facts -> Aggregation -> [(Endpoint, Either Error Value)] -> Either Error Value
aggregateNodes facts how results = case partitionEithers [first ((,) endpoint) result | (endpoint, result) <- results] of
  (failures, reply : replies)
    | null failures || oneIsEnough how -> mergedBy how (reply :| replies)
  ([], []) -> Left (RoutingError (RoutingFailure "" NotSent (NoReachableNode [])))
  -- All nodes say the same, for example that no script runs that could be killed.
  ((_, failed) : failures, [])
    | all ((== failed) . snd) failures -> Left failed
  (failures, _) -> Left (failureOfNodes facts (Map.fromList failures) (length results))

mergedBy :: Aggregation -> NonEmpty Value -> Either Error Value
mergedBy how = either (Left . UnexpectedReply) Right . aggregate how

unfit :: String -> Value -> Error
unfit expected got = unlike expected (take 100 (show got)) ""
