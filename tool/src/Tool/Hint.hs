-- | Adds a hint to the error if the server may only expect TLS, or no TLS. With TLS on a port
-- without it there is only silence; with plain text on a port with TLS, the connection ends. Both
-- have other causes too, so the hint is a question.
module Tool.Hint
  ( withHint,
    hintFor,
  )
where

import Control.Exception (catch, throwIO)
import Control.Monad (guard)
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
    tls = tlsWanted (connectionTls options) || any (isJust . getTls . urlConfig) (connectionUrl options)
    line problem hint = place problem <> serverProblem problem <> "; " <> hint
    place = \case
      Redis.TimeoutError Redis.TimeoutFailure {Redis.timeoutConnecting = Nothing} ->
        Text.unpack (targetNodeName (targetOf options)) <> ": "
      _ -> ""

-- | The hint for an error, if there is one. Takes whether the connection used TLS.
hintFor :: Bool -> Redis.Error -> Maybe String
hintFor tls problem
  | tls = "is this a port without TLS? It would leave TLS unanswered" <$ guard silent
  | otherwise = "is this a port with TLS? Then say --tls (in a URL, rediss://)" <$ guard ended
  where
    silent = case problem of
      Redis.TimeoutError (Redis.TimeoutFailure _ Redis.NotSent _ _) -> True
      Redis.ConnectionError (Redis.ConnectionFailure _ _ _ cause) -> case cause of
        Redis.ConnectTimedOut _ -> True
        Redis.TlsTimedOut _ -> True
        Redis.TlsFailed why -> "what the peer answers is not TLS" `isPrefixOf` why
        _ -> False
      _ -> False
    ended = case problem of
      Redis.ConnectionError Redis.ConnectionFailure {Redis.connectionCause = cause} ->
        hungUp (Redis.renderCause cause)
      Redis.RoutingError (Redis.RoutingFailure _ _ (Redis.NoReachableNode tried)) -> stopped tried
      Redis.RoutingError (Redis.RoutingFailure _ _ (Redis.AttemptsExhausted tried)) -> stopped tried
      _ -> False
    -- A server that has stopped refuses the next connection.
    stopped tried =
      let reasons = map (reason . snd) tried
       in any hungUp reasons && not (any (like (Redis.ConnectFailed "")) reasons)
    hungUp said =
      like (Redis.BrokenConnection "") said
        || said `elem` map Redis.renderCause [Redis.ClosedByPeer, Redis.TlsFailed alert]
    -- By which TLS refuses.
    alert = "the server expects TLS on this port: use rediss:// or setTls"
    like cause said = takeWhile (/= '(') (Redis.renderCause cause) `isPrefixOf` said
