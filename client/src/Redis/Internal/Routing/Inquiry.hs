-- | The questions to a server about all servers, and how its answers become a report
-- ("Redis.Internal.Routing.Topology").
--
-- A node of a cluster answers for itself. A sentinel, or a server of a group, only names a
-- primary. That server is then asked itself, and accepted if it says that it is a primary: a
-- sentinel may not have heard of the last fail-over, nor has a server that was down
-- meanwhile.
module Redis.Internal.Routing.Inquiry
  ( Question,
    askClusterNode,
    askMember,
    askSentinel,
  )
where

import Control.Applicative ((<|>))
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Maybe (fromMaybe, isNothing, listToMaybe)
import Redis.Error
import Redis.Internal.Network.InFlight
import Redis.Internal.Protocol.Encode (Request, request)
import Redis.Internal.Routing.ClusterReply
import Redis.Internal.Routing.GroupReply
import Redis.Internal.Routing.SlotMap (SlotMap, slotMapCovered, slotMapUncovered)
import Redis.Internal.Routing.TopologyReport
import Redis.Value

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
  let reportEpoch = either (const Nothing) epochFromInfo infoAnswer
  pure ((\reportMap -> TopologyReport {reportMap, reportEpoch, reportGroup = Nothing}) <$> slotMap)

-- | The map that covers more slots; of two errors the second.
fuller :: Either Error SlotMap -> Either Error SlotMap -> Either Error SlotMap
fuller one other = case (one, other) of
  (Right first, Right second) | slotMapCovered second > slotMapCovered first -> other
  (Right _, _) -> one
  (Left _, _) -> other

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

-- | The epoch in the text of CLUSTER INFO: @cluster_current_epoch:6@.
epochFromInfo :: Value -> Maybe Int
epochFromInfo value = do
  text <- textOf value
  field <- listToMaybe [rest | fieldLine <- Char8.lines text, Just rest <- [Char8.stripPrefix "cluster_current_epoch:" fieldLine]]
  fst <$> Char8.readInt field

textOf :: Value -> Maybe ByteString
textOf = \case
  BulkString bytes -> Just bytes
  VerbatimString _ bytes -> Just bytes
  _ -> Nothing

-- | Asks a server about itself.
askMemberInfo :: Question MemberInfo
askMemberInfo submit = do
  server <- submit (request ["INFO", "server"])
  replication <- submit (request ["INFO", "replication"])
  serverAnswer <- answered server
  replicationAnswer <- answered replication
  pure $ do
    texts <- (,) <$> (serverAnswer >>= text) <*> (replicationAnswer >>= text)
    parsed (uncurry parseMemberInfo texts)
  where
    text value = maybe (Left (unlike "the text of INFO" "another reply" "INFO")) Right (textOf value)

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
      reach primary askMemberInfo >>= \answer -> pure $ case answer of
        Left failure -> Left failure
        Right member -> case memberRole member of
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

-- | The report, given the server that was asked.
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
              reportHistory = historyId (memberHistory member),
              reportHistoryBefore = historyBefore (memberHistory member),
              reportSentinels = []
            }
    }

unlike :: String -> String -> ByteString -> Error
unlike decodeErrorExpected decodeErrorGot decodeErrorCommand =
  UnexpectedReply DecodeError {decodeErrorPath = [], decodeErrorExpected, decodeErrorGot, decodeErrorCommand}
