-- | Decoding many messages of one channel together gives the same as decoding them one by one.
module RepeatedSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.List (sort)
import Foreign.ForeignPtr (withForeignPtr)
import Foreign.Ptr (plusPtr)
import Redis.Internal.Protocol.Decode
import Redis.Internal.Protocol.Repeated
import Redis.Value (Value)
import Test.Hspec hiding (before)
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck hiding (again)

spec :: Spec
spec = describe "messages that repeat" $ do
  prop "are what they are one by one, whatever is between them, and however they are cut" $
    forAll (listOf genItem) $ \items -> do
      let stream = ByteString.concat items
      forAll (sort <$> listOf (chooseInt (0, ByteString.length stream))) $ \cuts -> ioProperty $ do
        (values, _) <- received stream cuts
        pure (values === Right (map valueOf items))

  it "are made by their last string alone" $ do
    (values, again) <- received (ByteString.concat [message "news" (Char8.pack (show number)) | number <- [1 .. 100 :: Int]]) []
    fmap length values `shouldBe` Right 100
    again `shouldBe` 99

  prop "are refused where one by one they are" $
    forAll (listOf genItem) $ \items -> forAll genBroken $ \broken -> ioProperty $ do
      (values, _) <- received (ByteString.concat items <> broken <> "+OK\r\n") []
      pure (either (const "refused") show values === either (const "refused") (show . map Just) (allOf (ByteString.concat items <> broken <> "+OK\r\n")))

-- | Decodes the values one by one, up to the first incomplete one.
allOf :: ByteString -> Either String [Value]
allOf bytes
  | ByteString.null bytes = Right []
  | otherwise = case decodeBytes limits bytes of
    Right (value, rest) -> (value :) <$> allOf rest
    Left reason | "incomplete" == take 10 reason -> Right []
    Left reason -> Left reason

valueOf :: ByteString -> Maybe Value
valueOf bytes = either (const Nothing) (Just . fst) (decodeBytes limits bytes)

-- | The values, and how many of them the decoder reported as repetitions.
received :: ByteString -> [Int] -> IO (Either String [Maybe Value], Int)
received stream cuts = go 0 startFrames Nothing [] 0 (cuts <> [ByteString.length stream])
  where
    go at frames before done again = \case
      [] -> pure (Right (reverse done), again)
      end : later -> do
        let (memory, offset, _) = ByteString.Internal.toForeignPtr stream
        (came, step) <- withForeignPtr memory $ \base -> decodeRun limits (base `plusPtr` offset) at end frames
        let (before', done', again') = foldl expand (before, done, again :: Int) (reverse came)
        case step of
          NeedMore frames' next _ -> go next frames' before' done' again' later
          Malformed reason -> pure (Left reason, again')
          Done _ _ -> pure (Left "done", again')
    expand (before, done, again) = \case
      Came value -> (Just value, Just value : done, again)
      Again payload -> (withLast payload <$> before, (withLast payload <$> before) : done, again + 1)

limits :: Limits
limits = limitsDefaults {limitBulkBytes = 1000, limitElements = 100, limitDepth = 4}

message :: ByteString -> ByteString -> ByteString
message name payload = ">3\r\n" <> bulk "message" <> bulk name <> bulk payload

bulk :: ByteString -> ByteString
bulk text = "$" <> Char8.pack (show (ByteString.length text)) <> "\r\n" <> text <> "\r\n"

genItem :: Gen ByteString
genItem =
  frequency
    [ (8, message <$> elements ["news", "new", "sports"] <*> genPayload),
      (2, (\payload -> "*3\r\n" <> bulk "message" <> bulk "news" <> bulk payload) <$> genPayload),
      (2, (\payload -> ">4\r\n" <> bulk "pmessage" <> bulk "n*" <> bulk "news" <> bulk payload) <$> genPayload),
      (1, pure "+PONG\r\n"),
      (1, pure (">3\r\n" <> bulk "subscribe" <> bulk "news" <> ":1\r\n")),
      (1, pure "$-1\r\n")
    ]

genPayload :: Gen ByteString
genPayload =
  frequency
    [ (4, Char8.pack <$> listOf (elements "ab$>\r\n")),
      (1, (`ByteString.replicate` 120) <$> chooseInt (0, 990)),
      (1, pure (message "news" "inner"))
    ]

-- | Bytes that begin like a message, but are none or are incomplete.
genBroken :: Gen ByteString
genBroken = do
  let begun = ">3\r\n" <> bulk "message" <> bulk "news"
  (begun <>) <$> elements ["$5\r\nab\r\n", "$1001\r\n", "$03\r\nabc\r\n", "$-1\r\n", "$\r\n\r\n", "$3\nabc\r\n", "$3\r\rabc\r\n", "$x\r\n", ":7\r\n", "$99999999999999999999999\r\n", "$3\r\nabcd\n"]
