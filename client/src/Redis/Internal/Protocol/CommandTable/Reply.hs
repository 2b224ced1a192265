-- | What a server says of a command that the table lacks: its reply to
-- @COMMAND INFO@.
module Redis.Internal.Protocol.CommandTable.Reply
  ( entryFromReply,
    subcommandFromReply,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toUpper)
import Data.Either (fromRight)
import Data.Foldable (find)
import Data.Maybe (fromMaybe, listToMaybe, mapMaybe)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Internal.Protocol.CommandTable.Entry
import Redis.Internal.Protocol.CommandTable.Parse (requestPolicyNamed, responsePolicyNamed)
import Redis.Internal.Protocol.KeySpec (BeginSearch (..), FindKeys (..), KeySpec (..))
import Redis.Value (Value)

-- | Reads one element of the reply to @COMMAND INFO@, in both protocols: from a server that knows
-- key specifications (since 7.0), or only the first key, the last and the step of the older form.
-- 'Nothing' if it has no such shape, as for a command that the server does not know.
entryFromReply :: Value -> Maybe CommandEntry
entryFromReply = either (const Nothing) Just . description

-- | The entry of a subcommand with this name, from the description of its command. 'Nothing' if the
-- command has no such subcommand, or the server does not describe subcommands (before 7.0).
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
      entryArity <- int arity
      flagNames <- Decode.list Decode.bytes flags
      -- Servers tell these since 6.0, and what follows them since 7.0.
      categories <- traverse (Decode.list Decode.bytes) (listToMaybe rest)
      tips <- maybe (Right []) (Decode.list Decode.bytes) (listToMaybe (drop 1 rest))
      olderForm <- positions flagNames <$> int first <*> int lastKey <*> int step
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
  | firstKey > 0 =
    [ KeySpec
        { keySpecBegin = BeginAt firstKey,
          keySpecFind = KeyRange (if lastKey < 0 then lastKey else lastKey - firstKey) step 0,
          keySpecIncomplete = False
        }
    ]
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
    number name = Decode.field name int

int :: Decoder Int
int = fmap fromIntegral . Decode.integer

upper :: ByteString -> ByteString
upper = Char8.map toUpper
