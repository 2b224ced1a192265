-- | Traces of commands: spans for OpenTelemetry, and reports of slow commands. Set a hook of this
-- module as 'Redis.Config.hookCommand':
--
-- > setHooks noHooks {hookCommand = Just (slowCommands (milliseconds 20) (hPutStrLn stderr . renderSlow))} config
--
-- '<>' joins several hooks. This module needs no tracing library: 'spanName' and the attributes are
-- what the conventions of OpenTelemetry ask for, as text and numbers; give them to the library that
-- you use. The guide explains the mapping, in @docs/guide/observing.md@.
--
-- Guaranteed: the client calls the hook once when a command begins and, if somebody awaits its
-- result, once when it ends. Not guaranteed: a call for the end of a command that nobody awaits.
module Redis.Tracing
  ( -- * Beginnings and ends
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
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Numeric (showFFloat)
import Redis.Duration (Duration, inMicroseconds)
import Redis.Error
import Redis.Internal.Hooks

-- | A command that took long.
data SlowCommand = SlowCommand
  { slowBegun :: CommandBegun,
    slowEnded :: CommandEnded
  }
  deriving stock (Eq, Show)

-- | A hook that calls the action with each command that took at least this long, on the thread that
-- waited for the command. A blocking command that waited, such as BLPOP, counts as slow.
slowCommands :: Duration -> (SlowCommand -> IO ()) -> CommandHook
slowCommands threshold act begun =
  pure $ \ended -> when (endedTook ended >= threshold) (act SlowCommand {slowBegun = begun, slowEnded = ended})

-- | A slow command in one line: how long it took, the command as one types it, without passwords, the
-- node, how often it was sent, and where the time went.
renderSlow :: SlowCommand -> String
renderSlow (SlowCommand begun ended) =
  unwords $
    [ shown (endedTook ended) <> ":",
      Char8.unpack (begunText begun),
      maybe "at several nodes or none" (("at " <>) . renderEndpoint) (endedNode ended) <> ","
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
data Attribute
  = TextAttribute ByteString
  | NumberAttribute Int
  deriving stock (Eq, Show)

-- | The name of a command's span: its operation. The number of the database is not part of it.
spanName :: CommandBegun -> ByteString
spanName = begunOperation

-- | The attributes that are known when a command begins. @db.query.text@ has a question mark in the
-- place of each key and value, as the conventions want it; 'begunText' has the keys and values.
begunAttributes :: CommandBegun -> [(ByteString, Attribute)]
begunAttributes begun =
  [ text "db.system.name" "redis",
    text "db.namespace" (Char8.pack (show (begunDatabase begun))),
    text "db.operation.name" (begunOperation begun)
  ]
    <> [("db.operation.batch.size", NumberAttribute size) | Just size <- [begunBatch begun]]
    <> [text "db.stored_procedure.name" name | Just name <- [begunProcedure begun]]
    <> [text "db.query.text" (begunShape begun)]
    <> maybe [] serverAttributes (begunNode begun)

-- | The attributes of a command's end. The span's status is an error if there is an @error.type@.
endedAttributes :: CommandEnded -> [(ByteString, Attribute)]
endedAttributes ended =
  maybe [] (\node -> serverAttributes node <> peerAttributes node) (endedNode ended)
    <> ( case endedOutcome ended of
           CommandSucceeded -> []
           CommandFailed failed ->
             [text "db.response.status_code" (serverErrorCode said) | ReplyError said <- [failed]] <> [text "error.type" (Char8.pack (errorClass failed))]
           CommandInterrupted -> [text "error.type" "interrupted"]
       )
    <> [ ("redis.client.attempts", NumberAttribute (endedAttempts ended)),
         ("redis.client.redirects", NumberAttribute (endedRedirects ended))
       ]

-- | The server that a command goes to, or went to.
serverAttributes :: Endpoint -> [(ByteString, Attribute)]
serverAttributes = \case
  TcpEndpoint host port -> [text "server.address" host, ("server.port", NumberAttribute (fromIntegral port))]
  UnixEndpoint path -> [text "server.address" (pathText path)]

-- | The other end of the connection. For a host name, the address that was used is not known here.
peerAttributes :: Endpoint -> [(ByteString, Attribute)]
peerAttributes = \case
  TcpEndpoint host port
    | isAddress host -> [text "network.transport" "tcp", text "network.peer.address" host, ("network.peer.port", NumberAttribute (fromIntegral port))]
    | otherwise -> [text "network.transport" "tcp"]
  UnixEndpoint path -> [text "network.transport" "unix", text "network.peer.address" (pathText path)]

-- | A path in UTF-8. What UTF-8 cannot say is replaced.
pathText :: FilePath -> ByteString
pathText = Text.encodeUtf8 . Text.pack

-- | Whether a host is a literal address of IPv4 or IPv6.
isAddress :: ByteString -> Bool
isAddress host = Char8.elem ':' host || Char8.all (\char -> isDigit char || char == '.') host

text :: ByteString -> ByteString -> (ByteString, Attribute)
text name value = (name, TextAttribute value)

-- | A word for the kind of an error: for a server's error its code, otherwise one of a few.
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
