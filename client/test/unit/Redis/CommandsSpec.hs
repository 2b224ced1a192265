{-# LANGUAGE ExistentialQuantification #-}

module Redis.CommandsSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isLeft)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Redis.Command
import Redis.Commands
import Redis.Commands.Raw (rawFacts)
import Redis.Error (DecodeError)
import Redis.Internal.Config (Credentials (..), secret)
import Redis.Internal.Protocol.CommandTable
import Redis.Internal.Protocol.Encode (requestBytes)
import Redis.Value (Value (..))
import Support (naiveRequest)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

-- | A command and the words it must be on the wire.
data Golden = forall a. Golden (Command a) [ByteString]

spec :: Spec
spec = describe "Redis.Commands" $ do
  describe "on the wire" $ do
    it "is an array of bulk strings, byte for byte" $ do
      requestBytes (commandRequest (get "key")) `shouldBe` "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
      requestBytes (commandRequest (set "key" "a\r\nb")) `shouldBe` "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$4\r\na\r\nb\r\n"
      requestBytes (commandRequest ping) `shouldBe` "*1\r\n$4\r\nPING\r\n"
      requestBytes (commandRequest (del ("" :| []))) `shouldBe` "*2\r\n$3\r\nDEL\r\n$0\r\n\r\n"
    mapM_
      (\(Golden command commandWords) -> it (sentence commandWords) (requestBytes (commandRequest command) `shouldBe` naiveRequest commandWords))
      goldens

  describe "agrees with what servers say of" $
    mapM_
      ( \(Golden command commandWords) -> it (sentence commandWords) $ do
          commandName command `shouldBe` commandWordsName commandWords
          case lookupCommand commandWords of
            Nothing -> expectationFailure "the servers have no such command"
            Just entry -> do
              arityFits entry commandWords `shouldBe` True
              commandFacts command `shouldBe` rawFacts entry commandWords
              Just (routeKeys (commandRoute command)) `shouldBe` commandKeys entry commandWords
      )
      goldens

  replies
  rawCommands

sentence :: [ByteString] -> String
sentence = Char8.unpack . Char8.unwords

arityFits :: CommandEntry -> [ByteString] -> Bool
arityFits entry commandWords
  | entryArity entry < 0 = length commandWords >= negate (entryArity entry)
  | otherwise = length commandWords == entryArity entry

routeKeys :: Route a -> [ByteString]
routeKeys = \case
  AnyNode -> []
  OneKey key -> [key]
  SameSlot keys -> NonEmpty.toList keys
  Splittable SplitPlan {splitKeys} -> NonEmpty.toList splitKeys
  AskServer _ -> ["unknown"]

goldens :: [Golden]
goldens =
  connectionGoldens <> keyGoldens <> stringGoldens <> listGoldens <> scriptGoldens <> serverGoldens

connectionGoldens :: [Golden]
connectionGoldens =
  [ Golden ping ["PING"],
    Golden (echo "m") ["ECHO", "m"],
    Golden clientId ["CLIENT", "ID"],
    Golden clientGetName ["CLIENT", "GETNAME"],
    Golden (hello (HelloOptions 3 Nothing Nothing)) ["HELLO", "3"],
    Golden
      (hello (HelloOptions 2 (Just (Credentials Nothing (secret "p"))) (Just "n")))
      ["HELLO", "2", "AUTH", "default", "p", "SETNAME", "n"],
    Golden (hello (HelloOptions 3 (Just (Credentials (Just "u") (secret "p"))) Nothing)) ["HELLO", "3", "AUTH", "u", "p"],
    Golden (auth (Credentials Nothing (secret "p"))) ["AUTH", "p"],
    Golden (auth (Credentials (Just "u") (secret "p"))) ["AUTH", "u", "p"],
    Golden (select 15) ["SELECT", "15"],
    Golden (clientSetName "n") ["CLIENT", "SETNAME", "n"],
    Golden (clientSetInfo "LIB-NAME" "x") ["CLIENT", "SETINFO", "LIB-NAME", "x"],
    Golden (clientNoTouch True) ["CLIENT", "NO-TOUCH", "ON"],
    Golden (clientNoTouch False) ["CLIENT", "NO-TOUCH", "OFF"],
    Golden readonly ["READONLY"],
    Golden readwrite ["READWRITE"],
    Golden asking ["ASKING"]
  ]

keyGoldens :: [Golden]
keyGoldens =
  [ Golden (del ("a" :| [])) ["DEL", "a"],
    Golden (del ("a" :| ["b"])) ["DEL", "a", "b"],
    Golden (unlink ("a" :| [])) ["UNLINK", "a"],
    Golden (unlink ("a" :| ["b"])) ["UNLINK", "a", "b"],
    Golden (exists ("a" :| [])) ["EXISTS", "a"],
    Golden (exists ("a" :| ["b", "a"])) ["EXISTS", "a", "b", "a"],
    Golden (touch ("a" :| ["b"])) ["TOUCH", "a", "b"],
    Golden (typeOf "k") ["TYPE", "k"],
    Golden (expire "k" 10) ["EXPIRE", "k", "10"],
    Golden (pexpire "k" (-1)) ["PEXPIRE", "k", "-1"],
    Golden (expireat "k" 1700000000) ["EXPIREAT", "k", "1700000000"],
    Golden (pexpireat "k" maxBound) ["PEXPIREAT", "k", "9223372036854775807"],
    Golden (persist "k") ["PERSIST", "k"],
    Golden (ttl "k") ["TTL", "k"],
    Golden (pttl "k") ["PTTL", "k"],
    Golden (rename "a" "b") ["RENAME", "a", "b"],
    Golden (renamenx "a" "b") ["RENAMENX", "a", "b"],
    Golden (copy "a" "b") ["COPY", "a", "b"],
    Golden (copyReplacing "a" "b") ["COPY", "a", "b", "REPLACE"],
    Golden randomkey ["RANDOMKEY"],
    Golden (keysMatching "a*") ["KEYS", "a*"],
    Golden (scan scanDefaults scanStart) ["SCAN", "0"],
    Golden
      (scan (ScanOptions (Just "a*") (Just 100) (Just "string")) scanStart)
      ["SCAN", "0", "MATCH", "a*", "COUNT", "100", "TYPE", "string"],
    Golden (dump "k") ["DUMP", "k"],
    Golden (restore restoreDefaults "k" "payload") ["RESTORE", "k", "0", "payload"],
    Golden (restore (RestoreOptions (Just 5) True True) "k" "p") ["RESTORE", "k", "5", "p", "REPLACE", "ABSTTL"]
  ]

stringGoldens :: [Golden]
stringGoldens =
  [ Golden (get "k") ["GET", "k"],
    Golden (set "k" "v") ["SET", "k", "v"],
    Golden (setWith setDefaults "k" "v") ["SET", "k", "v"],
    Golden (setWith (SetOptions (Just OnlyIfAbsent) (ExpiresAfter (InSeconds 9))) "k" "v") ["SET", "k", "v", "NX", "EX", "9"],
    Golden (setWith (SetOptions (Just OnlyIfPresent) KeepExpiry) "k" "v") ["SET", "k", "v", "XX", "KEEPTTL"],
    Golden (setWith (SetOptions Nothing (ExpiresAfter (InMilliseconds 9))) "k" "v") ["SET", "k", "v", "PX", "9"],
    Golden (setWith (SetOptions Nothing (ExpiresAfter (AtSecond 9))) "k" "v") ["SET", "k", "v", "EXAT", "9"],
    Golden (setWith (SetOptions Nothing (ExpiresAfter (AtMillisecond 9))) "k" "v") ["SET", "k", "v", "PXAT", "9"],
    Golden (setGet setDefaults "k" "v") ["SET", "k", "v", "GET"],
    Golden (setGet (SetOptions (Just OnlyIfAbsent) KeepExpiry) "k" "v") ["SET", "k", "v", "NX", "KEEPTTL", "GET"],
    Golden (setnx "k" "v") ["SETNX", "k", "v"],
    Golden (getset "k" "v") ["GETSET", "k", "v"],
    Golden (getdel "k") ["GETDEL", "k"],
    Golden (getex NoExpiry "k") ["GETEX", "k", "PERSIST"],
    Golden (getex KeepExpiry "k") ["GETEX", "k"],
    Golden (getex (ExpiresAfter (InSeconds 3)) "k") ["GETEX", "k", "EX", "3"],
    Golden (append "k" "v") ["APPEND", "k", "v"],
    Golden (strlen "k") ["STRLEN", "k"],
    Golden (getrange "k" 0 (-1)) ["GETRANGE", "k", "0", "-1"],
    Golden (setrange "k" 10 "v") ["SETRANGE", "k", "10", "v"],
    Golden (incr "k") ["INCR", "k"],
    Golden (incrby "k" minBound) ["INCRBY", "k", "-9223372036854775808"],
    Golden (incrbyfloat "k" 0.5) ["INCRBYFLOAT", "k", "0.5"],
    Golden (decr "k") ["DECR", "k"],
    Golden (decrby "k" 3) ["DECRBY", "k", "3"],
    Golden (mget ("a" :| [])) ["MGET", "a"],
    Golden (mget ("a" :| ["b"])) ["MGET", "a", "b"],
    Golden (mset (("a", "1") :| [])) ["MSET", "a", "1"],
    Golden (mset (("a", "1") :| [("b", "2")])) ["MSET", "a", "1", "b", "2"],
    Golden (msetnx (("a", "1") :| [("b", "2")])) ["MSETNX", "a", "1", "b", "2"]
  ]

listGoldens :: [Golden]
listGoldens =
  [ Golden (lpush "k" ("a" :| ["b"])) ["LPUSH", "k", "a", "b"],
    Golden (rpush "k" ("a" :| [])) ["RPUSH", "k", "a"],
    Golden (lpop "k") ["LPOP", "k"],
    Golden (rpop "k") ["RPOP", "k"],
    Golden (lrange "k" 0 (-1)) ["LRANGE", "k", "0", "-1"],
    Golden (llen "k") ["LLEN", "k"],
    Golden (blpop ("a" :| ["b"]) 0) ["BLPOP", "a", "b", "0"],
    Golden (blpop ("a" :| []) 1.5) ["BLPOP", "a", "1.500000"],
    Golden (brpop ("a" :| []) 2) ["BRPOP", "a", "2"],
    Golden (blmove ("a", LeftEnd) ("b", RightEnd) 30) ["BLMOVE", "a", "b", "LEFT", "RIGHT", "30"]
  ]

scriptGoldens :: [Golden]
scriptGoldens =
  [ Golden (eval "s" [] []) ["EVAL", "s", "0"],
    Golden (eval "s" ["a", "b"] ["x"]) ["EVAL", "s", "2", "a", "b", "x"],
    Golden (evalRo "s" ["a"] []) ["EVAL_RO", "s", "1", "a"],
    Golden (evalsha "d" ["a"] ["x"]) ["EVALSHA", "d", "1", "a", "x"],
    Golden (evalshaRo "d" ["a"] ["x"]) ["EVALSHA_RO", "d", "1", "a", "x"],
    Golden (scriptLoad "s") ["SCRIPT", "LOAD", "s"],
    Golden (scriptExists ("a" :| ["b"])) ["SCRIPT", "EXISTS", "a", "b"],
    Golden scriptFlush ["SCRIPT", "FLUSH"],
    Golden (fcall "f" ["a"] ["x"]) ["FCALL", "f", "1", "a", "x"],
    Golden (fcallRo "f" [] ["x"]) ["FCALL_RO", "f", "0", "x"],
    Golden (functionLoad "c") ["FUNCTION", "LOAD", "c"],
    Golden (functionLoadReplacing "c") ["FUNCTION", "LOAD", "REPLACE", "c"]
  ]

serverGoldens :: [Golden]
serverGoldens =
  [ Golden dbsize ["DBSIZE"],
    Golden (flushdb FlushSync) ["FLUSHDB", "SYNC"],
    Golden (flushall FlushAsync) ["FLUSHALL", "ASYNC"],
    Golden (info []) ["INFO"],
    Golden (info ["server", "clients"]) ["INFO", "server", "clients"],
    Golden time ["TIME"],
    Golden (waitReplicas 1 100) ["WAIT", "1", "100"],
    Golden (waitReplicas 2 0) ["WAIT", "2", "0"],
    Golden (configGet ("a" :| ["b*"])) ["CONFIG", "GET", "a", "b*"],
    Golden (configSet (("a", "1") :| [("b", "2")])) ["CONFIG", "SET", "a", "1", "b", "2"],
    Golden (commandInfo ("get" :| ["config|get"])) ["COMMAND", "INFO", "get", "config|get"],
    Golden (commandGetKeys ("GET" :| ["k"])) ["COMMAND", "GETKEYS", "GET", "k"]
  ]

-- | What commands make of replies, in the shapes of both protocols.
replies :: Spec
replies = describe "reads the replies of" $ do
  it "PING" $ do
    decoded ping (SimpleString "PONG") `shouldBe` Right ()
    decoded ping (SimpleString "OK") `shouldSatisfy` isLeft

  it "GET" $ do
    decoded (get "k") (BulkString "v") `shouldBe` Right (Just "v")
    decoded (get "k") Null `shouldBe` Right Nothing
    decoded (get "k") (Integer 1) `shouldSatisfy` isLeft

  it "SET" $ do
    decoded (set "k" "v") (SimpleString "OK") `shouldBe` Right ()
    decoded (set "k" "v") Null `shouldSatisfy` isLeft
    decoded (setWith setDefaults "k" "v") (SimpleString "OK") `shouldBe` Right True
    decoded (setWith setDefaults "k" "v") Null `shouldBe` Right False
    decoded (setGet setDefaults "k" "v") (BulkString "before") `shouldBe` Right (Just "before")

  it "TTL" $
    mapM (decoded (ttl "k") . Integer) [-2, -1, 0, 5] `shouldBe` Right [NoSuchKey, NeverExpires, ExpiresIn 0, ExpiresIn 5]

  it "TYPE" $
    mapM (decoded (typeOf "k") . SimpleString) ["none", "list"] `shouldBe` Right [Nothing, Just "list"]

  it "INCRBYFLOAT in both protocols" $
    mapM (decoded (incrbyfloat "k" 1)) [BulkString "3.5", Double 3.5] `shouldBe` Right [3.5, 3.5]

  it "SCAN" $ do
    let page cursor keys = Array [BulkString cursor, Array (map BulkString keys)]
        step = decoded (scan scanDefaults scanStart)
    fmap scanKeys (step (page "17" ["a", "b"])) `shouldBe` Right ["a", "b"]
    fmap scanNext (step (page "0" [])) `shouldBe` Right Nothing
    case step (page "18446744073709551615" []) of
      Right ScanPage {scanNext = Just next} ->
        requestBytes (commandRequest (scan scanDefaults next)) `shouldBe` naiveRequest ["SCAN", "18446744073709551615"]
      other -> expectationFailure (show other)
    step (Array [BulkString "0"]) `shouldSatisfy` isLeft

  it "BLPOP" $ do
    let pop = decoded (blpop ("a" :| []) 1)
    pop (Array [BulkString "a", BulkString "x"]) `shouldBe` Right (Just ("a", "x"))
    pop Null `shouldBe` Right Nothing
    pop (Array [BulkString "a"]) `shouldSatisfy` isLeft

  it "HELLO in both protocols" $ do
    let fields =
          [ (BulkString "server", BulkString "redis"),
            (BulkString "version", BulkString "7.0.15"),
            (BulkString "proto", Integer 3),
            (BulkString "id", Integer 5),
            (BulkString "mode", BulkString "cluster"),
            (BulkString "role", BulkString "master"),
            (BulkString "modules", Array [])
          ]
        expected = Right (ServerHello "redis" "7.0.15" 3 5 "cluster" (Just "master"))
        greet = decoded (hello (HelloOptions 3 Nothing Nothing))
    greet (Map fields) `shouldBe` expected
    greet (Array (concat [[name, element] | (name, element) <- fields])) `shouldBe` expected
    greet (Map (drop 1 fields)) `shouldSatisfy` isLeft

  it "CLIENT GETNAME, whose absence is empty or null" $
    mapM (decoded clientGetName) [Null, BulkString "", BulkString "n"] `shouldBe` Right [Nothing, Nothing, Just "n"]

  it "INFO, plain and verbatim" $ do
    let text = "# Server\r\nredis_version:7.0.15\r\nexecutable:/a:b\r\n\r\n# Clients\r\nconnected_clients:1\r\n"
        expected = Right [("redis_version", "7.0.15"), ("executable", "/a:b"), ("connected_clients", "1")]
    mapM (decoded (info [])) [BulkString text, VerbatimString "txt" text] `shouldBe` fmap (\fields -> [fields, fields]) expected

  it "TIME" $ do
    decoded time (Array [BulkString "1700000000", BulkString "12"]) `shouldBe` Right (1700000000, 12)
    decoded time (Array [BulkString "x", BulkString "12"]) `shouldSatisfy` isLeft

  it "CONFIG GET in both protocols" $ do
    decoded (configGet ("a" :| [])) (Array [BulkString "a", BulkString "1"]) `shouldBe` Right [("a", "1")]
    decoded (configGet ("a" :| [])) (Map [(BulkString "a", BulkString "1")]) `shouldBe` Right [("a", "1")]

  it "COMMAND INFO, of a command that the server does not know" $
    decoded (commandInfo ("nosuch" :| [])) (Array [Null]) `shouldBe` Right [Nothing]

  it "SCRIPT EXISTS" $ do
    decoded (scriptExists ("a" :| ["b"])) (Array [Integer 1, Integer 0]) `shouldBe` Right [True, False]
    decoded (scriptExists ("a" :| ["b"])) (Array [Integer 1]) `shouldSatisfy` isLeft

  it "EVAL, which may be anything" $
    decoded (eval "s" [] []) (Array [Integer 1, Null, ErrorReply "ERR x"]) `shouldBe` Right (Array [Integer 1, Null, ErrorReply "ERR x"])

  it "commands that answer yes or no" $
    mapM (`decoded` Integer 1) [setnx "k" "v", expire "k" 1, persist "k", renamenx "a" "b", copy "a" "b", msetnx (("a", "1") :| [])]
      `shouldBe` Right (replicate 6 True)

decoded :: Command a -> Value -> Either DecodeError a
decoded = commandDecode

rawCommands :: Spec
rawCommands = describe "raw" $ do
  it "routes by the keys of the command" $
    map
      (described . raw)
      [["PING"], ["get", "k"], ["MGET", "a", "b"], ["EVAL", "s", "1", "k", "x"], ["OBJECT", "ENCODING", "k"]]
      `shouldBe` ["any", "one k", "same a b", "one k", "one k"]

  it "asks the server where it cannot tell" $
    map
      (described . raw)
      [["NOSUCH", "a"], ["EVAL", "s", "x", "k"], ["OBJECT", "NOSUCH", "k"], []]
      `shouldBe` ["ask NOSUCH a", "ask EVAL s x k", "ask OBJECT NOSUCH k", "ask "]

  it "takes an unknown command for a write" $ do
    commandFacts (raw ["NOSUCH", "a"]) `shouldBe` writeFacts
    commandFacts (raw []) `shouldBe` writeFacts

  it "knows reads, writes, blocking commands and those that change the connection" $ do
    commandFacts (raw ["GET", "k"]) `shouldBe` readFacts
    commandFacts (raw ["INCR", "k"]) `shouldBe` writeFacts
    commandFacts (raw ["EVAL", "s", "0"]) `shouldBe` writeFacts
    commandFacts (raw ["INFO"]) `shouldBe` readFacts
    commandFacts (raw ["XREAD", "BLOCK", "500", "STREAMS", "k", "$"]) `shouldBe` readFacts {factBlocking = BlocksFor 0.5}
    commandFacts (raw ["BLPOP", "k", "0"]) `shouldBe` writeFacts {factBlocking = BlocksForever}
    commandFacts (raw ["MULTI"]) `shouldBe` writeFacts {factScope = ConnectionState}
    commandFacts (raw ["CLIENT", "REPLY", "OFF"]) `shouldBe` writeFacts {factScope = ConnectionState}
    commandFacts (raw ["CLIENT", "NOTYETINVENTED"]) `shouldBe` writeFacts {factScope = ConnectionState}

  prop "sends any words as they stand" $
    forAll (listOf (Char8.pack <$> arbitrary)) $ \commandWords ->
      requestBytes (commandRequest (raw commandWords)) === naiveRequest commandWords

  it "may be declared repeatable, and nothing else changes" $
    commandFacts (repeatable (raw ["SET", "k", "v"])) `shouldBe` writeFacts {factRepeatable = True}

described :: Command a -> String
described command = case commandRoute command of
  AnyNode -> "any"
  OneKey key -> "one " <> Char8.unpack key
  SameSlot keys -> "same " <> sentence (NonEmpty.toList keys)
  Splittable _ -> "splittable"
  AskServer arguments -> "ask " <> sentence arguments
