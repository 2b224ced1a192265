-- | What a server says of one command, in the terms of the reply to @COMMAND@: the entry, and how it
-- is read, from the generated table or from a server's reply.
--
-- The lines of the generated table are written like this:
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
module Redis.Internal.Protocol.CommandTable.Entry
  ( CommandEntry (..),
    RequestPolicy (..),
    ResponsePolicy (..),

    -- * Reading
    parseEntry,
    entryFromReply,
    subcommandFromReply,
    named,
    upper,
  )
where

import Control.Monad (guard)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toUpper)
import Data.Either (fromRight)
import Data.Foldable (find)
import Data.Maybe (fromMaybe, listToMaybe, mapMaybe)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Internal.Protocol.CommandTable.Aggregation (Aggregation (..))
import Redis.Internal.Protocol.KeySpec (BeginSearch (..), FindKeys (..), KeySpec (..), decimal)
import Redis.Value (Value)

-- | One command, or one subcommand (@CONFIG|GET@).
data CommandEntry = CommandEntry
  { -- | The name in capitals; a subcommand's name follows a bar.
    entryName :: ByteString,
    -- | The number of words, the name included; negative for at least so many.
    entryArity :: Int,
    entryReadOnly :: Bool,
    -- | Whether it can keep a caller waiting.
    entryBlocking :: Bool,
    -- | Whether it has subcommands.
    entryContainer :: Bool,
    -- | The categories of the access control lists, without the @\@@. Servers tell them since 6.0.
    entryCategories :: Maybe [ByteString],
    -- | 'Nothing' if the server has none: a node that serves the keys runs it, or any node if it has no keys.
    entryRequestPolicy :: Maybe RequestPolicy,
    -- | 'Nothing' if the server has none: the aggregated reply has the elements of all replies.
    entryResponsePolicy :: Maybe ResponsePolicy,
    entryKeySpecs :: [KeySpec]
  }
  deriving stock (Eq, Show)

-- | Where the server wants a command to be sent (<https://valkey.io/topics/command-tips/>).
data RequestPolicy
  = -- | To all nodes, replicas too.
    RequestAllNodes
  | -- | To all primaries.
    RequestAllShards
  | -- | In parts, each to the primary that serves its keys.
    RequestMultiShard
  | -- | By a rule of its own, or by one that is not known here.
    RequestSpecial
  deriving stock (Eq, Show)

-- | How the server wants the replies of several nodes to become one.
data ResponsePolicy
  = ResponseAggregated Aggregation
  | -- | By a rule of its own, or by one that is not known here.
    ResponseSpecial
  deriving stock (Eq, Show)

-- | Parses one line of the table; 'Nothing' if it is not of that form.
parseEntry :: ByteString -> Maybe CommandEntry
parseEntry line = case Char8.words line of
  name : arity : flags : categories : policies : specs -> do
    entryArity <- decimal arity
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
  request : response | length response < 2 -> (,) <$> parsedRequest request <*> traverse responsePolicyNamed (listToMaybe response)
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
  "special" -> Just ResponseSpecial
  name -> ResponseAggregated <$> lookup name aggregations
  where
    aggregations = zip (Char8.words "agg_sum agg_min agg_max agg_logical_and agg_logical_or all_succeeded one_succeeded") [AggSum ..]

parseSpec :: ByteString -> Maybe KeySpec
parseSpec word = do
  let (complete, mark) = Char8.span (/= '?') word
      (begin, keys) = Char8.drop 1 <$> Char8.break (== ':') complete
  keySpecBegin <- case Char8.uncons begin of
    Just ('i', position) -> BeginAt <$> decimal position
    Just ('k', search) -> case Char8.split ',' search of
      [keyword, from] -> BeginAfter keyword <$> decimal from
      _ -> Nothing
    Just ('u', "") -> Just BeginUnknown
    _ -> Nothing
  keySpecFind <- case Char8.uncons keys of
    Just ('r', numbers) -> threeInts KeyRange numbers
    Just ('n', numbers) -> threeInts KeyCount numbers
    Just ('u', "") -> Just FindUnknown
    _ -> Nothing
  guard (mark `elem` ["", "?"])
  pure KeySpec {keySpecBegin, keySpecFind, keySpecIncomplete = mark == "?"}
  where
    threeInts make numbers = case traverse decimal (Char8.split ',' numbers) of
      Just [a, b, c] -> Just (make a b c)
      _ -> Nothing

-- | Reads one element of the reply to @COMMAND INFO@, in both protocols: from a server that knows
-- key specifications (since 7.0), or only the first key, the last and the step of the older form.
-- 'Nothing' if it has no such shape, as for a command that the server does not know.
entryFromReply :: Value -> Maybe CommandEntry
entryFromReply = either (const Nothing) Just . description

-- | The entry of a subcommand with this name, from the description of its command. 'Nothing' if there is none, or the
-- server is older than 7.0.
subcommandFromReply :: ByteString -> Value -> Maybe CommandEntry
subcommandFromReply name reply =
  find ((== upper name) . subcommandName) (mapMaybe entryFromReply subcommands)
  where
    subcommands = either (const []) (subcommandsAmong . drop 6) (Decode.list Decode.value reply)
    subcommandName = Char8.drop 1 . Char8.dropWhile (/= '|') . entryName

description :: Decoder CommandEntry
description reply =
  Decode.list Decode.value reply >>= \case
    name : arity : flags : first : lastKey : step : rest -> do
      entryName <- upper <$> Decode.bytes name
      entryArity <- intReply arity
      flagNames <- Decode.list Decode.bytes flags
      -- Servers tell these since 6.0, and what follows them since 7.0.
      categories <- traverse (Decode.list Decode.bytes) (listToMaybe rest)
      tips <- maybe (Right []) (Decode.list Decode.bytes) (listToMaybe (drop 1 rest))
      olderForm <- positions flagNames <$> intReply first <*> intReply lastKey <*> intReply step
      entryKeySpecs <- maybe (Right olderForm) (Decode.list keySpec) (listToMaybe (drop 2 rest))
      pure
        CommandEntry
          { entryName,
            entryArity,
            entryReadOnly = "readonly" `elem` flagNames,
            entryBlocking = "blocking" `elem` flagNames,
            entryContainer = not (null (subcommandsAmong rest)),
            entryCategories = map withoutAt <$> categories,
            entryRequestPolicy = fromMaybe RequestSpecial . requestPolicyNamed <$> tip "request_policy:" tips,
            entryResponsePolicy = fromMaybe ResponseSpecial . responsePolicyNamed <$> tip "response_policy:" tips,
            entryKeySpecs
          }
    _ -> Decode.mismatch "a command's description" reply
  where
    withoutAt category = fromMaybe category (Char8.stripPrefix "@" category)
    tip kind = listToMaybe . mapMaybe (Char8.stripPrefix kind)

-- | The subcommands, given what follows the older form. A server before 7.0 tells none.
subcommandsAmong :: [Value] -> [Value]
subcommandsAmong rest = case drop 3 rest of
  subcommands : _ -> fromRight [] (Decode.list Decode.value subcommands)
  [] -> []

-- | The key specification for the older form: the positions of the first and the last key, and the
-- step from one to the next. It counts the last key from the name, or from the end.
positions :: [ByteString] -> Int -> Int -> Int -> [KeySpec]
positions flagNames firstKey lastKey step
  | "movablekeys" `elem` flagNames = [KeySpec BeginUnknown FindUnknown True]
  | firstKey > 0 = [KeySpec (BeginAt firstKey) (KeyRange (if lastKey < 0 then lastKey else lastKey - firstKey) step 0) False]
  | otherwise = []

keySpec :: Decoder KeySpec
keySpec reply = do
  spec <- Decode.record reply
  flagNames <- Decode.field "flags" (Decode.list Decode.bytes) spec
  keySpecBegin <-
    Decode.field "begin_search" half spec >>= \case
      ("index", begin) -> BeginAt <$> number "index" begin
      ("keyword", begin) -> BeginAfter . upper <$> Decode.field "keyword" Decode.bytes begin <*> number "startfrom" begin
      _ -> Right BeginUnknown
  keySpecFind <-
    Decode.field "find_keys" half spec >>= \case
      ("range", found) -> KeyRange <$> number "lastkey" found <*> number "keystep" found <*> number "limit" found
      ("keynum", found) -> KeyCount <$> number "keynumidx" found <*> number "firstkey" found <*> number "keystep" found
      _ -> Right FindUnknown
  pure KeySpec {keySpecBegin, keySpecFind, keySpecIncomplete = "incomplete" `elem` flagNames}
  where
    half inner = do
      parts <- Decode.record inner
      (,) <$> Decode.field "type" Decode.bytes parts <*> Decode.field "spec" Decode.record parts
    number name = Decode.field name intReply

-- | The commands that a text names, with blanks between them, for the lists that are written by hand.
named :: ByteString -> Set ByteString
named = Set.fromList . Char8.words

intReply :: Decoder Int
intReply = fmap fromIntegral . Decode.integer

upper :: ByteString -> ByteString
upper = Char8.map toUpper
