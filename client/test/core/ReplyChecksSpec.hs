-- | Replies that do not belong to their commands: with checks, whatever a server inserts, drops or
-- says twice, and wherever, no caller gets another's reply.
module ReplyChecksSpec (spec) where

import Control.Concurrent.MVar
import Control.Monad (forM, forM_)
import Data.ByteString (ByteString)
import Data.IORef
import Data.List (isInfixOf)
import Fake
import Peer
import Redis.Error
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Runtime (nanosFromSeconds)
import Redis.Value
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (within)

-- | What the server does wrong, once.
data Fault
  = Inserts ByteString
  | Drops
  | Doubles
  deriving stock (Eq, Show)

spec :: Spec
spec = describe "replies that do not belong to their commands" $ do
  modifyMaxSuccess (const 300) . prop "reach nobody with checks, whatever is inserted, dropped or doubled, and wherever" $
    forAll genFault $ \fault -> forAll genBlocks $ \blocks -> forAll (chooseInt (0, 2 * sum blocks)) $ \place ->
      ioProperty . within 30 $ do
        results <- served True fault place blocks
        pure . conjoin $
          [ counterexample (show (number, result)) (either (const True) (== BulkString (token number)) result)
            | (number, result) <- results
          ]

  modifyMaxSuccess (const 50) . prop "are none where the server does nothing wrong" $
    forAll genBlocks $ \blocks ->
      ioProperty . within 30 $ do
        results <- served True Drops maxBound blocks
        pure (map snd results === map (Right . BulkString . token . fst) results)

  it "reach callers without checks" . within 30 $ do
    results <- served False (Inserts "+inserted\r\n") 1 [4]
    map snd (take 3 results) `shouldBe` [Right (BulkString (token 0)), Right (SimpleString "inserted"), Right (BulkString (token 1))]

  it "end the connection, which says what came in the place of the check" . within 30 $
    forM_ [("-NOPERM no permission\r\n", "NOPERM no permission"), ("+OK\r\n", "another's reply")] $ \(reply, words') -> do
      results <- served True (Inserts reply) 1 [1]
      case results of
        [(_, Left (ConnectionError failed))] -> do
          connectionDelivery failed `shouldBe` MaybeExecuted
          renderCause (connectionCause failed) `shouldSatisfy` (words' `isInfixOf`)
        other -> expectationFailure (show other)

  it "are seen at once where they come before their command was sent" . within 30 $ do
    fake <- newFake goodManners {mannersWindow = 1} 1
    full <- newIORef False
    writeIORef (fakeOnFull fake) (writeIORef full True)
    mux <- openMux plainSettings fake
    -- The first is on its way and the socket is full, so the second waits.
    first <- usually submitCommandAsync mux (tokenRequest 1)
    eventually (readIORef full)
    second <- usually submitCommandAsync mux (tokenRequest 2)
    say fake (bulk (token 1) <> "+inserted\r\n")
    (outcomeText <$> waitSlotResult first) >>= (`shouldBe` Right (BulkString (token 1)))
    (outcomeText <$> waitSlotResult second) >>= \case
      Left (ConnectionError ConnectionFailure {connectionDelivery = NotSent, connectionCause = ProtocolViolation _}) -> pure ()
      other -> expectationFailure (show other)
    awaitGone mux

  it "are seen where a command is sent after they were received, before they were looked at" . within 30 $
    forM_ [False, True] $ \checked -> do
      fake <- newFake goodManners 1
      opened <- newEmptyMVar
      sent <- newEmptyMVar
      let sending _ = readMVar opened >>= \mux -> usually submitCommandAsync mux (tokenRequest 1) >>= putMVar sent
      mux <- openMux plainSettings {muxReplyChecks = checked, muxOnPush = sending} fake
      putMVar opened mux
      say fake ">1\r\n+push\r\n+inserted\r\n"
      (takeMVar sent >>= fmap outcomeText . waitSlotResult) >>= \case
        Left (ConnectionError failed) -> connectionCause failed `shouldBe` ProtocolViolation "a reply that nobody asked for"
        other -> expectationFailure (show other)
      awaitGone mux

genFault :: Gen Fault
genFault = oneof [Inserts <$> elements ["+OK\r\n", "-ERR inserted\r\n", ":1\r\n", bulk (token 0), bulk (token 3), "*0\r\n"], pure Drops, pure Doubles]

-- | How many commands are submitted together, each time.
genBlocks :: Gen [Int]
genBlocks = chooseInt (1, 6) >>= \count -> vectorOf count (chooseInt (1, 5))

-- | What commands get from a server that does one thing wrong at its n-th reply.
served :: Bool -> Fault -> Int -> [Int] -> IO [(Int, Either Error Value)]
served checked fault place blocks = do
  said <- newIORef (0 :: Int)
  fake <- newFake goodManners 1
  let answer = \case
        [_, text] -> do
          count <- atomicModifyIORef' said (\count -> (count + 1, count))
          let reply = bulk text
          say fake $ case fault of
            Inserts other | count == place -> other <> reply
            Drops | count == place -> ""
            Doubles | count == place -> reply <> reply
            _ -> reply
        _ -> pure ()
      -- Without it, what was dropped at the end would be waited for for ever.
      limit = if fault == Drops && place < maxBound then Just (nanosFromSeconds 0.1) else Nothing
  withPeer fake answer $ do
    mux <- openMux plainSettings {muxReplyChecks = checked, muxCommandTimeout = limit} fake
    countFromHere mux
    let numbers = scanl (+) 0 blocks
    slots <- forM (zip numbers blocks) $ \(first, count) ->
      zip [first ..] <$> usually submitRun mux (map tokenRequest [first .. first + count - 1])
    results <- forM (concat slots) $ \(number, slot) -> (,) number . outcomeText <$> waitSlotResult slot
    abortMultiplexer mux
    pure results
