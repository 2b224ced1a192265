module Redis.Internal.Protocol.RedirectSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Redis.Error
import Redis.Internal.Config (AddressMapping (..))
import Redis.Internal.Protocol.Redirect
import Redis.Internal.Protocol.Slot
import Redis.Properties (cases)
import Support
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Protocol.Redirect" $ do
  describe "reads" $
    mapM_
      (\(text, expected) -> it (show text) (parse text `shouldBe` Just expected))
      [ ("MOVED 3999 127.0.0.1:6381", Moved (slotAt 3999) (NamedNode (TcpEndpoint "127.0.0.1" 6381))),
        ("MOVED 0 cache.example:1", Moved (slotAt 0) (NamedNode (TcpEndpoint "cache.example" 1))),
        ("ASK 16383 10.0.0.2:65535", Ask (slotAt 16383) (NamedNode (TcpEndpoint "10.0.0.2" 65535))),
        ("MOVED 3999 2001:db8::1:6381", Moved (slotAt 3999) (NamedNode (TcpEndpoint "2001:db8::1" 6381))),
        ("MOVED 3999 ::1:6381", Moved (slotAt 3999) (NamedNode (TcpEndpoint "::1" 6381))),
        ("MOVED 3999 [::1]:6381", Moved (slotAt 3999) (NamedNode (TcpEndpoint "::1" 6381))),
        ("MOVED 3999 :6381", Moved (slotAt 3999) (SameHost 6381)),
        ("MOVED 3999 ?:6381", Moved (slotAt 3999) UnknownNode),
        ("TRYAGAIN Multiple keys request during rehashing of slot", TryAgain),
        ("CLUSTERDOWN The cluster is down", ClusterDown),
        ("CLUSTERDOWN Hash slot not served", ClusterDown),
        ("CLUSTERDOWN The cluster is down and only accepts read commands", ClusterDown),
        ("LOADING Redis is loading the dataset in memory", Loading),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", MasterDown),
        ("MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and 'allow-stale' flag is not set on the script.", MasterDown),
        ("REDIRECT 10.0.0.2:6379", Redirected (NamedNode (TcpEndpoint "10.0.0.2" 6379))),
        ("REDIRECT :6379", Redirected (SameHost 6379)),
        ("READONLY You can't write against a read only replica.", ReadOnly),
        ("READONLY Can not run script with write flag on readonly replica", ReadOnly),
        ("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", SentAway),
        ("NOAUTH Authentication required.", Unauthenticated),
        ("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time", Unauthenticated)
      ]

  describe "takes for no redirect" $
    mapM_
      (\text -> it (show text) (parse text `shouldBe` Nothing))
      [ "UNBLOCKED client unblocked via CLIENT UNBLOCK",
        "MOVED",
        "MOVED 3999",
        "MOVED 16384 127.0.0.1:6381",
        "MOVED -1 127.0.0.1:6381",
        "MOVED +1 127.0.0.1:6381",
        "MOVED 18446744073709551617 127.0.0.1:6381",
        "MOVED 3999 127.0.0.1:0",
        "MOVED 3999 127.0.0.1:65536",
        "MOVED 3999 127.0.0.1:",
        "MOVED 3999 127.0.0.1:63a1",
        "MOVED 3999 6381",
        "MOVED 3999 127.0.0.1:6381 and more",
        "MOVED  3999 127.0.0.1:6381",
        "MOVED 3999 host\0name:6381",
        "MOVED 3999 host\nname:6381",
        "MOVED 3999 " <> Char8.replicate 256 'h' <> ":6381",
        "moved 3999 127.0.0.1:6381",
        "READONLY You can't write against a read only replica. script: 2ecd, on @user_script:1.",
        "TRYAGAIN it is not your turn",
        "CLUSTERDOWN for maintenance",
        "LOADING dock is full",
        "MASTERDOWN",
        "READONLY account",
        "NOAUTH for this door",
        "BUSY Redis is busy running a script.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "ERR unknown command",
        ""
      ]

  prop "reads back every slot and port it is told" $
    forAll ((,) <$> anySlot <*> choose (1, 65535 :: Int)) $ \(slot, port) ->
      parse ("MOVED " <> shown (slotNumber slot) <> " h:" <> shown port)
        === Just (Moved slot (NamedNode (TcpEndpoint "h" (fromIntegral port))))

  cases 1000 $
    prop "gives nothing out of range for any text" $
      forAll hostileText $ \text -> case parse text of
        Just (Moved slot destination) -> sane slot destination
        Just (Ask slot destination) -> sane slot destination
        _ -> property True

  it "puts the host that answered where the server left it out" $
    redirectEndpoint (AddressMapping id) (TcpEndpoint "10.1.1.1" 7000) (SameHost 7001) `shouldBe` Just (TcpEndpoint "10.1.1.1" 7001)

  it "dials nobody for an unknown host, nor for a port beside a Unix socket" $ do
    redirectEndpoint (AddressMapping id) (TcpEndpoint "10.1.1.1" 7000) UnknownNode `shouldBe` Nothing
    redirectEndpoint (AddressMapping id) (UnixEndpoint "/run/redis.sock") (SameHost 7001) `shouldBe` Nothing

parse :: ByteString -> Maybe Redirect
parse = parseRedirect . serverErrorFromText

shown :: Int -> ByteString
shown = Char8.pack . show

sane :: Slot -> RedirectAddress -> Property
sane slot destination =
  counterexample (show destination) $
    slot >= minBound && slot <= maxBound && case destination of
      NamedNode (TcpEndpoint host port) ->
        port > 0 && not (ByteString.null host) && ByteString.length host <= 255 && ByteString.all (\byte -> byte > 32 && byte < 127) host
      NamedNode (UnixEndpoint _) -> False
      SameHost port -> port > 0
      UnknownNode -> True

-- | Any bytes, and texts that are almost redirects.
hostileText :: Gen ByteString
hostileText =
  oneof
    [ anyBytes,
      ByteString.concat
        <$> sequence
          [ elements ["MOVED", "ASK", "MOVED ", "TRYAGAIN"],
            elements [" ", "", "  ", "\0"],
            oneof [shown <$> arbitrary, shown <$> choose (0, 20000), anyBytes],
            elements [" ", "", ":"],
            oneof [anyBytes, elements ["", "?", "h", "::1", "[::1]", "[]", "127.0.0.1"]],
            elements [":", "", "::"],
            oneof [shown <$> arbitrary, shown <$> choose (0, 70000), anyBytes]
          ]
    ]
