-- | The other end of a 'Fake': reads requests, answers as it is told.
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
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Protocol.Decode
import Redis.Internal.Protocol.Encode
import Redis.TestKit.Wait (within)
import Redis.Value
import Test.Hspec (shouldBe)

-- | Runs a peer that hands every request to an action, for as long as the
-- action lasts.
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
        -- A request that is not whole yet. (What is none at all stays here for
        -- ever and fails its test by its deadline.)
        _ -> pure bytes
    generous = DecodeLimits {decodeMaxBulk = maxBound `quot` 2, decodeMaxElements = maxBound `quot` 2, decodeMaxDepth = 4}

-- | Answers each request with its second part.
echoing :: Fake -> [ByteString] -> IO ()
echoing fake = \case
  [_, text] -> say fake (bulk text)
  ["PING"] -> say fake "+PONG\r\n"
  _ -> say fake "-ERR unknown command\r\n"

bulk :: ByteString -> ByteString
bulk text = Char8.pack ('$' : show (ByteString.length text) <> "\r\n") <> text <> "\r\n"

-- | What nobody else asks for.
token :: Int -> ByteString
token n = Char8.pack ("token-" <> show n)

tokenRequest :: Int -> Request
tokenRequest n = request ["ECHO", token n]

-- | Limits that no test meets by accident; no timeout, no probe, no polling.
plainSettings :: MuxSettings
plainSettings =
  MuxSettings
    { muxMaxInFlight = 4096,
      muxMaxQueued = 1024 * 1024,
      muxDecodeLimits = DecodeLimits {decodeMaxBulk = 512 * 1024 * 1024, decodeMaxElements = 1024 * 1024, decodeMaxDepth = 64},
      muxCommandTimeout = Nothing,
      muxSilenceLimit = Nothing,
      muxPolling = NeverPoll,
      muxAlone = True,
      muxWeight = ManyCallers,
      muxCapability = 0,
      muxTally = Nothing,
      muxOnPush = const (pure ()),
      muxOnLastWord = Nothing,
      muxOnDeath = const (pure ())
    }

openMux :: MuxSettings -> Fake -> IO Multiplexer
openMux settings fake = openMultiplexer settings (fakeTransport fake)

-- | A multiplexer over a fake, with the peer's answer to each request.
-- Afterwards it is closed, and the contract must have been kept.
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

-- | Waits until a condition holds; bounded by 'within' around it.
eventually :: IO Bool -> IO ()
eventually condition = do
  holds <- condition
  unless holds (yield *> eventually condition)

-- | For comparing.
outcomeText :: Outcome -> Either Error Value
outcomeText = \case
  Reply value -> Right value
  Failure failure -> Left failure
