-- | Commands over several keys, played against a store of several nodes.
module Redis.Commands.SplitSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Redis.Command
import Redis.Commands
import Redis.Internal.Protocol.Encode (requestBytes)
import Redis.Value (Value (..))
import Support (naiveRequest)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Commands, split across slots" $ do
  prop "MGET answers in the caller's order" $
    forAll someKeys $ \keys ->
      splitRun (mget keys) answerMget
        === Right (map Just (NonEmpty.toList keys), partsOf keys "MGET" pure)

  prop "DEL, UNLINK, EXISTS and TOUCH add up" $
    forAll someKeys $ \keys ->
      conjoin
        [ splitRun (command keys) answerCount === Right (fromIntegral (length keys), partsOf keys name pure)
          | (name, command) <- [("DEL", del), ("UNLINK", unlink), ("EXISTS", exists), ("TOUCH", touch)]
        ]

  prop "MSET sets every entry once, those of one slot in the caller's order" $
    forAll someKeys $ \keys ->
      let entries = NonEmpty.zip keys (NonEmpty.fromList (map (Char8.pack . show) [1 :: Int ..]))
          parts = map ("MSET" :) (Map.elems (grouped (fst <$> entries) [[key, value] | (key, value) <- NonEmpty.toList entries]))
       in splitRun (mset entries) (const (SimpleString "OK")) === Right ((), parts)

  it "needs no splitting for one key" $
    case commandRoute (mget ("a" :| [])) of
      OneKey key -> key `shouldBe` "a"
      _ -> expectationFailure "expected one key"

  it "is not offered by commands that are all or nothing" $
    case commandRoute (msetnx (("a", "1") :| [("b", "2")])) of
      SameSlot keys -> keys `shouldBe` "a" :| ["b"]
      _ -> expectationFailure "expected keys of one slot"

  prop "an MGET part with too few values is refused" $
    forAll someKeys $ \keys ->
      case commandDecode (mget keys) (Array (drop 1 (map BulkString (NonEmpty.toList keys)))) of
        Left _ -> True
        Right _ -> False

-- | Several keys, some of them twice.
someKeys :: Gen (NonEmpty ByteString)
someKeys = do
  first <- key
  second <- key
  rest <- listOf key
  pure (first :| second : rest)
  where
    key = Char8.pack . ("k" <>) . show <$> chooseInt (0, 20)

-- | A slot of our own making: what matters is that it follows from the key.
slotOf :: ByteString -> Int
slotOf key = fromIntegral (ByteString.foldl' (+) 0 key) `mod` 4

-- | The words that belong to each slot, in order.
grouped :: NonEmpty ByteString -> [[ByteString]] -> Map Int [ByteString]
grouped keys items =
  List.foldl' (\done (slot, item) -> Map.insertWith (flip (<>)) slot item done) Map.empty (zip (map slotOf (NonEmpty.toList keys)) items)

partsOf :: NonEmpty ByteString -> ByteString -> (ByteString -> [ByteString]) -> [[ByteString]]
partsOf keys name item = map (name :) (Map.elems (grouped keys (map item (NonEmpty.toList keys))))

-- | Runs a command in parts, as a cluster would. Also gives the words of each
-- part, by slot. Parts are finished in another order than they were begun.
splitRun :: Show a => Command a -> ([ByteString] -> Value) -> Either String (a, [[ByteString]])
splitRun command answer = case commandRoute command of
  Splittable SplitPlan {splitKeys, splitPart, splitMerge} -> do
    let positions = Map.elems (positionsBySlot splitKeys)
    parts <- traverse (run splitPart) positions
    pure (splitMerge (reverse [(at, result) | (at, result, _) <- parts]), [sent | (_, _, sent) <- parts])
  _ -> Left "expected a command that can be split"
  where
    run splitPart at = do
      let part = splitPart at
          sent = wordsOf (requestBytes (commandRequest part))
      if naiveRequest sent /= requestBytes (commandRequest part)
        then Left "the test misread a request"
        else do
          result <- either (Left . show) Right (commandDecode part (answer sent))
          pure (at, result, sent)
    positionsBySlot keys =
      Map.map NonEmpty.reverse $
        List.foldl'
          (\done (position, key) -> Map.insertWith (<>) (slotOf key) (position :| []) done)
          Map.empty
          (zip [0 ..] (NonEmpty.toList keys))

-- | The keys and values of these tests have no line breaks.
wordsOf :: ByteString -> [ByteString]
wordsOf bytes = every (drop 2 (map (Char8.takeWhile (/= '\r')) (Char8.lines bytes)))
  where
    every = \case
      word : _ : rest -> word : every rest
      [word] -> [word]
      [] -> []

answerMget :: [ByteString] -> Value
answerMget = Array . map BulkString . drop 1

answerCount :: [ByteString] -> Value
answerCount sent = Integer (fromIntegral (length sent - 1))
