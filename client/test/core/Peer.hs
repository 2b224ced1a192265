-- | The other end of a 'Fake': it reads requests and answers them as the test wants.
module Peer
  ( withPeer,
    echoing,
    token,
    tokenRequest,
    bulk,
    withMux,
    openMux,
    plainSettings,
    within,
    eventually,
    outcomeText,

    -- * Submitting
    usually,
    unlimited,
    limitedTo,
  )
where

import Control.Concurrent (forkIO, killThread, yield)
import Control.Exception (bracket)
import Control.Monad (unless)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Fake
import Redis.Error
import Redis.Internal.Config (Polling (NeverPoll))
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Decode
import Redis.Internal.Protocol.Encode
import Redis.TestKit.Wait (within)
import Redis.Value
import Test.Hspec (shouldBe)

-- | Runs a peer that passes every request to the given function, while an action runs.
withPeer :: Fake -> ([ByteString] -> IO ()) -> IO a -> IO a
withPeer fake answer action = bracket (forkIO (go "")) killThread (const action)
  where
    go rest =
      hear fake >>= \case
        Nothing -> pure ()
        Just bytes -> requests (rest <> bytes) >>= go
    requests bytes
      | ByteString.null bytes = pure bytes
      | otherwise = case decodeBytes generous bytes of
        Right (Array parts, rest) -> do
          answer [text | BulkString text <- parts]
          requests rest
        -- An incomplete request. (Bytes that are no request stay here for ever, so their test fails
        -- by its deadline.)
        _ -> pure bytes
    generous = limitsDefaults {limitBulkBytes = maxBound `quot` 2, limitElements = maxBound `quot` 2, limitDepth = 4}

-- | Answers each request with its second word.
echoing :: Fake -> [ByteString] -> IO ()
echoing fake = \case
  [_, text] -> say fake (bulk text)
  ["PING"] -> say fake "+PONG\r\n"
  _ -> say fake "-ERR unknown command\r\n"

bulk :: ByteString -> ByteString
bulk text = Char8.pack ('$' : show (ByteString.length text) <> "\r\n") <> text <> "\r\n"

-- | A text that no other command uses.
token :: Int -> ByteString
token n = Char8.pack ("token-" <> show n)

tokenRequest :: Int -> Request
tokenRequest n = request ["ECHO", token n]

-- | Limits that no test reaches by accident; no timeout, no probe, no polling.
plainSettings :: MuxSettings
plainSettings =
  MuxSettings
    { muxMaxInFlight = 4096,
      muxMaxQueued = 1024 * 1024,
      muxDecodeLimits = limitsDefaults {limitBulkBytes = 512 * 1024 * 1024, limitElements = 1024 * 1024, limitDepth = 64},
      muxCommandTimeout = Nothing,
      muxSilenceLimit = Nothing,
      muxPolling = NeverPoll,
      muxNeighbours = NoNeighbours,
      muxBufferSize = ManyCallers,
      muxCapability = 0,
      muxCounters = Nothing,
      muxReplyChecks = False,
      muxOnPush = const (pure ()),
      muxOnLastWord = Nothing,
      muxOnAnswers = pure (),
      muxOnDeath = const (pure ())
    }

openMux :: MuxSettings -> Fake -> IO Multiplexer
openMux settings fake = openMultiplexer settings (fakeTransport fake)

-- | Runs an action with a multiplexer over a fake, and the peer's answer to each request.
-- Afterwards the multiplexer is closed, and the transport's contract must have been kept.
withMux :: MuxSettings -> Manners -> (Fake -> [ByteString] -> IO ()) -> (Fake -> Multiplexer -> IO a) -> IO a
withMux settings manners answer action = do
  fake <- newFake manners 1
  withPeer fake (answer fake) $ do
    mux <- openMux settings fake
    result <- action fake mux
    within 10 (abortMultiplexer mux)
    awaitGone mux
    closes fake >>= (`shouldBe` 1)
    breaches fake >>= (`shouldBe` [])
    pure result

-- | Waits until a condition holds. A 'within' around it limits the wait.
eventually :: IO Bool -> IO ()
eventually condition = do
  holds <- condition
  unless holds (yield *> eventually condition)

-- | An outcome in a form that can be compared.
outcomeText :: Outcome -> Either Error Value
outcomeText = \case
  Reply value -> Right value
  Failure failure -> Left failure

-- | Submits with the connection's command timeout.
usually :: (Multiplexer -> Terms -> a -> IO b) -> Multiplexer -> a -> IO b
usually submit mux asked = usualTerms mux >>= \terms -> submit mux terms asked

-- | Submits without a time limit.
unlimited :: (Multiplexer -> Terms -> a -> IO b) -> Multiplexer -> a -> IO b
unlimited submit mux = submit mux (termsUntil noDeadline)

-- | Submits with a time limit in seconds.
limitedTo :: Double -> (Multiplexer -> Terms -> a -> IO b) -> Multiplexer -> a -> IO b
limitedTo limit submit mux asked = coarseNanos >>= \now -> submit mux (termsUntil (deadlineAfter (nanosFromSeconds limit) now)) asked
