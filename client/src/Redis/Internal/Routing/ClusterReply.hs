-- | Reads a cluster node's description of the cluster: the replies to
-- @CLUSTER SLOTS@ and @CLUSTER SHARDS@, in either protocol.
--
-- A node may leave out its own host (then the host is the one that was asked), may not know
-- an address (@?@, which is never dialled), and may add metadata of any kind, of which the
-- availability zone is read. Slots without a usable primary stay uncovered: part of a map is
-- better than none.
module Redis.Internal.Routing.ClusterReply
  ( Asked (..),
    parseClusterSlots,
    parseClusterShards,
  )
where

import Control.Applicative ((<|>))
import Control.Monad (join)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.Either (fromRight)
import Data.Int (Int64)
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, listToMaybe, mapMaybe)
import Data.Word (Word16)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Error
import Redis.Internal.Config (AddressMapping, mappedAddress)
import Redis.Internal.Name (isHostName)
import Redis.Internal.Protocol.Slot (Slot, slotFromInt)
import Redis.Internal.Routing.SlotMap (Claim (..), SlotMap, slotMapFromClaims, withZones)
import Redis.Value (Value)

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
slotMapFromZoned parts = withZones (Map.fromList (concatMap snd parts)) (slotMapFromClaims (map fst parts))

-- | Parses the reply to @CLUSTER SLOTS@. The server reports the ports that fit the
-- connection it was asked on. \(O(n)\).
parseClusterSlots :: Asked -> Value -> Either DecodeError SlotMap
parseClusterSlots asked = fmap slotMapFromZoned . Decode.list (slotsEntry asked)

slotsEntry :: Asked -> Decoder Zoned
slotsEntry asked reply = do
  elements <- Decode.list Decode.value reply
  range <- (,) <$> Decode.element 0 slot elements <*> Decode.element 1 slot elements
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
  name <- Decode.element 0 host elements
  number <- Decode.element 1 Decode.integer elements
  pure (portFromInteger number >>= endpointAt asked name, fromRight Nothing (metadata (drop 3 elements)))
  where
    metadata = \case
      given : _ -> Decode.record given >>= zoneIn
      [] -> Right Nothing

-- | The availability zone among the fields of a node. A node without a zone reports an
-- empty one.
zoneIn :: [(ByteString, Value)] -> Either DecodeError (Maybe ByteString)
zoneIn fields = join <$> Decode.optionalField "availability-zone" host fields

-- | Parses the reply to @CLUSTER SHARDS@. Of several primaries of one shard, a healthy one is
-- taken; replicas count only when healthy. \(O(n)\).
parseClusterShards :: Asked -> Value -> Either DecodeError SlotMap
parseClusterShards asked = fmap slotMapFromZoned . Decode.list (shardClaim asked)

data ReportedRole = PrimaryRole | ReplicaRole
  deriving stock (Eq)

-- | The health that a node reports, the best first.
data ReportedHealth = Online | LoadingData | Failed
  deriving stock (Eq, Ord)

data ShardNode = ShardNode
  { nodeEndpoint :: Maybe Endpoint,
    nodeRole :: ReportedRole,
    nodeHealth :: ReportedHealth,
    nodeZone :: Maybe ByteString
  }

shardClaim :: Asked -> Decoder Zoned
shardClaim asked reply = do
  fields <- Decode.record reply
  ranges <- Decode.field "slots" (Decode.pairs slot slot) fields
  nodes <- Decode.field "nodes" (Decode.list (shardNode asked)) fields
  let primaries = List.sortOn nodeHealth (filter ((== PrimaryRole) . nodeRole) nodes)
      replicas = filter (\node -> nodeRole node == ReplicaRole && nodeHealth node == Online) nodes
  pure
    ( Claim
        { claimRanges = ranges,
          claimPrimary = listToMaybe (mapMaybe nodeEndpoint primaries),
          claimReplicas = mapMaybe nodeEndpoint replicas
        },
      [(endpoint, zone) | ShardNode {nodeEndpoint = Just endpoint, nodeZone = Just zone} <- nodes]
    )

shardNode :: Asked -> Decoder ShardNode
shardNode asked reply = do
  fields <- Decode.record reply
  nodeRole <- Decode.field "role" role fields
  nodeHealth <- maybe Online healthFromWord <$> Decode.optionalField "health" Decode.bytes fields
  endpoint <- Decode.optionalField "endpoint" host fields
  ip <- Decode.optionalField "ip" host fields
  plainPort <- Decode.optionalField "port" Decode.integer fields
  tlsPort <- Decode.optionalField "tls-port" Decode.integer fields
  nodeZone <- zoneIn fields
  let port
        | askedByTls asked = (tlsPort >>= portFromInteger) <|> (plainPort >>= portFromInteger)
        | otherwise = plainPort >>= portFromInteger
  pure
    ShardNode
      { nodeEndpoint = port >>= endpointAt asked (join (endpoint <|> ip)),
        nodeRole,
        nodeHealth,
        nodeZone
      }

role :: Decoder ReportedRole
role reply =
  Decode.bytes reply >>= \case
    "master" -> Right PrimaryRole
    "primary" -> Right PrimaryRole
    "replica" -> Right ReplicaRole
    "slave" -> Right ReplicaRole
    _ -> Decode.mismatch "the role of a node" reply

healthFromWord :: ByteString -> ReportedHealth
healthFromWord = \case
  "online" -> Online
  "loading" -> LoadingData
  _ -> Failed

-- | The endpoint of a node. 'Nothing' as the host means the host that was asked.
endpointAt :: Asked -> Maybe ByteString -> Port -> Maybe Endpoint
endpointAt Asked {askedEndpoint, askedMapping} named port = fmap (mappedAddress askedMapping) $ case named of
  Just "?" -> Nothing
  Just name
    | isHostName name -> Just (TcpEndpoint name port)
    | otherwise -> Nothing
  Nothing -> case askedEndpoint of
    TcpEndpoint name _ -> Just (TcpEndpoint name port)
    UnixEndpoint _ -> Nothing

-- | A host. 'Nothing' if the server left it out.
host :: Decoder (Maybe ByteString)
host = fmap (>>= nonEmpty) . Decode.nullable Decode.bytes
  where
    nonEmpty name = if ByteString.null name then Nothing else Just name

portFromInteger :: Int64 -> Maybe Port
portFromInteger number
  | number >= 1 && number <= fromIntegral (maxBound :: Word16) = Just (fromIntegral number)
  | otherwise = Nothing

slot :: Decoder Slot
slot reply = do
  number <- Decode.integer reply
  let inRange = if number >= 0 && number <= 0xffff then slotFromInt (fromIntegral number) else Nothing
  maybe (Decode.mismatch "a slot" reply) Right inRange
