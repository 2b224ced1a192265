-- | Replies of servers that the live tests do not run: older ones, and newer ones with more fields.
module Redis.Commands.StreamSpec (spec) where

import Data.ByteString (ByteString)
import Data.Either (isLeft)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Command (decoded)
import Redis.Commands
import Redis.Duration
import Redis.Value (Value (..))
import Test.Hspec

spec :: Spec
spec = describe "Redis.Commands.Stream" $ do
  it "reads ids of 64 bits, and nothing else for one" $ do
    let reading = decoded (xadd "k" (("f", "1") :| [])) . BulkString
    map reading ["0-0", "18446744073709551615-18446744073709551615", "00000000000000000001-9"]
      `shouldBe` map Right [StreamId 0 0, StreamId maxBound maxBound, StreamId 1 9]
    filter (not . isLeft . reading) ["", "1", "1-", "-1", "1--1", "+1-1", "1-1-1", "a-1", "18446744073709551616-0", "123456789012345678901-0"]
      `shouldBe` []

  it "has the times of ids to the millisecond, and none before 1970" $ do
    streamIdTime (StreamId 1700000000123 9) `shouldBe` posixSecondsToUTCTime 1700000000.123
    map (streamIdAt . posixSecondsToUTCTime) [1700000000.1221, -5] `shouldBe` [StreamId 1700000000123 0, StreamId 0 0]

  it "XCLAIM before 7.0 has a null for what was deleted" $
    decoded (xclaim "k" ann (seconds 1) (StreamId 1 0 :| [])) (Array [Null, entry "2-0"]) `shouldBe` Right [anEntry 2]

  it "XAUTOCLAIM before 7.0 does not tell what was deleted" $
    decoded (xautoclaim "k" ann (seconds 1) (StreamId 0 0)) (Array [BulkString "4-0", Array [Null, entry "2-0"]])
      `shouldBe` Right (Autoclaimed (Just (StreamId 4 0)) [anEntry 2] [])

  it "XINFO STREAM before 7.0 tells less" $ do
    let reply =
          Array
            [ BulkString "length",
              Integer 1,
              BulkString "radix-tree-keys",
              Integer 1,
              BulkString "radix-tree-nodes",
              Integer 2,
              BulkString "last-generated-id",
              BulkString "2-0",
              BulkString "groups",
              Integer 0,
              BulkString "first-entry",
              entry "2-0",
              BulkString "last-entry",
              entry "2-0"
            ]
    decoded (xinfoStream "k") reply
      `shouldBe` Right
        StreamInfo
          { streamInfoLength = 1,
            streamInfoRadixTreeKeys = 1,
            streamInfoRadixTreeNodes = 2,
            streamInfoLastGeneratedId = StreamId 2 0,
            streamInfoMaxDeletedEntryId = Nothing,
            streamInfoEntriesAdded = Nothing,
            streamInfoRecordedFirstEntryId = Nothing,
            streamInfoGroups = 0,
            streamInfoFirstEntry = Just (anEntry 2),
            streamInfoLastEntry = Just (anEntry 2),
            streamInfoIdempotence = Nothing,
            streamInfoOthers = []
          }

  it "XINFO keeps what it does not know" $ do
    let known = [("name", BulkString "ann"), ("pending", Integer 2), ("idle", Integer 1500)]
    decoded (xinfoConsumers "k" "g") (Array [fields (known <> [("mood", BulkString "good")])])
      `shouldBe` Right
        [ ConsumerInfo
            { consumerInfoName = "ann",
              consumerInfoPending = 2,
              consumerInfoIdle = seconds 1.5,
              consumerInfoInactive = Nothing,
              consumerInfoOthers = [("mood", BulkString "good")]
            }
        ]
    decoded (xinfoConsumers "k" "g") (Array [fields (drop 1 known)]) `shouldSatisfy` isLeft
  where
    ann = Consumer "g" "ann"
    fields named = Map [(BulkString name, value) | (name, value) <- named]

-- | An entry with one field, and below it the entry on the wire.
anEntry :: Int -> StreamEntry
anEntry at = StreamEntry (StreamId (fromIntegral at) 0) [("f", "1")]

entry :: ByteString -> Value
entry name = Array [BulkString name, Array [BulkString "f", BulkString "1"]]
