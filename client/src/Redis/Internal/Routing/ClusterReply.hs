{-# LANGUAGE MultiWayIf #-}

-- | Reads what a cluster's node says of the cluster: the replies to
-- @CLUSTER SLOTS@ and @CLUSTER SHARDS@, in either protocol.
--
-- A node may leave out its own host (then it is the one that was asked), may
-- not know an address (@?@, never dialled), and may add metadata of any kind
-- (skipped). Slots without a usable primary stay uncovered: part of a map is
-- better than none.
module Redis.Internal.Routing.ClusterReply
  ( Asked (..),
    parseClusterSlots,
    parseClusterShards,
  )
where

import Control.Applicative ((<|>))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.Maybe (catMaybes, mapMaybe)
import Data.Word (Word16)
import Redis.Error
import Redis.Internal.Protocol.Slot (Slot, slotFromInt)
import Redis.Internal.Routing.SlotMap (Claim (..), SlotMap, slotMapFromClaims)
import Redis.Value (Value (..), withoutAttributes)

-- | The node that was asked, and how.
data Asked = Asked
  { askedEndpoint :: Endpoint,
    -- | Whether nodes are to be reached by TLS, and so by their TLS ports.
    askedByTls :: Bool
  }
  deriving stock (Eq, Show)

-- | The reply to @CLUSTER SLOTS@. The server reports the ports that fit the
-- connection it was asked on. \(O(n)\).
parseClusterSlots :: Asked -> Value -> Either DecodeError SlotMap
parseClusterSlots asked reply = do
  entries <- elements "an array of slot ranges" reply
  slotMapFromClaims <$> traverse (slotsEntry asked) entries

slotsEntry :: Asked -> Value -> Either DecodeError Claim
slotsEntry asked entry =
  elements "a range of slots and its nodes" entry >>= \case
    first : final : nodes -> do
      range <- (,) <$> slotOf first <*> slotOf final
      endpoints <- traverse (slotsNode asked) nodes
      pure $ case endpoints of
        primary : replicas ->
          Claim {claimRanges = [range], claimPrimary = primary, claimReplicas = catMaybes replicas}
        [] -> Claim {claimRanges = [range], claimPrimary = Nothing, claimReplicas = []}
    _ -> unexpected "a range of slots and its nodes" entry

-- | Host and port; what follows is not needed.
slotsNode :: Asked -> Value -> Either DecodeError (Maybe Endpoint)
slotsNode asked node =
  elements "host and port of a node" node >>= \case
    host : port : _ -> do
      number <- integerOf port
      name <- hostOf host
      pure (portFromInteger number >>= endpointAt asked name)
    _ -> unexpected "host and port of a node" node

-- | The reply to @CLUSTER SHARDS@. Of several primaries of one shard, a healthy
-- one is taken; replicas count only when healthy. \(O(n)\).
parseClusterShards :: Asked -> Value -> Either DecodeError SlotMap
parseClusterShards asked reply = do
  shards <- elements "an array of shards" reply
  slotMapFromClaims <$> traverse (shardClaim asked) shards

data NodeRole = PrimaryRole | ReplicaRole
  deriving stock (Eq)

-- | In the order of preference.
data Health = Online | LoadingData | Failed
  deriving stock (Eq, Ord)

data ShardNode = ShardNode
  { nodeEndpoint :: Maybe Endpoint,
    nodeRole :: NodeRole,
    nodeHealth :: Health
  }

shardClaim :: Asked -> Value -> Either DecodeError Claim
shardClaim asked shard = do
  fields <- fieldsOf "a shard" shard
  ranges <- required "slots of a shard" "slots" fields >>= elements "slots of a shard" >>= pairsOf
  nodes <- required "nodes of a shard" "nodes" fields >>= elements "nodes of a shard" >>= traverse (shardNode asked)
  let primaries = List.sortOn nodeHealth (filter ((== PrimaryRole) . nodeRole) nodes)
      replicas = filter (\node -> nodeRole node == ReplicaRole && nodeHealth node == Online) nodes
  pure
    Claim
      { claimRanges = ranges,
        claimPrimary = case mapMaybe nodeEndpoint primaries of
          primary : _ -> Just primary
          [] -> Nothing,
        claimReplicas = mapMaybe nodeEndpoint replicas
      }
  where
    pairsOf = \case
      first : final : rest -> (:) <$> ((,) <$> slotOf first <*> slotOf final) <*> pairsOf rest
      [] -> Right []
      [odd'] -> unexpected "first and last slot of a range" odd'

shardNode :: Asked -> Value -> Either DecodeError ShardNode
shardNode asked node = do
  fields <- fieldsOf "a node of a shard" node
  role <- required "role of a node" "role" fields >>= textOf "role of a node"
  nodeRole <-
    if
        | role `elem` ["master", "primary"] -> Right PrimaryRole
        | role `elem` ["replica", "slave"] -> Right ReplicaRole
        | otherwise -> unexpected "role of a node" (BulkString role)
  health <- maybe (Right "online") (textOf "health of a node") (List.lookup "health" fields)
  name <- maybe (Right Nothing) hostOf (List.lookup "endpoint" fields <|> List.lookup "ip" fields)
  plainPort <- traverse integerOf (List.lookup "port" fields)
  tlsPort <- traverse integerOf (List.lookup "tls-port" fields)
  let port
        | askedByTls asked = (tlsPort >>= portFromInteger) <|> (plainPort >>= portFromInteger)
        | otherwise = plainPort >>= portFromInteger
  pure
    ShardNode
      { nodeEndpoint = port >>= endpointAt asked name,
        nodeRole,
        nodeHealth = case health of
          "online" -> Online
          "loading" -> LoadingData
          _ -> Failed
      }

-- | 'Nothing' for the host is the host that was asked.
endpointAt :: Asked -> Maybe ByteString -> Port -> Maybe Endpoint
endpointAt Asked {askedEndpoint} host port = case host of
  Just "?" -> Nothing
  Just name
    | ByteString.length name <= 255 -> Just (TcpEndpoint name port)
    | otherwise -> Nothing
  Nothing -> case askedEndpoint of
    TcpEndpoint name _ -> Just (TcpEndpoint name port)
    UnixEndpoint _ -> Nothing

-- | 'Nothing' if the server left it out. Copied, because a slice would keep
-- the whole reply for as long as the map is in use.
hostOf :: Value -> Either DecodeError (Maybe ByteString)
hostOf value = case withoutAttributes value of
  Null -> Right Nothing
  other ->
    textOf "host of a node" other >>= \case
      "" -> Right Nothing
      name -> Right (Just (ByteString.copy name))

portFromInteger :: Integer -> Maybe Port
portFromInteger number
  | number >= 1 && number <= toInteger (maxBound :: Word16) = Just (fromInteger number)
  | otherwise = Nothing

slotOf :: Value -> Either DecodeError Slot
slotOf value = do
  number <- integerOf value
  let inRange = if number >= 0 && number <= 0xffff then slotFromInt (fromInteger number) else Nothing
  maybe (unexpected "a slot" value) Right inRange

integerOf :: Value -> Either DecodeError Integer
integerOf value = case withoutAttributes value of
  Integer number -> Right (toInteger number)
  other
    | Right text <- textOf "" other, Just (number, "") <- Char8.readInteger text -> Right number
    | otherwise -> unexpected "a number" other

textOf :: String -> Value -> Either DecodeError ByteString
textOf what value = case withoutAttributes value of
  BulkString text -> Right text
  SimpleString text -> Right text
  VerbatimString _ text -> Right text
  other -> unexpected what other

elements :: String -> Value -> Either DecodeError [Value]
elements what value = case withoutAttributes value of
  Array values -> Right values
  Set values -> Right values
  other -> unexpected what other

-- | RESP3's map, or RESP2's array of names and values by turns.
fieldsOf :: String -> Value -> Either DecodeError [(ByteString, Value)]
fieldsOf what value = case withoutAttributes value of
  Map entries -> traverse (\(name, field) -> flip (,) field <$> textOf what name) entries
  Array values -> byTurns values
  other -> unexpected what other
  where
    byTurns = \case
      name : field : rest -> (:) <$> (flip (,) field <$> textOf what name) <*> byTurns rest
      [] -> Right []
      [odd'] -> unexpected what odd'

required :: String -> ByteString -> [(ByteString, Value)] -> Either DecodeError Value
required what name fields =
  maybe
    (Left DecodeError {decodeErrorExpected = what, decodeErrorGot = "nothing"})
    Right
    (List.lookup name fields)

unexpected :: String -> Value -> Either DecodeError a
unexpected what got =
  Left DecodeError {decodeErrorExpected = what, decodeErrorGot = take 200 (show got)}
