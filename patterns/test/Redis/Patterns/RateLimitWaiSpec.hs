module Redis.Patterns.RateLimitWaiSpec (spec) where

import Control.Monad (forM_, replicateM, void)
import Data.IORef
import Network.HTTP.Types
import Network.Socket (SockAddr (..), tupleToHostAddress)
import Network.Wai
import Network.Wai.Internal (ResponseReceived (..))
import Redis
import Redis.Duration
import Redis.Patterns.RateLimit
import Redis.Patterns.RateLimit.Wai
import Redis.Patterns.Surroundings
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (freeze)
import Test.Hspec

spec :: Spec
spec = do
  it "serves what is within the limit, and tells what is left" $
    withRedisAndClient $ \_ client -> do
      let ask = asked (rateLimited client (limiting (slidingWindow 2 (minutes 60)) (byHeader "X-Api-Key" unlimited)) served)
      answers <- replicateM 3 (ask [("X-Api-Key", "seven")])
      map fst answers `shouldBe` [status200, status200, status429]
      map (lookup "RateLimit-Remaining" . snd) answers `shouldBe` [Just "1", Just "0", Just "0"]
      map (lookup "RateLimit-Limit" . snd) answers `shouldBe` replicate 3 (Just "2")
      map (void . lookup "Retry-After" . snd) answers `shouldBe` [Nothing, Nothing, Just ()]
      -- Other keys have limits of their own, and 'unlimited' requests have none.
      map fst <$> traverse ask [[("X-Api-Key", "eight")], [], [], []] `shouldReturn` replicate 4 status200

  it "limits a caller who leaves the header out by the peer's address, or all of them together" $
    withRedisAndClient $ \_ client -> do
      let ask without from = fst <$> askedFrom from (rateLimited client (limiting (slidingWindow 2 (minutes 60)) (byHeader "X-Api-Key" without)) served) []
      traverse (ask byPeer) [one, one, one, other] `shouldReturn` [status200, status200, status429, status200]
      traverse (ask allTogether) [one, other, one] `shouldReturn` [status200, status200, status429]

  describe "the key of an address" $ do
    let keyOf key from headers = key defaultRequest {remoteHost = from, requestHeaders = headers}
        forwarded content = [("X-Forwarded-For", content)]
    it "has no port, and is the same for one IPv4 peer on any socket" $ do
      keyOf byPeer one [] `shouldBe` Just "address:192.0.2.1"
      keyOf byPeer (SockAddrInet6 7 0 (0, 0, 0xffff, 0xc0000201) 0) [] `shouldBe` Just "address:192.0.2.1"
      keyOf byPeer (SockAddrUnix "/run/proxy") [] `shouldBe` Just "address:local"
    it "is that of the network for IPv6, whose hosts choose the rest" $ do
      let v6 rest = SockAddrInet6 7 0 (0x20010db8, 1, rest, 9) 0
      keyOf byPeer (v6 1) [] `shouldBe` keyOf byPeer (v6 2) []
      keyOf byPeer (v6 1) [] `shouldBe` Just "address:2001:db8:0:1::/64"
      keyOf byPeer (SockAddrInet6 7 0 (0x20010db8, 2, 1, 9) 0) [] `shouldBe` Just "address:2001:db8:0:2::/64"
    it "is what the outermost of the trusted proxies has appended, whatever the client writes before it" $ do
      keyOf (byForwarded 1) one (forwarded "198.51.100.7, 203.0.113.9") `shouldBe` Just "address:203.0.113.9"
      keyOf (byForwarded 2) one (forwarded "forged, 203.0.113.9:4711,  10.0.0.3") `shouldBe` Just "address:203.0.113.9"
      keyOf (byForwarded 2) one (forwarded "forged" <> forwarded "203.0.113.9" <> forwarded "10.0.0.3") `shouldBe` Just "address:203.0.113.9"
      keyOf (byForwarded 1) one (forwarded "[2001:db8:0:1::9]:4711") `shouldBe` Just "address:2001:db8:0:1::/64"
      keyOf (byForwarded 1) one (forwarded "2001:db8:0:1::9") `shouldBe` Just "address:2001:db8:0:1::/64"
    it "is that of the peer if no proxy has said another" $
      forM_
        [ keyOf (byForwarded 1) one [],
          keyOf (byForwarded 1) one (forwarded "203.0.113.9, unknown"),
          keyOf (byForwarded 0) one (forwarded "203.0.113.9")
        ]
        (`shouldBe` Just "address:192.0.2.1")

  it "opens or closes, as it is told, when the server does not answer" $
    behindProxy $ \server _ client -> do
      told <- newIORef []
      let rule = (limiting (gcra 2 (minutes 60)) (byHeader "X-Api-Key" unlimited)) {limitingTimeout = milliseconds 100, limitingOnError = \failure -> modifyIORef' told (errorDelivery failure :)}
          ask without = fst <$> asked (rateLimited client rule {limitingWithoutAnswer = without} served) [("X-Api-Key", "seven")]
      ask FailClosed `shouldReturn` status200
      freeze server
      ask FailOpen `shouldReturn` status200
      ask FailClosed `shouldReturn` status503
      readIORef told `shouldReturn` [MaybeExecuted, MaybeExecuted]

  it "asks again for a reply that was lost, and lets nobody through who is over the limit" $
    behindProxy $ \_ proxy client -> do
      let ask = fst <$> asked (rateLimited client (limiting (gcra 2 (minutes 60)) (byHeader "X-Api-Key" unlimited)) served) [("X-Api-Key", "seven")]
      ask `shouldReturn` status200
      Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Reset
      -- The request counted, but its reply was lost. When it is sent again, nothing is left.
      ask `shouldReturn` status429

served :: Application
served _ respond = respond (responseLBS status200 [] "served")

one, other :: SockAddr
one = SockAddrInet 4711 (tupleToHostAddress (192, 0, 2, 1))
other = SockAddrInet 4711 (tupleToHostAddress (192, 0, 2, 2))

asked :: Application -> RequestHeaders -> IO (Status, ResponseHeaders)
asked = askedFrom one

askedFrom :: SockAddr -> Application -> RequestHeaders -> IO (Status, ResponseHeaders)
askedFrom from application headers = do
  answer <- newIORef (status500, [])
  _ <- application defaultRequest {remoteHost = from, requestHeaders = headers} $ \response ->
    ResponseReceived <$ writeIORef answer (responseStatus response, responseHeaders response)
  readIORef answer
