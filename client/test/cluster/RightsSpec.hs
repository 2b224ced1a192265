-- | The rights that the client itself needs of a server's access control. docs/guide/acl.md has the
-- same list, and dev/check-guides.py compares the two.
--
-- Each use of the client runs as a user who has the rights of its own commands, and those of its
-- list. The server then has no refusal in its log, so the list lacks none. Then the use runs again
-- without each right of the list in turn. The server's log must have a refusal of it, so the client
-- does ask for it; and the use must fail if the right is needed, and succeed if it is optional.
module RightsSpec (spec) where

import Control.Exception (displayException, throwIO, try)
import Control.Monad (filterM, forM, forM_, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (isInfixOf, nub, sort, (\\))
import Redis
import Redis.Cache (runCached)
import Redis.Commands qualified as Redis
import Redis.Scan (foldScan)
import Redis.Script
import Redis.Subscription
import Redis.TestKit.Cluster
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Group
import Redis.TestKit.Server hiding (freeze)
import Redis.TestKit.Wait
import Redis.Transaction
import Support
import Test.Hspec

-- | Whether a use of the client fails without a right.
data Need = Needed | Optional
  deriving stock (Eq, Show)

-- | One use of the client.
data Use = Use
  { useName :: String,
    useRights :: [(ByteString, Need)],
    -- | Rights of the program's own commands, and those of other uses that this one has in it.
    useOwn :: [ByteString],
    -- | What the client asks for although this user may not.
    useDenied :: [ByteString],
    useProgram :: Config -> IO ()
  }

spec :: Spec
spec = describe "a user of a server with no other rights than the guide names" . around_ (within 120) $ do
  describe "can, on a server" . aroundAll (withServer serverDefaults) . forM_ alone $ \use ->
    it (useName use) $ \server ->
      holds [server] (credentials setCredentials . impatient $ standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server))) use
  describe "can, in a cluster" . aroundAll (withCluster clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 15000}) $ do
    forM_ clustered $ \use ->
      it (useName use) $ \cluster -> inCluster cluster use
    it "follow a slot that moves" $ \cluster -> do
      source <- slotPrimary cluster (slotNumberOf "moving")
      target <- firstOther source . map fst <$> clusterPrimaries cluster
      let setSlot node words' = void (command (nodeServer node) (["CLUSTER", "SETSLOT", Char8.pack (show (slotNumberOf "moving"))] <> words'))
      setSlot target ["IMPORTING", nodeId source]
      setSlot source ["MIGRATING", nodeId target]
      inCluster cluster moving
      forM_ [source, target] (`setSlot` ["STABLE"])
  describe "can, in a group" . aroundAll (withGroup groupDefaults {groupSentinelCount = 1}) $ do
    it (useName member) $ \group -> case map endpointOf (groupServers group) of
      first : rest -> holds (groupServers group) (credentials setCredentials (impatient (groupConfig (first :| rest)))) member
      [] -> expectationFailure "no servers"
    it (useName watched) $ \group -> do
      sentinels <- groupSentinels group
      case map endpointOf sentinels of
        first : rest -> holds sentinels (credentials setSentinelCredentials (impatient (sentinelConfig (groupName (groupOptions group)) (first :| rest)))) watched
        [] -> expectationFailure "no sentinels"
  where
    inCluster cluster use = do
      servers <- map nodeServer <$> clusterNodes cluster
      -- A node learns that a replica is online from the gossip of the others, and clients from the node.
      eventually 20 "every node knows that all replicas are online" $
        not . any (("loading" `isInfixOf`) . show) <$> forM servers (`command` ["CLUSTER", "SHARDS"])
      addresses <- clusterAddresses cluster
      holds servers (credentials setCredentials (liveConfig addresses)) use
    firstOther source nodes = case filter ((/= nodeId source) . nodeId) nodes of
      other : _ -> other
      [] -> source
    endpointOf server = TcpEndpoint (Char8.pack (serverHost server)) (fromIntegral (serverPort server))

credentials :: (Maybe Credentials -> Config -> Config) -> Config -> Config
credentials set = set (Just Credentials {credentialsUser = Just "app", credentialsPassword = toSecret "secret"})

-- | Runs a use with all of its rights, then without each of them.
holds :: [Server] -> Config -> Use -> Expectation
holds servers config use = do
  known <- filterM (isKnown . fst) (useRights use)
  own <- filterM isKnown (useOwn use)
  let names = own <> map fst known
  whole <- attempt names
  whole `shouldBe` ("done", sort (useDenied use))
  without <- forM known $ \(name, _) -> (,) name <$> untilRefused (names \\ [name]) name 20
  [(name, if said == "done" then Optional else Needed, name `elem` denied) | (name, (said, denied)) <- without]
    `shouldBe` [(name, need, True) | (name, need) <- known]
  where
    -- Servers know some of the commands only in later versions.
    isKnown name = (/= [Nil]) . concat <$> forM (take 1 servers) (\server -> elements <$> command server ["COMMAND", "INFO", name])

    -- Some things the client asks in the background: it may be closed before it has.
    untilRefused :: [ByteString] -> ByteString -> Int -> IO (String, [ByteString])
    untilRefused granted name left =
      attempt granted >>= \done@(_, denied) ->
        if name `elem` denied || left <= 1 then pure done else untilRefused granted name (left - 1)

    -- What became of the use, and what the servers refused.
    attempt :: [ByteString] -> IO (String, [ByteString])
    attempt granted = do
      forM_ servers $ \server -> do
        _ <- command server (["ACL", "SETUSER", "app", "reset", "on", ">secret", "~*", "&*", "-@all"] <> map ("+" <>) granted)
        _ <- command server ["ACL", "LOG", "RESET"]
        when ("get" `elem` useOwn use) $ void (command server ["SCRIPT", "FLUSH"])
      result <- try (useProgram use config)
      logged <- concat <$> forM servers (fmap elements . (`command` ["ACL", "LOG"]))
      pure (either (\failed -> displayException (failed :: Error)) (const "done") result, nub (sort (concatMap object logged)))

    elements = \case
      List items -> items
      _ -> []

    object = \case
      List (Text "object" : Text name : _) -> [name]
      List (_ : rest) -> object (List rest)
      Mapping pairs -> [name | (Text "object", Text name) <- pairs]
      _ -> []

alone :: [Use]
alone =
  [ (using "send a command" $ with (void . (`run` Redis.get "key"))) {useRights = [("client|setinfo", Optional)], useOwn = ["get"]},
    (using "be checked before it begins" (`withCheckedClient` const (pure ()))) {useRights = [("ping", Needed)]},
    (using "have a name in RESP2" $ with get . setProtocol OnlyResp2 . setClientName (Just "worker")) {useRights = [("client|setname", Optional)], useOwn = base <> ["get"]},
    (using "have a name in RESP3" $ with get . setClientName (Just "worker")) {useOwn = base <> ["get"]},
    (using "use another database" $ with get . setDatabase 1) {useRights = [("select", Needed)], useOwn = base <> ["get"]},
    (using "keep what it reads" $ with (\client -> runCached client (seconds 60) (Redis.get "key") >> void (runCached client (seconds 60) (Redis.get "key"))) . setCaching (Just cachingDefaults))
      { useRights = [("client|tracking", Needed), ("client|caching", Optional)],
        useOwn = base <> ["get"]
      },
    (using "check its replies" $ with get . setReplyChecks True) {useRights = [("echo", Needed)], useOwn = base <> ["get"]},
    (using "send a command that the library does not know" $ with unknown) {useRights = [("command|info", Optional)]},
    (using "walk over keys" $ with walk) {useRights = [("info", Optional)], useOwn = base <> ["scan"]},
    (using "run a transaction" $ with together) {useRights = [("multi", Needed), ("exec", Needed)], useOwn = base <> ["incr"]},
    (using "watch a key" $ with watched')
      { useRights = [("watch", Needed), ("unwatch", Optional)],
        useOwn = base <> ["incr", "get", "multi", "exec"]
      },
    (using "run a script" $ with (\client -> void (run client (evalScript (script "return redis.call('GET', KEYS[1])") ["key"] []))))
      { useRights = [("evalsha", Needed), ("eval", Needed)],
        useOwn = base <> ["get"]
      },
    (using "run a script that only reads" $ with (\client -> void (run client (evalScriptRo (script "return redis.call('GET', KEYS[1])") ["key"] []))))
      { useRights = [("evalsha_ro", Needed), ("eval_ro", Needed)],
        useOwn = base <> ["get"]
      },
    (using "listen to channels" $ with (listening channel subscribe)) {useRights = [("subscribe", Needed), ("unsubscribe", Optional)]},
    (using "listen to patterns" $ with (listening matching subscribe)) {useRights = [("psubscribe", Needed), ("punsubscribe", Optional)]}
  ]
  where
    unknown client =
      tryRun client (raw ["NOSUCHCOMMAND", "key"]) >>= \case
        Left (ReplyError said) | "unknown command" `isInfixOf` show (serverErrorMessage said) -> pure ()
        Left other -> throwIO other
        Right value -> failure (show value)
    together client = do
      results <- runTransaction client ((,) <$> queued (Redis.incr "n") <*> queued (Redis.incr "n"))
      unless (snd results == fst results + 1) (failure (show results))
    watched' client = do
      let look decided = watching client ("n" :| []) $ \connection -> decided <$ runOn connection (Redis.get "n")
      void (look Abandon :: IO (WatchResult ()))
      void (look (Commit (queued (Redis.incr "n"))))

clustered :: [Use]
clustered =
  [ (using "find the nodes" $ with get) {useRights = [("cluster|shards", Optional), ("cluster|info", Optional)], useOwn = base <> ["get", "cluster|slots"]},
    (using "find the nodes as older servers tell them" $ with get)
      { useRights = [("cluster|slots", Needed)],
        useOwn = base <> ["get", "cluster|info"],
        useDenied = ["cluster|shards"]
      },
    (using "read at replicas" $ with get . setReadFrom PreferReplica) {useRights = [("readonly", Optional)], useOwn = ofNodes <> ["get"]},
    (using "read at the nearest node" $ with get . setReadFrom LowestLatency) {useRights = [("ping", Optional)], useOwn = ofNodes <> ["get", "readonly"]},
    (using "walk over the keys of all nodes" $ with walk) {useRights = [("cluster|nodes", Needed), ("info", Optional)], useOwn = ofNodes <> ["scan"]},
    (using "listen to channels of a shard" $ with (listening shardChannel subscribe)) {useRights = [("ssubscribe", Needed), ("sunsubscribe", Optional)], useOwn = ofNodes}
  ]

moving :: Use
moving = (using "follow a slot that moves" $ with (void . (`run` Redis.get "moving"))) {useRights = [("asking", Needed)], useOwn = ofNodes <> ["get"]}

member :: Use
member = (using "find the primary" $ with get) {useRights = [("info", Needed), ("client|capa", Optional)], useOwn = base <> ["get"]}

watched :: Use
watched =
  (using "ask sentinels for the primary" $ with get)
    { useRights =
        [ ("sentinel|get-master-addr-by-name", Needed),
          ("sentinel|master", Needed),
          ("sentinel|sentinels", Needed),
          ("subscribe", Optional)
        ],
      useOwn = base
    }

using :: String -> (Config -> IO ()) -> Use
using name program = Use {useName = name, useRights = [], useOwn = base, useDenied = [], useProgram = program}

-- What each connection sends, and what each connection of a cluster does.
base, ofNodes :: [ByteString]
base = ["client|setinfo"]
ofNodes = base <> ["cluster|shards", "cluster|slots", "cluster|info"]

with :: (Client -> IO ()) -> Config -> IO ()
with program config = withClient config program

get, walk :: Client -> IO ()
get client = void (run client (Redis.get "key"))
walk client = void (foldScan client Redis.scanDefaults (\() _ -> pure ()) ())

listening :: (ByteString -> Topics) -> (Subscription -> Topics -> IO ()) -> Client -> IO ()
listening kind join client =
  withSubscription client (kind "first") $ \subscription -> do
    join subscription (kind "second")
    unsubscribe subscription (kind "second")
    -- The server answers in order: when it has confirmed this one, it has seen that one.
    join subscription (kind "third")
