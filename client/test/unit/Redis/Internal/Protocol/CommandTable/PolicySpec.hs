-- | The decisions about every command of the table, in readable form. Each command that a new
-- server version adds needs a decision here.
module Redis.Internal.Protocol.CommandTable.PolicySpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import Data.List (isInfixOf)
import Data.Maybe (fromMaybe, isJust)
import Data.Set qualified as Set
import Redis.Internal.Command.Make (splitStep)
import Redis.Internal.Protocol.CommandTable
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Protocol.CommandTable" $ do
  describe "of a command without keys says" $ do
    for_ answerers $ \(answerer, names) ->
      it (show answerer <> " if it is among the named ones, and of no other") $
        [entryName entry | entry <- keyless, whereAnswered entry == answerer] `shouldBe` names

    it "nothing else" $
      [entryName entry | entry <- keyless, whereAnswered entry `notElem` map fst answerers] `shouldBe` []

  it "never lets an administrator's command, or a write, go to an arbitrary node" $
    [ entryName entry
      | entry <- keyless,
        whereAnswered entry == AnyNodeAnswers,
        any (`elem` ["admin", "write"]) (categoriesOf entry)
    ]
      `shouldBe` []

  it "follows the server's policy wherever it has one" $
    [ entryName entry
      | entry <- keyless,
        not (changesConnection entry),
        isJust (entryRequestPolicy entry),
        whereAnswered entry == AnyNodeAnswers
    ]
      `shouldBe` ["PING"]

  describe "of a command that only its server knows" $ do
    it "sends a module's to any node, if its author has not said otherwise" $
      whereAnswered foreignEntry `shouldBe` AnyNodeAnswers
    it "does as the author says" $ do
      whereAnswered foreignEntry {entryRequestPolicy = Just RequestAllShards, entryResponsePolicy = Just (ResponseAggregated AggSum)}
        `shouldBe` EveryPrimaryAnswers AggSum
      whereAnswered foreignEntry {entryRequestPolicy = Just RequestAllNodes} `shouldBe` EveryNodeAnswers AggConcatenated
    it "has the caller name a node where the policy is special, or an administrator's" $ do
      whereAnswered foreignEntry {entryRequestPolicy = Just RequestSpecial} `shouldBe` OneNodesOwn
      whereAnswered foreignEntry {entryRequestPolicy = Just RequestAllShards, entryResponsePolicy = Just ResponseSpecial}
        `shouldBe` OneNodesOwn
      whereAnswered foreignEntry {entryCategories = Just ["admin"]} `shouldBe` OneNodesOwn
    it "keeps it from shared connections if its category may change them, or is not told" $ do
      map (\category -> changesConnection foreignEntry {entryCategories = Just ["fast", category]}) ["connection", "pubsub", "transaction", "read"]
        `shouldBe` [True, True, True, False]
      changesConnection foreignEntry {entryCategories = Nothing} `shouldBe` True
    it "takes an error for a doubt" $
      failsHalfway foreignEntry `shouldBe` True

  it "keeps these, and no others, from shared connections" $
    [entryName entry | entry <- allCommands, changesConnection entry] `shouldBe` connectionChanging

  prop "never lets a command of such a category share a connection unless it is named" $
    forAll (elements allCommands) $ \entry ->
      forAll (elements ["connection", "pubsub", "transaction"]) $ \category ->
        changesConnection entry {entryName = entryName entry <> "-TO-COME", entryCategories = Just [category]}

  it "keeps commands from shared connections whose state stays on the connection, whatever their category says" $
    [name | name <- ["HIMPORT|DISCARD", "HIMPORT|DISCARDALL", "HIMPORT|PREPARE", "HIMPORT|SET"], not (changesConnection foreignEntry {entryName = name, entryCategories = Just ["hash", "slow"]})]
      `shouldBe` []

  it "takes an error for a doubt after these, and no others" $
    [entryName entry | entry <- allCommands, failsHalfway entry]
      `shouldBe` ["DEBUG", "EVAL", "EVALSHA", "EXEC", "FCALL", "MIGRATE"]

  it "lets these, and no others, pass what waits" $
    [entryName entry | entry <- allCommands, overtakes entry]
      `shouldBe` ["CLIENT|KILL", "CLIENT|UNBLOCK", "CLIENT|UNPAUSE", "FUNCTION|KILL", "FUNCTION|STATS", "SCRIPT|KILL"]

  it "knows that these, and no others, hold up their connection though servers do not say so" $
    [entryName entry | entry <- allCommands, holdsUp entry] `shouldBe` ["CLUSTER|SETSLOT", "SHUTDOWN"]

  it "has these reads, and no others, stay with the primary" $
    [entryName entry | entry <- allCommands, staysWithPrimary entry]
      `shouldBe` ["CLUSTERSCAN", "HSCAN", "SSCAN", "TOUCH", "ZSCAN"]

  it "takes these for questions, and no others but for HELP" $
    [entryName entry | entry <- allCommands, changesNothing entry, not ("|HELP" `Char8.isSuffixOf` entryName entry)]
      `shouldBe` questions

  it "knows of every draw that its result may change at any time" $
    [ entryName entry
      | entry <- allCommands,
        entryReadOnly entry && not (null (entryKeySpecs entry)) && not (changesUntold entry),
        any (`Char8.isInfixOf` entryName entry) ["RANDFIELD", "RANDMEMBER"]
    ]
      `shouldBe` []

  it "splits these, and no others, by slots" $
    -- MSETEX is not split, because it counts its keys and has options after them.
    [(entryName entry, step) | entry <- allCommands, Just step <- [splitStep entry]]
      `shouldBe` [("DEL", 1), ("EXISTS", 1), ("MGET", 1), ("MSET", 2), ("TOUCH", 1), ("UNLINK", 1)]

  it "finds each hand-written list by what it says, and none is empty" $
    [title | (title, names) <- handLists, not (Set.null names)]
      `shouldBe` [ "harmless to connections",
                   "changes connections in spite of its categories",
                   "answered apart",
                   "overtakes",
                   "holds up its connection",
                   "stays with the primary",
                   "changes nothing",
                   "tells once",
                   "changes untold",
                   "the same everywhere",
                   "keeps an order",
                   "fails half-way",
                   "the last word limits it",
                   "the first word limits it",
                   "the fifth word limits it",
                   "the last word limits it, in milliseconds",
                   "an option limits it",
                   "an option limits it, though no server calls it blocking"
                 ]

  describe "has no name in a hand-written list that the table lacks:" $
    for_ handLists $ \(title, names) ->
      it title $ filter (\name -> not (inTable name) && name `notElem` map fst aheadOfTable) (Set.toList names) `shouldBe` []

  describe "of a command that is newer than the table" $ do
    it "is written by hand only with a reason, and only while the table lacks the command" $ do
      [name | (name, reason) <- aheadOfTable, length (words reason) < 5 || inTable name] `shouldBe` []
      filter (`notElem` concatMap (Set.toList . snd) handLists) (map fst aheadOfTable) `shouldBe` []
    it "gives it a connection of its own while it waits, and only then" $ do
      let waits = entryBlocks foreignEntry {entryName = "TS.READ", entryBlocking = False, entryReadOnly = True}
      waits ["TS.READ", "BLOCK", "0", "MAX_COUNT", "5"] `shouldBe` Nothing
      waits ["TS.READ", "k", "BLOCK"] `shouldBe` Nothing
      waits ["TS.READ", "k", "-", "block", "1500", "1"] `shouldBe` Just (Just 1.5)
      waits ["TS.READ", "k", "-", "MAX_COUNT", "5", "BLOCK", "0", "1"] `shouldBe` Just Nothing
    it "has it asked once while it waits for what comes after the end" $ do
      let told = tellsOnce foreignEntry {entryName = "TS.READ", entryBlocking = False, entryReadOnly = True} . Char8.words
      filter told ["TS.READ k $", "TS.READ k 5 BLOCK 0 1", "TS.READ k $ BLOCK 0 1", "TS.READ k + BLOCK 0 2"]
        `shouldBe` ["TS.READ k $ BLOCK 0 1", "TS.READ k + BLOCK 0 2"]

  describe "has no name in a hand-written list that says it in vain:" $ do
    it "harmless to connections" $
      [name | name <- listed "harmless to connections", not (any mayChange (lookup' name))] `shouldBe` []
    it "changes connections in spite of its categories" $
      [name | name <- listed "changes connections in spite of its categories", any mayChange (lookup' name)] `shouldBe` []
    it "answered apart" $
      -- Where connections are shared, it is refused as one that changes them would be.
      [name | name <- listed "answered apart", not (any changesConnection (lookup' name))] `shouldBe` []
    it "changes nothing" $
      [name | name <- listed "changes nothing", any (\entry -> entryReadOnly entry || "write" `elem` categoriesOf entry) (lookup' name)]
        `shouldBe` []
    it "changes untold" $
      [name | name <- listed "changes untold", not (any (\entry -> entryReadOnly entry && not (null (entryKeySpecs entry))) (lookup' name))]
        `shouldBe` []
    it "the same everywhere" $
      [ name
        | name <- listed "the same everywhere",
          any (\entry -> entryContainer entry || changesConnection entry || not (null (entryKeySpecs entry))) (lookup' name)
      ]
        `shouldBe` []
    it "keeps an order" $
      [name | name <- listed "keeps an order", fmap whereAnswered (lookup' name) /= Just AnyNodeAnswers] `shouldBe` []
    it "a timeout" $
      [name | (title, names) <- handLists, "limits it" `isInfixOf` title, name <- Set.toList names, inTable name, not (any entryBlocking (lookup' name))] `shouldBe` []

keyless :: [CommandEntry]
keyless = filter (null . entryKeySpecs) allCommands

categoriesOf :: CommandEntry -> [ByteString]
categoriesOf = fromMaybe [] . entryCategories

mayChange :: CommandEntry -> Bool
mayChange = any (`elem` ["connection", "pubsub", "transaction"]) . categoriesOf

listed :: String -> [ByteString]
listed title = maybe [] Set.toList (lookup title handLists)

lookup' :: ByteString -> Maybe CommandEntry
lookup' name = lookupCommand (Char8.split '|' name)

-- | A command of a module, without keys.
foreignEntry :: CommandEntry
foreignEntry =
  CommandEntry
    { entryName = "FOREIGN.ASK",
      entryArity = 1,
      entryReadOnly = False,
      entryBlocking = False,
      entryContainer = False,
      entryCategories = Just [],
      entryRequestPolicy = Nothing,
      entryResponsePolicy = Nothing,
      entryKeySpecs = []
    }

-- | Every command without keys, by the nodes that answer it.
answerers :: [(AnsweringNodes, [ByteString])]
answerers =
  [ ( AnyNodeAnswers,
      Char8.words
        "ACL ACL|CAT ACL|GENPASS ACL|HELP ACL|WHOAMI BACKUP BACKUP|HELP CLIENT CLIENT|GETNAME CLIENT|HELP CLUSTER CLUSTER|HELP \
        \CLUSTER|KEYSLOT CLUSTER|SHARDS CLUSTER|SLOTS COMMAND COMMANDLOG COMMANDLOG|HELP COMMAND|COUNT COMMAND|DOCS \
        \COMMAND|GETKEYS COMMAND|GETKEYSANDFLAGS COMMAND|HELP COMMAND|INFO COMMAND|LIST CONFIG CONFIG|HELP ECHO \
        \FUNCTION FUNCTION|HELP HIMPORT HOTKEYS HOTKEYS|HELP LATENCY LATENCY|HELP LOLWUT MEMORY MEMORY|HELP MODULE MODULE|HELP OBJECT OBJECT|HELP \
        \PING PUBLISH PUBSUB PUBSUB|HELP SCRIPT SCRIPT|HELP SLOWLOG SLOWLOG|HELP XGROUP XGROUP|HELP XINFO XINFO|HELP"
    ),
    (EveryPrimaryAnswers AggSum, ["DBSIZE"]),
    (EveryPrimaryAnswers AggAnd, ["SCRIPT|EXISTS"]),
    (EveryPrimaryAnswers AggConcatenated, ["CLUSTER|SLOT-STATS", "KEYS"]),
    (EveryPrimaryAnswers AggFirstFound, ["RANDOMKEY"]),
    ( EveryPrimaryAnswers AggAllSucceeded,
      ["FLUSHALL", "FLUSHDB", "FUNCTION|DELETE", "FUNCTION|FLUSH", "FUNCTION|LOAD", "FUNCTION|RESTORE", "MEMORY|PURGE"]
    ),
    (EveryPrimaryAnswers AggOneSucceeded, ["FUNCTION|KILL", "SCRIPT|KILL"]),
    (EveryNodeAnswers AggSum, ["COMMANDLOG|LEN", "LATENCY|RESET", "SLOWLOG|LEN"]),
    (EveryNodeAnswers AggConcatenated, ["COMMANDLOG|GET", "SLOWLOG|GET"]),
    ( EveryNodeAnswers AggAllSucceeded,
      Char8.words
        "ACL|DELUSER ACL|SAVE ACL|SETUSER COMMANDLOG|RESET CONFIG|RESETSTAT CONFIG|REWRITE CONFIG|SET SCRIPT|FLUSH \
        \SCRIPT|LOAD SLOWLOG|RESET"
    ),
    ( OneNodesOwn,
      Set.toList . Set.fromList $
        -- Commands that change their connection: the caller holds that connection, so it has a
        -- node.
        filter (maybe False (null . entryKeySpecs) . lookup') connectionChanging
          -- Commands without a policy, about the state of a node.
          <> Char8.words
            "ACL|DRYRUN ACL|GETUSER ACL|LIST ACL|LOAD ACL|LOG ACL|USERS BACKUP|ABORT BACKUP|CLEANUP BACKUP|LIST BACKUP|SEAL BACKUP|START BACKUP|STATUS BGREWRITEAOF BGSAVE CLIENT|GETREDIR CLIENT|ID \
            \CLIENT|INFO CLIENT|KILL CLIENT|LIST CLIENT|PAUSE CLIENT|TRACKINGINFO CLIENT|UNBLOCK CLIENT|UNPAUSE \
            \CONFIG|GET DEBUG FAILOVER FUNCTION|DUMP FUNCTION|LIST LASTSAVE MODULE|LIST MODULE|LOAD MODULE|LOADEX \
            \MODULE|UNLOAD PFSELFTEST PUBSUB|CHANNELS PUBSUB|NUMPAT PUBSUB|NUMSUB PUBSUB|SHARDCHANNELS \
            \PUBSUB|SHARDNUMSUB REPLICAOF ROLE SAVE SCRIPT|SHOW SHUTDOWN SLAVEOF SWAPDB TIME TRIMSLOTS"
          -- Commands without a policy, about a node's own part in the cluster, or its own view of
          -- it.
          <> Char8.words
            "CLUSTER|ADDSLOTS CLUSTER|ADDSLOTSRANGE CLUSTER|BUMPEPOCH CLUSTER|CANCELSLOTMIGRATIONS \
            \CLUSTER|COUNT-FAILURE-REPORTS CLUSTER|COUNTKEYSINSLOT CLUSTER|DELSLOTS CLUSTER|DELSLOTSRANGE \
            \CLUSTER|FAILOVER CLUSTER|FLUSHSLOT CLUSTER|FLUSHSLOTS CLUSTER|FORGET CLUSTER|GETKEYSINSLOT \
            \CLUSTER|GETSLOTMIGRATIONS CLUSTER|INFO CLUSTER|LINKS CLUSTER|MEET CLUSTER|MIGRATESLOTS CLUSTER|MIGRATION CLUSTER|MYID \
            \CLUSTER|MYSHARDID CLUSTER|NODES CLUSTER|REPLICAS CLUSTER|REPLICATE CLUSTER|RESET CLUSTER|SAVECONFIG \
            \CLUSTER|SET-CONFIG-EPOCH CLUSTER|SETSLOT CLUSTER|SLAVES"
          -- Commands with a special policy: reports that no rule can merge, and the walk.
          <> Char8.words
            "FUNCTION|STATS INFO LATENCY|DOCTOR LATENCY|GRAPH LATENCY|HISTOGRAM LATENCY|HISTORY LATENCY|LATEST \
            \MEMORY|DOCTOR MEMORY|MALLOC-STATS MEMORY|STATS SCAN HOTKEYS|GET HOTKEYS|RESET HOTKEYS|START HOTKEYS|STOP"
    )
  ]

connectionChanging :: [ByteString]
connectionChanging =
  Char8.words
    "ASKING AUTH CLIENT|CACHING CLIENT|CAPA CLIENT|IMPORT-SOURCE CLIENT|NO-EVICT CLIENT|NO-TOUCH CLIENT|REPLY \
    \CLIENT|SETINFO CLIENT|SETNAME CLIENT|TRACKING CLUSTER|SYNCSLOTS DISCARD EXEC HELLO HIMPORT|DISCARD \
    \HIMPORT|DISCARDALL HIMPORT|PREPARE HIMPORT|SET MONITOR MULTI PSUBSCRIBE PSYNC PUNSUBSCRIBE QUIT READONLY READWRITE REPLCONF RESET SCRIPT|DEBUG SELECT SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE SYNC \
    \UNSUBSCRIBE UNWATCH WAIT WAITAOF WATCH"

-- | Commands that the client may send again without permission, because they change nothing.
questions :: [ByteString]
questions =
  Char8.words
    "ACL|CAT ACL|GETUSER ACL|LIST ACL|USERS ACL|WHOAMI BACKUP|LIST BACKUP|STATUS CLIENT|GETNAME CLIENT|GETREDIR CLIENT|ID CLIENT|INFO \
    \CLIENT|LIST CLIENT|TRACKINGINFO CLUSTER|COUNT-FAILURE-REPORTS CLUSTER|COUNTKEYSINSLOT CLUSTER|GETKEYSINSLOT \
    \CLUSTER|INFO CLUSTER|KEYSLOT CLUSTER|LINKS CLUSTER|MYID CLUSTER|MYSHARDID CLUSTER|NODES CLUSTER|REPLICAS \
    \CLUSTER|SHARDS CLUSTER|SLAVES CLUSTER|SLOT-STATS CLUSTER|SLOTS COMMAND COMMANDLOG|GET COMMANDLOG|LEN \
    \COMMAND|COUNT COMMAND|DOCS COMMAND|GETKEYS COMMAND|GETKEYSANDFLAGS COMMAND|INFO COMMAND|LIST CONFIG|GET ECHO \
    \FUNCTION|DUMP FUNCTION|LIST FUNCTION|STATS HOTKEYS|GET INFO LASTSAVE LATENCY|DOCTOR LATENCY|GRAPH LATENCY|HISTOGRAM \
    \LATENCY|HISTORY LATENCY|LATEST MEMORY|DOCTOR MEMORY|MALLOC-STATS MEMORY|STATS MODULE|LIST PING PUBSUB|CHANNELS \
    \PUBSUB|NUMPAT PUBSUB|NUMSUB PUBSUB|SHARDCHANNELS PUBSUB|SHARDNUMSUB ROLE SCRIPT|EXISTS SCRIPT|SHOW SLOWLOG|GET \
    \SLOWLOG|LEN TIME"
