-- | What an error tells the caller, and what happens to a command that failed.
module ErrorsAndRetries (main) where

import Control.Exception (displayException)
import Data.Int (Int64)
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    run client (Redis.set "example:text" "no number")
    tryRun client (Redis.incr "example:text") >>= putStrLn . conclusion

  -- No server listens on port 1, and no command may take longer than this.
  let nowhere = setMaxAttempts 2 (setCommandTimeout (Just (seconds 1)) (standaloneConfig "127.0.0.1" 1))
  withClient nowhere $ \client -> do
    again 2 (tryRun client (Redis.incr "example:visits")) >>= putStrLn . conclusion

    -- INCR is not sent again if it may have run. A caller that knows better can say so: setting a
    -- key to the same value twice does no harm.
    tryRun client (idempotent (Redis.set "example:state" "done")) >>= \case
      Right () -> putStrLn "stored"
      Left failure -> print (errorDelivery failure)

-- | What the caller of a write knows afterwards.
conclusion :: Either Error Int64 -> String
conclusion = \case
  Right count -> "it has run: " <> show count
  Left failure -> case errorDelivery failure of
    NotSent -> "it has not run: " <> displayException failure
    RefusedBeforeRun
      | passing failure -> "the server would not run it now: " <> displayException failure
      | otherwise -> "the server would not run it: " <> displayException failure
    MaybeExecuted -> "it may have run: " <> displayException failure

-- PASSING begins
-- Whether the reason may go by itself.
passing :: Error -> Bool
passing = \case
  ReplyError ServerError {serverErrorCode} ->
    serverErrorCode `elem` ["BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN"]
  ConnectionError ConnectionFailure {connectionCause = HandshakeRefused said} -> passing (ReplyError said)
  ConnectionError ConnectionFailure {connectionCause = TlsFailed _} -> False
  ConnectionError _ -> True
  TimeoutError _ -> True
  RoutingError RoutingFailure {routingCause = AttemptsExhausted attempts} -> all (passing . snd) (take 1 (reverse attempts))
  RoutingError _ -> True
  _ -> False

-- PASSING ends

-- | Calls up to so many times, and never again after a call that may have run.
again :: Int -> IO (Either Error a) -> IO (Either Error a)
again times call =
  call >>= \case
    Left failure | times > 1, errorDelivery failure /= MaybeExecuted, passing failure -> again (times - 1) call
    result -> pure result
