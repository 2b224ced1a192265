-- | What to make of a command that begins and ends: spans for OpenTelemetry, and a list of
-- what was slow. To be used with 'Redis.Config.hookCommand'.
--
-- > setHooks noHooks {hookCommand = Just (slowCommands (milliseconds 20) (hPutStrLn stderr . renderSlow))} config
--
-- Several hooks are one by '<>'. No library for traces is needed here: 'spanName' and the
-- attributes are what the conventions ask for, as text and numbers, to be given to whichever
-- is used. The mapping is explained in the guide, @docs/guide/observing.md@.
--
-- Guaranteed: the hook is called once when something begins and, if its result is
-- awaited, once when it ends. Not guaranteed: an end for what nobody awaits.
module Redis.Tracing
  ( -- * What begins and ends
    CommandHook,
    CommandBegun (..),
    CommandEnded (..),
    CommandOutcome (..),

    -- * Slow commands
    slowCommands,
    SlowCommand (..),
    renderSlow,

    -- * OpenTelemetry
    spanName,
    Attribute (..),
    begunAttributes,
    endedAttributes,
  )
where

import Control.Monad (when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isDigit)
import Data.Maybe (catMaybes)
import Numeric (showFFloat)
import Redis.Duration (Duration, inMicroseconds)
import Redis.Error
import Redis.Internal.Hooks

-- | A command that took long.
--
-- @since 0.1.0.0
data SlowCommand = SlowCommand
  { slowBegun :: CommandBegun,
    slowEnded :: CommandEnded
  }
  deriving stock (Eq, Show)

-- | Calls the action with each command that took at least so long, on the thread that
-- waited for it. A blocking command that waited, such as BLPOP, counts as slow.
--
-- @since 0.1.0.0
slowCommands :: Duration -> (SlowCommand -> IO ()) -> CommandHook
slowCommands threshold act begun =
  pure $ \ended -> when (endedTook ended >= threshold) (act SlowCommand {slowBegun = begun, slowEnded = ended})

-- | In one line: how long, the command as one types it, without passwords, the node, how often it
-- was sent, and where the time went.
--
-- @since 0.1.0.0
renderSlow :: SlowCommand -> String
renderSlow (SlowCommand begun ended) =
  unwords $
    [ shown (endedTook ended) <> ":",
      Char8.unpack (begunText begun),
      maybe "at no one node" (("at " <>) . renderEndpoint) (endedNode ended) <> ","
    ]
      <> [ show (endedAttempts ended) <> (if endedAttempts ended == 1 then " attempt" else " attempts"),
           "(" <> maybe "never queued" (("queued after " <>) . shown) (endedEntering ended) <> ", recovering for " <> shown (endedRecovering ended) <> ")"
         ]
      <> case endedOutcome ended of
        CommandSucceeded -> []
        CommandFailed failed -> ["failed:", errorClass failed]
        CommandInterrupted -> ["interrupted"]
  where
    shown duration = showFFloat (Just 2) (fromIntegral (inMicroseconds duration) / 1000 :: Double) " ms"

-- | The value of an attribute of a span.
--
-- @since 0.1.0.0
data Attribute
  = TextAttribute ByteString
  | NumberAttribute Int
  deriving stock (Eq, Show)

-- | What a span of this is called: its operation. The number of the database is not
-- part of it.
--
-- @since 0.1.0.0
spanName :: CommandBegun -> ByteString
spanName = begunOperation

-- | What is known when it begins. @db.query.text@ has a question mark in the place of
-- each key and value, as the conventions want it; 'begunText' has them.
--
-- @since 0.1.0.0
begunAttributes :: CommandBegun -> [(ByteString, Attribute)]
begunAttributes begun =
  catMaybes
    [ text "db.system.name" "redis",
      text "db.namespace" (Char8.pack (show (begunDatabase begun))),
      text "db.operation.name" (begunOperation begun),
      (,) "db.operation.batch.size" . NumberAttribute <$> begunBatch begun,
      begunProcedure begun >>= text "db.stored_procedure.name",
      text "db.query.text" (begunShape begun)
    ]
    <> maybe [] serverAttributes (begunNode begun)

-- | What is known when it has ended. The span's status is an error if there is an
-- @error.type@.
--
-- @since 0.1.0.0
endedAttributes :: CommandEnded -> [(ByteString, Attribute)]
endedAttributes ended =
  maybe [] (\node -> serverAttributes node <> peerAttributes node) (endedNode ended)
    <> catMaybes
      [ case endedOutcome ended of
          CommandFailed failed -> statusOf failed >>= text "db.response.status_code"
          _ -> Nothing,
        case endedOutcome ended of
          CommandSucceeded -> Nothing
          CommandFailed failed -> text "error.type" (Char8.pack (errorClass failed))
          CommandInterrupted -> text "error.type" "interrupted"
      ]
    <> [ ("redis.client.attempts", NumberAttribute (endedAttempts ended)),
         ("redis.client.redirects", NumberAttribute (endedRedirects ended))
       ]

-- | Where it goes, or went.
serverAttributes :: Endpoint -> [(ByteString, Attribute)]
serverAttributes = \case
  TcpEndpoint host port -> [("server.address", TextAttribute host), ("server.port", NumberAttribute (fromIntegral port))]
  UnixEndpoint path -> [("server.address", TextAttribute (Char8.pack path))]

-- | The other end of the connection. Which address of a name was used is not known here.
peerAttributes :: Endpoint -> [(ByteString, Attribute)]
peerAttributes = \case
  TcpEndpoint host port
    | isAddress host -> [("network.transport", TextAttribute "tcp"), ("network.peer.address", TextAttribute host), ("network.peer.port", NumberAttribute (fromIntegral port))]
    | otherwise -> [("network.transport", TextAttribute "tcp")]
  UnixEndpoint path -> [("network.transport", TextAttribute "unix"), ("network.peer.address", TextAttribute (Char8.pack path))]

-- | Whether a host is a literal address of IPv4 or IPv6.
isAddress :: ByteString -> Bool
isAddress host = Char8.elem ':' host || Char8.all (\char -> isDigit char || char == '.') host

text :: ByteString -> ByteString -> Maybe (ByteString, Attribute)
text name value = Just (name, TextAttribute value)

-- | The prefix of the server's error, if a server said it.
statusOf :: Error -> Maybe ByteString
statusOf = \case
  ReplyError ServerError {serverErrorCode} -> Just serverErrorCode
  _ -> Nothing

-- | A word for a kind of error; there are few of them.
errorClass :: Error -> String
errorClass = \case
  ReplyError ServerError {serverErrorCode} -> Char8.unpack serverErrorCode
  UnexpectedReply _ -> "unexpected_reply"
  ConnectionError _ -> "connection"
  TimeoutError _ -> "timeout"
  RoutingError _ -> "routing"
  RefusedError _ -> "refused"
  ClientClosed -> "client_closed"
  SubscriberTooSlow _ -> "subscriber_too_slow"
