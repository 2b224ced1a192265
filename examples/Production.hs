-- | What a service sets and does in production: limits of time, TLS, tokens, addresses behind a
-- chart, the answer to a probe, and the order in which it stops.
module Production (main) where

import Control.Concurrent.MVar
import Control.Monad (forM_, void, when)
import Data.ByteString (ByteString)
import Data.Either (isRight)
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)
import System.Posix.Signals (Handler (Catch), installHandler, raiseSignal, sigTERM)

-- SETTINGS begins
inProduction :: Config -> Config
inProduction =
  setClientName (Just "orders")
    . setConnectTimeout (seconds 2)
    . setCommandTimeout (Just (seconds 3))
    . setMaxDedicated 16

-- SETTINGS ends

-- TLS begins
overTls :: Config
overTls = setTls (Just tlsDefaults {tlsCaFile = Just "/etc/redis/ca.crt"}) (standaloneConfig "redis-1.internal" 6380)

-- TLS ends

-- MTLS begins
overMutualTls :: Config
overMutualTls = setTls (Just known) (standaloneConfig "redis-1.internal" 6380)
  where
    known =
      tlsDefaults
        { tlsCaFile = Just "/etc/redis/ca.crt",
          tlsCertificate = Just ("/etc/redis/client.crt", "/etc/redis/client.key")
        }

-- MTLS ends

-- TOKENS begins
withTokens :: ByteString -> IO ByteString -> Config -> Config
withTokens user fetchToken = setCredentialsFrom $ do
  token <- fetchToken
  pure (issuedCredentials (Credentials (Just user) (toSecret token))) {issuedFor = Just (seconds 900)}

-- TOKENS ends

-- MAPPING begins
throughForward :: Config -> Config
throughForward = setAddressMapping $ \case
  TcpEndpoint _ port -> TcpEndpoint "127.0.0.1" port
  socket -> socket

-- MAPPING ends

-- READY begins
ready :: Client -> IO Bool
ready client = isRight <$> tryRun client (timeLimit (seconds 0.5) Redis.ping)

-- READY ends

-- STOPPING begins
serving :: Config -> (Client -> IO ()) -> IO () -> IO CloseReport
serving config begin stopRequests = do
  asked <- newEmptyMVar
  _ <- installHandler sigTERM (Catch (void (tryPutMVar asked ()))) Nothing
  client <- newClient config
  begin client
  takeMVar asked
  stopRequests -- no new requests; waits for those that run
  drained <- closeClientWithin (seconds 10) client
  when (closeInDoubt drained > 0) $ putStrLn (show (closeInDoubt drained) <> " commands in doubt")
  pure drained

-- STOPPING ends

main :: IO ()
main = do
  config <- inProduction <$> configFromArguments "redis://127.0.0.1:6379"
  forM_ [overTls, overMutualTls, withTokens "app" (pure "token") config, throughForward (clusterConfig (TcpEndpoint "127.0.0.1" 7000 :| []))] $
    either print (const (putStrLn "valid")) . validateConfig
  drained <- serving config (\client -> ready client >>= print >> raiseSignal sigTERM) (putStrLn "no more requests")
  print (closeInDoubt drained)
