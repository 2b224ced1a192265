-- | Replies in pieces, invalid replies, and very large replies.
module BytesSpec (spec) where

import Control.Concurrent.STM
import Control.Monad (forM_, replicateM_)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Command (Reply (Status))
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventuallyReturns)
import Redis.Transaction
import Redis.Value (Value (..))
import Test.Hspec

spec :: Spec
spec = do
  describe "a reply that arrives byte by byte" $ do
    it "is what it is, whatever its type" $
      behindProxy $ \_ proxy -> leavingNothing $ do
        Proxy.slice proxy Proxy.ToClient 1
        withClient (through proxy) $ \client ->
          forM_ resp3 $ \(kind, expected) -> do
            answer <- run client (raw ["DEBUG", "PROTOCOL", kind])
            (kind, answer) `shouldBe` (kind, expected)

    it "is the same as in one piece, in both protocols" $
      behindProxy $ \server proxy -> leavingNothing $ do
        _ <- Server.command server ("RPUSH" : "list" : map (Char8.pack . show) [1 .. 200 :: Int])
        Proxy.slice proxy Proxy.ToClient 1
        forM_ [PreferResp3, OnlyResp2] $ \protocol -> do
          let ask config = withClient (setProtocol protocol config) $ \client ->
                mapM
                  (tryRun client . raw)
                  [ ["LRANGE", "list", "0", "-1"],
                    ["GET", "missing"],
                    ["GET", "list"],
                    ["CONFIG", "GET", "maxmemory*"],
                    ["DEBUG", "PROTOCOL", "map"],
                    ["DEBUG", "PROTOCOL", "double"],
                    ["DEBUG", "PROTOCOL", "attrib"],
                    ["LMPOP", "1", "missing", "LEFT"],
                    ["EVAL", "return {1, {2, 'three'}, {err='X four'}, false}", "0"]
                  ]
          whole <- ask (addressed server)
          pieces <- ask (through proxy)
          pieces `shouldBe` whole

    it "is told apart from pushes in between" $
      behindProxy $ \_ proxy -> leavingNothing $ do
        Proxy.slice proxy Proxy.ToClient 1
        pushes <- newTVarIO (0 :: Int)
        let onPush _ = \case
              Push _ -> atomically (modifyTVar' pushes (+ 1))
              _ -> pure ()
        withClient (setHooks noHooks {hookPush = Just onPush} (through proxy)) $ \client ->
          forM_ [1 .. 20 :: Int] $ \turn -> do
            started <- submit client (raw ["DEBUG", "PROTOCOL", "push"])
            let token = Char8.pack (show turn)
            run client (Commands.echo token) `shouldReturn` token
            _ <- awaitReply started
            pure ()
        readTVarIO pushes `shouldReturn` 20

    it "harms nobody under load" $
      behindProxy $ \server proxy -> do
        Proxy.slice proxy Proxy.ToClient 1
        Proxy.slice proxy Proxy.ToServer 3
        tally <- underLoadOf 4 server (through proxy) (\_ _ -> pure ())
        tallyMaybe tally `shouldBe` 0

  describe "an argument that the server does not take" $
    it "is refused before it ends the connection for everybody" $
      withServer serverDefaults {Server.optionsConfig = ["proto-max-bulk-len 1mb"]} $ \server -> leavingNothing $ do
        let small = setLimits limitsDefaults {limitBulkBytes = 1024 * 1024} (single (addressed server))
            long = Commands.set "here" (ByteString.replicate (1024 * 1024 + 1) 120)
        (journal, config) <- journalled small
        withClient config $ \client -> do
          tryRun client long `shouldReturn` Left (RefusedError (ArgumentTooLong "SET"))
          tryRunTransaction client (queued long) `shouldReturn` Left (RefusedError (ArgumentTooLong "SET"))
          withDedicated client AnyPrimary (`tryRunOn` long) `shouldReturn` Left (RefusedError (ArgumentTooLong "SET"))
          -- The commands beside it do not run either.
          let both = (,) <$> queued (Commands.set "beside" "1") <*> queued long
          watching client ("beside" :| []) (\_ -> pure (Commit both)) `shouldThrow` (== RefusedError (ArgumentTooLong "SET"))
          run client (Commands.get "beside") `shouldReturn` Nothing
          run client (Commands.set "here" (ByteString.replicate (1024 * 1024) 120))
          run client (Commands.strlen "here") `shouldReturn` 1024 * 1024
        ended <- journalEntries journal
        [cause | Disconnected _ cause <- ended, cause /= ClosedLocally] `shouldBe` []

  describe "garbage instead of a reply" $ do
    it "ends the connection, tells everybody in flight, and the next one works" $
      behindProxy $ \server proxy -> leavingNothing $
        withClient (setSilenceLimit Nothing (setMuxCount (Just 1) (through proxy))) $ \client -> do
          run client Commands.ping
          Proxy.freeze proxy Proxy.ToClient
          results <- inPipeline client (replicate 50 (Commands.incr "hits")) $ do
            eventuallyReturns 5 50 (inFlightOf client)
            eventuallyReturns 5 50 (counterOf server "hits")
            Proxy.inject proxy "?garbage\r\n"
          forM_ results $ \case
            Left (ConnectionError (ConnectionFailure _ MaybeExecuted _ (ProtocolViolation _))) -> pure ()
            other -> expectationFailure (show other)
          Proxy.heal proxy
          run client (Commands.incr "hits") `shouldReturn` 51

    forM_ hostile $ \(what, bytes) ->
      it ("is seen at once: " <> what) $
        behindProxy $ \_ proxy -> leavingNothing $ do
          (journal, config) <- journalled (setMuxCount (Just 1) (through proxy))
          withClient config $ \client -> do
            run client Commands.ping
            Proxy.inject proxy bytes
            awaitJournal journal "the connection is given up" $ \case
              Disconnected _ (ProtocolViolation _) -> True
              _ -> False
            run client Commands.ping

    it "harms nobody under load" $
      behindProxy $ \server proxy -> do
        tally <- underLoad server (through proxy) $ \_ load ->
          replicateM_ 5 $ do
            Proxy.inject proxy "?garbage\r\n"
            workersProgress load 8
        tallyMaybe tally `shouldSatisfy` (> 0)

  describe "a value of 64 MB" $ do
    it "is written and read whole while others work" $
      Server.withServer Server.serverDefaults $ \server -> do
        tally <- underLoadOf 4 server (setCommandTimeout (Just (seconds 30)) (addressed server)) $ \client _ -> do
          run client (Commands.set "large" large)
          found <- run client (Commands.get "large")
          -- Compared here, because the expectation would print the value.
          (found == Just large) `shouldBe` True
        tallyMaybe tally `shouldBe` 0

    it "ends the connection when it is above the limit, and is not asked for again" $
      Server.withServer Server.serverDefaults $ \server -> leavingNothing $ do
        (journal, config) <- journalled (setMuxCount (Just 1) (setLimits limitsDefaults {limitBulkBytes = 1024 * 1024} (addressed server)))
        withClient config $ \client -> do
          Server.command server ["SET", "large", large] `shouldReturn` Status "OK"
          tryRun client (Commands.get "large") >>= \case
            Left (ConnectionError (ConnectionFailure _ MaybeExecuted _ (ProtocolViolation _))) -> pure ()
            other -> expectationFailure (either show (const "a reply") other)
          run client Commands.ping
        events <- journalEntries journal
        length [() | Connected _ _ <- events] `shouldBe` 2

large :: ByteString
large = ByteString.concat (replicate (64 * 1024) (ByteString.pack (take 1024 (cycle [0 .. 250]))))

-- | The server's replies to @DEBUG PROTOCOL@, as values.
resp3 :: [(ByteString, Value)]
resp3 =
  [ ("string", BulkString "Hello World"),
    ("integer", Integer 12345),
    ("double", Double 3.141),
    ("null", Null),
    ("array", Array [Integer 0, Integer 1, Integer 2]),
    ("set", Set [Integer 0, Integer 1, Integer 2]),
    ("map", Map [(Integer 0, Boolean False), (Integer 1, Boolean True), (Integer 2, Boolean False)]),
    ("attrib", BulkString "Some real reply following the attribute"),
    ("bignum", BigNumber 1234567999999999999999999999999999999),
    ("verbatim", VerbatimString "txt" "This is a verbatim\nstring"),
    ("true", Boolean True),
    ("false", Boolean False)
  ]

-- | Bytes that no server sends.
hostile :: [(String, ByteString)]
hostile =
  [ ("an unknown type", "?\r\n"),
    ("a string of petabytes", "$9999999999999999\r\n"),
    ("an array without end", "*9999999999999999\r\n"),
    ("arrays within arrays", ByteString.concat (replicate 20000 "*1\r\n")),
    ("a number that is none", ":12x\r\n"),
    ("a length that is none", "$-7\r\n"),
    ("a streamed string", "$?\r\n;4\r\nabcd\r\n;0\r\n"),
    ("a reply that nobody asked for", "+OK\r\n"),
    ("another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n")
  ]
