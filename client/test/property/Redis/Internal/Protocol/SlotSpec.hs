module Redis.Internal.Protocol.SlotSpec (spec) where

import Data.Bits (shiftL, testBit, xor)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Word (Word16)
import Redis.Internal.Protocol.Slot
import Redis.Properties (cases)
import Support
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Protocol.Slot" $ do
  it "hashes 123456789 to the check value of CRC16/XMODEM, 0x31C3" $
    slotNumber (keySlot "123456789") `shouldBe` 0x31c3 `mod` slotCount

  mapM_
    (\(key, slot) -> it ("puts " <> show key <> " into slot " <> show slot) (slotNumber (keySlot key) `shouldBe` slot))
    [ ("", 0),
      ("foo", 12182),
      ("foo{}{bar}", 8363),
      ("foo{{bar}}zap", 4015),
      ("foo{bar}{zap}", 5061),
      ("user:{1000}.name", 11326)
    ]

  it "puts keys of one tag into one slot" $
    keySlot "{user1000}.following" `shouldBe` keySlot "{user1000}.followers"

  cases 1000 $ do
    prop "agrees with the bitwise definition on any bytes" $
      forAll anyBytes $ \key -> slotNumber (keySlot key) === naiveSlot key

    prop "agrees with it on keys full of braces" $
      forAll (ByteString.concat <$> listOf (elements ["{", "}", "a", "b", "\0"])) $ \key ->
        slotNumber (keySlot key) === naiveSlot key

  prop "hashes the tag alone, whatever is around it" $
    forAll ((,,) <$> plainBytes <*> plainBytes <*> anyBytes) $ \(ahead, tag, behind) ->
      not (ByteString.null tag) ==> keySlot (ahead <> "{" <> tag <> "}" <> behind) === keySlot tag

  prop "takes a number for a slot only within the range" $ \number ->
    fmap slotNumber (slotFromInt number) === (if number `elem` [0 .. slotCount - 1] then Just number else Nothing)

  it "lists every slot once" $
    map slotNumber allSlots `shouldBe` [0 .. 16383]
  where
    plainBytes = ByteString.filter (`notElem` [0x7b, 0x7d]) <$> anyBytes

naiveSlot :: ByteString -> Int
naiveSlot key = fromIntegral (naiveCrc hashed) `mod` 16384
  where
    hashed = case Char8.break (== '{') key of
      (_, rest)
        | (tag, end) <- Char8.break (== '}') (ByteString.drop 1 rest),
          not (ByteString.null end),
          not (ByteString.null tag) ->
          tag
      _ -> key

-- | The CRC bit by bit, as its definition says.
naiveCrc :: ByteString -> Word16
naiveCrc = ByteString.foldl' byteIn 0
  where
    byteIn crc byte = iterate shiftOne (crc `xor` (fromIntegral byte `shiftL` 8)) `at` (8 :: Int)
    shiftOne crc
      | testBit crc 15 = (crc `shiftL` 1) `xor` 0x1021
      | otherwise = crc `shiftL` 1
    at values count = case drop count values of
      value : _ -> value
      [] -> 0
