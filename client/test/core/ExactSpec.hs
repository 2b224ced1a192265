-- | The exact bytes of replies: whatever a server writes, and however it arrives, the same bytes
-- come out.
module ExactSpec (spec) where

import Control.Exception (AsyncException (UserInterrupt), throwIO, try)
import Control.Monad (forM)
import Data.Bifunctor (bimap)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.List qualified as List
import Fake
import Redis.Error
import Redis.Internal.Network.Stream (Wire (..), receiveBytes, receiveReply)
import Redis.Internal.Network.Transport (Transport (..))
import Redis.Internal.Protocol.Decode
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

  prop "come out as they came in, wherever the wait for the rest is interrupted" $
    forAll (resize 10 (listOf1 genReply)) $ \replies -> forAll (genCuts (ByteString.concat replies)) $ \cuts ->
      ioProperty $ do
        fake <- newFake goodManners 1
        unsaid <- newIORef (cutAt cuts (ByteString.concat replies))
        wire <- wireOver (fakeTransport fake) {transportWaitReadable = throwIO UserInterrupt}
        let goingOn =
              try (receiveReply wire) >>= \case
                Right (value, bytes) -> pure (show value, bytes)
                Left UserInterrupt -> do
                  (now, later) <- splitAt 1 <$> readIORef unsaid
                  writeIORef unsaid later
                  if null now then hangUp fake else mapM_ (say fake) now
                  goingOn
                Left other -> throwIO other
        got <- forM replies (const goingOn)
        pure (got === [(valueIn reply, reply) | reply <- replies])

  it "say what the value does not" $ do
    let spellings = [",1e3\r\n", ",1000\r\n", ",+1000.0\r\n", ":+1\r\n", ":001\r\n", "$3\r\nabc\r\n", "!5\r\nERR x\r\n", "-ERR x\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "+OK\r\n", "$2\r\nOK\r\n"]
    got <- received [3, 5, 8, 13, 21, 34, 55] [(True, reply) | reply <- spellings]
    fmap (map snd) got `shouldBe` Right (map Just spellings)

  it "are not RESP where the bytes are not" $ do
    got <- received [2] [(True, "*1\r\nx\r\n")]
    got `shouldBe` Left (ConnectionError (ConnectionFailure "" MaybeExecuted (TcpEndpoint "fake" 1) (ProtocolViolation "unknown type byte 120")))

-- | The value of a whole reply, as the ordinary parser reads it.
valueIn :: ByteString -> String
valueIn reply = either id (show . fst) (decodeBytes limits reply)

-- | Receives these replies over a connection that brings them in pieces, cut there, and then ends: the text of each
-- value, and the bytes of the marked replies. Takes the others as bytes.
received :: [Int] -> [(Bool, ByteString)] -> IO (Either Error [(String, Maybe ByteString)])
received cuts replies = do
  fake <- newFake goodManners 1
  mapM_ (say fake) (cutAt cuts (ByteString.concat (map snd replies)))
  hangUp fake
  wire <- wireOver (fakeTransport fake)
  got <- try . forM replies $ \(wanted, reply) ->
    if wanted
      then bimap show Just <$> receiveReply wire
      else (\bytes -> (valueIn bytes, Nothing)) <$> receiveAll wire (ByteString.length reply)
  mapM_ (const (receiveBytes wire 1 `shouldReturn` "")) got
  breaches fake `shouldReturn` []
  pure got
  where
    receiveAll wire size = do
      bytes <- receiveBytes wire size
      let left = size - ByteString.length bytes
      if left == 0 || ByteString.null bytes then pure bytes else (bytes <>) <$> receiveAll wire left

wireOver :: Transport -> IO Wire
wireOver transport = Wire transport limits <$> newIORef ByteString.empty

cutAt :: [Int] -> ByteString -> [ByteString]
cutAt cuts bytes = [ByteString.take (to - from) (ByteString.drop from bytes) | (from, to) <- zip (0 : cuts) (cuts <> [ByteString.length bytes])]

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
