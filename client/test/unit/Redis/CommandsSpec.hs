module Redis.CommandsSpec (spec) where

import Control.Exception (IOException, evaluate, try)
import Control.Monad (forM_, unless)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isAlphaNum, isAscii, isLower, isPrint, toLower)
import Data.Either (isLeft)
import Data.List (inits, isInfixOf, isPrefixOf, nub, stripPrefix, tails)
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Maybe (mapMaybe)
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Command.Build qualified as Build
import Redis.CommandCase (Case (..), Outcome (..))
import Redis.CommandCases (cases)
import Redis.Commands
import Redis.Duration
import Redis.Error (Delivery (..), Endpoint (..), Refusal (..), errorDelivery)
import Redis.Internal.Command
import Redis.Internal.Protocol.CommandTable (CommandEntry (..), lookupCommand)
import Redis.Internal.Protocol.CommandTable qualified as Table
import Redis.Internal.Protocol.Encode (request, requestBytes)
import Redis.Internal.Protocol.Slot (slotNumber)
import Redis.Value (Value (..))
import Support (naiveRequest)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Commands" $ do
  describe "on the wire" $ do
    it "is an array of bulk strings, byte for byte" $ do
      requestBytes (commandRequest (get "key")) `shouldBe` "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
      requestBytes (commandRequest (set "key" "a\r\nb")) `shouldBe` "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$4\r\na\r\nb\r\n"
      requestBytes (commandRequest ping) `shouldBe` "*1\r\n$4\r\nPING\r\n"
      requestBytes (commandRequest (del ("" :| []))) `shouldBe` "*2\r\n$3\r\nDEL\r\n$0\r\n\r\n"
    forM_ cases $ \Case {caseCommand, caseWords} ->
      it ("is " <> sentence caseWords) $ do
        commandArguments caseCommand `shouldBe` caseWords
        requestBytes (commandRequest caseCommand) `shouldBe` naiveRequest caseWords

  describe "agrees with what servers say of" $
    forM_ cases $ \Case {caseCommand, caseWords} ->
      it (sentence caseWords) $ case lookupCommand caseWords of
        Nothing -> expectationFailure "the servers have no such command"
        Just entry -> do
          commandName caseCommand `shouldBe` Char8.map bar (entryName entry)
          caseWords `shouldSatisfy` arityFits entry
          Just (commandKeys caseCommand) `shouldBe` Table.commandKeys entry caseWords

  describe "has of a documented reply the outcome of" $
    forM_ cases $ \Case {caseCommand, caseWords, caseOutcome, caseReplies} ->
      unless (null caseReplies) . it (sentence caseWords) . forM_ caseReplies $ \reply ->
        case (decoded caseCommand reply, caseOutcome) of
          (Right got, Gives expected) -> got `shouldBe` expected
          (Right got, Such _ holds) -> got `shouldSatisfy` holds
          (got, _) -> expectationFailure (show got)

  it "is written down word for word for every command that is exported, by its name" $ do
    exported <- exportedCommands
    length exported `shouldSatisfy` (> 50)
    -- The words of 'raw' are the caller's, so it has no case.
    List.sort (nub (map caseName cases)) `shouldBe` filter (/= "raw") exported

  it "links to the servers' page of each command" $ do
    text <- concat <$> (traverse source =<< commandModules)
    let page = map (\char -> if char `elem` ("| " :: String) then '-' else toLower char) . Char8.unpack
    [name | name <- nub [commandName caseCommand | Case {caseCommand} <- cases], not (("/commands/" <> page name <> "/") `isInfixOf` text)]
      `shouldBe` []

  it "has the server's name, subcommand and all, and at most a word more" $
    [(caseName, commandName caseCommand) | Case {caseName, caseCommand} <- cases, not (plain (Char8.unpack (commandName caseCommand)) `isPrefixOf` plain caseName)]
      `shouldBe` []

  replies
  deliveries
  rawCommands

plain :: String -> String
plain = map toLower . filter isAlphaNum

bar :: Char -> Char
bar char = if char == '|' then ' ' else char

-- | The words as a user types them. Characters that cannot be printed are written as in Haskell.
sentence :: [ByteString] -> String
sentence = concatMap printed . Char8.unpack . Char8.unwords
  where
    printed char
      | isAscii char && isPrint char = [char]
      | otherwise = takeWhile (/= '\'') (drop 1 (show char))

arityFits :: CommandEntry -> [ByteString] -> Bool
arityFits entry commandWords'
  | entryArity entry < 0 = length commandWords' >= negate (entryArity entry)
  | otherwise = length commandWords' == entryArity entry

-- | The names of all functions that make commands and that "Redis.Commands" exports, in order.
exportedCommands :: IO [String]
exportedCommands = List.sort . concat <$> (traverse (fmap commandsOf . source) =<< commandModules)

-- | The files of the modules that "Redis.Commands" exports.
commandModules :: IO [FilePath]
commandModules =
  mapMaybe (fmap (pathOf . takeWhile (/= ' ')) . stripPrefix "import ") . filter (" as Commands" `List.isSuffixOf`) . lines <$> source "Redis/Commands.hs"
  where
    pathOf name = map (\char -> if char == '.' then '/' else char) name <> ".hs"

-- | The names in a module's export list that have the type of a command.
commandsOf :: String -> [String]
commandsOf text =
  [ name
    | line <- exports,
      name@(first : _) <- [takeWhile (/= ',') (dropWhile (`elem` (" (" :: String)) line)],
      isLower first,
      any (makesCommand name) signatures
  ]
  where
    (exports, body) = break ("where" `isPrefixOf`) (dropWhile (not . ("module " `isPrefixOf`)) (lines text))
    signatures = joined body
    -- Several names of one type may share a signature.
    makesCommand name signature = case break (== ':') signature of
      (names, ':' : ':' : type') -> name `elem` words (map (\char -> if char == ',' then ' ' else char) names) && "Command " `isInfixOf` type'
      _ -> False
    -- A line, joined with the indented lines below it.
    joined = \case
      [] -> []
      line : rest -> let (more, others) = span (" " `isPrefixOf`) rest in concat (line : more) : joined others

-- | A file of the library. Tests run in the package's folder or in the folder above it.
source :: FilePath -> IO String
source path = do
  here <- try (readFile ("src/" <> path)) :: IO (Either IOException String)
  either (const (readFile ("client/src/" <> path))) pure here

-- | The results of commands from replies in the forms of both protocols.
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
    decoded (setGet "k" "v") (BulkString "before") `shouldBe` Right (Just "before")

  it "TTL" $
    mapM (decoded (ttl "k") . Integer) [-2, -1, 0, 5] `shouldBe` Right [NoSuchKey, NeverExpires, KeyExpires mempty, KeyExpires (seconds 5)]

  it "PTTL, which no other negative number is" $
    decoded (pttl "k") (Integer (-3)) `shouldSatisfy` isLeft

  it "PTTL, to the millisecond" $
    mapM (decoded (pttl "k") . Integer) [-1, 1500] `shouldBe` Right [NeverExpires, KeyExpires (seconds 1.5)]

  it "TYPE, those of modules too" $
    mapM (decoded (type_ "k") . SimpleString) ["none", "string", "list", "set", "zset", "hash", "stream", "ReJSON-RL"]
      `shouldBe` Right (Nothing : map Just [StringKey, ListKey, SetKey, SortedSetKey, HashKey, StreamKey, OtherKey "ReJSON-RL"])

  it "SLOWLOG GET, with a client and of servers before 4.0" $ do
    let words' = Array [BulkString "GET", BulkString "k"]
        entry rest = Array ([Integer 7, Integer 1700000000, Integer 12345, words'] <> rest)
        expected = SlowlogEntry 7 (posixSecondsToUTCTime 1700000000) (seconds 0.012345) ["GET", "k"]
    decoded
      (slowlogGet 3)
      (Array [entry [BulkString "127.0.0.1:5", BulkString "n"], entry [BulkString "127.0.0.1:5", BulkString ""], entry []])
      `shouldBe` Right [expected (Just "127.0.0.1:5") (Just "n"), expected (Just "127.0.0.1:5") Nothing, expected Nothing Nothing]
    decoded (slowlogGet 3) (Array [Array [Integer 7]]) `shouldSatisfy` isLeft

  it "INCRBYFLOAT in both protocols" $
    mapM (decoded (incrbyfloat "k" 1)) [BulkString "3.5", Double 3.5] `shouldBe` Right [3.5, 3.5]

  it "SCAN" $ do
    let page cursor names = Array [BulkString cursor, Array (map BulkString names)]
        step = decoded (scan scanStart)
    fmap scanFound (step (page "17" ["a", "b"])) `shouldBe` Right ["a", "b"]
    fmap scanNext (step (page "0" [])) `shouldBe` Right Nothing
    case step (page "18446744073709551615" []) of
      Right ScanPage {scanNext = Just next} ->
        requestBytes (commandRequest (scan next)) `shouldBe` naiveRequest ["SCAN", "18446744073709551615"]
      other -> expectationFailure (show other)
    step (Array [BulkString "0"]) `shouldSatisfy` isLeft

  it "BLPOP" $ do
    let pop = decoded (blpop ("a" :| []) (Just (seconds 1)))
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
    mapM (decoded clientGetname) [Null, BulkString "", BulkString "n"] `shouldBe` Right [Nothing, Nothing, Just "n"]

  it "INFO, plain and verbatim" $ do
    let text = "# Server\r\nredis_version:7.0.15\r\nexecutable:/a:b\r\n\r\n# Clients\r\nconnected_clients:1\r\n"
        expected = Right [("redis_version", "7.0.15"), ("executable", "/a:b"), ("connected_clients", "1")]
    mapM (decoded info) [BulkString text, VerbatimString "txt" text] `shouldBe` fmap (\fields -> [fields, fields]) expected

  it "TIME" $ do
    decoded time (Array [BulkString "1700000000", BulkString "12"]) `shouldBe` Right (posixSecondsToUTCTime 1700000000.000012)
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
    mapM (`decoded` Integer 1) [setnx "k" "v", expire "k" (seconds 1), persist "k", renamenx "a" "b", copy "a" "b", msetnx (("a", "1") :| [])]
      `shouldBe` Right (replicate 6 True)

-- | Whether an error reply leaves it in doubt that the command has run.
deliveries :: Spec
deliveries = describe "an error reply" $ do
  it "to a command that does all or nothing says that it has not run" $
    map (`toldOf` "ERR value is not an integer") [commandFacts (incr "k"), commandFacts (set "k" "v"), commandFacts (raw ["incr", "k"])]
      `shouldBe` replicate 3 (Just RefusedBeforeRun)

  it "to what may fail half-way, or to an unknown command, leaves a doubt" $
    map
      (`toldOf` "ERR value is not an integer")
      [ commandFacts (eval "s" ["k"] []),
        commandFacts (evalsha "d" ["k"] []),
        commandFacts (fcall "f" ["k"] []),
        commandFacts (raw ["EXEC"]),
        commandFacts (raw ["NOSUCH", "k"]),
        unknownFacts
      ]
      `shouldBe` replicate 6 (Just MaybeExecuted)

  it "that itself says so leaves no doubt of a script" $
    map
      (toldOf (commandFacts (eval "s" ["k"] [])))
      ["NOSCRIPT No matching script.", "LOADING Redis is loading the dataset in memory", "WRONGTYPE x"]
      `shouldBe` [Just RefusedBeforeRun, Just RefusedBeforeRun, Just MaybeExecuted]

  it "that names the very command as unknown says that it has not run, however the server quotes and cuts the name" $ do
    let long = Char8.replicate 200 'x'
    map
      (\(words', text) -> deliveryOf (raw words') text)
      [ (["JSON.GET", "k"], "ERR unknown command 'JSON.GET', with args beginning with: 'k' "),
        (["json.get", "k"], "ERR unknown command `JSON.GET`, with args beginning with: `k`, "),
        (["JSON.GET", "k"], "ERR unknown command 'JSON.GET'"),
        ([long], "ERR unknown command '" <> Char8.take 128 long <> "', with args beginning with: "),
        (["CLIENT", "NOTYET"], "ERR unknown subcommand 'NOTYET'. Try CLIENT HELP.")
      ]
      `shouldBe` replicate 5 (Just RefusedBeforeRun)

  it "that names another command as unknown leaves a doubt: a script or a module may have called it" $
    map
      (uncurry deliveryOf)
      [ (raw ["JSON.GET", "k"], "ERR unknown command 'JSON.GE', with args beginning with: 'k' "),
        (raw ["JSON.GET", "k"], "ERR unknown command ''"),
        (raw ["JSON.GET", "k"], "ERR unknown command"),
        (raw ["JSON.GET", "k"], "FAILED unknown command 'JSON.GET'"),
        (raw ["X.RUN", "JSON.GET"], "ERR unknown command 'JSON.GET'"),
        (eval "s" ["k"] [], "ERR unknown command 'JSON.GET'"),
        (eval "s" ["k"] [], "ERR Unknown Redis command called from script script: s, on @user_script:1.")
      ]
      `shouldBe` replicate 7 (Just MaybeExecuted)

  it "that ends the wait of a command that had begun leaves a doubt" $ do
    let assigned = toldOf (commandFacts (clusterSetslot 5 (SlotOf "n")))
        lacking = "NOREPLICAS Not enough good replicas to write."
    map assigned [lacking, "UNBLOCKED force unblock from blocking operation", "ERR Unknown node n"]
      `shouldBe` [Just MaybeExecuted, Just MaybeExecuted, Just RefusedBeforeRun]
    toldOf (commandFacts (incr "k")) lacking `shouldBe` Just RefusedBeforeRun

  it "is seen behind attributes" $
    either (const True) (const False) (fromReply (factInfo (commandFacts (incr "k"))) (request ["INCR", "k"]) (WithAttributes [] (ErrorReply "ERR x"))) `shouldBe` True

toldOf :: Facts -> ByteString -> Maybe Delivery
toldOf facts text = either (Just . errorDelivery) (const Nothing) (fromReply (factInfo facts) (request ["X"]) (ErrorReply text))

deliveryOf :: Command a -> ByteString -> Maybe Delivery
deliveryOf given text = either (Just . errorDelivery) (const Nothing) (fromReply (factInfo (commandFacts given)) (commandRequest given) (ErrorReply text))

rawCommands :: Spec
rawCommands = describe "raw" $ do
  it "goes where its keys are, in any case of letters" $
    map
      (described . raw)
      [["PING"], ["get", "k"], ["mget", "a", "b"], ["MSET", "a", "1", "b", "2"], ["MSET", "a", "1", "b"], ["EVAL", "s", "1", "k", "x"], ["OBJECT", "ENCODING", "k"], ["RENAME", "a", "b"]]
      `shouldBe` ["any", "one k", "split by 1: a b", "split by 2: a b", "same a b", "one k", "one k", "same a b"]

  it "goes to every node of which each has a part of the answer, or must be told which" $
    map (described . raw) [["dbsize"], ["KEYS", "*"], ["SCAN", "0"], ["SELECT", "1"]]
      `shouldBe` ["every Primaries AggSum", "every Primaries AggConcatenated", "a node's own", "a node's own"]

  it "asks the server where it cannot tell" $
    map (described . raw) [["NOSUCH", "a"], ["EVAL", "s", "x", "k"], ["OBJECT", "NOSUCH", "k"], []]
      `shouldBe` replicate 4 "ask"

  it "knows reads, writes, blocking commands and those that change the connection" $ do
    commandFacts (raw ["GET", "k"]) `shouldBe` readFacts
    commandFacts (raw ["INCR", "k"]) `shouldBe` writeFacts
    commandFacts (raw ["EVAL", "s", "0"]) `shouldBe` untoldFacts
    commandFacts (raw ["INFO"]) `shouldBe` readFacts
    commandFacts (raw ["XREAD", "BLOCK", "500", "STREAMS", "k", "0-0"]) `shouldBe` withInfo (\told -> told {infoBlocking = BlocksFor 0.5}) readFacts
    commandFacts (raw ["BLPOP", "k", "0"]) `shouldBe` withInfo (\told -> told {infoBlocking = BlocksForever}) writeFacts
    commandFacts (raw ["MULTI"]) `shouldBe` withInfo (\told -> told {infoScope = ConnectionState}) writeFacts
    commandFacts (raw ["CLIENT", "REPLY", "OFF"]) `shouldBe` withInfo (\told -> told {infoScope = ConnectionState}) writeFacts
    commandFacts (raw ["script", "kill"]) `shouldBe` withInfo (\told -> told {infoScope = ControlConnection}) writeFacts

  it "in one line does what the server reads in that line" $ do
    let waiting = Build.inline "XREAD \"BLOCK\" 500 STREAMS k $"
    map (described . Build.inline) ["GET \"a key\"", "MGET a b"] `shouldBe` ["one a key", "split by 1: a b"]
    (described waiting, factBlocking (commandFacts waiting)) `shouldBe` ("one k", BlocksFor 0.5)
    commandName (Build.inline "config get maxmemory") `shouldBe` "CONFIG GET"
    commandArguments (Build.inline " ") `shouldBe` []

  prop "sends any words as they stand, and tells them" $
    forAll (listOf (Char8.pack <$> arbitrary)) $ \words' ->
      requestBytes (commandRequest (raw words')) === naiveRequest words'
        .&&. commandArguments (raw words') === words'

  it "with an argument that no server takes is not sent, whatever is said of its route" $ do
    let nan = 0 / 0
        unfit name why = show (UnfitArgument name why)
    map
      described
      [zadd "k" (("m", nan) :| []), zadd "k" (("a", 1) :| [("b", nan)]), onNode (UnixEndpoint "/s") (zadd "k" (("m", nan) :| []))]
      `shouldBe` replicate 3 (unfit "ZADD" "NaN")
    described (incrbyfloat "k" nan) `shouldBe` unfit "INCRBYFLOAT" "NaN"
    map (\glob -> described (aclSetuser "alice" [AclSelector [AclKeys glob, AclCategory "read"]])) ["x +@all ~*", "it's:*"]
      `shouldBe` replicate 2 (unfit "ACL SETUSER" "a selector's rule with a blank or a quote")
    described (lpopCount "k" (-1)) `shouldBe` unfit "LPOP" "-1, which is less than 0"
    described (lrem "k" (RemoveLast 0) "x") `shouldBe` unfit "LREM" "0, which is less than 1"
    described (onEvery AllNodes (lpopCount "k" (-1))) `shouldBe` unfit "LPOP" "-1, which is less than 0"
    described (scanWith scanDefaults {scanCount = Just 0} scanStart) `shouldBe` unfit "SCAN" "0, which is less than 1"

  it "of a module may be declared to read, to write, to wait, and to be repeatable, in any order" $ do
    let module' = Build.command "X.WAIT" [Build.key "k"] Right
        limit = Build.blocksFor (Just (seconds 2))
    commandFacts (Build.onlyReads (limit module')) `shouldBe` withInfo (\told -> told {infoBlocking = BlocksFor 2}) readFacts
    commandFacts (limit (Build.onlyReads module')) `shouldBe` withInfo (\told -> told {infoBlocking = BlocksFor 2}) readFacts
    commandFacts (Build.writes (idempotent module')) `shouldBe` untoldFacts {factOptions = noOptions {optionIdempotent = True}}
    commandFacts (idempotent (Build.writes module')) `shouldBe` untoldFacts {factOptions = noOptions {optionIdempotent = True}}

  it "that is built with its subcommand as an argument is known as if the name had it" $ do
    let stays = Build.command "CLIENT" [Build.arg "no-evict", Build.arg "ON"] Right
        encoding = Build.command "OBJECT" [Build.arg "ENCODING", Build.key "k"] Right
    (described stays, commandFacts stays) `shouldBe` ("a node's own", withInfo (\told -> told {infoScope = ConnectionState}) writeFacts)
    (described encoding, commandFacts encoding) `shouldBe` ("one k", readFacts)
    described (Build.command "CLIENT" [Build.arg "NOSUCH"] Right) `shouldBe` "ask"
    described (Build.onlyReads stays) `shouldBe` "a node's own"

  it "that is not answered by one reply is not sent, however it is made" $ do
    let made name words' =
          [described (Build.inline (Char8.unwords words')), described (raw words'), described (raw (map (Char8.map toLower) words'))]
            <> [ described (Build.command (Build.nameOf (Char8.unwords front)) (map as rest) Right)
                 | (front, rest) <- drop (length (words name)) (zip (inits words') (tails words')),
                   as <- Build.arg : [Build.key | "SSUBSCRIBE" <- [name]]
               ]
    forM_
      ( [ ("CLIENT REPLY", ["CLIENT", "REPLY", "OFF"]),
          ("CLIENT REPLY", ["CLIENT", "REPLY", "SKIP"]),
          ("REPLCONF", ["REPLCONF", "GETACK", "*"]),
          ("REPLCONF", ["REPLCONF", "ACK", "0"])
        ]
          <> [(name, [Char8.pack name]) | name <- ["MONITOR", "SYNC", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"]]
          <> [(name, [Char8.pack name, "c", "d"]) | name <- ["PSYNC", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"]]
      )
      $ \(name, words') -> made name words' `shouldSatisfy` all (== show (NeedsWire (Char8.pack name)))
    map (described . raw) [["CLIENT", "REPLY", "ON"], ["REPLCONF", "listening-port", "1"]] `shouldBe` ["a node's own", "a node's own"]

  it "that is built without any word is not sent, whatever is said of it" $
    map described [Build.command "" [] Right, Build.onlyReads (Build.command " " [] Right), Build.writes (Build.command "" (Build.keys []) Right)]
      `shouldBe` replicate 3 (show EmptyCommand)

  it "that holds up its connection has one of its own" $
    map (factScope . commandFacts) [shutdown, shutdownAbort] `shouldBe` [OwnConnection, OwnConnection]

  it "that restores a value without time left does not make it live for ever" $ do
    let lifeOf expiry = take 1 (drop 2 (commandArguments (restoreWith restoreDefaults {restoreExpiry = expiry} "k" "p")))
    map lifeOf [ExpireIn (seconds 0), ExpireIn (seconds (-0.0004)), ExpireAt (posixSecondsToUTCTime 0), ExpireIn (seconds 0.0015)]
      `shouldBe` [["1"], ["1"], ["1"], ["2"]]

  it "throws what its time limit throws before anything is done with it" $
    evaluate (timeLimit (seconds (error "the caller's")) (get "k")) `shouldThrow` errorCall "the caller's"

  it "may be declared repeatable, and nothing else changes" $
    commandFacts (idempotent (raw ["SET", "k", "v"])) `shouldBe` writeFacts {factOptions = noOptions {optionIdempotent = True}}

described :: Command a -> String
described command = case routeOf command of
  AnyNode -> "any"
  AnyNodeFor slot -> "any, first the primary of slot " <> show (slotNumber slot)
  FirstKey -> "one, not named"
  OneKey key -> "one " <> Char8.unpack key
  SameSlot names -> "same " <> sentence (NonEmpty.toList names)
  Splittable stride names -> "split by " <> show stride <> ": " <> sentence (NonEmpty.toList names)
  Everywhere nodeSet how -> "every " <> show nodeSet <> " " <> show how
  PerNode nodeSet _ -> "each of " <> show nodeSet
  OneNode _ -> "the node"
  OneSlot _ -> "the slot"
  OnePrimary _ _ -> "the primary"
  NodesOwn -> "a node's own"
  Unsendable why -> show why
  AskServer _ _ -> "ask"
