-- | The tests that have a name: those of redis-benchmark, and tests that it lacks. Every reply is
-- checked. A script's SET is done once and read back before the clock starts; after that the
-- server counts it.
module Tool.Bench.Workload.Named
  ( named,
    allKeys,
    namedTests,
    testGroups,
    lranges,
    setScript,
    setScriptDigest,
    loadedScript,
    channel,
    withSubscribers,
  )
where

import Control.Concurrent.Async (withAsync)
import Control.Exception (try)
import Control.Monad (forever, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.List.NonEmpty (NonEmpty (..))
import Data.Maybe (fromMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Redis (Client, Config)
import Redis qualified
import Redis.Command (Command, decodedBy)
import Redis.Command.Build qualified as Build
import Redis.Commands qualified as Commands
import Redis.Commands.Raw (raw)
import Redis.Decode (Decoder, mismatch)
import Redis.Decode qualified as Decode
import Redis.Duration qualified as Duration
import Redis.Error (Endpoint, Error)
import Redis.Value (Value (..), withoutAttributes)
import Redis.Wire (receiveReply, sendBytes, withWire)
import Tool.Bench.Time (monotonic, sleepUntil)
import Tool.Bench.Workload.Dataset
import Tool.Bench.Workload.Distribution (choose)
import Tool.Bench.Workload.Keys
import Tool.Bench.Workload.Random
import Tool.Bench.Workload.Values
import Tool.Span (nanosIn)

named :: Dataset -> String -> Maybe Kind
named dataset name = ($ dataset) <$> lookup name [(known, kind) | (known, _, kind) <- table]

-- | The names of the tests, and in a few words what one operation is.
namedTests :: [(String, String)]
namedTests = [(name, what) | (name, what, _) <- table]

-- | Names that stand for several tests. Those of redis-benchmark are @all@.
testGroups :: [(String, [String])]
testGroups =
  [ ("ping", ["ping_inline", "ping_mbulk"]),
    ("lrange", lranges),
    ("all", words "ping_inline ping_mbulk set get incr lpush rpush lpop rpop" <> others)
  ]
  where
    others = words "sadd hset spop zadd zpopmin" <> lranges <> ["mset", "xadd"]

lranges :: [String]
lranges = ["lrange_100", "lrange_300", "lrange_500", "lrange_600"]

table :: [(String, String, Dataset -> Kind)]
table =
  [ ("ping_inline", "PING as a line of text", pingKind "ping_inline" (Build.inline "PING")),
    ("ping_mbulk", "PING", pingKind "ping_mbulk" (Build.command "PING" [] Right)),
    ("set", "SET key value", setKind),
    ("get", "GET key", getKind),
    ("incr", "INCR counter", incrKind),
    ("lpush", "LPUSH mylist value", pushKind "lpush" "LPUSH"),
    ("rpush", "RPUSH mylist value", pushKind "rpush" "RPUSH"),
    ("lpop", "LPOP mylist", popKind "lpop" "LPOP"),
    ("rpop", "RPOP mylist", popKind "rpop" "RPOP"),
    ("sadd", "SADD myset element", saddKind),
    ("hset", "HSET myhash element value", hsetKind),
    ("spop", "SPOP myset", spopKind),
    ("zadd", "ZADD myzset score element", zaddKind),
    ("zpopmin", "ZPOPMIN myzset", zpopminKind),
    ("lrange_100", "LRANGE mylist 0 99", lrangeKind 100),
    ("lrange_300", "LRANGE mylist 0 299", lrangeKind 300),
    ("lrange_500", "LRANGE mylist 0 499", lrangeKind 500),
    ("lrange_600", "LRANGE mylist 0 599", lrangeKind 600),
    ("mset", "MSET of ten keys", msetKind),
    ("xadd", "XADD mystream * myfield value", xaddKind),
    ("mget", "MGET of ten keys", mgetKind),
    ("setex", "SETEX key seconds value", setexKind),
    ("getex", "GETEX key EX seconds", getexKind),
    ("eval-set", "EVAL of a script that sets a key", evalKind),
    ("evalsha-set", "EVALSHA of a script that sets a key", evalshaKind),
    ("fcall-set", "FCALL of a function that sets a key", fcallKind),
    ("script-load", "SCRIPT LOAD of a script, which is not run", scriptLoadKind),
    ("publish", "PUBLISH to all subscribers", publishKind),
    ("blpop", "BLPOP that waits for its RPUSH", blpopKind),
    ("transaction", "MULTI, SET, GET, EXEC", transactionKind)
  ]

-- * Strings

pingKind :: Text -> Command Value -> Dataset -> Kind
pingKind name command _ = fixedKind name "ping" [] (command `decodedBy` pong)
  where
    pong reply = Done <$ is "PONG" reply

-- A kind whose command is always the same.
fixedKind :: Text -> Text -> [Step] -> Command Outcome -> Kind
fixedKind name statistic steps = plainKind name statistic steps . const . pure

setKind, getKind, incrKind, setexKind, getexKind :: Dataset -> Kind
setKind dataset = plainKind "set" "set" [allKeys dataset] $ \stream -> do
  number <- drawKey dataset stream
  let !key = keyOf (datasetKeys dataset) number
      !value = valueOf (datasetValues dataset) number
  case shapeExpiry (datasetShape dataset) of
    Nothing -> pure $! Build.command "SET" [Build.key key, Build.arg value] okay
    Just lives -> do
      seconds <- lifetime lives stream
      let expiring = [Build.key key, Build.arg value, Build.arg "EX", Build.arg seconds]
      pure $! Build.command "SET" expiring okay
getKind dataset = sharedKind "get" "get" [allKeys dataset] $ \ !kind stream -> do
  number <- drawKey dataset stream
  missing <-
    if datasetMisses dataset == 0
      then pure False
      else (< datasetMisses dataset) . lower <$> step stream
  let !wanted = if missing then number + shapeKeys (datasetShape dataset) else number
      key = keyOf (datasetKeys dataset) wanted
  pure $! Drawn kind wanted (Build.command "GET" [Build.key key] foundOrMissing)
incrKind dataset = plainKind "incr" "incr" [] $ \stream -> do
  number <- drawKey dataset stream
  let key = keyOf (datasetCounters dataset) number
  pure $! Build.command "INCR" [Build.key key] (integerFrom 1)
setexKind dataset = plainKind "setex" "setex" [allKeys dataset] $ \stream -> do
  number <- drawKey dataset stream
  seconds <- lifetime (expiryOr60 dataset) stream
  let key = keyOf (datasetKeys dataset) number
      value = valueOf (datasetValues dataset) number
  pure $! Build.command "SETEX" [Build.key key, Build.arg seconds, Build.arg value] okay
getexKind dataset = plainKind "getex" "getex" [allKeys dataset] $ \stream -> do
  number <- drawKey dataset stream
  seconds <- lifetime (expiryOr60 dataset) stream
  let key = keyOf (datasetKeys dataset) number
      expiring = [Build.key key, Build.arg "EX", Build.arg seconds]
  pure $! Build.command "GETEX" expiring (valueOfKey dataset number)

allKeys :: Dataset -> Step
allKeys dataset =
  (byKey "keys" "set" count write) {stepKeys = count}
  where
    count = shapeKeys (datasetShape dataset)
    write number =
      Done <$ Commands.set (keyOf (datasetKeys dataset) number) (valueOf (datasetValues dataset) number)

-- A step of this number of commands, and its name and that of its command in the server's counts.
byKey :: Text -> Text -> Int -> (Int -> Command Outcome) -> Step
byKey name statistic count command =
  Step
    { stepName = name,
      stepCount = count,
      stepCommand = command,
      stepStats = [(statistic, count)],
      stepKeys = 1,
      stepPlace = StepByKey
    }

expiryOr60 :: Dataset -> (Int, Int)
expiryOr60 = fromMaybe (60, 60) . shapeExpiry . datasetShape

lifetime :: (Int, Int) -> Stream -> IO ByteString
lifetime (from, to) stream
  | from == to = pure (Char8.pack (show from))
  | otherwise = Char8.pack . show . (from +) . below (to - from + 1) . upper <$> step stream

-- * Several keys

-- Ten keys for one command, with the numbers that determine their values. In a cluster they share a
-- hash tag.
tenKeys :: Dataset -> Stream -> IO [(ByteString, Int)]
tenKeys dataset stream
  | shapeClustered (datasetShape dataset) = tagged dataset <$> drawKey dataset stream
  | otherwise = do
    first <- drawKey dataset stream
    others <- mapM (const (step stream >> choose (datasetChooser dataset) stream)) [2 .. 10 :: Int]
    pure [(keyOf (datasetKeys dataset) number, number) | number <- first : others]

tagged :: Dataset -> Int -> [(ByteString, Int)]
tagged dataset number =
  [ ( "key:{" <> keyOf (datasetDigits dataset) number <> "}:" <> Char8.pack (show place),
      number * 10 + place
    )
    | place <- [0 .. 9]
  ]

msetKind, mgetKind :: Dataset -> Kind
msetKind dataset = plainKind "mset" "mset" [] (fmap (msetOf dataset) . tenKeys dataset)
mgetKind dataset = plainKind "mget" "mget" [before] $ \stream -> do
  wanted <- tenKeys dataset stream
  let verdict value = case withoutAttributes value of
        Array values
          | length values == 10 ->
            foldr worse (Right Hit) (zipWith (valueOfKey dataset . snd) wanted values)
        other -> mismatch "ten values" other
      worse one after =
        one >>= \case
          Hit -> after
          Miss -> (\case Wrong found -> Wrong found; _ -> Miss) <$> after
          other -> Right other
  pure $! Build.command "MGET" (Build.keys (map fst wanted)) verdict
  where
    before
      | shapeClustered (datasetShape dataset) =
        (byKey "tagged keys" "mset" count (msetOf dataset . tagged dataset)) {stepKeys = 10 * count}
      | otherwise = allKeys dataset
    count = shapeKeys (datasetShape dataset)

msetOf :: Dataset -> [(ByteString, Int)] -> Command Outcome
msetOf dataset keys =
  Build.command "MSET" (concatMap pair keys) okay
  where
    pair (key, number) = [Build.key key, Build.arg (valueOf (datasetValues dataset) number)]

-- * Lists, sets, hashes, streams

pushKind, popKind :: Text -> Build.Name -> Dataset -> Kind
pushKind name command dataset = plainKind name name [] $ \stream -> do
  number <- drawKey dataset stream
  pure $! push command dataset number
popKind name command dataset =
  fixedKind name name [listOf dataset (shapeKeys (datasetShape dataset))] $
    Build.command command [Build.key "mylist"] somethingOrNull

lrangeKind :: Int -> Dataset -> Kind
lrangeKind size' dataset =
  fixedKind (Text.pack ("lrange_" <> show size')) "lrange" [listOf dataset size'] $
    Build.command "LRANGE" [Build.key "mylist", Build.arg "0", Build.arg final] verdict
  where
    final = Char8.pack (show (size' - 1))
    verdict value = case withoutAttributes value of
      Array elements
        | length elements == size' -> Right Hit
        | length elements < size' -> Right Miss
      other -> mismatch ("a list of " <> show size') other

-- Fills the list with at least this many elements.
listOf :: Dataset -> Int -> Step
listOf dataset count = byKey "mylist" "rpush" count (push "RPUSH" dataset)

push :: Build.Name -> Dataset -> Int -> Command Outcome
push command dataset number = Build.command command [Build.key "mylist", Build.arg (valueOf (datasetValues dataset) number)] (integerFrom 1)

saddKind, hsetKind, spopKind, zaddKind, zpopminKind, xaddKind :: Dataset -> Kind
saddKind dataset = plainKind "sadd" "sadd" [] $ \stream -> do
  element <- keyOf (datasetElements dataset) <$> drawKey dataset stream
  pure $! sadd element
hsetKind dataset = plainKind "hset" "hset" [] $ \stream -> do
  number <- drawKey dataset stream
  pure
    $! Build.command
      "HSET"
      [ Build.key "myhash",
        Build.arg (keyOf (datasetElements dataset) number),
        Build.arg (valueOf (datasetValues dataset) number)
      ]
      (integerFrom 0)
spopKind dataset =
  fixedKind "spop" "spop" [filled] $ Build.command "SPOP" [Build.key "myset"] somethingOrNull
  where
    filled =
      byKey "myset" "sadd" (shapeKeys (datasetShape dataset)) (sadd . keyOf (datasetElements dataset))
zaddKind dataset = plainKind "zadd" "zadd" [] $ \stream -> do
  element <- keyOf (datasetElements dataset) <$> drawKey dataset stream
  score <-
    keyOf (datasetDigits dataset) . below (shapeKeys (datasetShape dataset)) . upper <$> step stream
  pure $! zadd score element
zpopminKind dataset =
  fixedKind "zpopmin" "zpopmin" [filled] $ Build.command "ZPOPMIN" [Build.key "myzset"] verdict
  where
    verdict value = case withoutAttributes value of
      Array [] -> Right Miss
      Array _ -> Right Hit
      other -> mismatch "a member and its score" other
    filled =
      byKey "myzset" "zadd" (shapeKeys (datasetShape dataset)) $ \number ->
        zadd (keyOf (datasetDigits dataset) number) (keyOf (datasetElements dataset) number)
xaddKind dataset = plainKind "xadd" "xadd" [] $ \stream -> do
  value <- valueOf (datasetValues dataset) <$> drawKey dataset stream
  let entry = [Build.key "mystream", Build.arg "*", Build.arg "myfield", Build.arg value]
  pure $! Build.command "XADD" entry someText

sadd :: ByteString -> Command Outcome
sadd element = Build.command "SADD" [Build.key "myset", Build.arg element] (integerFrom 0)

zadd :: ByteString -> ByteString -> Command Outcome
zadd score element =
  Build.command "ZADD" [Build.key "myzset", Build.arg score, Build.arg element] (integerFrom 0)

-- * Programs

-- | The script that @eval-set@ and @evalsha-set@ run.
setScript :: ByteString
setScript = "return redis.call('SET', KEYS[1], ARGV[1])"

-- | The SHA-1 of 'setScript'. The server confirms it before it is used.
setScriptDigest :: ByteString
setScriptDigest = "d8f2fad9f8e86a53d2a6ebd960b33c4972cacc37"

setFunction :: ByteString
setFunction =
  "#!lua name=redis_client_bench\n\
  \redis.register_function('redis_client_bench_set', \
  \function(keys, args) return redis.call('SET', keys[1], args[1]) end)"

evalKind, evalshaKind, fcallKind, scriptLoadKind :: Dataset -> Kind
evalKind dataset = program dataset "eval-set" "eval" [] (Commands.eval setScript)
evalshaKind dataset = program dataset "evalsha-set" "evalsha" [loaded] (Commands.evalsha setScriptDigest)
  where
    loaded =
      everywhere "script" "script|load" $
        Build.command "SCRIPT LOAD" [Build.arg setScript] digest
    digest = \case
      BulkString found -> Right (if found == setScriptDigest then Done else Wrong found)
      other -> mismatch "a digest" other
fcallKind dataset =
  program dataset "fcall-set" "fcall" [loaded] (Commands.fcall "redis_client_bench_set")
  where
    loaded =
      everywhere "function" "function|load" $
        Done <$ Commands.functionLoadWith replacing setFunction
    replacing = Commands.functionLoadDefaults {Commands.functionLoadReplace = True}
scriptLoadKind dataset =
  fixedKind "script-load" "script|load" [] $
    -- A cluster loads a script on every node. Routed like a key it goes to one node, so that one
    -- operation is one command.
    Build.command "SCRIPT LOAD" [Build.key (loadedScript (keyOf (datasetKeys dataset) 0) (valueOf (datasetValues dataset) 0))] someText

-- | The script that @script-load@ loads, for a key and a value. It is the same every time, so the server
-- computes its digest and finds it.
loadedScript :: ByteString -> ByteString -> ByteString
loadedScript key value = "redis.call('set'," <> quoted key <> "," <> quoted value <> ")"
  where
    quoted text = "[==[" <> text <> "]==]"

everywhere :: Text -> Text -> Command Outcome -> Step
everywhere name command what =
  (byKey name command 1 (const what)) {stepKeys = 0, stepPlace = StepEverywhere}

-- Sets keys by a program. Its effect is checked once before the clock starts.
program :: Dataset -> Text -> Text -> [Step] -> ([ByteString] -> [ByteString] -> Command Value) -> Kind
program dataset name command before run =
  (plainKind name command (before <> [checked]) make) {kindStats = Just [(command, 1), ("set", 1)]}
  where
    make stream = do
      number <- drawKey dataset stream
      pure (setting (keyOf (datasetKeys dataset) number) number)
    setting key number = run [key] [valueOf (datasetValues dataset) number] `decodedBy` okay
    checkKey = "check:" <> Char8.pack (Text.unpack name)
    checked =
      (byKey (name <> " effect") command 4 effect)
        { stepStats = [("del", 1), (command, 1), ("set", 1), ("getdel", 1), ("exists", 1)],
          stepKeys = 0,
          stepPlace = StepInTurn
        }
    effect = \case
      0 -> Build.command "DEL" [Build.key checkKey] (integerFrom 0)
      1 -> setting checkKey 0
      2 -> Build.command "GETDEL" [Build.key checkKey] present
      _ -> Build.command "EXISTS" [Build.key checkKey] (integerFrom 0)
    present value = case valueOfKey dataset 0 value of
      Right Miss -> Right (Wrong "nothing was set")
      other -> other

-- * More than one command, or more than one connection

-- Publishes a message to all subscribers. The server replies with the number that it reached.
publishKind :: Dataset -> Kind
publishKind dataset = plainKind "publish" "publish" [] $ \stream -> do
  value <- valueOf (datasetValues dataset) <$> drawKey dataset stream
  -- Routed like a key: that is where the subscribers are.
  pure (Build.command "PUBLISH" [Build.key channel, Build.arg value] reached)
  where
    subscribers = shapeSubscribers (datasetShape dataset)
    reached = \case
      Integer number -> Right (if number == fromIntegral subscribers then Done else Wrong (Char8.pack (show number <> " subscribers")))
      other -> mismatch "a number of subscribers" other

-- | The channel of the test @publish@.
channel :: ByteString
channel = "redis-client:bench"

-- A kind whose operations are more than one command. The server counts each of these once.
aloneKind :: Text -> [Text] -> (Stream -> IO (Client -> IO (Either Error Outcome))) -> Kind
aloneKind name commands make =
  (sharedKind name name [] (\kind stream -> DrawnAlone kind <$> make stream))
    { kindStats = Just [(command, 1) | command <- commands]
    }

-- A pop that blocks on the server until something is pushed. The operation sends the pop, then
-- the push on another connection, and ends when the pop has returned the pushed value. Each
-- operation has a list of its own, so that it pops no value of another.
blpopKind :: Dataset -> Kind
blpopKind dataset = aloneKind "blpop" ["blpop", "rpush"] $ \stream -> do
  number <- drawKey dataset stream
  list <- step stream
  let key = "queue:" <> Char8.pack (show list)
      value = valueOf (datasetValues dataset) number
  pure $ \client -> do
    popping <- Redis.submit client (Commands.blpop (key :| []) (Just (Duration.seconds 10)))
    pushed <- Redis.tryRun client (Commands.rpush key (value :| []))
    popped <- Redis.tryAwaitReply popping
    pure (maybe Miss (same value . snd) <$> (pushed *> popped))

-- Sets a key and reads it back in one transaction: four commands, one after the other, on a
-- connection that no other thread uses meanwhile.
transactionKind :: Dataset -> Kind
transactionKind dataset = aloneKind "transaction" ["multi", "set", "get", "exec"] $ \stream -> do
  number <- drawKey dataset stream
  let key = keyOf (datasetKeys dataset) number
      value = valueOf (datasetValues dataset) number
  pure $ \client ->
    try @Error $
      Redis.withDedicated client (Redis.AtKey key) $ \connection -> do
        -- An error here throws, and that closes the connection.
        let part arguments decoder = Redis.runOn connection (raw arguments `decodedBy` decoder)
        part ["MULTI"] (is "OK")
        part ["SET", key, value] (is "QUEUED")
        part ["GET", key] (is "QUEUED")
        part ["EXEC"] (executed value)
  where
    executed value = \case
      Array [SimpleString "OK", BulkString found] -> Right (same value found)
      other -> mismatch "what SET and GET answer" other

-- * Replies

same :: ByteString -> ByteString -> Outcome
same value found = if found == value then Hit else Wrong found

is :: ByteString -> Decoder ()
is wanted = \case
  SimpleString found | found == wanted -> Right ()
  other -> mismatch (Char8.unpack wanted) other

okay :: Decoder Outcome
okay reply = Done <$ Decode.okay reply

integerFrom :: Int -> Decoder Outcome
integerFrom least = \case
  Integer number -> Right (if number >= fromIntegral least then Done else Wrong (Char8.pack (show number)))
  other -> mismatch "an integer" other

somethingOrNull :: Decoder Outcome
somethingOrNull = \case
  BulkString _ -> Right Hit
  Null -> Right Miss
  other -> mismatch "an element" other

someText :: Decoder Outcome
someText = \case
  BulkString _ -> Right Done
  SimpleString _ -> Right Done
  other -> mismatch "text" other

-- * Subscribers

-- | Runs an action while this number of subscribers, each on a connection of its own to this node, listen to what
-- the test @publish@ sends. Then waits for at most ten seconds until they have received as many messages
-- as the function of the action's result says. Returns the number of messages as well. Throws the
-- library's error if they cannot subscribe.
withSubscribers :: Config -> Endpoint -> Int -> (a -> Int) -> IO a -> IO (a, Int)
withSubscribers config node subscribers wanted action = do
  heard <- newIORef 0
  let seat :: Int -> IO b -> IO b
      seat 0 body = body
      seat more body = withWire config node $ \wire -> do
        sendBytes wire ("SUBSCRIBE " <> channel <> "\r\n")
        -- The confirmation.
        _ <- receiveReply wire
        withAsync (forever (receiveReply wire >>= note heard . fst)) (const (seat (more - 1) body))
  seat subscribers $ do
    result <- action
    now <- monotonic
    waitFor heard (wanted result) (now + nanosIn 10)
    (,) result <$> readIORef heard
  where
    note heard reply = when (isMessage reply) (atomicModifyIORef' heard (\before -> (before + 1, ())))
    isMessage = \case
      Push (BulkString "message" : _) -> True
      -- In RESP2.
      Array (BulkString "message" : _) -> True
      _ -> False
    waitFor heard count latest = do
      got <- readIORef heard
      now <- monotonic
      if got >= count || now >= latest
        then pure ()
        else sleepUntil (min latest (now + 5000000)) >> waitFor heard count latest
