module Redis.Internal.Routing.InquirySpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isLeft)
import Data.List (sortOn)
import Data.Map.Strict qualified as Map
import Data.Ord (Down (Down))
import Redis.Error
import Redis.Internal.Config (AddressMapping (..))
import Redis.Internal.Protocol.Decode (Limits (..), decodeBytes, limitsDefaults)
import Redis.Internal.Protocol.Slot
import Redis.Internal.Routing.Inquiry
import Redis.Internal.Routing.SlotMap
import Redis.Properties (cases)
import Redis.Value
import Support
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Routing.Inquiry" $ do
  describe "CLUSTER SLOTS" $ do
    prop "reads back what a server would render" $
      forAll anyClaims $ \claims ->
        parseClusterSlots asked (renderSlots claims) === Right (slotMapFromClaims claims)

    mapM_
      (\(what, host, expected) -> it what (ownerOf (parseClusterSlots asked (slotsOf host 7002)) `shouldBe` Right expected))
      [ ("takes a missing host for the one that was asked", Null, Just (TcpEndpoint "10.9.9.9" 7002)),
        ("takes an empty host for the one that was asked", BulkString "", Just (TcpEndpoint "10.9.9.9" 7002)),
        ("leaves slots of an unknown host uncovered", BulkString "?", Nothing),
        ("leaves slots of a host with a line break uncovered", BulkString "a\nb", Nothing),
        ("takes a host name", BulkString "a.example", Just (TcpEndpoint "a.example" 7002)),
        ("takes an IPv6 address", BulkString "2001:db8::1", Just (TcpEndpoint "2001:db8::1" 7002))
      ]

    it "leaves slots uncovered whose primary has no port" $
      ownerOf (parseClusterSlots asked (slotsOf (BulkString "h") 0)) `shouldBe` Right Nothing

    it "dials no bare port beside a Unix socket" $
      ownerOf (parseClusterSlots (Asked (UnixEndpoint "/s") False (AddressMapping id)) (slotsOf Null 7002)) `shouldBe` Right Nothing

    it "skips metadata of any kind after the port, and attributes ahead of it" $ do
      let server extra = Array ([BulkString "h", Integer 1] <> extra)
          reply extra = WithAttributes [] (Array [Array [Integer 0, Integer 5, server extra]])
      mapM_
        (\extra -> ownerOf (parseClusterSlots asked (reply extra)) `shouldBe` Right (Just (TcpEndpoint "h" 1)))
        [ [],
          [BulkString "id"],
          [BulkString "id", Array [BulkString "hostname", BulkString "h"]],
          [BulkString "id", Map [(BulkString "ip", Null)], Null]
        ]

    it "reads the zone in the metadata" $ do
      let server = Array [BulkString "h", Integer 1, BulkString "id", Array [BulkString "availability-zone", BulkString "eu-1a"]]
      slotMapZones <$> parseClusterSlots asked (Array [Array [Integer 0, Integer 5, server]])
        `shouldBe` Right (Map.fromList [(TcpEndpoint "h" 1, "eu-1a")])

    it "takes no answer for a map that covers nothing" $
      (slotMapCovered <$> parseClusterSlots asked (Array [])) `shouldBe` Right 0

    mapM_
      (\reply -> it ("refuses " <> show reply) (parseClusterSlots asked reply `shouldSatisfy` isLeft))
      [ Null,
        Integer 1,
        Array [Null],
        Array [Array [Integer 0]],
        Array [Array [Integer 0, Integer 16384, Array [BulkString "h", Integer 1]]],
        Array [Array [Integer (-1), Integer 3, Array [BulkString "h", Integer 1]]],
        Array [Array [Integer 0, Integer 3, Array [BulkString "h"]]]
      ]

  describe "CLUSTER SHARDS" $ do
    prop "reads back what a server would render, in either protocol" $
      forAll anyClaims $ \claims ->
        let expected = Right (slotMapFromClaims claims)
         in parseClusterShards asked (renderShards Map claims) === expected
              .&&. parseClusterShards asked (renderShards flat claims) === expected

    it "takes the TLS port on TLS, and the plain port otherwise" $ do
      let reply = shardsOf [[("endpoint", BulkString "h"), ("port", Integer 1), ("tls-port", Integer 2), role "master"]]
      ownerOf (parseClusterShards asked reply) `shouldBe` Right (Just (TcpEndpoint "h" 1))
      ownerOf (parseClusterShards askedByTls' reply) `shouldBe` Right (Just (TcpEndpoint "h" 2))

    it "does not dial a TLS port in plain text" $
      ownerOf (parseClusterShards asked (shardsOf [[("endpoint", BulkString "h"), ("tls-port", Integer 2), role "master"]]))
        `shouldBe` Right Nothing

    it "takes a missing endpoint for the host that was asked, and ? for none" $ do
      let reply host = shardsOf [[("endpoint", host), ("ip", BulkString "10.0.0.7"), ("port", Integer 1), role "master"]]
      ownerOf (parseClusterShards asked (reply Null)) `shouldBe` Right (Just (TcpEndpoint "10.9.9.9" 1))
      ownerOf (parseClusterShards asked (reply (BulkString ""))) `shouldBe` Right (Just (TcpEndpoint "10.9.9.9" 1))
      ownerOf (parseClusterShards asked (reply (BulkString "?"))) `shouldBe` Right Nothing

    it "prefers a primary that is online over one that failed" $
      ownerOf (parseClusterShards asked (shardsOf [healthy "old" "master" "failed", healthy "new" "master" "online"]))
        `shouldBe` Right (Just (TcpEndpoint "new" 1))

    it "leaves slots uncovered that two primaries online may have, so that CLUSTER SLOTS is asked" $
      ownerOf (parseClusterShards asked (shardsOf [healthy "old" "master" "online", healthy "new" "master" "online"]))
        `shouldBe` Right Nothing

    it "keeps a failed primary if there is no other" $
      ownerOf (parseClusterShards asked (shardsOf [healthy "old" "master" "failed", healthy "r" "replica" "online"]))
        `shouldBe` Right (Just (TcpEndpoint "old" 1))

    it "drops a failed primary without slots: Redis 7.0 lists it so after a fail-over, in a shard of its own" $ do
      let Array owning = shardsOf [healthy "new" "master" "online"]
          without health = Map [(BulkString "slots", Array []), (BulkString "nodes", Array [Map [(BulkString name, value) | (name, value) <- healthy "old" "master" health]])]
          primaries health = map shardPrimary . slotMapShards <$> parseClusterShards asked (Array (without health : owning))
      primaries "failed" `shouldBe` Right [TcpEndpoint "new" 1]
      primaries "online" `shouldBe` Right [TcpEndpoint "new" 1, TcpEndpoint "old" 1]

    it "reads from replicas only when they are online" $
      ( (`slotReplicas` slotAt 0)
          <$> parseClusterShards
            asked
            (shardsOf [healthy "p" "master" "online", healthy "a" "replica" "loading", healthy "b" "replica" "online", healthy "c" "replica" "failed"])
      )
        `shouldBe` Right [TcpEndpoint "b" 1]

    it "reads the zone of each node that is in one, as Valkey tells it" $ do
      let inZone name zone = healthy name "replica" "online" <> [("availability-zone", BulkString zone)]
          reply = shardsOf [healthy "p" "master" "online", inZone "a" "eu-1a", inZone "b" "", healthy "c" "replica" "online"]
      slotMapZones <$> parseClusterShards asked reply `shouldBe` Right (Map.fromList [(TcpEndpoint "a" 1, "eu-1a")])

    it "reaches all that it names by the mapping, the host that was asked included" $ do
      let mapped = asked {askedMapping = AddressMapping (\case TcpEndpoint host port -> TcpEndpoint ("via-" <> host) (port + 1); other -> other)}
          reply = shardsOf [[("endpoint", Null), ("port", Integer 1), role "master"], healthy "b" "replica" "online" <> [("availability-zone", BulkString "z")]]
      ownerOf (parseClusterShards mapped reply) `shouldBe` Right (Just (TcpEndpoint "via-10.9.9.9" 2))
      ((`slotReplicas` slotAt 0) <$> parseClusterShards mapped reply) `shouldBe` Right [TcpEndpoint "via-b" 2]
      slotMapZones <$> parseClusterShards mapped reply `shouldBe` Right (Map.fromList [(TcpEndpoint "via-b" 2, "z")])
      ownerOf (parseClusterSlots mapped (slotsOf (BulkString "h") 7)) `shouldBe` Right (Just (TcpEndpoint "via-h" 8))

    it "leaves an address as it is for which the mapping throws" $
      ownerOf (parseClusterSlots asked {askedMapping = AddressMapping (\_ -> error "none")} (slotsOf (BulkString "h") 7))
        `shouldBe` Right (Just (TcpEndpoint "h" 7))

    mapM_
      (\reply -> it ("refuses " <> show reply) (parseClusterShards asked reply `shouldSatisfy` isLeft))
      [ Null,
        Array [Integer 1],
        Array [Map [(BulkString "slots", Array [])]],
        Array [Map [(BulkString "slots", Array [Integer 1]), (BulkString "nodes", Array [])]],
        shardsOf [[("endpoint", BulkString "h"), ("port", Integer 1), role "sentinel"]]
      ]

  it "means the same whichever way a server says it" $ do
    let maps =
          [ either (const Nothing) (either (const Nothing) Just . parse asked . fst) (decodeBytes generous (wire reply))
            | (parse, replies) <- [(parseClusterShards, fromShards), (parseClusterSlots, fromSlots)],
              reply <- replies
          ]
        claim =
          Claim
            { claimRanges = [(slotAt 0, slotAt 5460), (slotAt 6000, slotAt 16383)],
              claimPrimary = Just (TcpEndpoint "10.9.9.9" 17392),
              claimReplicas = []
            }
    maps `shouldBe` replicate 4 (Just (slotMapFromClaims [claim]))

  it "says where a reply is not as expected" $ do
    let place = either decodeErrorPath (const [])
    place (parseClusterShards asked (shardsOf [[("port", Integer 1), ("role", Integer 2)]]))
      `shouldBe` ["element 0", "field \"nodes\"", "element 0", "field \"role\""]
    place (parseClusterSlots asked (Array [Array [Integer 0, Integer 5], Array [Integer 0, Integer (-1)]]))
      `shouldBe` ["element 1", "element 1"]

  cases 1000 $
    prop "gives a map or an error for any value" $
      forAll anyValue $ \value ->
        isSound (parseClusterSlots asked value) && isSound (parseClusterShards askedByTls' value)
  where
    isSound = either (not . null . decodeErrorExpected) ((>= 0) . slotMapCovered)
    role name = ("role", BulkString name)
    healthy host kind health =
      [("endpoint", BulkString host), ("port", Integer 1), role kind, ("health", BulkString health)]

-- | Replies of a Redis 7.0 with a gap in its slots and without a name for itself, in RESP2 and in
-- RESP3. Bars stand for the ends of lines.
fromShards, fromSlots :: [ByteString]
fromShards =
  [ "*1|*4|$5|slots|*4|:0|:5460|:6000|:16383|$5|nodes|*1|*14|" <> shardsNode,
    "*1|%2|$5|slots|*4|:0|:5460|:6000|:16383|$5|nodes|*1|%7|" <> shardsNode
  ]
  where
    shardsNode =
      "$2|id|$40|6a3ed04cfc94a89d2fd329b6841b4cfae89ffb05|$4|port|:17392|$2|ip|$0||$8|endpoint|$0||"
        <> "$4|role|$6|master|$18|replication-offset|:0|$6|health|$6|online"
fromSlots =
  [ "*2|*3|:0|:5460|" <> slotsNode <> "*0|*3|:6000|:16383|" <> slotsNode <> "*0",
    "*2|*3|:0|:5460|" <> slotsNode <> "%0|*3|:6000|:16383|" <> slotsNode <> "%0"
  ]
  where
    slotsNode = "*4|$0||:17392|$40|6a3ed04cfc94a89d2fd329b6841b4cfae89ffb05|"

wire :: ByteString -> ByteString
wire = ByteString.concat . map (<> "\r\n") . Char8.split '|'

generous :: Limits
generous = limitsDefaults {limitBulkBytes = 65536, limitElements = 1024, limitDepth = 16}

asked :: Asked
asked = Asked {askedEndpoint = TcpEndpoint "10.9.9.9" 7000, askedByTls = False, askedMapping = AddressMapping id}

askedByTls' :: Asked
askedByTls' = asked {askedByTls = True}

-- | The owner of slot 0.
ownerOf :: Either DecodeError SlotMap -> Either DecodeError (Maybe Endpoint)
ownerOf = fmap (`slotOwner` slotAt 0)

slotsOf :: Value -> Int -> Value
slotsOf host port =
  Array [Array [Integer 0, Integer 16383, Array [host, Integer (fromIntegral port), BulkString "id"]]]

shardsOf :: [[(ByteString, Value)]] -> Value
shardsOf nodes =
  Array
    [ Map
        [ (BulkString "slots", Array [Integer 0, Integer 16383]),
          (BulkString "nodes", Array [Map [(BulkString name, value) | (name, value) <- fields] | fields <- nodes])
        ]
    ]

renderSlots :: [Claim] -> Value
renderSlots claims =
  Array
    [ Array (slotValue first : slotValue final : render (claimPrimary claim) : map (render . Just) (claimReplicas claim))
      | claim <- claims,
        -- No range names a primary without slots, so an empty range stands for it.
        (first, final) <- claimRanges claim <> [(maxBound, minBound)]
    ]
  where
    render = \case
      Just (TcpEndpoint host port) -> Array [BulkString host, Integer (fromIntegral port), BulkString "id"]
      _ -> Array [BulkString "?", Integer 6379]

renderShards :: ([(Value, Value)] -> Value) -> [Claim] -> Value
renderShards fields claims =
  Array
    [ fields
        [ (BulkString "slots", Array (concat [[slotValue first, slotValue final] | (first, final) <- claimRanges claim])),
          -- The order does not matter: here replicas come first.
          (BulkString "nodes", Array (sortOn (Down . length . show) (render "master" (claimPrimary claim) : map (render "replica" . Just) (claimReplicas claim))))
        ]
      | claim <- claims
    ]
  where
    render role endpoint =
      fields
        [ (BulkString "id", BulkString "x"),
          (BulkString "port", Integer (maybe 6379 portOf endpoint)),
          (BulkString "ip", BulkString "10.8.8.8"),
          (BulkString "endpoint", maybe (BulkString "?") hostOf endpoint),
          (BulkString "role", BulkString role),
          (BulkString "replication-offset", Integer 72156),
          (BulkString "health", BulkString "online")
        ]
    portOf = \case
      TcpEndpoint _ port -> fromIntegral port
      UnixEndpoint _ -> 0
    hostOf = \case
      TcpEndpoint host _ -> BulkString host
      UnixEndpoint _ -> Null

flat :: [(Value, Value)] -> Value
flat entries = Array (concat [[name, value] | (name, value) <- entries])

slotValue :: Slot -> Value
slotValue = Integer . fromIntegral . slotNumber

-- | Values that resemble replies now and then.
anyValue :: Gen Value
anyValue = sized go
  where
    go size
      | size <= 1 = leaf
      | otherwise =
        oneof
          [ leaf,
            Array <$> some,
            Array <$> ((\a b rest -> Integer a : Integer b : rest) <$> choose (-1, 16385) <*> choose (-1, 16385) <*> some),
            Map <$> listOf ((,) <$> fieldName <*> go (size `div` 3)),
            Set <$> some
          ]
      where
        some = resize 5 (listOf (go (size `div` 3)))
    leaf =
      oneof
        [ pure Null,
          Integer <$> arbitrary,
          Integer <$> choose (0, 20000),
          BulkString <$> anyBytes,
          fieldName,
          ErrorReply <$> anyBytes,
          Double <$> arbitrary,
          Boolean <$> arbitrary,
          BigNumber <$> arbitrary
        ]
    fieldName = BulkString <$> elements ["slots", "nodes", "role", "master", "replica", "endpoint", "port", "tls-port", "health", "?", ""]
