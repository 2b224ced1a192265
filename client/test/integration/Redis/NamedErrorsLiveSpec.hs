-- | Errors name their command, however it was run.
module Redis.NamedErrorsLiveSpec (spec) where

import Control.Exception (displayException, try)
import Control.Monad (forM_, void)
import Data.Int (Int64)
import Data.List (isInfixOf)
import Redis
import Redis.Cache
import Redis.Command.Build qualified as Build
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.Script
import Redis.Surroundings
import Redis.TestKit.Server (Server, serverDefaults, withServer)
import Redis.TestKit.Wait (within)
import Redis.Transaction
import Test.Hspec

spec :: Spec
spec = around_ (within 60) . describe "an error" $ do
  forM_ ways $ \(way, attempt) ->
    it ("names the command and its key, but no value, when it was run " <> way) $
      withText $ \_ client -> do
        failed <- attempt client (Redis.lpush "text" ("secret" :| []))
        shown failed `shouldSatisfy` \text -> "LPUSH text" `isInfixOf` text && not ("secret" `isInfixOf` text)

  it "names a read, from the cache or not" $
    withServer serverDefaults $ \server ->
      withClient (setCaching (Just cachingDefaults) (addressed server)) $ \client -> do
        run client (Redis.set "text" "value")
        wrong <- tryRunCached client (seconds 60) (Redis.hget "text" "field")
        shown wrong `shouldBe` "HGET text: server error: WRONGTYPE Operation against a key holding the wrong kind of value"
        -- The second time the reply is there already.
        unlike <- traverse (const (tryRunCached client (seconds 60) (raw ["GET", "text"] `decodedBy` Decode.integer))) [1 :: Int, 2]
        map shown unlike `shouldBe` replicate 2 "GET text: unexpected reply: expected an integer, got BulkString \"value\""

  it "says what the program's function said of a result that it refused, however the command was run" $
    withServer serverDefaults $ \server ->
      withClient (setCaching (Just cachingDefaults) (addressed server)) $ \client -> do
        run client (Redis.set "text" "value")
        let own = refine (maybe (Left "no text") (\bytes -> if bytes == "value" then Left "not a number: value" else Right bytes))
            read' = own (Redis.get "text")
        refused <-
          sequence
            [ tryRun client read',
              submit client read' >>= tryAwaitReply,
              runPipeline client (tryPipelined read'),
              withDedicated client AnyPrimary (`tryRunOn` read'),
              tryRunCached client (seconds 60) read',
              -- Now from the cache.
              tryRunCached client (seconds 60) read',
              runTransaction client (tryQueued read'),
              tryRunTransaction client (queued read'),
              tryRun client (own (evalScript (script "return redis.call('GET', KEYS[1])") ["text"] [] `decodedBy` Decode.nullable Decode.bytes)),
              tryRun client (refine (const (Left "not a number: value")) (onEvery Primaries (Redis.get "text")))
            ]
        map shown refused
          `shouldBe` map
            (<> "unexpected reply: not a number: value")
            (replicate 6 "GET text: " <> replicate 2 "transaction, command 1 of 1 (GET text): " <> ["EVALSHA text: ", "GET text: "])
        map (either errorDelivery (const NotSent)) refused `shouldBe` replicate 10 MaybeExecuted
        run client (own (Just <$> Redis.getrange "text" 0 0)) `shouldReturn` "v"

  it "names a script, and says that it may have run" $
    withText $ \_ client -> do
      failed <- tryRun client (evalScript (script "return redis.error_reply('FAILED of its own accord')") ["text"] ["value"])
      shown failed `shouldBe` "EVALSHA text: server error: FAILED of its own accord (it may have run)"

  it "names a command whose time is over, one that waits and one that does not" $
    withText $ \_ client -> do
      waiting <- tryRun client (timeLimit (seconds 0.1) (Redis.blpop ("none" :| ["other"]) Nothing))
      shown waiting `shouldBe` "BLPOP none ...: no reply within 0.1 s (it may have run)"
      busy <- tryRun client (timeLimit (seconds 0.1) (raw ["DEBUG", "SLEEP", "2"]))
      shown busy `shouldBe` "DEBUG: no reply within 0.1 s (it may have run)"

  it "names a command for which there is no connection" $
    withServer serverDefaults $ \server -> do
      text <- withClient (setCommandTimeout (Just (seconds 0.5)) (addressed server)) $ \client -> do
        run client Redis.ping
        _ <- tryRun client (raw ["SHUTDOWN", "NOSAVE"])
        shown <$> tryRun client (Redis.incr "n")
      text `shouldSatisfy` \said -> take 8 said == "INCR n: "

  it "says which command of a transaction failed, however it was run" $
    withText $ \_ client -> do
      let running first = queued (Redis.incr "n") *> queued first *> queued (Redis.incr "n")
          failing = void (running (Redis.lpush "text" ("value" :| [])))
          unqueued = void (queued (Redis.incr "n") *> queued (raw ["GET", "too", "many"]))
          watched transaction = try (watching client ("text" :| []) (\_ -> pure (Commit transaction)))
          atTwo = "transaction, command 2 of "
      sequence [tryRunTransaction client failing, void <$> watched failing, submitTransaction client failing >>= tryAwaitReply]
        >>= (`shouldBe` replicate 3 (atTwo <> "3 (LPUSH text): server error: WRONGTYPE Operation against a key holding the wrong kind of value (it may have run)")) . map shown
      sequence [tryRunTransaction client unqueued, void <$> watched unqueued]
        >>= (`shouldBe` replicate 2 (atTwo <> "2 (GET too): server error: ERR wrong number of arguments for 'get' command")) . map shown

  it "says of a command that the server does not know that it has not run" $
    withText $ \_ client -> do
      let unknown = Build.command "JSON.GET" [Build.key "text"] Decode.value
      failed <- tryRun client unknown
      lent <- withDedicated client AnyPrimary (`tryRunOn` unknown)
      map (either errorDelivery (const MaybeExecuted)) [failed, lent] `shouldBe` [RefusedBeforeRun, RefusedBeforeRun]
      map (takeWhile (/= ',') . shown) [failed, lent] `shouldBe` replicate 2 "JSON.GET text: server error: ERR unknown command 'JSON.GET'"
  where
    ways :: [(String, Client -> Command Int64 -> IO (Either Error Int64))]
    ways =
      [ ("and waited for", tryRun),
        ("without waiting", \client given -> submit client given >>= tryAwaitReply),
        ("in a pipeline", \client given -> runPipeline client (tryPipelined given)),
        ("on a lent connection", \client given -> withDedicated client AnyPrimary (`tryRunOn` given)),
        ("on a lent connection, without waiting", \client given -> withDedicated client AnyPrimary (\own -> submitOn own given >>= tryAwaitReply)),
        ("in a transaction", \client given -> runTransaction client (tryQueued given))
      ]

withText :: (Server -> Client -> IO a) -> IO a
withText act =
  withServer serverDefaults $ \server ->
    withClient (addressed server) $ \client -> run client (Redis.set "text" "value") *> act server client

shown :: Show a => Either Error a -> String
shown = either displayException show
