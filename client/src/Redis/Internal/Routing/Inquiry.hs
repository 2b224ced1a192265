-- | Asks servers about all servers, and reads their answers: the questions, the replies to
-- @CLUSTER SLOTS@, @CLUSTER SHARDS@, @INFO@ and @SENTINEL@ in either protocol, and the
-- announcements of sentinels.
--
-- A node of a cluster answers for itself. It may leave out its own host (then the host is the one
-- that was asked), may not know an address (@?@, which is never dialled), and may add metadata of
-- any kind, of which the availability zone is read. Slots without a usable primary stay uncovered.
--
-- A sentinel, or a server of a group, only names a primary. That server is then asked itself, and
-- accepted if it says that it is a primary: who named it may not have heard of the last fail-over.
--
-- The client listens to each known sentinel on a plain connection of its own. A message of a
-- sentinel is a reason to ask all sentinels, not an answer: it may be late, or come from a sentinel
-- that is cut off from the others. A switch is a reason to ask at once, and not to accept for a
-- moment those that still name the old primary.
module Redis.Internal.Routing.Inquiry
  ( Question,
    askClusterNode,
    askMember,
    askSentinel,
    answered,
    infoField,
    Asked (..),
    parseClusterSlots,
    parseClusterShards,
    MemberInfo (..),
    MemberRole (..),
    forSentinel,
    hearSentinel,
  )
where

import Control.Applicative ((<|>))
import Control.Concurrent.STM
import Control.Exception (SomeException, bracket, throwIO, try)
import Control.Monad (forever, guard, join, mfilter)
import Data.Bifunctor (first)
import Data.Bits (toIntegralSized)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isDigit)
import Data.Either (fromRight)
import Data.Foldable (traverse_)
import Data.Int (Int64)
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, fromMaybe, isNothing, listToMaybe, mapMaybe)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Error
import Redis.Internal.Command (unlike)
import Redis.Internal.Command.Record (colonFields)
import Redis.Internal.Config
import Redis.Internal.Network.Handshake (ConnectionRole (ForControl), ConnectionUse (SharedFor))
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Open (ConnectionSetup (..), Purpose (..))
import Redis.Internal.Network.Runtime (expiry, supervised)
import Redis.Internal.Network.Stream (closeWire, openWire, receiveReply, sendBytes)
import Redis.Internal.Protocol.Encode (Request, request, requestBytes)
import Redis.Internal.Protocol.Redirect (parsePort)
import Redis.Internal.Protocol.Slot (Slot, slotFromInt)
import Redis.Internal.Routing.SlotMap (Claim (..), SlotMap, slotMapCovered, slotMapFromClaims, slotMapUncovered, slotMapZones)
import Redis.Internal.Routing.Topology (GroupReport (..), TopologyReport (..), Trigger (..), groupMap)
import Redis.Value
import System.Random (randomRIO)

-- | A question, given the action that submits a request to the server.
type Question a = (Request -> IO ResponseSlot) -> IO (Either Error a)

-- | The report of one node: CLUSTER SHARDS, or CLUSTER SLOTS if that fails or covers more slots, and
-- the epoch. After a fail-over most nodes of Redis 7.2 and Valkey 7.2 leave the slots of the shard
-- out of CLUSTER SHARDS until the old primary is back (redis/redis#13414).
askClusterNode :: Asked -> Question TopologyReport
askClusterNode asked submit = do
  shards <- submit (request ["CLUSTER", "SHARDS"])
  info <- submit (request ["CLUSTER", "INFO"])
  shardsAnswer <- answered shards
  infoAnswer <- answered info
  slotMap <- case shardsAnswer >>= parsed . parseClusterShards asked of
    Right whole | isNothing (slotMapUncovered whole) -> pure (Right whole)
    fromShards -> do
      slotsAnswer <- answered =<< submit (request ["CLUSTER", "SLOTS"])
      pure (fuller fromShards (slotsAnswer >>= parsed . parseClusterSlots asked))
  let reportEpoch = either (const Nothing) (infoField "cluster_current_epoch") infoAnswer >>= fmap fst . Char8.readInt
  pure ((\reportMap -> TopologyReport {reportMap, reportEpoch, reportGroup = Nothing}) <$> slotMap)

-- | The map that covers more slots; of two errors the second.
fuller :: Either Error SlotMap -> Either Error SlotMap -> Either Error SlotMap
fuller one other = case (one, other) of
  (Right known, Right found) | slotMapCovered found <= slotMapCovered known -> one
  (Right _, Left _) -> one
  _ -> other

parsed :: Either DecodeError a -> Either Error a
parsed = either (Left . UnexpectedReply) Right

-- | Waits for a reply; an error reply is an error.
answered :: ResponseSlot -> IO (Either Error Value)
answered slot =
  waitSlotResult slot >>= \outcome -> pure $ case outcome of
    Reply value -> case withoutAttributes value of
      ErrorReply text -> Left (ReplyError (serverErrorFromText text))
      other -> Right other
    Failure failure -> Left failure

-- | A field of an INFO text, such as @cluster_current_epoch:6@.
infoField :: ByteString -> Value -> Maybe ByteString
infoField name = either (const Nothing) (lookup name) . colonFields

askMemberInfo :: Question MemberInfo
askMemberInfo submit = do
  server <- submit (request ["INFO", "server"])
  replication <- submit (request ["INFO", "replication"])
  (\one other -> (,) <$> one <*> other >>= parsed . uncurry parseMemberInfo) <$> answered server <*> answered replication

-- | Follows a server of a group to its primary: the server itself, the primary that it
-- follows, or the primary of that one. The first argument asks the server at an endpoint.
askMember :: (Endpoint -> Question MemberInfo -> IO (Either Error MemberInfo)) -> Endpoint -> IO (Either Error TopologyReport)
askMember reach = go (4 :: Int) Nothing
  where
    go left asked endpoint =
      reach endpoint askMemberInfo >>= \case
        Left failure -> pure (Left failure)
        Right member -> case memberRole member of
          MemberIsPrimary replicas -> pure (Right (reportOf (fromMaybe (memberRun member) asked) endpoint replicas member))
          MemberIsReplica primary
            | left > 1 -> go (left - 1) (asked <|> Just (memberRun member)) primary
            | otherwise -> pure (Left (unlike "a primary" "replicas of replicas" "INFO"))

-- | The report of the primary that a sentinel names, if that server says that it is one. The
-- first argument asks a server, the second the sentinel, which is at the endpoint.
askSentinel ::
  (Endpoint -> Question MemberInfo -> IO (Either Error MemberInfo)) ->
  (Question (Endpoint, Maybe Int, [Endpoint]) -> IO (Either Error (Endpoint, Maybe Int, [Endpoint]))) ->
  ByteString ->
  Endpoint ->
  IO (Either Error TopologyReport)
askSentinel reach consult name sentinel =
  consult (askNamed name) >>= \case
    Left failure -> pure (Left failure)
    Right (primary, epoch, others) ->
      reach primary askMemberInfo >>= \answer -> pure $ do
        member <- answer
        case memberRole member of
          MemberIsPrimary replicas -> Right (ofSentinels epoch others (reportOf (Char8.pack (renderEndpoint sentinel)) primary replicas member))
          MemberIsReplica other ->
            Left (unlike (renderEndpoint primary <> ", which the sentinel names, to be a primary") ("a replica of " <> renderEndpoint other) "INFO")
  where
    ofSentinels reportEpoch others report =
      report {reportEpoch, reportGroup = (\group -> group {reportSentinels = sentinel : others}) <$> reportGroup report}

-- | A sentinel's answers: the primary, its epoch, and the other sentinels.
askNamed :: ByteString -> Question (Endpoint, Maybe Int, [Endpoint])
askNamed name submit = do
  address <- submit (request ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name])
  details <- submit (request ["SENTINEL", "MASTER", name])
  others <- submit (request ["SENTINEL", "SENTINELS", name])
  addressAnswer <- answered address
  detailsAnswer <- answered details
  othersAnswer <- answered others
  pure $ do
    named <- addressAnswer >>= parsed . parseNamedPrimary
    -- If the sentinel does not know the name, this reply says so in words.
    epoch <- detailsAnswer >>= parsed . parseConfigEpoch
    primary <- maybe (Left (unlike "the address of a primary" "none" "SENTINEL GET-MASTER-ADDR-BY-NAME")) Right named
    sentinels <- othersAnswer >>= parsed . parseSentinels
    pure (primary, epoch, sentinels)

reportOf :: ByteString -> Endpoint -> [Endpoint] -> MemberInfo -> TopologyReport
reportOf reportAsked primary replicas member =
  TopologyReport
    { reportMap = groupMap primary replicas,
      reportEpoch = Nothing,
      reportGroup =
        Just
          GroupReport
            { reportPrimary = primary,
              reportAsked,
              reportRun = memberRun member,
              reportHistory = memberHistory member,
              reportHistoryBefore = memberHistoryBefore member,
              reportSentinels = []
            }
    }

-- | The node that was asked, and what matters for reading its answer.
data Asked = Asked
  { askedEndpoint :: Endpoint,
    -- | Whether nodes are reached by TLS, and so by their TLS ports.
    askedByTls :: Bool,
    -- | Translates the addresses that it names to addresses that this client can reach.
    askedMapping :: AddressMapping
  }
  deriving stock (Show)

-- | A part of the answer, and the zones that it names.
type Zoned = (Claim, [(Endpoint, ByteString)])

slotMapFromZoned :: [Zoned] -> SlotMap
slotMapFromZoned parts = (slotMapFromClaims (map fst parts)) {slotMapZones = Map.fromList (concatMap snd parts)}

-- | Parses the reply to @CLUSTER SLOTS@. The server reports the ports that fit the
-- connection it was asked on. \(O(n)\).
parseClusterSlots :: Asked -> Value -> Either DecodeError SlotMap
parseClusterSlots asked = fmap slotMapFromZoned . Decode.list (slotsEntry asked)

slotsEntry :: Asked -> Decoder Zoned
slotsEntry asked reply = do
  elements <- Decode.list Decode.value reply
  range <- (,) <$> Decode.element 0 slotNamed elements <*> Decode.element 1 slotNamed elements
  nodes <- traverse (slotsNode asked) (drop 2 elements)
  let endpoints = map fst nodes
  pure
    ( Claim
        { claimRanges = [range],
          claimPrimary = join (listToMaybe endpoints),
          claimReplicas = catMaybes (drop 1 endpoints)
        },
      [(endpoint, zone) | (Just endpoint, Just zone) <- nodes]
    )

-- | A node's host and port, and its zone if the metadata that may follow have it.
slotsNode :: Asked -> Decoder (Maybe Endpoint, Maybe ByteString)
slotsNode asked reply = do
  elements <- Decode.list Decode.value reply
  name <- Decode.element 0 optionalHost elements
  number <- Decode.element 1 Decode.integer elements
  pure (portFromInteger number >>= endpointAt asked name, fromRight Nothing (metadata (drop 3 elements)))
  where
    metadata = \case
      given : _ -> Decode.record given >>= zoneIn
      [] -> Right Nothing

-- | The availability zone among the fields of a node. A node without a zone reports an
-- empty one.
zoneIn :: [(ByteString, Value)] -> Either DecodeError (Maybe ByteString)
zoneIn fields = join <$> Decode.optionalField "availability-zone" optionalHost fields

-- | Parses the reply to @CLUSTER SHARDS@. Of several primaries of one shard, the healthy one is
-- taken. If several are healthy, the reply does not tell which of them has the slots, and these stay
-- uncovered. Replicas count only when healthy. \(O(n)\).
parseClusterShards :: Asked -> Value -> Either DecodeError SlotMap
parseClusterShards asked = fmap slotMapFromZoned . Decode.list (shardClaim asked)

-- | The health that a node reports, the best first.
data ReportedHealth = Online | LoadingData | Failed
  deriving stock (Eq, Ord)

data ShardNode = ShardNode
  { nodeEndpoint :: Maybe Endpoint,
    nodeIsPrimary :: Bool,
    nodeHealth :: ReportedHealth,
    nodeZone :: Maybe ByteString
  }

shardClaim :: Asked -> Decoder Zoned
shardClaim asked reply = do
  fields <- Decode.record reply
  ranges <- Decode.field "slots" (Decode.pairs slotNamed slotNamed) fields
  nodes <- Decode.field "nodes" (Decode.list (shardNode asked)) fields
  -- After a fail-over Redis 7.0 lists the old primary so: it is in a shard of its own, which has no slots.
  let isGone node = null ranges && nodeHealth node == Failed
      (primaries, replicas) = first (List.sortOn nodeHealth) (List.partition nodeIsPrimary (filter (not . isGone) nodes))
      -- After a fail-over, before the old primary has heard of it.
      isDisputed = not (null ranges) && length (filter ((== Online) . nodeHealth) primaries) > 1
  pure
    ( Claim
        { claimRanges = ranges,
          claimPrimary = guard (not isDisputed) *> listToMaybe (mapMaybe nodeEndpoint primaries),
          claimReplicas = mapMaybe nodeEndpoint (filter ((== Online) . nodeHealth) replicas)
        },
      [(endpoint, zone) | ShardNode {nodeEndpoint = Just endpoint, nodeZone = Just zone} <- nodes]
    )

shardNode :: Asked -> Decoder ShardNode
shardNode asked reply = do
  fields <- Decode.record reply
  nodeIsPrimary <- Decode.field "role" isPrimaryRole fields
  nodeHealth <- maybe Online healthFromWord <$> Decode.optionalField "health" Decode.bytes fields
  endpoint <- Decode.optionalField "endpoint" optionalHost fields
  ip <- Decode.optionalField "ip" optionalHost fields
  plainPort <- Decode.optionalField "port" Decode.integer fields
  tlsPort <- Decode.optionalField "tls-port" Decode.integer fields
  nodeZone <- zoneIn fields
  let port = (if askedByTls asked then tlsPort >>= portFromInteger else Nothing) <|> (plainPort >>= portFromInteger)
  pure
    ShardNode
      { nodeEndpoint = port >>= endpointAt asked (join (endpoint <|> ip)),
        nodeIsPrimary,
        nodeHealth,
        nodeZone
      }

isPrimaryRole :: Decoder Bool
isPrimaryRole reply =
  Decode.bytes reply >>= \role ->
    if role `elem` ["master", "primary", "replica", "slave"] then Right (role `elem` ["master", "primary"]) else Decode.mismatch "the role of a node" reply

healthFromWord :: ByteString -> ReportedHealth
healthFromWord = \case
  "online" -> Online
  "loading" -> LoadingData
  _ -> Failed

-- | The endpoint of a node. 'Nothing' as the host means the host that was asked.
endpointAt :: Asked -> Maybe ByteString -> Port -> Maybe Endpoint
endpointAt Asked {askedEndpoint, askedMapping} named port = fmap (mappedAddress askedMapping) $ case named of
  Just name | name /= "?", isHostName name -> Just (TcpEndpoint name port)
  Nothing | TcpEndpoint name _ <- askedEndpoint -> Just (TcpEndpoint name port)
  _ -> Nothing

optionalHost :: Decoder (Maybe ByteString)
optionalHost = fmap (mfilter (not . ByteString.null)) . Decode.nullable Decode.bytes

portFromInteger :: Int64 -> Maybe Port
portFromInteger = mfilter (> 0) . toIntegralSized

slotNamed :: Decoder Slot
slotNamed reply = do
  number <- Decode.integer reply
  maybe (Decode.mismatch "a slot" reply) Right (toIntegralSized number >>= slotFromInt)

-- | A server's description of itself.
data MemberInfo = MemberInfo
  { memberRole :: MemberRole,
    -- | Changes at each start. Shows whether two addresses are one server.
    memberRun :: ByteString,
    -- | Names the data. A replica that is promoted begins a history of its own, and remembers the
    -- one that it continues.
    memberHistory :: ByteString,
    memberHistoryBefore :: ByteString
  }
  deriving stock (Eq, Show)

data MemberRole
  = -- | A primary with its replicas that are up to date.
    MemberIsPrimary [Endpoint]
  | -- | A replica of the server at this endpoint.
    MemberIsReplica Endpoint
  deriving stock (Eq, Show)

-- | Parses the replies to @INFO server@ and @INFO replication@. \(O(n)\).
parseMemberInfo :: Value -> Value -> Either DecodeError MemberInfo
parseMemberInfo server replication = first (\failed -> failed {decodeErrorCommand = "INFO"}) $ do
  ofServer <- fieldsOf server
  fields <- fieldsOf replication
  memberRun <- Decode.field "run_id" Decode.bytes ofServer
  memberRole <-
    Decode.field "role" Decode.bytes fields >>= \case
      "master" -> Right (MemberIsPrimary (mapMaybe replica fields))
      "slave" -> do
        host <- Decode.field "master_host" Decode.bytes fields
        port <- Decode.field "master_port" Decode.bytes fields
        maybe (Decode.mismatch "host and port of a primary" (BulkString port)) (Right . MemberIsReplica) (endpointFrom host port)
      other -> Decode.mismatch "master or slave" (BulkString other)
  memberHistory <- fromMaybe "" <$> Decode.optionalField "master_replid" Decode.bytes fields
  memberHistoryBefore <- fromMaybe "" <$> Decode.optionalField "master_replid2" Decode.bytes fields
  pure MemberInfo {memberRole, memberRun, memberHistory, memberHistoryBefore}
  where
    fieldsOf = fmap (map (fmap BulkString)) . colonFields

    -- slave0:ip=127.0.0.1,port=6380,state=online,offset=1,lag=0
    replica (name, field) = do
      number <- ByteString.stripPrefix "slave" name
      guard (not (ByteString.null number) && Char8.all isDigit number)
      BulkString text <- Just field
      let parts = [(key, Char8.drop 1 rest) | (key, rest) <- map (Char8.break (== '=')) (Char8.split ',' text)]
      state <- lookup "state" parts
      guard (state == "online")
      host <- lookup "ip" parts
      port <- lookup "port" parts
      endpointFrom host port

-- | Parses the reply to @SENTINEL GET-MASTER-ADDR-BY-NAME@. 'Nothing' if the sentinel knows
-- no primary of this name.
parseNamedPrimary :: Decoder (Maybe Endpoint)
parseNamedPrimary = Decode.nullable $ \reply -> do
  (host, port) <- Decode.pair Decode.bytes Decode.bytes reply
  maybe (Decode.mismatch "host and port of a primary" reply) Right (endpointFrom host port)

-- | Parses the @config-epoch@ in the reply to @SENTINEL MASTER@. Each fail-over raises it, so
-- a sentinel with a lower epoch has not heard of the last one yet.
parseConfigEpoch :: Decoder (Maybe Int)
parseConfigEpoch reply = (>>= fmap fst . Char8.readInt) <$> (Decode.record reply >>= Decode.optionalField "config-epoch" Decode.bytes)

-- | Parses the reply to @SENTINEL SENTINELS@: the other sentinels.
parseSentinels :: Decoder [Endpoint]
parseSentinels = fmap catMaybes . Decode.list sentinel
  where
    sentinel reply = do
      fields <- Decode.record reply
      endpointFrom <$> Decode.field "ip" Decode.bytes fields <*> Decode.field "port" Decode.bytes fields

-- | An endpoint, from its host and port. 'Nothing' if it cannot be dialled.
endpointFrom :: ByteString -> ByteString -> Maybe Endpoint
endpointFrom host port = do
  guard (isHostName host && host /= "?")
  TcpEndpoint host <$> parsePort port

-- | The configuration of connections to a sentinel, given that of the client. Sentinels do
-- not get the password of the servers.
forSentinel :: Endpoint -> Config -> Config
forSentinel endpoint config =
  config
    { configTopology = Standalone endpoint,
      configCredentials = maybe NoCredentials FixedCredentials (configSentinelCredentials config),
      configTls = fromMaybe (configTls config) (configSentinelTls config),
      configCallerAuthenticates = False,
      configDatabase = 0,
      configCaching = Nothing,
      configFollowsRedirects = False,
      -- Sentinels know no ECHO.
      configReplyChecks = False
    }

-- | Listens to a sentinel, on connections one after the other, with the setup for sentinels, for what it tells
-- of the primary of this name; the transaction retries for as long as the sentinel is wanted. Must run masked,
-- on a thread of its own.
hearSentinel :: ConnectionSetup -> ByteString -> (Trigger -> IO ()) -> STM () -> Endpoint -> IO ()
hearSentinel setup name tell over endpoint = go (1 :: Int)
  where
    go failures = do
      begun <- newTVarIO False
      ended <- supervised ("redis hear " <> renderEndpoint endpoint) over (\_ -> pure ()) (try (listen begun))
      case ended of
        Left () -> pure ()
        Right (_ :: Either SomeException ()) -> do
          heard <- readTVarIO begun
          let failed = if heard then 1 else failures
          random <- randomRIO (0, 1)
          delayed <- expiry (delayFor (configBackoff (setupConfig setup)) failed random)
          goesOn <- atomically ((False <$ over) `orElse` (True <$ delayed))
          if goesOn then go (failed + 1) else pure ()

    -- RESP2, in which messages look the same on old sentinels, too.
    older = setup {setupConfig = (setupConfig setup) {configProtocol = OnlyResp2}}

    listen begun = bracket open closeWire $ \wire -> do
      sendBytes wire (requestBytes (request ("SUBSCRIBE" : channels)))
      forever $ do
        (message, _) <- receiveReply wire
        atomically (writeTVar begun True)
        traverse_ tell (triggerFrom name message)

    open = openWire older Purpose {purposeUse = SharedFor ForControl, purposeGone = over} endpoint >>= either (throwIO . ConnectionError . ConnectionFailure "" NotSent endpoint) pure

-- | The channels on which sentinels announce changes of a primary, its replicas and sentinels.
channels :: [ByteString]
channels = ["+switch-master", "+slave", "+slave-reconf-done", "+convert-to-slave", "-sdown", "+sentinel"]

-- | The trigger that a message means for the primary of this name.
triggerFrom :: ByteString -> Value -> Maybe Trigger
triggerFrom name = \case
  -- From now on everything is heard; earlier announcements may have been missed.
  Array [BulkString "subscribe", _, Integer 1] -> Just SentinelsStirred
  Array [BulkString "message", BulkString channel, BulkString text]
    | channel == "+switch-master" ->
      -- name 10.0.0.1 6379 10.0.0.2 6379
      case Char8.words text of
        [named, oldHost, oldPort, newHost, newPort]
          | named == name -> Just (fromMaybe SentinelsStirred (SentinelsSwitched <$> endpointFrom oldHost oldPort <*> endpointFrom newHost newPort))
        _ -> Nothing
    -- slave 10.0.0.2:6379 10.0.0.2 6379 @ name 10.0.0.1 6379
    | (" @ " <> name <> " ") `ByteString.isInfixOf` text -> Just SentinelsStirred
  _ -> Nothing
