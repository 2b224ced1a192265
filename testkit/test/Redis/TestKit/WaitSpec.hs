module Redis.TestKit.WaitSpec (spec) where

import Control.Concurrent.STM (atomically, newEmptyTMVarIO, takeTMVar)
import Control.Exception (try)
import Data.IORef (atomicModifyIORef', newIORef)
import Data.List (isInfixOf, tails)
import Redis.TestKit.Wait
import System.IO (IOMode (ReadMode), withFile)
import System.Process (callProcess)
import Test.Hspec
import Text.Read (readEither)

spec :: Spec
spec = do
  it "looks again until the condition holds" $ do
    looks <- newIORef (0 :: Int)
    eventually 5 "the third look" $
      atomicModifyIORef' looks (\n -> (n + 1, n >= 2))

  it "says what did not happen and who waited for it" $ do
    outcome <- try (eventually 0.01 "pigs fly" (pure False))
    case outcome of
      Left (TestKitFailure text) -> do
        text `shouldSatisfy` isInfixOf "pigs fly"
        text `shouldSatisfy` isInfixOf "WaitSpec.hs"
      Right () -> expectationFailure "it did not fail"

  it "shows the last value when the expected one does not come" $ do
    outcome <- try (eventuallyReturns 0.01 (1 :: Int) (pure 2))
    case outcome of
      Left (TestKitFailure text) -> text `shouldSatisfy` isInfixOf "last seen 2"
      Right () -> expectationFailure "it did not fail"

  it "cancels what takes too long" $ do
    never <- newEmptyTMVarIO
    let forever' = within 0.01 (atomically (takeTMVar never)) :: IO ()
    forever' `shouldThrow` \(TestKitFailure text) ->
      "did not finish" `isInfixOf` text

  it "goes on without what takes too long" $ do
    never <- newEmptyTMVarIO
    upTo 0.01 (atomically (takeTMVar never) :: IO ()) `shouldReturn` Nothing
    upTo 5 (pure 'a') `shouldReturn` Just 'a'

  it "says what processes a test that takes too long had" $ do
    outcome <- try (testWithin 3 (callProcess "sh" ["-c", "sleep 20; :"]))
    case outcome of
      Left (TestKitFailure text) -> do
        [readEither word | "up" : "to" : word : _ <- tails (words text)] `shouldSatisfy` \case
          [Right still] -> still >= (0 :: Double) && still < 2
          _ -> False
        map (takeWhile (== ' ')) (filter ("sleep 20" `isInfixOf`) (lines text)) `shouldBe` ["", "  "]
      Right () -> expectationFailure "it did not fail"

  it "counts open descriptors" $ do
    atFirst <- openDescriptors
    during <- withFile "/dev/null" ReadMode (const openDescriptors)
    during `shouldBe` atFirst + 1
    descriptorsReturnTo 5 atFirst
