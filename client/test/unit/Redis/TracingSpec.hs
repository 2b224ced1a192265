-- | The outcome of a command that has ended, for traces and for people.
module Redis.TracingSpec (spec) where

import Data.ByteString (ByteString)
import Redis.Duration (microseconds, milliseconds)
import Redis.Error
import Redis.Tracing
import Test.Hspec

spec :: Spec
spec = do
  describe "the attributes of a span" $ do
    it "say at its beginning what is asked of which database" $
      begunAttributes begun
        `shouldBe` [ ("db.system.name", TextAttribute "redis"),
                     ("db.namespace", TextAttribute "4"),
                     ("db.operation.name", TextAttribute "GET"),
                     ("db.query.text", TextAttribute "GET ?")
                   ]
    it "say where it goes, if that is known before" $
      drop 4 (begunAttributes begun {begunNode = Just node}) `shouldBe` [("server.address", TextAttribute "db.example"), ("server.port", NumberAttribute 6379)]
    it "say how many there are in a batch, and which script is run" $ do
      lookup "db.operation.batch.size" (begunAttributes begun {begunBatch = Just 7}) `shouldBe` Just (NumberAttribute 7)
      lookup "db.stored_procedure.name" (begunAttributes begun {begunProcedure = Just "sum"}) `shouldBe` Just (TextAttribute "sum")
    it "say at its end who answered" $
      endedAttributes ended
        `shouldBe` [ ("server.address", TextAttribute "db.example"),
                     ("server.port", NumberAttribute 6379),
                     ("network.transport", TextAttribute "tcp"),
                     ("redis.client.attempts", NumberAttribute 1),
                     ("redis.client.redirects", NumberAttribute 0)
                   ]
    it "know the peer if the host is an address" $ do
      let peer endpoint = [lookup name (endedAttributes ended {endedNode = Just endpoint}) | name <- ["network.peer.address", "network.peer.port"]]
      peer (TcpEndpoint "10.0.0.7" 1) `shouldBe` [Just (TextAttribute "10.0.0.7"), Just (NumberAttribute 1)]
      peer (TcpEndpoint "::1" 1) `shouldBe` [Just (TextAttribute "::1"), Just (NumberAttribute 1)]
      peer (TcpEndpoint "db.example" 1) `shouldBe` [Nothing, Nothing]
      peer (UnixEndpoint "/run/redis") `shouldBe` [Just (TextAttribute "/run/redis"), Nothing]
    it "have the path of a socket in UTF-8, whatever characters it has" $ do
      let path = UnixEndpoint "/run/\233\1103\xdce9"
          utf8 = Just (TextAttribute "/run/\xc3\xa9\xd1\x8f\xef\xbf\xbd")
      lookup "server.address" (begunAttributes begun {begunNode = Just path}) `shouldBe` utf8
      lookup "network.peer.address" (endedAttributes ended {endedNode = Just path}) `shouldBe` utf8
    it "name the class of each error, and the server's status if it said one" $ do
      let told outcome = [lookup name (endedAttributes ended {endedOutcome = outcome}) | name <- ["db.response.status_code", "error.type"]]
          failing = told . CommandFailed
          plain word = [Nothing, Just (TextAttribute word)]
      told CommandSucceeded `shouldBe` [Nothing, Nothing]
      told CommandInterrupted `shouldBe` plain "interrupted"
      failing (ReplyError (serverErrorFromText "WRONGTYPE Operation against a key")) `shouldBe` [Just (TextAttribute "WRONGTYPE"), Just (TextAttribute "WRONGTYPE")]
      failing (TimeoutError (TimeoutFailure "" NotSent (milliseconds 5) Nothing)) `shouldBe` plain "timeout"
      failing (ConnectionError (ConnectionFailure "" NotSent node ClosedByPeer)) `shouldBe` plain "connection"
      failing (RoutingError (RoutingFailure "" NotSent (NoReachableNode []))) `shouldBe` plain "routing"
      failing (RefusedError EmptyCommand) `shouldBe` plain "refused"
      failing ClientClosed `shouldBe` plain "client_closed"

  describe "a slow command" $ do
    it "is told in one line: the time, the command, the node, the attempts and where the time went" $
      renderSlow (SlowCommand begun ended)
        `shouldBe` "61.50 ms: GET key at db.example:6379, 1 attempt (queued after 0.02 ms, recovering for 0.00 ms)"
    it "is told with its error, if it had one" $
      renderSlow (SlowCommand begun ended {endedOutcome = CommandFailed ClientClosed, endedNode = Nothing, endedAttempts = 3, endedEntering = Nothing, endedRecovering = milliseconds 60})
        `shouldBe` "61.50 ms: GET key at several nodes or none, 3 attempts (never queued, recovering for 60.00 ms) failed: client_closed"
  where
    node = TcpEndpoint "db.example" 6379
    begun = CommandBegun {begunOperation = "GET" :: ByteString, begunBatch = Nothing, begunText = "GET key", begunShape = "GET ?", begunProcedure = Nothing, begunDatabase = 4, begunNode = Nothing}
    ended =
      CommandEnded
        { endedOutcome = CommandSucceeded,
          endedNode = Just node,
          endedAttempts = 1,
          endedRedirects = 0,
          endedTook = microseconds 61500,
          endedEntering = Just (microseconds 20),
          endedRecovering = mempty
        }
