-- | How the lines of the generated table are written:
--
-- > DBSIZE 1 r fast,keyspace,read all_shards:agg_sum
-- > BLMPOP -5 b blocking,list,slow,write - i2:n0,1,1
-- > XREAD -4 rb blocking,read,slow,stream - kSTREAMS,1:r-1,1,2
--
-- The fields are name, arity, flags, categories, policies, and any number of key specifications.
--
-- * The flags are @r@ read-only, @b@ blocking, @c@ has subcommands, @-@ none.
-- * The categories are those of the access control lists, @-@ none.
-- * The policies are that of requests and, after a colon, that of responses, as
--   the servers write them; @-@ is no policy of requests.
-- * A key specification is @i@ndex or @k@eyword (or @u@nknown), a colon, @r@ange or
--   key@n@umber (or @u@nknown), and a question mark if it is incomplete.
module Redis.Internal.Protocol.CommandTable.Parse
  ( parseEntry,
    requestPolicyNamed,
    responsePolicyNamed,
  )
where

import Control.Monad (guard)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis.Internal.Protocol.CommandTable.Aggregation (Aggregation (..))
import Redis.Internal.Protocol.CommandTable.Entry
import Redis.Internal.Protocol.KeySpec (BeginSearch (..), FindKeys (..), KeySpec (..))

-- | Parses one line of the table; 'Nothing' if it is not of that form.
parseEntry :: ByteString -> Maybe CommandEntry
parseEntry line = case Char8.words line of
  name : arity : flags : categories : policies : specs -> do
    entryArity <- int arity
    guard (Char8.all (`elem` ("rbc-" :: String)) flags)
    (entryRequestPolicy, entryResponsePolicy) <- parsePolicies policies
    entryKeySpecs <- traverse parseSpec specs
    pure
      CommandEntry
        { entryName = name,
          entryArity,
          entryReadOnly = Char8.elem 'r' flags,
          entryBlocking = Char8.elem 'b' flags,
          entryContainer = Char8.elem 'c' flags,
          entryCategories = Just (if categories == "-" then [] else Char8.split ',' categories),
          entryRequestPolicy,
          entryResponsePolicy,
          entryKeySpecs
        }
  _ -> Nothing

parsePolicies :: ByteString -> Maybe (Maybe RequestPolicy, Maybe ResponsePolicy)
parsePolicies word = case Char8.split ':' word of
  [request] -> (,) <$> parsedRequest request <*> pure Nothing
  [request, response] -> (,) <$> parsedRequest request <*> (Just <$> responsePolicyNamed response)
  _ -> Nothing
  where
    parsedRequest = \case
      "-" -> Just Nothing
      request -> Just <$> requestPolicyNamed request

-- | The policy that servers call by this name.
requestPolicyNamed :: ByteString -> Maybe RequestPolicy
requestPolicyNamed = \case
  "all_nodes" -> Just RequestAllNodes
  "all_shards" -> Just RequestAllShards
  "multi_shard" -> Just RequestMultiShard
  "special" -> Just RequestSpecial
  _ -> Nothing

-- | The policy that servers call by this name.
responsePolicyNamed :: ByteString -> Maybe ResponsePolicy
responsePolicyNamed = \case
  "agg_sum" -> Just (ResponseAggregated AggSum)
  "agg_min" -> Just (ResponseAggregated AggMin)
  "agg_max" -> Just (ResponseAggregated AggMax)
  "agg_logical_and" -> Just (ResponseAggregated AggAnd)
  "agg_logical_or" -> Just (ResponseAggregated AggOr)
  "all_succeeded" -> Just (ResponseAggregated AggAllSucceeded)
  "one_succeeded" -> Just (ResponseAggregated AggOneSucceeded)
  "special" -> Just ResponseSpecial
  _ -> Nothing

parseSpec :: ByteString -> Maybe KeySpec
parseSpec word = do
  let (complete, mark) = Char8.span (/= '?') word
      (begin, find) = Char8.drop 1 <$> Char8.break (== ':') complete
  keySpecBegin <- case Char8.uncons begin of
    Just ('i', position) -> BeginAt <$> int position
    Just ('k', search) -> case Char8.split ',' search of
      [keyword, from] -> BeginAfter keyword <$> int from
      _ -> Nothing
    Just ('u', "") -> Just BeginUnknown
    _ -> Nothing
  keySpecFind <- case Char8.uncons find of
    Just ('r', numbers) -> threeInts KeyRange numbers
    Just ('n', numbers) -> threeInts KeyCount numbers
    Just ('u', "") -> Just FindUnknown
    _ -> Nothing
  guard (mark `elem` ["", "?"])
  pure KeySpec {keySpecBegin, keySpecFind, keySpecIncomplete = mark == "?"}
  where
    threeInts make numbers = case traverse int (Char8.split ',' numbers) of
      Just [a, b, c] -> Just (make a b c)
      _ -> Nothing

int :: ByteString -> Maybe Int
int word = do
  (number, rest) <- Char8.readInt word
  guard (Char8.null rest)
  pure number
