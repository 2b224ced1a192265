-- | An error that a script returns after it has written is no reason to run the script again.
module Redis.ScriptErrorLiveSpec (spec) where

import Control.Monad (forM_)
import Data.ByteString.Char8 qualified as Char8
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Server (serverDefaults, serverHost, serverPort, withServer)
import Redis.TestKit.Wait (within)
import Test.Hspec

spec :: Spec
spec = around_ (within 60) . describe "a script that writes, then says" $
  forM_ ["LOADING", "TRYAGAIN", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "NOSCRIPT"] $ \code ->
    it (Char8.unpack code <> " of its own accord, has run once") . withServer serverDefaults $ \server ->
      withClient (standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server))) $ \client -> do
        said <- tryRun client (Commands.eval ("redis.call('INCR', KEYS[1]) return redis.error_reply('" <> code <> " says the script')") ["counter"] [])
        either (Just . errorDelivery) (const Nothing) said `shouldBe` Just MaybeExecuted
        run client (Commands.get "counter") `shouldReturn` Just "1"
