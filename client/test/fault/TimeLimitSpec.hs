-- | A command's time limit is the whole time until its result, whatever the command waits for.
module TimeLimitSpec (spec) where

import Control.Concurrent.Async (async, wait)
import Control.Exception (try)
import Control.Monad (void)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (within)
import Redis.Transaction
import Test.Hspec

spec :: Spec
spec =
  describe "a client that is closed" $ do
    it "does not keep a command that waits to be sent again on a connection of its own" $
      endsOnceClosed (\client -> void <$> tryRun client (Commands.blpop (pure "list") Nothing))

    it "does not keep a watching transaction that waits to begin again" $
      endsOnceClosed (\client -> void <$> try (watching client (pure "key") (const (pure (Abandon :: Decision ())))))

-- | Checks that an action whose node refuses connections, and whose next attempt is a minute away,
-- ends as soon as the client is closed.
endsOnceClosed :: (Client -> IO (Either Error ())) -> Expectation
endsOnceClosed action =
  Server.withServer Server.defaultServerOptions $ \server -> leavingNothing $ do
    Server.kill9 server
    (journal, config) <- journalled (setBackoff defaultBackoff {backoffFirst = seconds 60, backoffCap = seconds 60} (setCommandTimeout (Just (seconds 600)) (addressed server)))
    client <- newClient config
    caller <- async (action client)
    awaitJournal journal "the attempt has failed" $ \case
      ConnectAttemptFailed {} -> True
      _ -> False
    within 5 (closeClient client)
    within 5 (wait caller) `shouldReturn` Left ClientClosed
