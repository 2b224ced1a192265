module Redis.ErrorSpec (spec) where

import Control.Exception (Exception (displayException, toException), SomeException, throwIO, try)
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Redis.Duration
import Redis.Error
import Test.Hspec

spec :: Spec
spec = describe "Redis.Error, said to people" $ do
  it "has the code of the command that failed inside a script, as servers since 7.0 say it, from older ones, too" $ do
    let said text = let failed = serverErrorFromText text in (serverErrorCode failed, serverErrorMessage failed, serverErrorDelivery failed)
    said "ERR Error running script (call to f_12ab): @user_script:3: WRONGTYPE Operation against a key"
      `shouldBe` ("WRONGTYPE", "Operation against a key script: f_12ab, on @user_script:3.", MaybeExecuted)
    -- The script may have written before.
    said "ERR Error running script (call to f_12ab): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.  "
      `shouldBe` ("READONLY", "You can't write against a read only replica.   script: f_12ab, on @user_script:1.", MaybeExecuted)
    said "ERR Error running script (call to f_12ab): @user_script:2: NOGROUP No such key 's'"
      `shouldBe` said "NOGROUP No such key 's' script: f_12ab, on @user_script:2."
  it "says of a discarded transaction that it did not run, whatever the reason" $ do
    let said why = let failed = serverErrorFromText ("EXECABORT Transaction discarded because of" <> why) in (serverErrorCode failed, serverErrorDelivery failed)
    map said [" previous errors.", ": READONLY You can't write against a read only replica.", ": ERR wrong number of arguments for 'exec' command"]
      `shouldBe` [("EXECABORT", RefusedBeforeRun), ("READONLY", RefusedBeforeRun), ("ERR", RefusedBeforeRun)]
  it "leaves what Lua itself says inside a script as it is" $
    [ text
      | text <-
          [ "ERR Error running script (call to f_12ab): @user_script:1: user_script:1: attempt to call a nil value",
            "ERR Error running script (call to f_12ab)",
            "ERR Error running script (call to f_12ab): @user_script:1: ",
            "ERR unknown command 'FOO'"
          ],
        let failed = serverErrorFromText text,
        serverErrorCode failed <> " " <> serverErrorMessage failed /= text
    ]
      `shouldBe` []
  mapM_
    (\(failure, text) -> it ("says " <> show text) (displayException failure `shouldBe` text))
    [ (ReplyError wrongType {serverErrorDelivery = RefusedBeforeRun}, "server error: WRONGTYPE Operation against a key"),
      (ReplyError wrongType {serverErrorCommand = "LPUSH jobs"}, "LPUSH jobs: server error: WRONGTYPE Operation against a key (it may have run)"),
      (ConnectionError (ConnectionFailure "INCR n" MaybeExecuted here ClosedByPeer), "INCR n: db:1: the server closed the connection (it may have run)"),
      (TimeoutError (TimeoutFailure "GET caf\xc3\xa9" NotSent (seconds 5) Nothing), "GET caf\233: no reply within 5.0 s (not sent)"),
      ( RoutingError (RoutingFailure "DBSIZE" NotSent (NodesFailed (FailedNodes (Map.singleton here (TimeoutError (TimeoutFailure "DBSIZE" NotSent (seconds 5) Nothing))) 2))),
        "DBSIZE: 1 of 2 nodes failed: db:1: no reply within 5.0 s (not sent) (not sent)"
      ),
      (UnexpectedReply (DecodeError [] "" "no user: age is missing" "GET user:7"), "GET user:7: unexpected reply: no user: age is missing"),
      (UnexpectedReply (DecodeError [] "OK" "Integer 3" ""), "unexpected reply: expected OK, got Integer 3"),
      ( UnexpectedReply (DecodeError ["element 3", "field \"epoch\""] "an integer" "null" "CLUSTER SHARDS"),
        "CLUSTER SHARDS: unexpected reply: element 3: field \"epoch\": expected an integer, got null"
      ),
      (ConnectionError (ConnectionFailure "" NotSent here (ConnectFailed "127.0.0.1:1: Connection refused")), "db:1: cannot be connected to (127.0.0.1:1: Connection refused) (not sent)"),
      (ConnectionError (ConnectionFailure "" MaybeExecuted here ClosedByPeer), "db:1: the server closed the connection (it may have run)"),
      (ConnectionError (ConnectionFailure "" NotSent here (HandshakeRefused wrongType)), "db:1: the server refuses: WRONGTYPE Operation against a key (not sent)"),
      (ReplyError unwritten, "server error: ERR cl\233 inconnue \65533 (it may have run)"),
      (ConnectionError (ConnectionFailure "" NotSent here (HandshakeRefused unwritten)), "db:1: the server refuses: ERR cl\233 inconnue \65533 (not sent)"),
      (RoutingError (RoutingFailure "" NotSent (NoReachableNode [(here, ReplyError unwritten)])), "no node can be reached: db:1: ERR cl\233 inconnue \65533 (not sent)"),
      ( RoutingError (RoutingFailure "" NotSent (NoReachableNode [(here, ReplyError (serverErrorFromText "ERR This instance has cluster support disabled"))])),
        "no node can be reached: db:1: ERR This instance has cluster support disabled (the server is alone; standaloneConfig or redis:// makes a client for it) (not sent)"
      ),
      (TimeoutError (TimeoutFailure "" MaybeExecuted (seconds 5) Nothing), "no reply within 5.0 s (it may have run)"),
      (TimeoutError (TimeoutFailure "" MaybeExecuted (milliseconds 12) Nothing), "no reply within 0.012 s (it may have run)"),
      (TimeoutError (TimeoutFailure "" NotSent (seconds 5) (Just (here, TlsTimedOut (seconds 4)))), "no reply within 5.0 s: db:1: no TLS within 4.0 s: a port that speaks plain text does not answer (that is redis://, without setTls) (not sent)"),
      (RoutingError (RoutingFailure "" NotSent (NoReachableNode [(here, TimeoutError (TimeoutFailure "" NotSent (seconds 2) (Just (here, ConnectTimedOut (seconds 2)))))])), "no node can be reached: db:1: no connection within 2.0 s (not sent)"),
      (RoutingError (RoutingFailure "" NotSent (UncoveredSlot 7)), "no node is known to serve slot 7 (not sent)"),
      (RoutingError (RoutingFailure "" NotSent (NoReachableNode [])), "no node is known (not sent)"),
      (RoutingError (RoutingFailure "" NotSent (NoReachableNode [(here, ConnectionError (ConnectionFailure "" NotSent here ClosedByPeer)), (there, TimeoutError (TimeoutFailure "" NotSent (seconds 2) Nothing))])), "no node can be reached: db:1: the server closed the connection; [::1]:2: no reply within 2.0 s (not sent) (not sent)"),
      ( RoutingError (RoutingFailure "" RefusedBeforeRun (AttemptsExhausted [(here, ReplyError wrongType), (here, ReplyError wrongType), (there, ReplyError wrongType), (here, lost)])),
        "given up after 4 attempts: db:1: WRONGTYPE Operation against a key (2 times); [::1]:2: WRONGTYPE Operation against a key; db:1: the server closed the connection (refused before it ran)"
      ),
      ( RoutingError (RoutingFailure "" MaybeExecuted (PartsFailed (FailedParts 1 3 (ReplyError wrongType {serverErrorDelivery = RefusedBeforeRun, serverErrorCommand = "MSET b"})))),
        "1 of 3 parts failed, the others have run; the first: MSET b: server error: WRONGTYPE Operation against a key (it may have run)"
      ),
      ( RoutingError (RoutingFailure "" MaybeExecuted (PartsFailed (FailedParts 3 3 lost))),
        "3 of 3 parts failed; the first: db:1: the server closed the connection (not sent) (it may have run)"
      ),
      (RefusedError (Unsupported "EXEC with conditions" "Redis 7.0.15"), "refused: Redis 7.0.15 is too old for EXEC with conditions"),
      (RefusedError (Unsupported "EXEC with conditions" ""), "refused: the server is too old for EXEC with conditions")
    ]

  it "prints so where nobody catches it, in runtimes that go by show and in those that go by displayException" $
    [show thrown | thrown <- [toException (ReplyError wrongType {serverErrorDelivery = RefusedBeforeRun}), toException (RefusedError EmptyCommand)]]
      -- Some versions of the base library end the text with a line break.
      <> lines (displayException (toException (ReplyError wrongType {serverErrorDelivery = RefusedBeforeRun})))
      `shouldBe` [ "server error: WRONGTYPE Operation against a key",
                   "refused: the command has no name",
                   "server error: WRONGTYPE Operation against a key"
                 ]

  it "is caught as what it is, by its type or among all exceptions, and thrown on" $ do
    try (throwIO (ReplyError wrongType)) `shouldReturn` (Left (ReplyError wrongType) :: Either Error ())
    among <- try (throwIO ClientClosed)
    either (\caught -> try (throwIO (caught :: SomeException))) (pure . Right) among
      `shouldReturn` (Left ClientClosed :: Either Error ())

  it "names no constructor, whatever the cause" $
    [ text
      | cause <-
          [ ConnectFailed "why",
            NameNotResolved "why",
            TlsFailed "why",
            HandshakeRefused wrongType,
            ConnectTimedOut (seconds 1),
            ClosedByPeer,
            BrokenConnection "why",
            SilentPeer (seconds 1),
            ProtocolViolation "why",
            ClosedLocally
          ],
        let text = displayException (ConnectionError (ConnectionFailure "" NotSent here cause)),
        takeWhile (/= ' ') (show cause) `isInfixOf` text
    ]
      `shouldBe` []
  where
    wrongType = serverErrorFromText "WRONGTYPE Operation against a key"
    -- In UTF-8, but for the last byte.
    unwritten = serverErrorFromText "ERR cl\xc3\xa9 inconnue \xff"
    here = TcpEndpoint "db" 1
    lost = ConnectionError (ConnectionFailure "" NotSent here ClosedByPeer)
    there = TcpEndpoint "::1" 2
