-- | A connection as a stream of bytes, with real servers.
module Redis.WireLiveSpec (spec) where

import Control.Concurrent.Async (withAsync)
import Control.Concurrent.STM
import Control.Exception (try)
import Control.Monad (forM_, replicateM)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty qualified as NonEmpty
import Redis
import Redis.ScriptedPeer
import Redis.Surroundings (addressed, password)
import Redis.TestKit.Certificates
import Redis.TestKit.Server (ClientCertificates (..), ServerOptions (..), TlsOptions (..), serverDefaults, serverTlsPort, withServer)
import Redis.TestKit.Wait (descriptorsReturnTo, failure, openDescriptors, within)
import Redis.Value (Value (..))
import Redis.Wire
import System.Timeout (timeout)
import Test.Hspec

spec :: Spec
spec = around_ (within 60) . describe "a wire" $ do
  forM_ [PreferResp3, OnlyResp2] $ \protocol ->
    it ("is authenticated, named and in its database, asked with " <> show protocol) $
      withServer serverDefaults {optionsPassword = Just "right"} $ \server ->
        leavingNothing . opened (setProtocol protocol . setDatabase 3 . setClientName (Just "the-wire") . password "right" $ addressed server) $ \wire -> do
          sendBytes wire "CLIENT GETNAME\r\n"
          receiveExactly wire 14 `shouldReturn` "$8\r\nthe-wire\r\n"
          sendBytes wire "CLIENT INFO\r\n"
          info <- receiveBytes wire 4096
          info `shouldSatisfy` (" db=3 " `ByteString.isInfixOf`)

  it "carries bytes as they are, in pieces as small as are asked for" $
    withServer serverDefaults $ \server ->
      leavingNothing . opened (addressed server) $ \wire -> do
        let value = ByteString.replicate 200000 120
            size = Char8.pack (show (ByteString.length value))
        sendBytes wire ("*2\r\n$4\r\nECHO\r\n$" <> size <> "\r\n" <> value <> "\r\n")
        receiveBytes wire 1 `shouldReturn` "$"
        receiveExactly wire (ByteString.length size + ByteString.length value + 4) `shouldReturn` (size <> "\r\n" <> value <> "\r\n")
        sendBytes wire "QUIT\r\n"
        receiveExactly wire 5 `shouldReturn` "+OK\r\n"
        receiveBytes wire 10 `shouldReturn` ""

  it "gives replies with the bytes in which they were said, however they are cut" $
    withServer serverDefaults $ \server ->
      leavingNothing . opened (addressed server) $ \wire -> do
        let large = ByteString.replicate 100000 120
        -- All in one stream, so that the network cuts it anywhere.
        sendBytes wire (ByteString.concat (map inline ["PING", "DEBUG PROTOCOL double", "DEBUG PROTOCOL attrib", "DEBUG PROTOCOL null", "NOSUCH", "DEBUG PROTOCOL push"]))
        sendBytes wire ("*2\r\n$4\r\nECHO\r\n$100000\r\n" <> large <> "\r\n" <> inline "ECHO behind")
        receiveReply wire `shouldReturn` (SimpleString "PONG", "+PONG\r\n")
        (double, said) <- receiveReply wire
        (double, said) `shouldSatisfy` \case
          (Double _, bytes) -> "," `ByteString.isPrefixOf` bytes && "\r\n" `ByteString.isSuffixOf` bytes
          _ -> False
        (attributed, frame) <- receiveReply wire
        (attributed, frame) `shouldSatisfy` \case
          (WithAttributes _ _, bytes) -> "|1\r\n" `ByteString.isPrefixOf` bytes
          _ -> False
        receiveReply wire `shouldReturn` (Null, "_\r\n")
        (failed, line) <- receiveReply wire
        (failed, line) `shouldSatisfy` \case
          (ErrorReply text, bytes) -> bytes == "-" <> text <> "\r\n"
          _ -> False
        -- DEBUG also sends a reply behind its push or, with Valkey 9, before it.
        said' <- replicateM 2 (fst <$> receiveReply wire)
        [elements | Push elements <- said'] `shouldSatisfy` ((== 1) . length)
        receiveReply wire `shouldReturn` (BulkString large, "$100000\r\n" <> large <> "\r\n")
        receiveReply wire `shouldReturn` (BulkString "behind", "$6\r\nbehind\r\n")
        sendBytes wire (inline "QUIT")
        receiveReply wire `shouldReturn` (SimpleString "OK", "+OK\r\n")
        try (receiveReply wire) >>= \case
          Left (ConnectionError ConnectionFailure {connectionCause = ClosedByPeer}) -> pure ()
          other -> expectationFailure (show other)

  it "on which something else than a reply comes says so" $
    withPeer (\said -> if said == ["PING"] then "what?\r\n" else "+OK\r\n") $ \peer ->
      leavingNothing . opened (setProtocol OnlyResp2 (peerConfig peer)) $ \wire -> do
        sendBytes wire "*1\r\n$4\r\nPING\r\n"
        try (receiveReply wire) >>= \case
          Left (ConnectionError ConnectionFailure {connectionCause = ProtocolViolation _}) -> pure ()
          other -> expectationFailure (show other)

  it "carries them over TLS" $
    withCertificates $ \certificates -> do
      let tls = TlsOptions {tlsKeyPair = certificatesServer certificates, tlsAuthority = certificatesAuthority certificates, tlsClients = ClientCertificatesIgnored}
          trusting = tlsDefaults {tlsCaFile = Just (certificatesAuthority certificates)}
      withServer serverDefaults {optionsTls = Just tls} $ \server -> case serverTlsPort server of
        Nothing -> failure "no TLS port"
        Just port -> leavingNothing . opened (setTls (Just trusting) (standaloneConfig "127.0.0.1" (fromIntegral port))) $ \wire -> do
          sendBytes wire "PING\r\n"
          receiveExactly wire 7 `shouldReturn` "+PONG\r\n"

  it "that is refused is an error that says why, and leaves nothing" $
    withServer serverDefaults {optionsPassword = Just "right"} $ \server ->
      leavingNothing $
        try (opened (password "wrong" (addressed server)) (const (pure ()))) >>= \case
          Left (ConnectionError (ConnectionFailure _ NotSent _ (HandshakeRefused said))) -> serverErrorCode said `shouldBe` "WRONGPASS"
          other -> expectationFailure (show other)

  it "that is not answered fails when the time to connect is over, and leaves nothing" $
    withPeer (const "") $ \peer ->
      leavingNothing $
        try (opened (setConnectTimeout (milliseconds 200) (peerConfig peer)) (const (pure ()))) >>= \case
          Left (ConnectionError (ConnectionFailure _ NotSent _ (ConnectTimedOut _))) -> pure ()
          other -> expectationFailure (show other)

  it "that is interrupted while it is opened leaves nothing" $
    withPeer (const "") $ \peer -> leavingNothing $ do
      timeout 100000 (opened (peerConfig peer) (const (pure ()))) `shouldReturn` Nothing
      -- Also if the caller is interrupted at once.
      begun <- newTVarIO False
      withAsync (atomically (writeTVar begun True) *> opened (peerConfig peer) (const (pure ()))) $ \_ ->
        atomically (readTVar begun >>= check)

inline :: ByteString -> ByteString
inline = (<> "\r\n")

opened :: Config -> (Wire -> IO a) -> IO a
opened config = withWire config (firstOf (getEndpoints config))

receiveExactly :: Wire -> Int -> IO ByteString
receiveExactly wire = go ""
  where
    go sofar left
      | left <= 0 = pure sofar
      | otherwise = do
        more <- receiveBytes wire left
        if ByteString.null more then pure sofar else go (sofar <> more) (left - ByteString.length more)

leavingNothing :: IO a -> IO a
leavingNothing action = do
  before' <- openDescriptors
  result <- action
  result <$ descriptorsReturnTo 5 before'

firstOf :: NonEmpty.NonEmpty a -> a
firstOf (one NonEmpty.:| _) = one
