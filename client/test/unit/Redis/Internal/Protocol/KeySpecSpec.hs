module Redis.Internal.Protocol.KeySpecSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (sort)
import Redis.Internal.Protocol.CommandTable (allCommands, commandKeys, entryKeySpecs, entryName, lookupCommand)
import Redis.Internal.Protocol.KeySpec
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Protocol.KeySpec" $ do
  mapM_ (\(command, keys) -> it (keysSentence command keys) (keysOf command `shouldBe` Just keys)) vectors

  describe "does not guess the keys" $
    mapM_
      (\command -> it ("of " <> show command) (keysOf command `shouldBe` Nothing))
      [ ["EVAL", "script", "two", "a", "b"],
        ["EVAL", "script", "3", "a", "b"],
        ["EVAL", "script", "-1", "a", "b"],
        ["EVAL", "script", "9223372036854775807", "a", "b"],
        ["EVAL", "script", "99999999999999999999", "a", "b"],
        ["ZUNIONSTORE", "d", "5", "a", "b"],
        ["NOSUCHCOMMAND", "a"],
        ["OBJECT", "NOSUCHSUBCOMMAND", "a"]
      ]

  prop "names only positions that are there, for any words after any command" $
    forAll anyWords $ \commandArguments ->
      case lookupCommand commandArguments of
        Nothing -> property True
        Just entry -> case keyPositions (entryName entry) (entryKeySpecs entry) commandArguments of
          Nothing -> property True
          Just positions ->
            counterexample (show positions) $
              all (\position -> position > 0 && position < length commandArguments) positions
                && length (keysAt positions commandArguments) == length positions

  prop "finds the keys of EVAL whatever their number" $ \(NonNegative count) (NonNegative others) ->
    let keys = [Char8.pack ("key" <> show n) | n <- [1 .. count :: Int]]
        rest = replicate others "argument"
     in keysOf (["EVAL", "script", Char8.pack (show count)] <> keys <> rest) === Just keys

  prop "finds the keys of MSET, which are every other word" $ \(NonEmpty entries) ->
    let keys = [Char8.pack ("key" <> show n) | (n, _ :: Int) <- zip [1 :: Int ..] entries]
     in (sort <$> keysOf ("MSET" : concat [[key, "value"] | key <- keys])) === Just (sort keys)

keysOf :: [ByteString] -> Maybe [ByteString]
keysOf commandArguments = lookupCommand commandArguments >>= (`commandKeys` commandArguments)

keysSentence :: [ByteString] -> [ByteString] -> String
keysSentence command keys =
  "finds in " <> Char8.unpack (Char8.unwords command) <> " the keys [" <> Char8.unpack (Char8.unwords keys) <> "]"

-- | Words that matter to key specifications, in any order.
anyWords :: Gen [ByteString]
anyWords = do
  name <- elements (map entryName allCommands)
  rest <- listOf (elements ["STORE", "store", "STREAMS", "KEYS", "BY", "GET", "LIMIT", "AUTH", "AUTH2", "", "0", "1", "2", "3", "-1", "key"])
  pure (Char8.split '|' name <> rest)

vectors :: [([ByteString], [ByteString])]
vectors =
  map
    split
    [ ("GET k", "k"),
      ("get k", "k"),
      ("SET k v EX 1", "k"),
      ("DEL a b c", "a b c"),
      ("MGET a b c", "a b c"),
      ("MSET a 1 b 2", "a b"),
      ("MSETNX a 1 b 2", "a b"),
      ("MSETEX 2 a 1 b 2 EX 10", "a b"),
      ("RENAME a b", "a b"),
      ("COPY a b DB 1", "a b"),
      ("BITOP AND d a b", "d a b"),
      ("LCS a b LEN", "a b"),
      ("PING", ""),
      ("ECHO k", ""),
      ("EVAL s 0 x y", ""),
      ("EVAL s 2 a b x y", "a b"),
      ("EVALSHA s 1 a x", "a"),
      ("EVAL_RO s 1 a", "a"),
      ("FCALL f 2 a b", "a b"),
      ("FCALL_RO f 1 a x", "a"),
      ("XREAD COUNT 2 STREAMS a b 0 0", "a b"),
      ("XREAD BLOCK 0 STREAMS a $", "a"),
      ("XREAD streams a b c 0 0 0", "a b c"),
      ("XREADGROUP GROUP g c COUNT 1 NOACK STREAMS a b > >", "a b"),
      ("XREADGROUP GROUP STREAMS STREAMS STREAMS a >", "a"),
      ("XREADGROUP COUNT 1 GROUP g STREAMS STREAMS a >", "a"),
      ("XREADGROUP NOACK BLOCK 5 group STREAMS BLOCK streams a b > >", "a b"),
      ("XREADGROUP CLAIM 10 GROUP g STREAMS STREAMS STREAMS >", "STREAMS"),
      ("XREAD STREAMS STREAMS STREAMS 0 0", "STREAMS STREAMS"),
      ("XREAD STREAMS a b 0", ""),
      ("XADD s * f v", "s"),
      ("XGROUP CREATE s g $", "s"),
      ("XINFO STREAM s FULL", "s"),
      ("SORT k", "k"),
      ("SORT k BY w_* LIMIT 0 10 GET o_* GET # ASC ALPHA STORE d", "k d"),
      ("SORT k BY STORE STORE d", "k d"),
      ("SORT k GET STORE", "k"),
      ("SORT k STORE a STORE b", "k b"),
      ("SORT_RO k BY w_*", "k"),
      ("ZUNIONSTORE d 2 a b WEIGHTS 1 2", "d a b"),
      ("ZINTERSTORE d 1 a", "d a"),
      ("ZDIFF 2 a b WITHSCORES", "a b"),
      ("ZRANGESTORE d s 0 1", "d s"),
      ("SINTERCARD 2 a b LIMIT 1", "a b"),
      ("SUNIONSTORE d a b", "d a b"),
      ("SMOVE a b m", "a b"),
      ("LMPOP 2 a b LEFT", "a b"),
      ("BLMPOP 0 2 a b LEFT COUNT 1", "a b"),
      ("BZMPOP 1.5 1 a MIN", "a"),
      ("BLPOP a b 0", "a b"),
      ("BZPOPMIN a b 0", "a b"),
      ("BLMOVE a b LEFT RIGHT 0", "a b"),
      ("BRPOPLPUSH a b 0", "a b"),
      ("LMOVE a b LEFT RIGHT", "a b"),
      ("GEORADIUS k 1 2 3 m", "k"),
      ("GEORADIUS k 1 2 3 m STORE d", "k d"),
      ("GEORADIUSBYMEMBER k m 3 m STOREDIST d", "k d"),
      ("GEORADIUS k 1 2 3 m STORE STOREDIST COUNT 1", "k STOREDIST"),
      ("GEORADIUS k 1 2 3 m STORE a COUNT 1 storedist b", "k b"),
      ("GEORADIUSBYMEMBER k STORE 3 m STOREDIST STORE ASC", "k STORE"),
      ("GEOSEARCHSTORE d s FROMMEMBER m BYRADIUS 1 m", "d s"),
      ("PFCOUNT a b", "a b"),
      ("PFMERGE d a b", "d a b"),
      ("PFMERGE d", "d"),
      ("SUNSUBSCRIBE", ""),
      ("OBJECT ENCODING k", "k"),
      ("object freq k", "k"),
      ("MEMORY USAGE k SAMPLES 5", "k"),
      ("MEMORY STATS", ""),
      ("CONFIG GET k", ""),
      ("CLIENT KILL ID 1", ""),
      ("PUBLISH c m", ""),
      ("SPUBLISH c m", "c"),
      ("SSUBSCRIBE a b", "a b"),
      ("SCRIPT LOAD s", ""),
      ("WATCH a b", "a b"),
      ("MIGRATE h 1 k 0 5", "k"),
      ("DUMP k", "k"),
      ("RESTORE k 0 p", "k"),
      ("VADD k VALUES 1 1 e", "k"),
      ("GETEX k EX 1", "k"),
      -- Too short for any server: there is no key to route by, and the client need not ask.
      ("GET", ""),
      ("EVAL s", ""),
      ("MSET a", "")
    ]
    <> [ (["MIGRATE", "h", "1", "", "0", "5", "COPY", "KEYS", "a", "b"], ["a", "b"]),
         (["MIGRATE", "h", "1", "", "0", "5", "AUTH", "KEYS", "KEYS", "a"], ["a"]),
         (["MIGRATE", "h", "1", "", "0", "5", "AUTH2", "KEYS", "KEYS", "KEYS", "a"], ["a"])
       ]
  where
    split (command, keys) = (Char8.words command, Char8.words keys)
