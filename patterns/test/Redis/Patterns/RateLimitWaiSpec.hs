module Redis.Patterns.RateLimitWaiSpec (spec) where

import Control.Monad (replicateM, void)
import Data.IORef
import Network.HTTP.Types
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
      let ask = asked (rateLimited client (limiting (slidingWindow 2 (minutes 60)) (byHeader "X-Api-Key")) served)
      answers <- replicateM 3 (ask [("X-Api-Key", "seven")])
      map fst answers `shouldBe` [status200, status200, status429]
      map (lookup "RateLimit-Remaining" . snd) answers `shouldBe` [Just "1", Just "0", Just "0"]
      map (lookup "RateLimit-Limit" . snd) answers `shouldBe` replicate 3 (Just "2")
      map (void . lookup "Retry-After" . snd) answers `shouldBe` [Nothing, Nothing, Just ()]
      -- Other keys have limits of their own, and requests without a key have none.
      map fst <$> traverse ask [[("X-Api-Key", "eight")], [], [], []] `shouldReturn` replicate 4 status200

  it "opens or closes, as it is told, when the server does not answer" $
    behindProxy $ \server _ client -> do
      told <- newIORef []
      let rule = (limiting (gcra 2 (minutes 60)) (byHeader "X-Api-Key")) {limitingPatience = milliseconds 100, limitingOnError = \failure -> modifyIORef' told (errorDelivery failure :)}
          ask without = fst <$> asked (rateLimited client rule {limitingWithoutAnswer = without} served) [("X-Api-Key", "seven")]
      ask FailClosed `shouldReturn` status200
      freeze server
      ask FailOpen `shouldReturn` status200
      ask FailClosed `shouldReturn` status503
      readIORef told `shouldReturn` [MaybeExecuted, MaybeExecuted]

  it "asks again for a reply that was lost, and lets nobody through who is over the limit" $
    behindProxy $ \_ proxy client -> do
      let ask = fst <$> asked (rateLimited client (limiting (gcra 2 (minutes 60)) (byHeader "X-Api-Key")) served) [("X-Api-Key", "seven")]
      ask `shouldReturn` status200
      Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Reset
      -- The request counted, but its reply was lost. When it is sent again, nothing is left.
      ask `shouldReturn` status429

served :: Application
served _ respond = respond (responseLBS status200 [] "served")

asked :: Application -> RequestHeaders -> IO (Status, ResponseHeaders)
asked application headers = do
  answer <- newIORef (status500, [])
  _ <- application defaultRequest {requestHeaders = headers} $ \response ->
    ResponseReceived <$ writeIORef answer (responseStatus response, responseHeaders response)
  readIORef answer
