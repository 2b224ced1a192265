-- | The keys that this library finds, compared with the keys that a server finds.
module Redis.KeysLiveSpec (spec) where

import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (sort)
import Data.Maybe (maybeToList)
import Redis.Internal.Protocol.CommandTable
import Redis.Internal.Protocol.KeySpec
import Redis.TestKit.Command (Reply (..), request)
import Redis.TestKit.Server (serverDefaults, withServer, withServerConnection)
import Redis.TestKit.Wait (within)
import Redis.Value (Value (..))
import Test.Hspec

spec :: Spec
spec = describe "the keys of a command" $ do
  it "are those that COMMAND GETKEYS names" $
    within 60 . withServer serverDefaults $ \server ->
      withServerConnection server $ \connection ->
        mapM_
          ( \commandArguments -> do
              reply <- request connection ("COMMAND" : "GETKEYS" : commandArguments)
              (commandArguments, sort <$> ours commandArguments) `shouldBe` (commandArguments, sort <$> theirs reply)
          )
          (map Char8.words examples <> emptyKeyExamples)

  it "are those that COMMAND GETKEYS names, or those that an older server takes for them by its specifications" $
    within 60 . withServer serverDefaults $ \server ->
      withServerConnection server $ \connection ->
        forM_ ambiguous $ \commandArguments -> do
          described <- request connection ("COMMAND" : "INFO" : take 1 commandArguments)
          keys <- theirs <$> request connection ("COMMAND" : "GETKEYS" : commandArguments)
          let specs = case described of
                List [description] -> maybe [] entryKeySpecs (entryFromReply (asValue description))
                _ -> []
              -- No command has this name, so 'keyPositions' goes by the specifications alone.
              bySpecs = (`keysAt` commandArguments) <$> maybeToList (keyPositions "" specs commandArguments)
          map sort (maybeToList keys)
            `shouldSatisfy` (`elem` map (pure . sort) (maybeToList (ours commandArguments) <> bySpecs))

  it "are described to us as the table has them" $
    within 60 . withServer serverDefaults $ \server ->
      withServerConnection server $ \connection -> do
        reply <- request connection ["COMMAND"]
        case reply of
          List descriptions -> do
            length descriptions `shouldSatisfy` (> 200)
            mapM_ describedAsInTable descriptions
          _ -> expectationFailure "expected a list of descriptions"

describedAsInTable :: Reply -> IO ()
describedAsInTable description = case entryFromReply (asValue description) of
  Nothing -> expectationFailure ("cannot read " <> show description)
  Just entry -> do
    fmap told (lookupCommand [entryName entry]) `shouldBe` Just (told entry)
    -- Servers differ about WAIT. The table calls a command blocking if it blocks on any of them.
    (entryName entry, entryBlocking entry) `shouldSatisfy` \(name, blocking) ->
      not blocking || fmap entryBlocking (lookupCommand [name]) == Just True
  where
    -- Without the arity: the table has the laxest of several servers.
    told entry = (entryName entry, entryReadOnly entry, entryContainer entry, map (completeness entry) (entryKeySpecs entry))
    -- Since their security updates of 2026, some servers call these specifications incomplete, and
    -- the library does not use them.
    completeness entry keySpec
      | entryName entry `elem` ["GEORADIUS", "GEORADIUSBYMEMBER", "XREAD", "XREADGROUP"] = keySpec {keySpecIncomplete = True}
      | otherwise = keySpec

asValue :: Reply -> Value
asValue = \case
  Status text -> SimpleString text
  Failed text -> ErrorReply text
  Number number -> Integer (fromIntegral number)
  Text text -> BulkString text
  Nil -> Null
  List elements -> Array (map asValue elements)
  Mapping pairs -> Map [(asValue key, asValue value) | (key, value) <- pairs]
  Truth value -> Boolean value
  Decimal value -> Double value

ours :: [ByteString] -> Maybe [ByteString]
ours commandArguments = lookupCommand commandArguments >>= (`commandKeys` commandArguments)

theirs :: Reply -> Maybe [ByteString]
theirs = \case
  List keys -> Just [key | Text key <- keys]
  _ -> Nothing

-- | Commands with keys. For commands without keys, a server only sends an error text.
examples :: [ByteString]
examples =
  [ "GET k",
    "SET k v EX 1 GET",
    "DEL a b c",
    "MGET a b c",
    "MSET a 1 b 2",
    "MSETNX a 1 b 2",
    "RENAME a b",
    "COPY a b DB 1",
    "BITOP AND d a b",
    "LCS a b LEN",
    "EVAL s 2 a b x y",
    "EVALSHA s 1 a x",
    "EVAL_RO s 1 a",
    "FCALL f 2 a b",
    "FCALL_RO f 1 a x",
    "XREAD COUNT 2 STREAMS a b 0 0",
    "XREAD BLOCK 0 STREAMS a $",
    "xread streams a b c 0 0 0",
    "XREADGROUP GROUP g c COUNT 1 NOACK STREAMS a b > >",
    "XREADGROUP GROUP STREAMS STREAMS STREAMS a >",
    "XADD s * f v",
    "XGROUP CREATE s g $",
    "XINFO STREAM s FULL",
    "SORT k",
    "SORT k BY w_* LIMIT 0 10 GET o_* GET # ASC ALPHA STORE d",
    "SORT k BY STORE STORE d",
    "SORT k GET STORE",
    "SORT k STORE a STORE b",
    "SORT_RO k BY w_*",
    "ZUNIONSTORE d 2 a b WEIGHTS 1 2",
    "ZINTERSTORE d 1 a",
    "ZDIFF 2 a b WITHSCORES",
    "ZRANGESTORE d s 0 1",
    "SINTERCARD 2 a b LIMIT 1",
    "SUNIONSTORE d a b",
    "SMOVE a b m",
    "LMPOP 2 a b LEFT",
    "BLMPOP 0 2 a b LEFT COUNT 1",
    "BZMPOP 1.5 1 a MIN",
    "BLPOP a b 0",
    "BZPOPMIN a b 0",
    "BLMOVE a b LEFT RIGHT 0",
    "BRPOPLPUSH a b 0",
    "LMOVE a b LEFT RIGHT",
    "GEORADIUS k 1 2 3 m",
    "GEORADIUS k 1 2 3 m STORE d",
    "GEORADIUSBYMEMBER k m 3 m STOREDIST d",
    "GEOSEARCHSTORE d s FROMMEMBER m BYRADIUS 1 m",
    "PFCOUNT a b",
    "PFMERGE d a b",
    "OBJECT ENCODING k",
    "MEMORY USAGE k SAMPLES 5",
    "WATCH a b",
    "MIGRATE h 1 k 0 5",
    "DUMP k",
    "RESTORE k 0 p",
    "GETEX k EX 1"
  ]

-- | Commands with names that are also keywords.
ambiguous :: [[ByteString]]
ambiguous =
  map
    Char8.words
    [ "XREADGROUP COUNT 1 GROUP g STREAMS STREAMS a >",
      "XREADGROUP NOACK GROUP STREAMS STREAMS STREAMS a b > >",
      "GEORADIUS k 1 2 3 m STORE STOREDIST COUNT 1",
      "GEORADIUSBYMEMBER k m 3 m STORE a STOREDIST STORE"
    ]

emptyKeyExamples :: [[ByteString]]
emptyKeyExamples =
  [ ["MIGRATE", "h", "1", "", "0", "5", "COPY", "KEYS", "a", "b"],
    ["MIGRATE", "h", "1", "", "0", "5", "AUTH", "KEYS", "KEYS", "a"],
    ["MIGRATE", "h", "1", "", "0", "5", "AUTH2", "KEYS", "KEYS", "KEYS", "a"]
  ]
