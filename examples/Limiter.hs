-- | Rate limiters, as commands and in front of a WAI application.
module Limiter (main) where

import Data.Foldable (for_)
import Network.HTTP.Types (status200, statusCode)
import Network.Wai (Application, defaultRequest, requestHeaders, responseHeaders, responseLBS, responseStatus)
import Network.Wai.Internal (ResponseReceived (..))
import Redis
import Redis.Patterns.RateLimit
import Redis.Patterns.RateLimit.Wai
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    for_ ["example:spaced", "example:window", "limit:header:seven"] (run client . forget)

    -- Three requests at once, then one each 20 s.
    answers <- runPipeline client (traverse (\_ -> pipelined (attempt (gcraWithBurst 3 3 (seconds 60)) "example:spaced" 1)) [1 .. 4 :: Int])
    print [(allowed answer, remaining answer) | answer <- answers]

    -- Never more than three requests in any minute; each call takes two.
    twice <- runPipeline client (traverse (\_ -> pipelined (attempt (slidingWindow 3 (seconds 60)) "example:window" 2)) [1, 2 :: Int])
    print [(allowed answer, remaining answer) | answer <- twice]

    -- Two requests a minute for each key, or for each address without one; if the server does not answer, all requests are refused.
    let limited = rateLimited client (limiting (gcra 2 (seconds 60)) (byHeader "X-Api-Key" byPeer)) {limitingWithoutAnswer = FailClosed} hello
    for_ [1 .. 3 :: Int] $ \_ ->
      limited defaultRequest {requestHeaders = [("X-Api-Key", "seven")]} $ \response -> do
        print (statusCode (responseStatus response), lookup "RateLimit-Remaining" (responseHeaders response))
        pure ResponseReceived

hello :: Application
hello _ respond = respond (responseLBS status200 [] "hello")
