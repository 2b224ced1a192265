-- | The exact bytes of replies: whatever a server writes, and however it arrives, the same bytes
-- come out.
module ExactSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.List qualified as List
import Foreign.Ptr (castPtr)
import Redis.Internal.Protocol.Decode
import Redis.Internal.Protocol.Exact
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck

spec :: Spec
spec = describe "the exact bytes of replies" $ do
  prop "come out as they came in, each with its value, however they are cut" $
    forAll (resize 20 (listOf genReply)) $ \replies -> forAll (genCuts (ByteString.concat replies)) $ \cuts ->
      ioProperty $ do
        got <- received cuts [(True, reply) | reply <- replies]
        pure (got === Right [(valueIn reply, Just reply) | reply <- replies])

  modifyMaxSuccess (const 60) . prop "come out as they came in, byte by byte" $
    forAll (resize 10 (listOf1 genReply)) $ \replies -> ioProperty $ do
      got <- received [1 .. sum (map ByteString.length replies)] [(True, reply) | reply <- replies]
      pure (got === Right [(valueIn reply, Just reply) | reply <- replies])

  prop "are kept for the replies that want it, among others that do not" $
    forAll (resize 20 (listOf ((,) <$> arbitrary <*> genReply))) $ \replies ->
      forAll (genCuts (ByteString.concat (map snd replies))) $ \cuts -> ioProperty $ do
        got <- received cuts replies
        pure (got === Right [(valueIn reply, if wanted then Just reply else Nothing) | (wanted, reply) <- replies])

  it "say what the value does not" $ do
    let spellings = [",1e3\r\n", ",1000\r\n", ",+1000.0\r\n", ":+1\r\n", ":001\r\n", "$3\r\nabc\r\n", "!5\r\nERR x\r\n", "-ERR x\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "+OK\r\n", "$2\r\nOK\r\n"]
    got <- received [3, 5, 8, 13, 21, 34, 55] [(True, reply) | reply <- spellings]
    fmap (map snd) got `shouldBe` Right (map Just spellings)

  it "cannot be asked for in the midst of a reply" $ do
    frames <- ByteString.Unsafe.unsafeUseAsCStringLen "*2\r\n:1\r\n" $ \(start, size) ->
      decode limits (castPtr start) 0 size startFrames >>= \case
        NeedMore frames _ _ -> pure (Just frames)
        _ -> pure Nothing
    map betweenReplies (startFrames : foldMap pure frames) `shouldBe` [True, False]

  it "are not RESP where the bytes are not" $ do
    got <- received [2] [(True, "*1\r\nx\r\n")]
    got `shouldBe` Left "unknown type byte 120"

-- | The value of a whole reply, as the ordinary parser reads it.
valueIn :: ByteString -> String
valueIn reply = either id (show . fst) (decodeBytes limits reply)

-- | Reads as a connection's reader does: it parses the bytes up to each cut, and keeps the exact
-- bytes of the marked replies. Bytes that it has used are overwritten, as in a buffer.
received :: [Int] -> [(Bool, ByteString)] -> IO (Either String [(String, Maybe ByteString)])
received cuts replies = go 0 (cuts <> [ByteString.length stream]) (map fst replies) (Left startFrames) []
  where
    stream = ByteString.concat (map snd replies)
    go at (end : later) wanted state done
      | at > end = go at later wanted state done
      | otherwise = do
        step <- inBuffer at end $ \base -> case between wanted state of
          Left frames ->
            decode limits base at end frames >>= \case
              Done value next -> pure (Right (Right (shown value, Nothing, next)))
              NeedMore frames' next _ -> pure (Right (Left (Left frames', next)))
              Malformed reason -> pure (Left reason)
          Right exact ->
            decodeExact limits base at end exact >>= \case
              ExactDone value bytes next -> pure (Right (Right (shown value, Just bytes, next)))
              ExactMore exact' next _ -> pure (Right (Left (Right exact', next)))
              ExactMalformed reason -> pure (Left reason)
        case step of
          Left reason -> pure (Left reason)
          Right (Right (value, bytes, next)) -> go next (end : later) (drop 1 wanted) (Left startFrames) ((value, bytes) : done)
          Right (Left (state', next)) -> go next later wanted state' done
    go _ [] _ _ done = pure (Right (reverse done))
    between (True : _) (Left frames) | betweenReplies frames = Right startExact
    between _ state = state
    shown value = let text = show value in length text `seq` text
    inBuffer at end run =
      ByteString.Unsafe.unsafeUseAsCStringLen
        (ByteString.replicate at 255 <> ByteString.take (end - at) (ByteString.drop at stream) <> ByteString.replicate 8 255)
        (\(start, _) -> run (castPtr start))

limits :: Limits
limits = limitsDefaults {limitBulkBytes = 1024 * 1024, limitElements = 1024 * 1024, limitDepth = 64}

genCuts :: ByteString -> Gen [Int]
genCuts bytes = List.sort <$> listOf (chooseInt (0, ByteString.length bytes))

-- | The bytes of a reply, of every type and in every spelling.
genReply :: Gen ByteString
genReply = upTo (4 :: Int)
  where
    upTo depth
      | depth <= 0 = leaf
      | otherwise = frequency [(2, leaf), (1, aggregate (upTo (depth - 1)))]
    aggregate inner =
      oneof
        [ counted "*" 1 inner,
          counted "~" 1 inner,
          counted ">" 1 inner,
          counted "%" 2 inner,
          (<>) <$> counted "|" 2 inner <*> inner
        ]
    counted tag perEntry inner = do
      count <- chooseInt (0, 4)
      parts <- vectorOf (count * perEntry) inner
      pure (tag <> shown count <> "\r\n" <> ByteString.concat parts)
    leaf =
      oneof
        [ line "+" =<< oneof [text, elements ["OK", "O", "QUEUED"]],
          line "-" =<< text,
          line ":" =<< number,
          line "(" =<< oneof [number, Char8.pack . show <$> choose (-(10 ^ (40 :: Int)), 10 ^ (40 :: Int) :: Integer)],
          line "," =<< oneof [number, floating, elements ["inf", "-inf", "+inf", "nan", "-nan"]],
          line "#" =<< elements ["t", "f"],
          elements ["_\r\n", "$-1\r\n", "*-1\r\n"],
          bulk "$" =<< anyBytes,
          bulk "!" =<< anyBytes,
          bulk "=" . (<>) "txt:" =<< anyBytes
        ]
    line tag body = pure (tag <> body <> "\r\n")
    -- A size has only one spelling.
    bulk tag body = pure (tag <> shown (ByteString.length body) <> "\r\n" <> body <> "\r\n")
    shown = Char8.pack . show
    number = do
      sign <- elements ["", "", "-", "+"]
      zeros <- elements ["", "", "0", "000"]
      digits <- Char8.pack . show <$> choose (0, 10 ^ (12 :: Int) :: Integer)
      pure (sign <> zeros <> digits)
    floating = do
      whole <- number
      fraction <- elements ["", ".", ".0", ".50", ".12345678901234567890"]
      power <- elements ["", "e0", "E+07", "e-300"]
      pure (whole <> fraction <> power)
    text = ByteString.filter (`notElem` [13, 10]) <$> anyBytes
    anyBytes = ByteString.pack <$> listOf (frequency [(4, arbitrary), (1, elements [13, 10])])
