-- | A word more where a server that answers nothing, or hangs up, may only be
-- spoken to in the wrong way.
--
-- The library says what it saw: silence, or an end. From TLS to a port without
-- it there is nothing more to see, because a server waits for the end of a line
-- that never comes; from plain text to a port with TLS it is a connection that
-- ends. Both have other causes too, so what is added is a question.
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

-- | Does it; if it ends because the server that the options name cannot be
-- spoken to, the line has the hint.
withHint :: ConnectionOptions -> IO a -> IO a
withHint options action
  | namesServer options =
    action `catch` \problem ->
      maybe (throwIO problem) (unavailable . line problem) (hintFor tls problem)
  | otherwise = action
  where
    tls = tlsWanted (connectionTls options) || maybe False (isJust . getTls) (connectionUrl options)
    line problem hint = place problem <> serverProblem problem <> "; " <> hint
    place = \case
      Redis.TimeoutError _ -> Text.unpack (targetNodeName (targetOf options)) <> ": "
      _ -> ""

-- | The question for an error, if there is one; given whether TLS was spoken.
hintFor :: Bool -> Redis.Error -> Maybe String
hintFor tls problem
  | tls = case problem of
    Redis.TimeoutError (Redis.TimeoutFailure Redis.NotSent _) -> Just withoutTls
    Redis.ConnectionError (Redis.ConnectionFailure _ _ (Redis.ConnectTimedOut _)) -> Just withoutTls
    Redis.ConnectionError (Redis.ConnectionFailure _ _ (Redis.TlsTimedOut _)) -> Just withoutTls
    Redis.ConnectionError (Redis.ConnectionFailure _ _ (Redis.TlsFailed why))
      | "what the peer answers is not TLS" `isPrefixOf` why ->
        Just withoutTls
    _ -> Nothing
  | otherwise = case problem of
    Redis.ConnectionError Redis.ConnectionFailure {Redis.connectionCause = cause}
      | hungUp (Redis.renderCause cause) ->
        Just withTls
    Redis.RoutingError (Redis.RoutingFailure _ (Redis.NoReachableNode tried)) ->
      ended (map (reason . snd) tried)
    Redis.RoutingError (Redis.RoutingFailure _ (Redis.AttemptsExhausted tried)) ->
      ended (map (reason . snd) tried)
    _ -> Nothing
  where
    withoutTls = "is this a port without TLS? It would leave TLS unanswered"
    withTls = "is this a port with TLS? Then say --tls (in a URL, rediss://)"
    -- A server that went away refuses the next connection.
    ended reasons
      | any hungUp reasons && not (any (like (Redis.ConnectFailed "")) reasons) = Just withTls
      | otherwise = Nothing
    hungUp said =
      like (Redis.BrokenConnection "") said
        || said == Redis.renderCause Redis.ClosedByPeer
        -- An alert, with which TLS refuses.
        || said
          == Redis.renderCause
            (Redis.TlsFailed "the server wants TLS on this port: rediss:// or setTls")
    like cause said = takeWhile (/= '(') (Redis.renderCause cause) `isPrefixOf` said
