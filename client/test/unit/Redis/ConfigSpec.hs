module Redis.ConfigSpec (spec) where

import Control.Exception (SomeException, displayException, fromException, toException, try)
import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (intToDigit)
import Data.Either (fromLeft, isLeft, isRight)
import Data.List (isInfixOf)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.Client (newClient)
import Redis.Config
import Redis.Duration (microseconds, seconds)
import Redis.Error (Error (ClientClosed))
import Redis.Internal.Config (Config (..), CredentialsSource (..), Topology (..), revealSecret)
import Redis.Properties (cases)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Config" $ do
  describe "a URL" $ do
    forM_ topologies $ \(url, topology) ->
      it ("leads to the servers of " <> Char8.unpack url) $
        fmap configTopology (configFromUrl url) `shouldBe` Right topology

    forM_ credentials $ \(url, expected) ->
      it ("gives the credentials of " <> Char8.unpack url) $
        fmap (revealed . configCredentials) (configFromUrl url) `shouldBe` Right expected

    forM_ sentinelSettings $ \(url, expected) ->
      it ("gives the settings for sentinels of " <> Char8.unpack url) $
        fmap (\config -> (configSentinelCredentials config, configSentinelTls config)) (configFromUrl url) `shouldBe` Right expected

    it "means the same with valkey as with redis" $
      forM_ [(url, rest) | url <- map fst topologies <> map fst sentinelSettings, Just rest <- [ByteString.stripPrefix "redis" url]] $ \(url, rest) ->
        fmap show (configFromUrl ("valkey" <> rest)) `shouldBe` fmap show (configFromUrl url)

    it "gives a database behind the name that sentinels know" $
      fmap configDatabase (configFromUrl "redis+sentinel://a/name/3") `shouldBe` Right 3

    it "gives a database in its path or in an option" $
      mapM
        (fmap configDatabase . configFromUrl)
        ["redis://h", "redis://h/", "redis://h/3", "redis://h?db=3", "redis://h/?db=3", "unix:///s?db=3"]
        `shouldBe` Right [0, 0, 3, 3, 3, 3]

    it "speaks TLS if it says so" $
      fmap
        configTls
        (configFromUrl "rediss://h?verify=false&ca=/a%40b.pem&cert=/c&key=/k&server_name=n")
        `shouldBe` Right (Just tlsDefaults {tlsVerify = False, tlsServerName = Just "n", tlsCaFile = Just "/a@b.pem", tlsCertificate = Just ("/c", "/k")})

    it "sets every option" $ do
      let config =
            configFromUrl
              "redis://h?timeout=1.5&connect_timeout=2&protocol=2&client_name=n&mux_count=4&polling=off\
              \&max_attempts=3&max_dedicated=5&silence_limit=none&keepalive=none&user_timeout=none\
              \&dedicated_idle=7&refresh_interval=30&refresh_throttle=0.5&cluster=false"
          field :: (Show a, Eq a) => (Config -> a) -> a -> Expectation
          field get expected = fmap get config `shouldBe` Right expected
      field configCommandTimeout (Just 1.5)
      field configConnectTimeout 2
      field configProtocol OnlyResp2
      field configClientName (Just "n")
      field configMuxCount (Just 4)
      field configPolling NeverPoll
      field configMaxAttempts 3
      field configMaxDedicated 5
      field configDedicatedIdle (Just 7)
      field configSilenceLimit Nothing
      field configKeepAlive Nothing
      field configTcpUserTimeout Nothing
      field configRefreshInterval 30
      field configRefreshThrottle 0.5
      fmap configCommandTimeout (configFromUrl "redis://h?timeout=none") `shouldBe` Right Nothing
      fmap configMuxCount (configFromUrl "redis://h?mux_count=auto") `shouldBe` Right Nothing
      fmap configPolling (configFromUrl "redis://h?polling=50") `shouldBe` Right (PollUpTo (microseconds 50))
      fmap configReadFrom (configFromUrl "redis+cluster://h?read_from=replica") `shouldBe` Right PreferReplica
      fmap configReadFrom (configFromUrl "redis+cluster://h?read_from=primary") `shouldBe` Right ReadPrimary
      fmap configReadFrom (configFromUrl "redis+cluster://h?read_from=any") `shouldBe` Right ReadAny
      fmap configReadFrom (configFromUrl "redis+cluster://h?read_from=latency") `shouldBe` Right LowestLatency
      fmap configReadFrom (configFromUrl "redis+cluster://h?read_from=zone:eu-1a") `shouldBe` Right (SameZone "eu-1a")

    it "leaves everything else as it is by default" $
      fmap show (configFromUrl "redis://h:1") `shouldBe` Right (show (standaloneConfig "h" 1))

    forM_ faults $ \(url, part) ->
      it ("is refused: " <> Char8.unpack url) $
        either configErrorPart (const "accepted") (configFromUrl url) `shouldBe` part

    forM_ [("redis+cluster://h?read_from=some", ["primary", "replica", "any", "latency", "zone:"]), ("redis://h?read_from=any", ["primary"]), ("redis://h?read_from=replica", ["redis+cluster://", "primary"])] $ \(url, named) ->
      it ("that says a wrong place to read from is told the right ones: " <> Char8.unpack url) $
        either configErrorReason (const "accepted") (configFromUrl url) `shouldSatisfy` \reason -> all (`isInfixOf` reason) named

    prop "gives back any user, password, host and name that it was made of" $
      forAll ((,,,) <$> text <*> text <*> text <*> text) $ \(user, password, host, ca) ->
        let url =
              "rediss://" <> percentEncoded user <> ":" <> percentEncoded password <> "@h"
                <> percentEncoded (Char8.map hostCharacter host)
                <> ":7000/2?ca=/"
                <> percentEncoded (Char8.map hostCharacter ca)
            config = configFromUrl url
         in conjoin
              [ fmap (revealed . configCredentials) config === Right (Just (Just user, password)),
                fmap configTopology config === Right (Standalone (TcpEndpoint ("h" <> Char8.map hostCharacter host) 7000)),
                fmap (fmap tlsCaFile . configTls) config === Right (Just (Just ("/" <> Char8.unpack (Char8.map hostCharacter ca))))
              ]

    prop "never fails but with an error, whatever it is" $
      forAll (oneof [ByteString.pack <$> arbitrary, noise]) $ \url ->
        either (not . null . displayException) (not . null . show) (configFromUrl url)

  describe "a password" $ do
    prop "is shown by no configuration" $
      forAll secretWords $ \password ->
        let config =
              setCredentials (Just (Credentials (Just "user") (toSecret password))) (standaloneConfig "h" 1)
         in show config `reveals` password === False

    cases 1000 $
      prop "is neither shown nor repeated in an error, however the URL around it is broken" $
        forAll (secretWords >>= \password -> (,) password . ($ password) <$> brokenUrl) $ \(password, url) ->
          let outcome = configFromUrl url
              said = either (\failure -> show failure <> displayException failure) show outcome
           in label (if isRight outcome then "accepted" else "refused") $
                counterexample (show (url, said)) $
                  not (any (said `reveals`) (pieces password))

  describe "what is wrong" $ do
    let caught = newClient (setDatabase (-1) (standaloneConfig "h" 1))
    it "prints as a sentence where nobody catches it, in runtimes that go by show and in those that go by displayException" $ do
      thrown <- fromLeft (toException ClientClosed) <$> try caught
      [show (thrown :: SomeException), displayException thrown] `shouldBe` ["database: must not be negative", "database: must not be negative"]

    it "is caught as what it is, by its type or among all exceptions" $ do
      let expected = ConfigError {configErrorPart = "database", configErrorReason = "must not be negative"}
      either Just (const Nothing) <$> try caught `shouldReturn` Just expected
      among <- try caught
      either fromException (const Nothing) among `shouldBe` Just expected

  describe "validateConfig" $ do
    it "accepts the defaults" $ do
      validateConfig (standaloneConfig "h" 6379) `shouldSatisfy` isRight
      validateConfig (unixConfig "/s") `shouldSatisfy` isRight
      validateConfig (clusterConfig (TcpEndpoint "a" 1 :| [TcpEndpoint "b" 2])) `shouldSatisfy` isRight

    forM_ nonsense $ \(part, change) ->
      it ("refuses a senseless " <> part) $
        either configErrorPart (const "accepted") (validateConfig (change (standaloneConfig "h" 1))) `shouldBe` part

    it "refuses servers that nobody can reach" $ do
      validateConfig (standaloneConfig "" 1) `shouldSatisfy` isLeft
      validateConfig (standaloneConfig "h" 0) `shouldSatisfy` isLeft
      validateConfig (standaloneConfig "a b" 1) `shouldSatisfy` isLeft
      validateConfig (unixConfig "") `shouldSatisfy` isLeft
      validateConfig (clusterConfig (UnixEndpoint "/s" :| [])) `shouldSatisfy` isLeft

    it "wants a name to verify where there is no host" $ do
      validateConfig (setTls (Just tlsDefaults) (unixConfig "/s")) `shouldSatisfy` isLeft
      validateConfig (setTls (Just tlsDefaults {tlsServerName = Just "n"}) (unixConfig "/s")) `shouldSatisfy` isRight

revealed :: CredentialsSource -> Maybe (Maybe ByteString, ByteString)
revealed = \case
  FixedCredentials Credentials {credentialsUser, credentialsPassword} -> Just (credentialsUser, revealSecret credentialsPassword)
  _ -> Nothing

topologies :: [(ByteString, Topology)]
topologies =
  [ ("redis://h", Standalone (TcpEndpoint "h" 6379)),
    ("REDIS://h:7000/", Standalone (TcpEndpoint "h" 7000)),
    ("rediss://h", Standalone (TcpEndpoint "h" 6379)),
    ("redis://[::1]", Standalone (TcpEndpoint "::1" 6379)),
    ("redis://[2001:db8::1]:7000", Standalone (TcpEndpoint "2001:db8::1" 7000)),
    ("redis://[fe80::1%25eth0]:7000", Standalone (TcpEndpoint "fe80::1%eth0" 7000)),
    ("unix:///run/redis.sock", Standalone (UnixEndpoint "/run/redis.sock")),
    ("unix://:p@/run/a%20b@c", Standalone (UnixEndpoint "/run/a b@c")),
    ("redis+cluster://a", Cluster (TcpEndpoint "a" 6379 :| [])),
    ("redis+cluster://a:1,b:2,[::1]:3", Cluster (TcpEndpoint "a" 1 :| [TcpEndpoint "b" 2, TcpEndpoint "::1" 3])),
    ("rediss+cluster://u:p@a:1,b", Cluster (TcpEndpoint "a" 1 :| [TcpEndpoint "b" 6379])),
    ("redis://a:1,b:2?cluster=true", Cluster (TcpEndpoint "a" 1 :| [TcpEndpoint "b" 2])),
    ("redis+group://a:1,b", Group (TcpEndpoint "a" 1 :| [TcpEndpoint "b" 6379])),
    ("rediss+group://a", Group (TcpEndpoint "a" 6379 :| [])),
    ("redis+sentinel://a,b:1/mymaster", Sentinels "mymaster" (TcpEndpoint "a" 26379 :| [TcpEndpoint "b" 1])),
    ("rediss+sentinel://u:p@[::1]/my%2Fmaster/3", Sentinels "my/master" (TcpEndpoint "::1" 26379 :| []))
  ]

-- | The credentials and TLS of sentinels that each URL gives.
sentinelSettings :: [(ByteString, (Maybe Credentials, Maybe (Maybe TlsConfig)))]
sentinelSettings =
  [ ("redis+sentinel://u:p@a/n", (Nothing, Nothing)),
    ("redis+sentinel://a/n?sentinel_password=s", (Just (Credentials Nothing (toSecret "s")), Nothing)),
    ("redis+sentinel://a/n?sentinel_user=v&sentinel_password=s", (Just (Credentials (Just "v") (toSecret "s")), Nothing)),
    ("redis+sentinel://a/n?sentinel_tls=true", (Nothing, Just (Just tlsDefaults))),
    ("redis+sentinel://a/n?sentinel_tls=false", (Nothing, Just Nothing)),
    ("redis+sentinel://a/n?sentinel_tls=true&ca=/c&verify=false&server_name=s", (Nothing, Just (Just tlsDefaults {tlsVerify = False, tlsServerName = Just "s", tlsCaFile = Just "/c"}))),
    ("redis+sentinel://a/n?sentinel_tls=true&cert=/c&key=/k", (Nothing, Just (Just tlsDefaults {tlsCertificate = Just ("/c", "/k")}))),
    ("rediss+sentinel://a/n?sentinel_tls=true&verify=false", (Nothing, Nothing)),
    ("rediss+sentinel://a/n?sentinel_tls=false", (Nothing, Just Nothing))
  ]

credentials :: [(ByteString, Maybe (Maybe ByteString, ByteString))]
credentials =
  [ ("redis://h", Nothing),
    ("redis://@h", Nothing),
    ("redis://:p@h", Just (Nothing, "p")),
    ("redis://u:p@h", Just (Just "u", "p")),
    ("redis://u:@h", Just (Just "u", "")),
    ("redis://u:a:b@h", Just (Just "u", "a:b")),
    ("redis://u%3a:%2F%40%25+@h", Just (Just "u:", "/@%+")),
    ("unix://u:p@/s", Just (Just "u", "p"))
  ]

faults :: [(ByteString, String)]
faults =
  [ ("", "scheme"),
    ("h:6379", "scheme"),
    ("http://h", "scheme"),
    ("valkey+unix:///s", "scheme"),
    ("unix+cluster://h", "scheme"),
    ("+cluster://h", "scheme"),
    ("redis:/h", "scheme"),
    ("redis://", "host"),
    ("redis://:6379", "host"),
    ("redis://u:p@", "host"),
    ("redis://a,,b?cluster=true", "host"),
    ("redis://a,b", "host"),
    ("redis+group://", "host"),
    ("redis+group://a?cluster=true", "option cluster"),
    ("redis+cluster://a?cluster=false", "option cluster"),
    ("redis+sentinel://a", "path"),
    ("redis+sentinel://a/", "path"),
    ("redis+sentinel://a/my%20master", "sentinel name"),
    ("redis+sentinel://a/name/x", "database"),
    ("redis+sentinel://a/name?sentinel_user=u", "option sentinel_user"),
    ("redis://a?sentinel_password=p", "option sentinel_password"),
    ("redis://a?sentinel_tls=true", "option sentinel_tls"),
    ("redis+sentinel://a/name?sentinel_tls=1", "option sentinel_tls"),
    ("redis+sentinel://a/name?sentinel_tls=false&ca=/x", "option ca"),
    ("redis+sentinel://a/name?verify=false", "option verify"),
    ("redis+sentinel://a/name?sentinel_tls=true&cert=/x", "option cert"),
    ("redis://a?redirect=maybe", "option redirect"),
    ("redis://a?reply_checks=maybe", "option reply_checks"),
    ("redis://a?read_from=replica", "nodes to read from"),
    ("redis://::1", "host"),
    ("redis://[::1", "host"),
    ("redis://[h]", "host"),
    ("redis://[::1]7000", "host"),
    ("redis://a%20b", "host"),
    ("redis://h:0", "port"),
    ("redis://h:65536", "port"),
    ("redis://h:99999999999999999999", "port"),
    ("redis://h:x", "port"),
    ("redis://h:", "port"),
    ("redis://h:-1", "port"),
    ("redis://u@h", "credentials"),
    ("redis://:@h", "credentials"),
    ("redis://u:a@b@h", "credentials"),
    ("redis://u:a/b@h", "credentials"),
    ("redis://u:a?b@h", "credentials"),
    ("redis://u:%zz@h", "credentials"),
    ("redis://u:%4@h", "credentials"),
    ("redis://h#x", "URL"),
    ("redis://h/x", "database"),
    ("redis://h/-1", "database"),
    ("redis://h/1/2", "database"),
    ("redis://h/1?db=1", "option db"),
    ("redis://h?db=x", "option db"),
    ("redis://h?nosuch=1", "option nosuch"),
    ("redis://h?NoSuch=1", "option"),
    ("redis://h?timeout", "option timeout"),
    ("redis://h?timeout=", "option timeout"),
    ("redis://h?timeout=x", "option timeout"),
    ("redis://h?timeout=-1", "option timeout"),
    ("redis://h?timeout=1e3", "option timeout"),
    ("redis://h?timeout=0", "command timeout"),
    ("redis://h?timeout=1&timeout=2", "option timeout"),
    ("redis://h?protocol=4", "option protocol"),
    ("unix:///s?read_from=any", "nodes to read from"),
    ("redis+cluster://h?read_from=some", "option read_from"),
    ("redis+cluster://h?read_from=zone:", "zone to read from"),
    ("redis://h?polling=fast", "option polling"),
    ("redis://h?mux_count=0", "mux count"),
    ("redis://h?cluster=yes", "option cluster"),
    ("redis://h?verify=false", "option verify"),
    ("redis://h?ca=/x", "option ca"),
    ("rediss://h?cert=/x", "option cert"),
    ("rediss://h?key=/x", "option key"),
    ("rediss://h?ca=%ff", "option ca"),
    ("redis://h?client_name=a%20b", "client name"),
    ("unix://", "path"),
    ("unix://run/redis.sock", "host"),
    ("unix:///s?cluster=true", "option cluster")
  ]

nonsense :: [(String, Config -> Config)]
nonsense =
  [ ("database", setDatabase (-1)),
    ("client name", setClientName (Just "")),
    ("client name", setClientName (Just "a\nb")),
    ("connect timeout", setConnectTimeout (seconds 0)),
    ("connect timeout", setConnectTimeout (seconds (0 / 0))),
    ("command timeout", setCommandTimeout (Just (seconds (1 / 0)))),
    ("mux count", setMuxCount (Just 0)),
    ("in-flight limit", setLimits limitsDefaults {limitInFlight = 0}),
    ("in-flight limit", setLimits limitsDefaults {limitInFlight = maxBound}),
    ("queued bytes limit", setLimits limitsDefaults {limitQueuedBytes = 0}),
    ("bulk bytes limit", setLimits limitsDefaults {limitBulkBytes = 0}),
    ("bulk bytes limit", setLimits limitsDefaults {limitBulkBytes = maxBound}),
    ("elements limit", setLimits limitsDefaults {limitElements = -1}),
    ("depth limit", setLimits limitsDefaults {limitDepth = 0}),
    ("max attempts", setMaxAttempts 0),
    ("first backoff", setBackoff backoffDefaults {backoffFirst = seconds 0}),
    ("backoff cap", setBackoff backoffDefaults {backoffCap = seconds 0.001}),
    ("polling", setPolling (PollUpTo (microseconds 0))),
    ("silence limit", setSilenceLimit (Just (seconds 0))),
    ("keepalive", setKeepAlive (Just (seconds 0))),
    ("TCP user timeout", setTcpUserTimeout (Just (seconds (-1)))),
    ("max dedicated", setMaxDedicated 0),
    ("idle time of dedicated connections", setDedicatedIdle (Just (seconds 0))),
    ("nodes to read from", setReadFrom PreferReplica),
    ("refresh interval", setRefreshInterval (seconds 0)),
    ("refresh throttle", setRefreshThrottle (seconds (-1))),
    ("caching bytes", setCaching (Just cachingDefaults {cachingBytes = 0})),
    ("caching", setCaching (Just cachingDefaults) . setProtocol OnlyResp2),
    ("tracked prefixes", setCaching (Just cachingDefaults {cachingTracking = TrackPrefixes ("user:" :| ["order:", "user:1"])}))
  ]

-- | Words that occur nowhere else, joined by characters that break URLs.
secretWords :: Gen ByteString
secretWords = do
  size <- chooseInt (1, 4)
  glue <- vectorOf size (elements ["/", "?", "#", "@", ":", ",", "&", "=", "%", "[", "]", "://", "?db=", "/1?", "%4", ""])
  pure (ByteString.concat ("QZXJ" : concat [[between, "QZXJ"] | between <- glue]))

pieces :: ByteString -> [ByteString]
pieces password = [password, "QZXJ"]

reveals :: String -> ByteString -> Bool
reveals said password = Char8.unpack password `isInfixOf` said

brokenUrl :: Gen (ByteString -> ByteString)
brokenUrl = do
  scheme <- elements ["redis://", "rediss://", "redis+cluster://", "unix://", "redis:", "http://", ""]
  user <- elements ["", "user", "us%er", "us/er"]
  rest <- elements ["h", "h:1", "h:x", "a,b", "[::1]", "[::1", "", "/s", "h/1", "h/x", "h?timeout=1", "h?x=1", "h?timeout", "h#x"]
  pure (\password -> scheme <> user <> ":" <> password <> "@" <> rest)

noise :: Gen ByteString
noise = do
  scheme <- elements ["redis://", "rediss://", "unix://", "redis+cluster://", "valkeys+group://"]
  rest <- listOf (elements ["a", "1", ":", "@", "/", "?", "#", "[", "]", "%", "%41", ",", "&", "=", "db", "cluster=true", "timeout"])
  pure (scheme <> ByteString.concat rest)

text :: Gen ByteString
text = ByteString.pack <$> listOf1 arbitrary

-- | A character that a host may contain: the given one, or @x@.
hostCharacter :: Char -> Char
hostCharacter character
  | character > ' ' && character < '\DEL' = character
  | otherwise = 'x'

percentEncoded :: ByteString -> ByteString
percentEncoded = ByteString.concatMap $ \byte ->
  Char8.pack ['%', intToDigit (fromIntegral byte `div` 16), intToDigit (fromIntegral byte `mod` 16)]
