-- | Listens to sentinels: to each known one, on a plain connection of its own.
--
-- A message of a sentinel is a reason to ask all sentinels, not an answer: it may be late, or
-- come from a sentinel that is cut off from the others. A switch is a reason to ask at once, and
-- not to accept for a moment those that still name the old primary. So a lost connection costs only time,
-- and the other sentinels make up for one that hangs.
module Redis.Internal.Routing.Sentinels
  ( forSentinel,
    Hearing (..),
    hearSentinel,
    triggerFrom,
  )
where

import Control.Concurrent.STM
import Control.Exception (SomeException, bracket, throwIO, try)
import Control.Monad (forever)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (traverse_)
import Data.Maybe (fromMaybe)
import Redis.Error
import Redis.Internal.Backoff (delayFor)
import Redis.Internal.Config
import Redis.Internal.Network.Handshake (ConnectionRole (ForControl), ConnectionUse (SharedFor))
import Redis.Internal.Network.Open (ConnectionSetup (..), Purpose (..))
import Redis.Internal.Network.Runtime (expiry, supervised)
import Redis.Internal.Network.Stream (closeWire, openWire, receiveReply, sendBytes)
import Redis.Internal.Protocol.Encode (request, requestBytes)
import Redis.Internal.Routing.GroupReply (endpointFrom)
import Redis.Internal.Routing.Topology (Trigger (..))
import Redis.Value
import System.Random (randomRIO)

-- | The configuration of connections to a sentinel, given that of the client. Sentinels do
-- not get the password of the servers.
forSentinel :: Endpoint -> Config -> Config
forSentinel endpoint config =
  config
    { configTopology = Standalone endpoint,
      configCredentials = maybe NoCredentials FixedCredentials (configSentinelCredentials config),
      configTls = fromMaybe (configTls config) (configSentinelTls config),
      configCallerAuthenticates = False,
      configDatabase = 0,
      configCaching = Nothing,
      configFollowsRedirects = False,
      -- Sentinels know no ECHO.
      configReplyChecks = False
    }

-- | How to listen, and for how long.
data Hearing = Hearing
  { -- | The setup of connections to sentinels.
    hearingSetup :: ConnectionSetup,
    -- | The name of the primary.
    hearingName :: ByteString,
    hearingTell :: Trigger -> IO (),
    -- | Retries until the sentinel is not wanted any more.
    hearingOver :: STM ()
  }

-- | Listens to a sentinel for as long as it is wanted; connects again when the connection is
-- lost. Must run masked, on a thread of its own.
hearSentinel :: Hearing -> Endpoint -> IO ()
hearSentinel Hearing {hearingSetup, hearingName, hearingTell, hearingOver} endpoint = go (1 :: Int)
  where
    go failures = do
      begun <- newTVarIO False
      ended <- supervised ("redis hear " <> renderEndpoint endpoint) hearingOver (\_ -> pure ()) (try (listen begun))
      case ended of
        Left () -> pure ()
        Right (_ :: Either SomeException ()) -> do
          heard <- readTVarIO begun
          let failed = if heard then 1 else failures
          random <- randomRIO (0, 1)
          over <- expiry (delayFor (configBackoff (setupConfig hearingSetup)) failed random)
          goesOn <- atomically ((False <$ hearingOver) `orElse` (True <$ over))
          if goesOn then go (failed + 1) else pure ()

    -- RESP2, in which messages look the same on old sentinels, too.
    setup = hearingSetup {setupConfig = (setupConfig hearingSetup) {configProtocol = OnlyResp2}}

    listen begun = bracket open closeWire $ \wire -> do
      sendBytes wire (requestBytes (request ("SUBSCRIBE" : channels)))
      forever $ do
        (message, _) <- receiveReply wire
        atomically (writeTVar begun True)
        traverse_ hearingTell (triggerFrom hearingName message)

    open = openWire setup Purpose {purposeUse = SharedFor ForControl, purposeGone = hearingOver} endpoint >>= either (throwIO . ConnectionError . ConnectionFailure "" NotSent endpoint) pure

-- | The channels on which sentinels announce changes of a primary, its replicas and sentinels.
channels :: [ByteString]
channels = ["+switch-master", "+slave", "+slave-reconf-done", "+convert-to-slave", "-sdown", "+sentinel"]

-- | The trigger that a message means for the primary of this name.
triggerFrom :: ByteString -> Value -> Maybe Trigger
triggerFrom name = \case
  -- From now on everything is heard; earlier announcements may have been missed.
  Array [BulkString "subscribe", _, Integer 1] -> Just SentinelsStirred
  Array [BulkString "message", BulkString channel, BulkString text]
    | channel == "+switch-master" ->
      -- name 10.0.0.1 6379 10.0.0.2 6379
      case Char8.words text of
        [named, oldHost, oldPort, newHost, newPort]
          | named == name -> Just (fromMaybe SentinelsStirred (SentinelsSwitched <$> endpointFrom oldHost oldPort <*> endpointFrom newHost newPort))
        _ -> Nothing
    -- slave 10.0.0.2:6379 10.0.0.2 6379 @ name 10.0.0.1 6379
    | (" @ " <> name <> " ") `ByteString.isInfixOf` text -> Just SentinelsStirred
  _ -> Nothing
