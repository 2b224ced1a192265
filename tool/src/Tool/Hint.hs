-- | Adds a hint to the error if the server may only expect TLS, or no TLS. With TLS on a port
-- without it there is only silence; with plain text on a port with TLS, the connection ends. Both
-- have other causes too, so the hint is a question.
module Tool.Hint
  ( withHint,
    hintFor,
  )
where

import Control.Exception (catch, throwIO)
import Data.List (isPrefixOf)
import Data.Maybe (isJust)
import Data.Text qualified as Text
import Redis.Config (getTls)
import Redis.Error qualified as Redis
import Tool.Connect (targetNodeName, targetOf)
import Tool.Failure (reason, serverProblem, unavailable)
import Tool.Options.Connection

-- | Runs an action. If it fails because it cannot talk to the server of the options, adds the hint
-- to the message.
withHint :: ConnectionOptions -> IO a -> IO a
withHint options action
  | namesServer options =
    action `catch` \problem ->
      maybe (throwIO problem) (unavailable . line problem) (hintFor tls problem)
  | otherwise = action
  where
    tls = tlsWanted (connectionTls options) || maybe False (isJust . getTls . urlConfig) (connectionUrl options)
    line problem hint = place problem <> serverProblem problem <> "; " <> hint
    place = \case
      Redis.TimeoutError Redis.TimeoutFailure {Redis.timeoutConnecting = Nothing} -> Text.unpack (targetNodeName (targetOf options)) <> ": "
      _ -> ""

-- | The hint for an error, if there is one. Takes whether the connection used TLS.
hintFor :: Bool -> Redis.Error -> Maybe String
hintFor tls problem
  | tls = case problem of
    Redis.TimeoutError (Redis.TimeoutFailure _ Redis.NotSent _ _) -> Just withoutTls
    Redis.ConnectionError (Redis.ConnectionFailure _ _ _ (Redis.ConnectTimedOut _)) -> Just withoutTls
    Redis.ConnectionError (Redis.ConnectionFailure _ _ _ (Redis.TlsTimedOut _)) -> Just withoutTls
    Redis.ConnectionError (Redis.ConnectionFailure _ _ _ (Redis.TlsFailed why))
      | "what the peer answers is not TLS" `isPrefixOf` why ->
        Just withoutTls
    _ -> Nothing
  | otherwise = case problem of
    Redis.ConnectionError Redis.ConnectionFailure {Redis.connectionCause = cause}
      | hungUp (Redis.renderCause cause) ->
        Just withTls
    Redis.RoutingError (Redis.RoutingFailure _ _ (Redis.NoReachableNode tried)) ->
      ended (map (reason . snd) tried)
    Redis.RoutingError (Redis.RoutingFailure _ _ (Redis.AttemptsExhausted tried)) ->
      ended (map (reason . snd) tried)
    _ -> Nothing
  where
    withoutTls = "is this a port without TLS? It would leave TLS unanswered"
    withTls = "is this a port with TLS? Then say --tls (in a URL, rediss://)"
    -- A server that has stopped refuses the next connection.
    ended reasons
      | any hungUp reasons && not (any (like (Redis.ConnectFailed "")) reasons) = Just withTls
      | otherwise = Nothing
    hungUp said =
      like (Redis.BrokenConnection "") said
        || said == Redis.renderCause Redis.ClosedByPeer
        -- An alert by which TLS refuses.
        || said
          == Redis.renderCause
            (Redis.TlsFailed "the server expects TLS on this port: use rediss:// or setTls")
    like cause said = takeWhile (/= '(') (Redis.renderCause cause) `isPrefixOf` said
