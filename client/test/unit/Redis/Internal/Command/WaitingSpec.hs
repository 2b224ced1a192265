-- | The rest of a blocking command's time.
module Redis.Internal.Command.WaitingSpec (spec) where

import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.Commands
import Redis.Duration (seconds)
import Redis.Internal.Command
import Redis.Internal.Command.Make (withRemaining)
import Redis.Internal.Protocol.Encode (requestBytes)
import Support (naiveRequest)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Command.Make, what is left of a time" $ do
  it "leaves a command the time that has not passed, in its bytes and in its facts" $ do
    wire (withRemaining 4 (blpop ("a" :| ["b"]) (Just (seconds 10)))) `shouldBe` naiveRequest ["BLPOP", "a", "b", "6.000"]
    blocking (withRemaining 4 (blpop ("a" :| []) (Just (seconds 10)))) `shouldBe` BlocksFor 6
    wire (withRemaining 1.5 (raw ["BLMPOP", "2", "1", "a", "LEFT"])) `shouldBe` naiveRequest ["BLMPOP", "0.500", "1", "a", "LEFT"]
    wire (withRemaining 4.5 (raw ["XREAD", "COUNT", "1", "BLOCK", "5000", "STREAMS", "a", "$"]))
      `shouldBe` naiveRequest ["XREAD", "COUNT", "1", "BLOCK", "500", "STREAMS", "a", "$"]

  it "leaves a moment where no time is left, which is not for ever" $
    wire (withRemaining 11 (blpop ("a" :| []) (Just (seconds 10)))) `shouldBe` naiveRequest ["BLPOP", "a", "0.002"]

  it "waits for a moment, and not for ever, however short the timeout" $
    wire (blpop ("a" :| []) (Just (seconds 0.0001))) `shouldBe` naiveRequest ["BLPOP", "a", "0.002000"]

  it "changes no command that waits for ever, or not at all" $ do
    wire (withRemaining 4 (blpop ("a" :| []) Nothing)) `shouldBe` naiveRequest ["BLPOP", "a", "0"]
    wire (withRemaining 4 (get "a")) `shouldBe` naiveRequest ["GET", "a"]
    blocking (withRemaining 4 (get "a")) `shouldBe` NonBlocking

  it "is not asked for again after what waits for new entries was lost: the end of the stream is elsewhere by then" $
    [line | line <- readings, factIdempotent (commandFacts (raw (Char8.words line)))]
      `shouldBe` ["XREAD BLOCK 0 STREAMS a 0-0", "XREAD BLOCK 0 STREAMS a +", "XREAD STREAMS a $"]

  prop "changes nothing but the time, and never makes it longer" $
    forAll ((/ 1000) . fromIntegral <$> choose (2 :: Int, 1000000)) $ \limit -> forAll (choose (0, 1000)) $ \passed -> do
      let whole = blpop ("a" :| ["b"]) (Just (seconds limit))
          rest = withRemaining passed whole
      conjoin
        [ commandFacts whole === withInfo (\told -> told {infoBlocking = BlocksFor limit}) (commandFacts rest),
          case blocking rest of
            BlocksFor left -> counterexample (show left) (left <= limit && left > 0 && left >= limit - passed)
            other -> counterexample (show other) False
        ]
  where
    wire = requestBytes . commandRequest
    blocking = factBlocking . commandFacts
    readings =
      [ "XREAD BLOCK 0 STREAMS a 0-0",
        "XREAD BLOCK 0 STREAMS a +",
        "XREAD STREAMS a $",
        "XREAD BLOCK 0 STREAMS a $",
        "xread count 1 block 500 streams a b 0-0 $"
      ]
