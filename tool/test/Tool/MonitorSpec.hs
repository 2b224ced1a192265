module Tool.MonitorSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import MonitorLines (renderLine)
import Redis.TestKit.Command
import Redis.TestKit.Server
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Monitor

newtype Some = Some Observed
  deriving stock (Show)

instance Arbitrary Some where
  arbitrary = do
    micros <- choose (0, 2000000000000000)
    database <- choose (0, 15)
    origin <- elements [OriginClient "127.0.0.1:60866", OriginClient "[::1]:6379", OriginClient "unix:/tmp/a.sock", OriginScript]
    name <- elements ["set", "GET", "Mset"]
    arguments <- listOf (ByteString.pack <$> listOf arbitrary)
    pure (Some (Observed micros database origin (name : arguments)))

spec :: Spec
spec = describe "Tool.Monitor" $ do
  it "reads what a server writes" $
    parseLine "1339518083.107412 [3 127.0.0.1:60866] \"keys\" \"a\\\"b\\\\\\n\\x00\\xff\" \"\""
      `shouldBe` Right
        Observed
          { observedMicros = 1339518083107412,
            observedDatabase = 3,
            observedOrigin = OriginClient "127.0.0.1:60866",
            observedWords = ["keys", "a\"b\\\n\0\255", ""]
          }

  it "reads IPv6 addresses, sockets and scripts" $ do
    let origin line = observedOrigin <$> parseLine line
    origin "1.000000 [0 [::1]:51452] \"ping\"" `shouldBe` Right (OriginClient "[::1]:51452")
    origin "1.000000 [0 unix:/tmp/redis.sock] \"ping\"" `shouldBe` Right (OriginClient "unix:/tmp/redis.sock")
    origin "1.000000 [0 lua] \"set\" \"k\" \"v\"" `shouldBe` Right OriginScript

  prop "reads back what it writes" $ \(Some observed) ->
    parseLine (renderLine observed) === Right observed

  prop "never fails but by saying where" $ \text ->
    let line = Char8.pack text
     in case parseLine line of
          Right _ -> discard
          Left problem -> property (lineProblemAt problem >= 0 && lineProblemAt problem <= ByteString.length line)

  prop "says where a line was cut" $ \(Some observed) ->
    let line = renderLine observed
     in forAll (choose (0, ByteString.length line - 1)) $ \size ->
          case parseLine (ByteString.take size line) of
            Right part -> observedWords part `shouldSatisfyShorter` observedWords observed
            Left problem -> counterexample (show problem) (lineProblemAt problem <= size)

  describe "says what is wrong and where" $
    for_ bad $ \(line, place, expected) ->
      it (Char8.unpack line) $
        parseLine line `shouldBe` Left (LineProblem place expected)

  it "reads what this server writes, of every byte there is" $
    withServer serverDefaults $ \server ->
      withServerConnection server $ \watching -> do
        requestOk watching ["MONITOR"] >>= (`shouldBe` Status "OK")
        let everything = ByteString.pack [minBound .. maxBound]
        _ <- command server ["SET", everything, "value"]
        receiveReply watching >>= \case
          Status line -> do
            observedWords <$> parseLine line `shouldBe` Right ["SET", everything, "value"]
            renderLine <$> parseLine line `shouldBe` Right line
          other -> expectationFailure (show other)

  describe "knows what cannot be sent again" $
    for_
      [ ("1.000000 [0 lua] \"set\" \"k\" \"v\"", Just ObstacleScripted),
        ("1.000000 [0 a:1] \"AUTH\" \"(redacted)\"", Just ObstacleAdministration),
        ("1.000000 [0 a:1] \"multi\"", Just ObstacleConnectionState),
        ("1.000000 [0 a:1] \"BLPOP\" \"k\" \"0\"", Just ObstacleBlocking),
        ("1.000000 [0 a:1] \"xread\" \"BLOCK\" \"0\" \"STREAMS\" \"s\" \"$\"", Just ObstacleBlocking),
        ("1.000000 [0 a:1] \"xread\" \"STREAMS\" \"s\" \"0\"", Nothing),
        ("1.000000 [2 a:1] \"get\" \"k\"", Just ObstacleDatabase),
        ("1.000000 [0 a:1] \"get\" \"k\"", Nothing)
      ]
      $ \(line, expected) ->
        it (Char8.unpack line) $ (obstacle <$> parseLine line) `shouldBe` Right expected
  where
    shouldSatisfyShorter part whole = counterexample (show part) (length part < length whole)
    bad :: [(ByteString, Int, String)]
    bad =
      [ ("", 0, "a time"),
        ("OK", 0, "a time"),
        ("12.34 [0 a:1] \"get\"", 3, "six digits"),
        ("1.000000 (0 a:1) \"get\"", 9, "'['"),
        ("1.000000 [x a:1] \"get\"", 10, "the number of a database"),
        ("1.000000 [0 a:1]", 12, "an address and ]"),
        ("1.000000 [0 a:1] \"get\" \"k", 25, "\""),
        ("1.000000 [0 a:1] \"get\" k", 23, "'\"'"),
        ("1.000000 [0 a:1] \"get\" \"\\q\"", 25, "an escape"),
        ("1.000000 [0 a:1] \"get\" \"\\x4\"", 25, "an escape")
      ]
