module Tool.HintSpec (spec) where

import Data.Maybe (isJust)
import Redis.Duration (seconds)
import Redis.Error
import Test.Hspec
import Tool.Hint

spec :: Spec
spec = describe "a hint about TLS" $ do
  it "is given where TLS is left unanswered, or answered with something else" $ do
    hintFor True (TimeoutError (TimeoutFailure "" NotSent (seconds 5) Nothing)) `shouldBe` Just "is this a port without TLS? It would leave TLS unanswered"
    map (isJust . hintFor True . ConnectionError . ConnectionFailure "" NotSent place) [ConnectTimedOut (seconds 5), TlsTimedOut (seconds 5), TlsFailed "what the peer answers is not TLS (x)"]
      `shouldBe` [True, True, True]

  it "is given where plain text is hung up on" $ do
    hintFor False (exhausted [broken, broken]) `shouldBe` Just "is this a port with TLS? Then say --tls (in a URL, rediss://)"
    map (isJust . hintFor False) [exhausted [ClosedByPeer], exhausted [TlsFailed "the server expects TLS on this port: use rediss:// or setTls"], unreached [broken], ConnectionError (ConnectionFailure "" NotSent place ClosedByPeer)]
      `shouldBe` [True, True, True, True]

  it "is not given where something else was seen" $ do
    map (hintFor True) [TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 5) Nothing), exhausted [broken], ConnectionError (ConnectionFailure "" NotSent place (TlsFailed "certificate verify failed"))]
      `shouldBe` [Nothing, Nothing, Nothing]
    map (hintFor False) [TimeoutError (TimeoutFailure "" NotSent (seconds 5) Nothing), exhausted [broken, ConnectFailed "s:1: Connection refused"], exhausted [ProtocolViolation "unknown type byte 83"], ClientClosed]
      `shouldBe` [Nothing, Nothing, Nothing, Nothing]
  where
    place = TcpEndpoint "s" 1
    broken = BrokenConnection "recv: resource vanished (Connection reset by peer)"
    exhausted causes = RoutingError (RoutingFailure "" NotSent (AttemptsExhausted (failing causes)))
    unreached causes = RoutingError (RoutingFailure "" NotSent (NoReachableNode (failing causes)))
    failing causes = [(place, ConnectionError (ConnectionFailure "" NotSent place cause)) | cause <- causes]
