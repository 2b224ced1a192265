-- | Commands with keys in several slots: their parts, and the merging of the replies.
module Redis.Commands.SplitSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import Redis.Commands hiding (keys)
import Redis.Error
import Redis.Internal.Client.FanOut
import Redis.Internal.Command
import Redis.Internal.Protocol.CommandTable.Aggregation (Aggregation (..))
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Value (Value (..))
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = do
  describe "A command over several slots" $ do
    prop "falls into one part for each, typed or by its words in any case, which has its keys in their order" $
      forAll someKeys $ \keys ->
        let expected name = Map.elems (Map.map (name :) (grouped keys))
         in conjoin
              [ sort' (wordsOfParts (mget keys)) === sort' (expected "MGET"),
                sort' (wordsOfParts (del keys)) === sort' (expected "DEL"),
                sort' (wordsOfParts (raw ("mget" : NonEmpty.toList keys))) === sort' (expected "mget")
              ]

    prop "gives each key's value with it" $
      forAll someKeys $ \keys ->
        let entries = NonEmpty.map (\key -> (key, "value of " <> key)) keys
            pairsOf = \case
              key : value : rest -> (key, value) : pairsOf rest
              _ -> []
         in List.sort (concatMap (pairsOf . drop 1) (wordsOfParts (mset entries))) === List.sort (NonEmpty.toList entries)

    prop "has its answers in the order of its keys, whatever part comes first" $
      forAll someKeys $ \keys ->
        played (mget keys) (Array . map BulkString . drop 1)
          === Right (map Just (NonEmpty.toList keys))

    prop "adds up what its parts count" $
      forAll someKeys $ \keys ->
        [played (command keys) (\sent -> Integer (fromIntegral (length sent - 1))) | command <- [del, unlink, exists, touch]]
          === replicate 4 (Right (fromIntegral (length keys)))

    it "that is all or nothing is not split" $
      case commandRoute (msetnx (("a", "1") :| [("b", "2")])) of
        SameSlot keys -> keys `shouldBe` "a" :| ["b"]
        _ -> expectationFailure "expected keys of one slot"

    it "of which a part answers with too few elements is one clear error" $
      played (mget ("a" :| ["b", "c"])) (const (Array [])) `shouldSatisfy` \case
        Left (UnexpectedReply _) -> True
        _ -> False

    it "that only reads fails with the first failure of its parts" $
      playedWith (mget ("a" :| ["b"])) failingFirst `shouldBe` Left refused

    it "that writes has perhaps run when a part has" $
      playedWith (mset (("a", "1") :| [("b", "2")])) failingFirst
        `shouldBe` Left (RoutingError (RoutingFailure "" MaybeExecuted (PartsFailed (FailedParts 1 2 refused))))

    it "that writes has not run when no part has" $
      playedWith (mset (("a", "1") :| [("b", "2")])) (map (const (Left refused))) `shouldBe` Left refused

  describe "The replies of several nodes" $ do
    it "become one, if all have one" $
      aggregateNodes writeFacts AggSum [(one, Right (Integer 1)), (two, Right (Integer 2))] `shouldBe` Right (Integer 3)

    it "are an error that names the nodes that failed, if some did" $
      aggregateNodes readFacts AggSum [(one, Right (Integer 1)), (two, Left refused)]
        `shouldBe` Left (RoutingError (RoutingFailure "" RefusedBeforeRun (NodesFailed (FailedNodes (Map.singleton two refused) 2))))

    it "leave a write in doubt, if some failed and some did not" $
      aggregateNodes writeFacts AggAllSucceeded [(one, Right (SimpleString "OK")), (two, Left refused)]
        `shouldBe` Left (RoutingError (RoutingFailure "" MaybeExecuted (NodesFailed (FailedNodes (Map.singleton two refused) 2))))

    it "are that of one node, where one is enough" $
      aggregateNodes writeFacts AggOneSucceeded [(one, Left refused), (two, Right (SimpleString "OK"))] `shouldBe` Right (SimpleString "OK")

    it "are the error that all say, if all say the same" $
      aggregateNodes writeFacts AggOneSucceeded [(one, Left refused), (two, Left refused)] `shouldBe` Left refused
  where
    one = TcpEndpoint "one" 1
    two = TcpEndpoint "two" 2
    refused = ReplyError (serverErrorFromText "NOPERM no") {serverErrorDelivery = RefusedBeforeRun}
    failingFirst = \case
      _ : rest -> Left refused : rest
      [] -> []
    sort' :: [[ByteString]] -> [[ByteString]]
    sort' = List.sort

-- | Several keys, some of them twice.
someKeys :: Gen (NonEmpty ByteString)
someKeys = do
  first <- key
  second <- key
  rest <- listOf key
  pure (first :| second : rest)
  where
    key = Char8.pack . ("k" <>) . show <$> chooseInt (0, 20)

-- | The keys of each slot, in order.
grouped :: NonEmpty ByteString -> Map.Map Int [ByteString]
grouped = Map.fromListWith (flip (<>)) . map (\key -> (read (show (keySlot key)), [key])) . NonEmpty.toList

partsOfCommand :: Command a -> [Part]
partsOfCommand given = case commandRoute given of
  Splittable stride keys -> partsOf given stride keys
  _ -> []

wordsOfParts :: Command a -> [[ByteString]]
wordsOfParts = map (commandArguments . partCommand) . partsOfCommand

-- | The result of a command whose parts get these replies. The function takes the words of a part.
-- The parts are answered in the reverse order.
played :: Command a -> ([ByteString] -> Value) -> Either Error a
played given answer = merged given [(part, Right (answer (commandArguments (partCommand part)))) | part <- reverse (partsOfCommand given)]

-- | The result of a command, after this change of the parts' replies.
playedWith :: Command a -> ([Either Error Value] -> [Either Error Value]) -> Either Error a
playedWith given change = merged given (zip parts (change (map answer parts)))
  where
    parts = partsOfCommand given
    answer part = Right (if factReadOnly (commandFacts given) then Array (map BulkString (drop 1 (commandArguments (partCommand part)))) else SimpleString "OK")

merged :: Command a -> [(Part, Either Error Value)] -> Either Error a
merged given results = aggregateParts (commandFacts given) results >>= decoded given
