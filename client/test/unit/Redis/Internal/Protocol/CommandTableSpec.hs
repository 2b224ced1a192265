module Redis.Internal.Protocol.CommandTableSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (sort)
import Data.Maybe (isNothing)
import Redis.Internal.Protocol.CommandTable
import Redis.Internal.Protocol.CommandTable.Generated (tableText)
import Redis.Internal.Protocol.KeySpec
import Redis.Value (Value (..))
import Test.Hspec

spec :: Spec
spec = describe "Redis.Internal.Protocol.CommandTable" $ do
  it "parses every line of its text" $ do
    filter (isNothing . parseEntry) (Char8.lines tableText) `shouldBe` []
    length allCommands `shouldBe` length (Char8.lines tableText)
    map entryName allCommands `shouldBe` sort (map entryName allCommands)

  it "refuses a line that it does not understand" $
    mapM_
      (\line -> parseEntry line `shouldBe` Nothing)
      [ "",
        "GET",
        "GET 2 r",
        "GET 2 r fast",
        "GET two r fast -",
        "GET 2 q fast -",
        "GET 2 r fast nobody",
        "GET 2 r fast -:agg_none",
        "GET 2 r fast all_shards:agg_sum:agg_min",
        "GET 2 r fast - x1:r0,1,0",
        "GET 2 r fast - i1",
        "GET 2 r fast - i1:r0,1",
        "GET 2 r fast - i1:q0,1,0",
        "GET 2 r fast - i1:r0,1,0!",
        "GET 2 r fast - i1:r0,1,0?!",
        "GET 2 r fast - ux:r0,1,0"
      ]

  it "has these lines" $
    filter (`notElem` Char8.lines tableText) golden `shouldBe` []

  it "reads a line" $
    parseEntry "XREAD -4 rb read,slow all_shards:agg_sum kSTREAMS,1:r-1,1,2 i1:n0,1,1?"
      `shouldBe` Just
        CommandEntry
          { entryName = "XREAD",
            entryArity = -4,
            entryReadOnly = True,
            entryBlocking = True,
            entryContainer = False,
            entryCategories = Just ["read", "slow"],
            entryRequestPolicy = Just RequestAllShards,
            entryResponsePolicy = Just (ResponseAggregated AggSum),
            entryKeySpecs = [KeySpec (BeginAfter "STREAMS" 1) (KeyRange (-1) 1 2) False, KeySpec (BeginAt 1) (KeyCount 0 1 1) True]
          }

  it "finds commands and subcommands in any case" $ do
    (entryName <$> lookupCommand ["get", "k"]) `shouldBe` Just "GET"
    (entryName <$> lookupCommand ["config", "gEt", "k"]) `shouldBe` Just "CONFIG|GET"
    (entryName <$> lookupCommand ["COMMAND"]) `shouldBe` Just "COMMAND"
    (entryName <$> lookupCommand ["CONFIG", "NOSUCH"]) `shouldBe` Nothing
    (entryName <$> lookupCommand ["NOSUCH"]) `shouldBe` Nothing
    (entryName <$> lookupCommand []) `shouldBe` Nothing

  it "names a command with its subcommand" $
    map nameFromArguments [["get", "k"], ["config", "get", "k"], ["command"], ["nosuch", "x"], []]
      `shouldBe` ["GET", "CONFIG GET", "COMMAND", "NOSUCH", ""]

  it "knows the time that a blocking command may take" $
    map
      blocks
      [ "GET k",
        "BLPOP a b 1.5",
        "BLPOP a 0",
        "BLPOP a .5",
        "BLPOP a 5.",
        "BLPOP a x",
        "BLPOP a inf",
        "BRPOP a 2",
        "BLMOVE a b LEFT RIGHT 3",
        "BRPOPLPUSH a b 4",
        "BLMOVEM a b LEFT RIGHT 4.5 EXACTLY 3 BULK",
        "BLMOVEM a b LEFT RIGHT 0 COUNT 9 OBO",
        "BZPOPMIN a 5",
        "BZPOPMAX a 6",
        "BLMPOP 7 1 a LEFT",
        "BZMPOP 8 1 a MIN",
        "XREAD STREAMS a 0",
        "XREAD COUNT BLOCK STREAMS BLOCK 0",
        "XREAD COUNT 1 BLOCK 250 STREAMS a $",
        "XREAD BLOCK 0 STREAMS a $",
        "XREADGROUP GROUP BLOCK 3 block 1000 STREAMS a >",
        "XREADGROUP GROUP g c STREAMS a >",
        "XREADGROUP BLOCK 500 GROUP g c STREAMS a >",
        "XREADGROUP GROUP g BLOCK COUNT 7 STREAMS a >",
        "XREAD BLOCK 500 BLOCK 750 STREAMS a $",
        "XREAD MAXCOUNT 5 MAXSIZE 100 BLOCK 125 STREAMS a $",
        "WAIT 1 100",
        "WAIT 1 0",
        "WAITAOF 1 1 2000"
      ]
      `shouldBe` [ Nothing,
                   Just (Just 1.5),
                   Just Nothing,
                   Just (Just 0.5),
                   Just (Just 5),
                   Just Nothing,
                   Just Nothing,
                   Just (Just 2),
                   Just (Just 3),
                   Just (Just 4),
                   Just (Just 4.5),
                   Just Nothing,
                   Just (Just 5),
                   Just (Just 6),
                   Just (Just 7),
                   Just (Just 8),
                   Nothing,
                   Nothing,
                   Just (Just 0.25),
                   Just Nothing,
                   Just (Just 1),
                   Nothing,
                   Just (Just 0.5),
                   Nothing,
                   Just (Just 0.75),
                   Just (Just 0.125),
                   Just (Just 0.1),
                   Just Nothing,
                   Just (Just 2)
                 ]

  it "says of every blocking command of the table where its timeout is" $
    mapM_
      (\entry -> entryBlocks entry (blockingExample (entryName entry)) `shouldBe` Just (Just 2))
      (filter entryBlocking allCommands)

  it "gives every blocking command of the table another timeout, and changes nothing else" $
    mapM_
      ( \entry -> do
          let unchanged = blockingExample (entryName entry)
              changed = withTimeout entry 0.5 unchanged
          (changed >>= entryBlocks entry) `shouldBe` Just (Just 0.5)
          fmap (length . filter id . zipWith (/=) unchanged) changed `shouldBe` Just 1
          fmap length changed `shouldBe` Just (length unchanged)
      )
      (filter entryBlocking allCommands)

  it "never makes a timeout one for ever" $
    mapM_
      ( \entry -> do
          -- In commands with a timeout in seconds, servers before 7.0.8 take one millisecond for no
          -- timeout.
          let least = if entryName entry `elem` ["WAIT", "WAITAOF", "XREAD", "XREADGROUP"] then 0.001 else 0.002
          (withTimeout entry 0 (blockingExample (entryName entry)) >>= entryBlocks entry) `shouldBe` Just (Just least)
      )
      (filter entryBlocking allCommands)

  it "gives no timeout to a command that has none" $
    [withTimeout entry 1 commandArguments | commandArguments <- [["GET", "k"], ["XREAD", "STREAMS", "k", "0"]], Just entry <- [lookupCommand commandArguments]]
      `shouldBe` [Nothing, Nothing]

  it "keeps commands that change a connection from shared ones" $
    filter
      (maybe True (not . changesConnection) . lookupCommand . Char8.words)
      ["SELECT 1", "select 1", "MULTI", "SUBSCRIBE c", "client reply off", "CLIENT SETNAME n", "SCRIPT DEBUG YES", "WAIT 1 0"]
      `shouldBe` []

  it "lets the others share one" $
    filter
      (maybe True changesConnection . lookupCommand . Char8.words)
      ["GET k", "CLIENT ID", "CLIENT LIST", "CLIENT KILL ID 3", "CLIENT PAUSE 1", "SCRIPT LOAD s", "PUBLISH c m", "EVAL s 0"]
      `shouldBe` []

  it "does not know a subcommand that is still to come" $
    map (lookupCommand . Char8.words) ["CLIENT NOTYETINVENTED", "PUBSUB NOTYETINVENTED"] `shouldBe` [Nothing, Nothing]

  describe "reads the reply to COMMAND INFO" $ do
    it "of RESP2" $ entryFromReply (xread flatMap) `shouldBe` lookupCommand ["XREAD"]
    it "of RESP3" $ entryFromReply (xread Map) `shouldBe` lookupCommand ["XREAD"]
    it "of a keynum specification" $ entryFromReply eval `shouldBe` lookupCommand ["EVAL"]
    it "with the policies among its tips" $ entryFromReply dbsize `shouldBe` lookupCommand ["DBSIZE"]
    it "and takes a policy that it does not know for a special one" $
      fmap (\entry -> (entryRequestPolicy entry, entryResponsePolicy entry)) (entryFromReply newPolicies)
        `shouldBe` Just (Just RequestSpecial, Just ResponseSpecial)
    it "of a server without key specifications" $ do
      entryFromReply (old "mset" (-3) 1 (-1) 2 ["write"])
        `shouldBe` (withoutPolicies <$> lookupCommand ["MSET"])
      entryFromReply (old "rename" 3 1 2 1 ["write"])
        `shouldBe` fmap (\entry -> (withoutPolicies entry) {entryKeySpecs = [KeySpec (BeginAt 1) (KeyRange 1 1 0) False]}) (lookupCommand ["RENAME"])
      entryFromReply (old "ping" (-1) 0 0 0 ["fast"]) `shouldBe` (withoutPolicies <$> lookupCommand ["PING"])
    it "of a server that does not tell categories" $
      (entryCategories <$> entryFromReply (older "mset" (-3) 1 (-1) 2 ["write"])) `shouldBe` Just Nothing
    it "of an old server that cannot tell the keys" $
      (entryFromReply (old "eval" (-3) 0 0 0 ["movablekeys"]) >>= (`commandKeys` ["EVAL", "s", "1", "a"]))
        `shouldBe` Nothing
    it "unless it is no such thing" $
      mapM_
        (\reply -> entryFromReply reply `shouldBe` Nothing)
        [Null, Array [], Integer 1, BulkString "get", Array (replicate 10 Null), Array (replicate 6 (Integer 1))]

  describe "reads what it says of words" $ do
    it "of a command" $ describedAs ["xread", "STREAMS", "k", "0"] (xread Map) `shouldBe` lookupCommand ["XREAD"]
    it "of a subcommand, in any case" $
      describedAs ["foreign", "Ask", "k"] container `shouldBe` fmap (\entry -> entry {entryName = "FOREIGN|ASK"}) (entryFromReply dbsize)
    it "of a container without its subcommand" $
      (entryContainer <$> describedAs ["FOREIGN"] container) `shouldBe` Just True
    it "but nothing of a subcommand that the server does not name" $ do
      describedAs ["FOREIGN", "NOSUCH"] container `shouldBe` Nothing
      -- A server before 7.0 lists no subcommands.
      describedAs ["CLIENT", "NOTYETINVENTED"] (old "client" (-2) 0 0 0 ["admin"]) `shouldBe` Nothing

blocks :: ByteString -> Maybe (Maybe Double)
blocks line = lookupCommand (Char8.words line) >>= (`entryBlocks` Char8.words line)

-- | An example of a blocking command, with a timeout of two seconds.
blockingExample :: ByteString -> [ByteString]
blockingExample name
  | name `elem` ["WAIT", "WAITAOF"] = [name, "1", "2000"]
  | name == "BLMOVEM" = [name, "a", "b", "LEFT", "RIGHT", "2", "COUNT", "3", "BULK"]
  | name `elem` ["BLMPOP", "BZMPOP"] = [name, "2", "1", "k", "LEFT"]
  | name == "XREAD" = [name, "BLOCK", "2000", "STREAMS", "k", "0"]
  | name == "XREADGROUP" = [name, "GROUP", "g", "c", "BLOCK", "2000", "STREAMS", "k", "0"]
  | otherwise = [name, "k", "2"]

golden :: [ByteString]
golden =
  [ "GET 2 r fast,read,string - i1:r0,1,0",
    "SET -3 - slow,string,write - i1:r0,1,0",
    "BLMPOP -5 b blocking,list,slow,write - i2:n0,1,1",
    "CLIENT -2 c slow -",
    "CLIENT|LIST -2 - admin,connection,dangerous,slow -",
    "DBSIZE 1 r fast,keyspace,read all_shards:agg_sum",
    "SLOWLOG|GET -2 - admin,dangerous,slow all_nodes",
    "VADD -1 - - - i1:r0,1,0",
    -- The older server gives all_succeeded.
    "LATENCY|RESET -2 - admin,dangerous,slow all_nodes:agg_sum",
    -- The older server gives no policy.
    "ACL|SETUSER -3 - admin,dangerous,slow all_nodes:all_succeeded",
    -- The older server splits the command.
    "MSETNX -3 - slow,string,write - i1:r-1,2,0",
    -- The older server does not call the command blocking.
    "WAIT 3 b blocking,connection,slow all_shards:agg_min"
  ]

withoutPolicies :: CommandEntry -> CommandEntry
withoutPolicies entry = entry {entryRequestPolicy = Nothing, entryResponsePolicy = Nothing}

-- | The description of a command by servers before 7.0.
old :: ByteString -> Int -> Int -> Int -> Int -> [ByteString] -> Value
old name arity first lastKey step flags = case older name arity first lastKey step flags of
  Array parts -> Array (parts <> [Array (map SimpleString (categoriesOf name))])
  other -> other

-- | The description of a command by servers before 6.0.
older :: ByteString -> Int -> Int -> Int -> Int -> [ByteString] -> Value
older name arity first lastKey step flags =
  Array
    ( [BulkString name, number arity, Array (map SimpleString flags)]
        <> map number [first, lastKey, step]
    )
  where
    number = Integer . fromIntegral

flatMap :: [(Value, Value)] -> Value
flatMap entries = Array (concat [[key, value] | (key, value) <- entries])

categoriesOf :: ByteString -> [ByteString]
categoriesOf name = maybe [] (map ("@" <>)) (lookupCommand [name] >>= entryCategories)

xread :: ([(Value, Value)] -> Value) -> Value
xread asMap =
  describing
    "xread"
    (-4)
    ["readonly", "blocking", "movablekeys"]
    ["nondeterministic_output"]
    [ keySpec
        asMap
        ("keyword", [(BulkString "keyword", BulkString "STREAMS"), (BulkString "startfrom", Integer 1)])
        ("range", [(BulkString "lastkey", Integer (-1)), (BulkString "keystep", Integer 1), (BulkString "limit", Integer 2)])
    ]
    []

eval :: Value
eval =
  describing
    "eval"
    (-3)
    ["noscript", "movablekeys"]
    []
    [ keySpec
        Map
        ("index", [(BulkString "index", Integer 2)])
        ("keynum", [(BulkString "keynumidx", Integer 0), (BulkString "firstkey", Integer 1), (BulkString "keystep", Integer 1)])
    ]
    []

dbsize :: Value
dbsize = describing "dbsize" 1 ["readonly", "fast"] ["response_policy:agg_sum", "request_policy:all_shards"] [] []

newPolicies :: Value
newPolicies = describing "dbsize" 1 ["readonly"] ["request_policy:some_nodes", "response_policy:agg_median"] [] []

-- | A command of a module, with one subcommand that is like DBSIZE.
container :: Value
container = describing "foreign" (-2) [] [] [] [subcommand]
  where
    subcommand = case dbsize of
      Array (_ : rest) -> Array (BulkString "foreign|ask" : rest)
      other -> other

describing :: ByteString -> Int -> [ByteString] -> [ByteString] -> [Value] -> [Value] -> Value
describing name arity flags tips specs subcommands =
  Array
    [ BulkString name,
      Integer (fromIntegral arity),
      Set (map SimpleString flags),
      Integer 0,
      Integer 0,
      Integer 0,
      Set (map SimpleString (categoriesOf name)),
      Array (map BulkString tips),
      Array specs,
      Array subcommands
    ]

keySpec :: ([(Value, Value)] -> Value) -> (ByteString, [(Value, Value)]) -> (ByteString, [(Value, Value)]) -> Value
keySpec asMap (beginType, begin) (findType, find) =
  asMap
    [ (BulkString "flags", Set [SimpleString "RO"]),
      (BulkString "begin_search", asMap [(BulkString "type", BulkString beginType), (BulkString "spec", asMap begin)]),
      (BulkString "find_keys", asMap [(BulkString "type", BulkString findType), (BulkString "spec", asMap find)])
    ]
